"""Models that leave the process: our own safe file, and ONNX."""

from maxmargin.interchange.errors import ModelFileError
from maxmargin.interchange.model_file import load, save
from maxmargin.interchange.onnx_export import to_onnx

__all__ = ["ModelFileError", "load", "save", "to_onnx"]
