"""Models that leave the process: our own safe file, ONNX, and other programs' files."""

from maxmargin.interchange.errors import ModelFileError
from maxmargin.interchange.liblinear_model import LiblinearModel, read_liblinear_model, write_liblinear_model
from maxmargin.interchange.libsvm import LibsvmModel, read_libsvm_model, write_libsvm_model
from maxmargin.interchange.model_file import load, read_notes, save
from maxmargin.interchange.onnx_export import to_onnx
from maxmargin.interchange.sklearn_models import from_sklearn, to_sklearn
from maxmargin.interchange.svmlight_model import read_svmlight_model

__all__ = [
    "LiblinearModel",
    "LibsvmModel",
    "ModelFileError",
    "from_sklearn",
    "load",
    "read_liblinear_model",
    "read_libsvm_model",
    "read_notes",
    "read_svmlight_model",
    "save",
    "to_onnx",
    "to_sklearn",
    "write_liblinear_model",
    "write_libsvm_model",
]
