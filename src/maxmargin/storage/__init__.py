"""Files of a JSON header and raw arrays, without code: what model files and checkpoints have in common.

    file_format     prefix, checksum and strict JSON header
    array_table     the arrays

Nothing here is public.
"""
