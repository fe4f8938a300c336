from .benchmark_generators import (
    documents,
    friedman1,
    outliers,
    ranked_queries,
    ringnorm,
    sinc,
    twonorm,
    waveform,
)
from .column_table import ColumnTable
from .errors import DataFileError
from .generators import bananas, chessboard, rings, spirals, two_gaussians, xor
from .libsvm_diagnostics import FileProblem, find_libsvm_problems
from .libsvm_reader import iterate_libsvm, load_libsvm
from .libsvm_writer import dump_libsvm
from .sample_files import read_columns, read_samples, write_samples
from .samples import Samples
from .scaling import Scaling

__all__ = [
    "ColumnTable",
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
    "read_columns",
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
