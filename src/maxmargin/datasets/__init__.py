"""Reading, writing, generating and scaling data.

- `sample_files`: `read_samples` and `write_samples` for all formats
- `libsvm_reader`, `libsvm_writer`, `libsvm_diagnostics`: LIBSVM format, in blocks (`text_blocks`)
- `csv_files`, `csv_lines`, `csv_blocks`, `arrow_files`, `numpy_files`: tables and arrays; `table`, `column_roles` and
  `categorical_columns` assign roles to columns and encode strings
- `compressed_rows`: sparse rows as arrays; `compression`: plain and compressed files; `errors`: `DataFileError`
- `samples`: the result of reading; `scaling`: feature scaling compatible with svm-scale
- `generators`, `benchmark_generators`: synthetic data

Public: the names below.
"""

import lazy_loader as _lazy

# The names are in __init__.pyi and imported when they are first needed: most programs read or write a single format.
__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
