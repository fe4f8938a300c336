"""What goes wrong with model files, as one kind of error."""


class ModelFileError(ValueError):
    """A model cannot be written to a file, or a file cannot be read; the message is a sentence that says why."""
