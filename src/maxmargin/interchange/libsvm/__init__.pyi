from .estimators import (
    estimator_of,
    libsvm_model_of,
    read_libsvm_model,
    write_libsvm_model,
)
from .model import LibsvmModel
from .text import read_text, write_text

__all__ = [
    "LibsvmModel",
    "estimator_of",
    "libsvm_model_of",
    "read_libsvm_model",
    "read_text",
    "write_libsvm_model",
    "write_text",
]
