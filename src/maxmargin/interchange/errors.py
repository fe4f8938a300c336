"""The error class of model files."""


class ModelFileError(ValueError):
    """A model cannot be written to a file, or a model file cannot be read."""
