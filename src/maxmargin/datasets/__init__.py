"""Data from files, data to try things on, and data brought to a common range."""

from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.generators import bananas, chessboard, rings, spirals, two_gaussians, xor
from maxmargin.datasets.libsvm_problems import Problem, find_libsvm_problems
from maxmargin.datasets.libsvm_text import dump_libsvm, iterate_libsvm, load_libsvm
from maxmargin.datasets.literature import (
    documents,
    friedman1,
    outliers,
    ranked_queries,
    ringnorm,
    sinc,
    twonorm,
    waveform,
)
from maxmargin.datasets.sample_files import read_samples, write_samples
from maxmargin.datasets.samples import Samples
from maxmargin.datasets.scaling import Scaling

__all__ = [
    "DataFileError",
    "Problem",
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
