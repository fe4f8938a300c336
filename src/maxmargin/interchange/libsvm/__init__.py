"""LIBSVM's model files: what is in them, and the estimators that predict the same."""

from maxmargin.interchange.libsvm.estimators import (
    estimator_of,
    libsvm_model_of,
    read_libsvm_model,
    write_libsvm_model,
)
from maxmargin.interchange.libsvm.record import LibsvmModel
from maxmargin.interchange.libsvm.text import read_text, write_text

__all__ = [
    "LibsvmModel",
    "estimator_of",
    "libsvm_model_of",
    "read_libsvm_model",
    "read_text",
    "write_libsvm_model",
    "write_text",
]
