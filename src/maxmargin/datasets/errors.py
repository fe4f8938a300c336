"""What is wrong with a file of data, and where."""

from __future__ import annotations


class DataFileError(ValueError):
    """A file of data that cannot be read: which one, the line if there is one, what is wrong and what would be right.

    Parameters
    ----------
    name : str or path
        What the file is called.
    message : str
        What is wrong.
    line : int, optional
        Where, counted from 1.
    """

    def __init__(self, name: object, message: str, line: int | None = None) -> None:
        super().__init__(f"{name}{'' if line is None else f', line {line}'}: {message}")
        self.name = str(name)
        self.message = message
        self.line = line

    def __reduce__(self) -> tuple[type[DataFileError], tuple[str, str, int | None]]:
        return type(self), (self.name, self.message, self.line)
