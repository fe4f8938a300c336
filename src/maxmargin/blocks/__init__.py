"""Data that need not fit into memory, as blocks of rows.

- `row_blocks`: the interface, `RowBlocks` and `RowBlock`; `checked_blocks` and `block_checks` implement it for a
  `Source` of `sources`, with validation of every block; `columns`: labels and weights that are given apart
- `opening`: `open`, which finds the source for an object; `file_sources` for a path
- `array_sources`, `csr_sources`, `iterable_source`: sources in memory, in arrays of files, and of a user
- `dask_source`, `dask_collections`: Dask arrays and data frames by partition; imported for those alone
- `file_arrays`: .npy files and arrays inside .npz files (`npz_files`), mapped, or read block by block into memory that
  is used again (`file_buffers`); `file_stamps`: files that change
- `csr_folders`, `npy_writer`: sparse tables in folders, `write_csr`; `libsvm_cache`: LIBSVM text converted into such a
  folder; `table_cache`: Parquet and Arrow files converted into .npy files; `conversions`: the cache of both,
  `clear_cache`
- `transformed_blocks`: `transform`, for scaled tables
- `arrow_source`, `arrow_batches`: Parquet and Arrow files
- `read_ahead`: blocks that a thread reads while others are used

Public: the names in ``__init__.pyi``.
"""

import lazy_loader as _lazy

# The names are in __init__.pyi and imported when they are first needed: few fits read blocks.
__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
