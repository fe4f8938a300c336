"""The text of a model file, line by line: words, numbers that are numbers, and errors that name file and line.

Other programs' model files are lines of words and decimal numbers. Their own readers trust counts and print what
follows; here a number is what it looks like to a reader, finite, and every count is compared with what is there.
"""

from __future__ import annotations

import math
import os
import re
from typing import BinaryIO, NoReturn

from maxmargin.interchange.errors import ModelFileError

#: A decimal number: no "nan", no "inf", no digit separators, no other scripts' digits.
NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"

#: Indices of features stay below this, as whole numbers of four bytes do.
LARGEST_INDEX = 2**31 - 1

_NUMBER = re.compile(NUMBER)
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")

#: How much of a strange word a message shows.
SHOWN = 40


class TextLines:
    """The lines of a text file.

    Parameters
    ----------
    file : path or binary file
        A binary file is read to its end.
    """

    def __init__(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        if isinstance(file, str | os.PathLike):
            self.name = os.fspath(file)
            with open(file, "rb") as opened:
                data = opened.read()
        else:
            self.name = str(getattr(file, "name", "the model file"))
            data = file.read()
        if not isinstance(data, bytes):
            raise ModelFileError("a model file must be opened in binary mode, for example open(path, 'rb')")
        try:
            text = data.decode("ascii")
        except UnicodeDecodeError as error:
            self.refuse(data.count(b"\n", 0, error.start) + 1, "this is no text of plain letters and numbers")
        self.lines = text.split("\n")
        while self.lines and not self.lines[-1].strip():
            self.lines.pop()

    def __len__(self) -> int:
        return len(self.lines)

    def refuse(self, line: int, sentence: str) -> NoReturn:
        """Raise the error about a line, which are counted from 1."""
        raise ModelFileError(f"{self.name}, line {line}: {sentence}")

    def number(self, line: int, word: str, what: str) -> float:
        """Return a number, or raise."""
        value = float(word) if _NUMBER.fullmatch(word) else math.nan
        if not math.isfinite(value):
            self.refuse(line, f"{what} must be a finite number, not {word[:SHOWN]!r}")
        return value

    def whole(self, line: int, word: str, what: str, least: int, most: int = LARGEST_INDEX) -> int:
        """Return a whole number within limits, or raise."""
        if not _WHOLE.fullmatch(word) or not least <= int(word) <= most:
            self.refuse(line, f"{what} must be a whole number from {least} to {most}, not {word[:SHOWN]!r}")
        return int(word)

    def numbers(self, line: int, words: list[str], what: str, count: int) -> list[float]:
        """Return so many numbers, or raise."""
        self.expect(line, words, what, count)
        return [self.number(line, word, what) for word in words]

    def wholes(self, line: int, words: list[str], what: str, count: int, least: int) -> list[int]:
        """Return so many whole numbers, or raise."""
        self.expect(line, words, what, count)
        return [self.whole(line, word, what, least) for word in words]

    def expect(self, line: int, words: list[str], what: str, count: int) -> None:
        """Raise unless there are so many words."""
        if len(words) != count:
            self.refuse(line, f"{what} has {len(words)} values, but must have {count}")
