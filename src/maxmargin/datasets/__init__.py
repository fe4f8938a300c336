"""Reading, writing, generating and scaling data.

- `sample_files`: `read_samples` and `write_samples` for all formats
- `libsvm_reader`, `libsvm_writer`, `libsvm_diagnostics`: LIBSVM format, in blocks (`text_blocks`)
- `csv_files`, `csv_lines`, `arrow_files`, `numpy_files`: tables and arrays; `table`, `column_roles` and
  `categorical_columns` assign roles to columns and encode strings
- `compression`: plain and compressed files; `errors`: `DataFileError`
- `samples`: the result of reading; `scaling`: feature scaling compatible with svm-scale
- `generators`, `benchmark_generators`: synthetic data

Public: the names below.
"""

from maxmargin.datasets.benchmark_generators import (
    documents,
    friedman1,
    outliers,
    ranked_queries,
    ringnorm,
    sinc,
    twonorm,
    waveform,
)
from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.generators import bananas, chessboard, rings, spirals, two_gaussians, xor
from maxmargin.datasets.libsvm_diagnostics import FileProblem, find_libsvm_problems
from maxmargin.datasets.libsvm_reader import iterate_libsvm, load_libsvm
from maxmargin.datasets.libsvm_writer import dump_libsvm
from maxmargin.datasets.sample_files import read_samples, write_samples
from maxmargin.datasets.samples import Samples
from maxmargin.datasets.scaling import Scaling

__all__ = [
    "DataFileError",
    "FileProblem",
    "Samples",
    "Scaling",
    "bananas",
    "chessboard",
    "documents",
    "dump_libsvm",
    "find_libsvm_problems",
    "friedman1",
    "iterate_libsvm",
    "load_libsvm",
    "outliers",
    "ranked_queries",
    "read_samples",
    "ringnorm",
    "rings",
    "sinc",
    "spirals",
    "two_gaussians",
    "twonorm",
    "waveform",
    "write_samples",
    "xor",
]
