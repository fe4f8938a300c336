"""The error class of the data file readers."""

from __future__ import annotations

#: Largest number of characters of a message.
MAX_CHARACTERS = 1000


class DataFileError(ValueError):
    """A data file cannot be read or written. The message names the file, the line, the problem and a remedy.

    Parameters
    ----------
    name : str or path
        Name of the file.
    message : str
        The problem. Control characters and invalid UTF-8 of a file are escaped, because they could change the terminal.
    line : int, optional
        Line number, from 1.
    """

    def __init__(self, name: object, message: str, line: int | None = None) -> None:
        message = printable(message)
        super().__init__(f"{printable(str(name))}{'' if line is None else f', line {line}'}: {message}")
        self.name = str(name)
        self.message = message
        self.line = line

    def __reduce__(self) -> tuple[type[DataFileError], tuple[str, str, int | None]]:
        return type(self), (self.name, self.message, self.line)


def printable(text: str) -> str:
    """Return text on one line without control characters, shortened if it is very long."""
    if len(text) > MAX_CHARACTERS:
        text = text[:MAX_CHARACTERS] + "…"
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
