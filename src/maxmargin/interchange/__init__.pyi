from .errors import ModelFileError
from .liblinear_model import LiblinearModel, read_liblinear_model, write_liblinear_model
from .libsvm import LibsvmModel, read_libsvm_model, write_libsvm_model
from .model_file import load, read_notes, save
from .onnx_converters import register_onnx_converters
from .onnx_export import to_onnx
from .sklearn_models import from_sklearn, to_sklearn
from .svmlight_model import read_svmlight_model

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
    "register_onnx_converters",
    "save",
    "to_onnx",
    "to_sklearn",
    "write_liblinear_model",
    "write_libsvm_model",
]
