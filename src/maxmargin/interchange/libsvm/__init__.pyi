from .content import libsvm_model_of
from .estimators import machine_of, read_libsvm_model, write_libsvm_model
from .model import LibsvmModel
from .text import read_text, write_text

__all__ = [
    "LibsvmModel",
    "libsvm_model_of",
    "machine_of",
    "read_libsvm_model",
    "read_text",
    "write_libsvm_model",
    "write_text",
]
