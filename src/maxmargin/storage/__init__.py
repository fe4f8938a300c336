"""Files: writing them completely or not at all, and what model files and checkpoints have in common.

Model files and checkpoints are files of a JSON header and raw arrays, without code.

    file_format     prefix, checksum and strict JSON header
    array_table     the arrays
    output_files    files that are complete or unchanged, and named in errors

Nothing here is public.
"""
