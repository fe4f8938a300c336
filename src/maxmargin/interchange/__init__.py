"""Models that leave the process: our own safe file, and ONNX."""

from maxmargin.interchange.errors import ModelFileError
from maxmargin.interchange.model_file import load, save

__all__ = ["ModelFileError", "load", "save"]
