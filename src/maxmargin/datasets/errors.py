"""The error class of the data file readers."""

from __future__ import annotations


class DataFileError(ValueError):
    """A data file cannot be read or written. The message names the file, the line, the problem and a remedy.

    Parameters
    ----------
    name : str or path
        Name of the file.
    message : str
        The problem.
    line : int, optional
        Line number, from 1.
    """

    def __init__(self, name: object, message: str, line: int | None = None) -> None:
        super().__init__(f"{name}{'' if line is None else f', line {line}'}: {message}")
        self.name = str(name)
        self.message = message
        self.line = line

    def __reduce__(self) -> tuple[type[DataFileError], tuple[str, str, int | None]]:
        return type(self), (self.name, self.message, self.line)
