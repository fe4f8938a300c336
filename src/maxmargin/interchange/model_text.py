"""Parse text model files of other programs: lines of words and decimal numbers, and headers of keywords.

Every count is compared with the file and every number must be finite; errors name the file and the line.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection
from typing import Any, BinaryIO, NoReturn

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.interchange.errors import ModelFileError

#: Pattern of a decimal number: no nan, inf, digit separators or digits of other scripts.
NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"

#: Largest index of a feature and largest label (int32).
MAX_INT32 = 2**31 - 1

_NUMBER = re.compile(NUMBER)
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")

#: Number of characters of a word that a message shows.
SHOWN_CHARACTERS = 40


class ModelText:
    """The lines of a text model file.

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
            self.fail(data.count(b"\n", 0, error.start) + 1, "the file is not ASCII text")
        self.lines = text.split("\n")
        while self.lines and not self.lines[-1].strip():
            self.lines.pop()

    def __len__(self) -> int:
        return len(self.lines)

    def fail(self, line: int, message: str) -> NoReturn:
        """Raise a ModelFileError about a line; line numbers start at 1."""
        raise ModelFileError(f"{self.name}, line {line}: {message}")

    def number(self, line: int, word: str, what: str) -> float:
        """Return a finite number, or raise."""
        value = float(word) if _NUMBER.fullmatch(word) else math.nan
        if not math.isfinite(value):
            self.fail(line, f"{what} must be a finite number, not {word[:SHOWN_CHARACTERS]!r}")
        return value

    def integer(self, line: int, word: str, what: str, least: int, most: int = MAX_INT32) -> int:
        """Return an integer within limits, or raise."""
        if not _INTEGER.fullmatch(word) or not least <= int(word) <= most:
            self.fail(line, f"{what} must be an integer from {least} to {most}, not {word[:SHOWN_CHARACTERS]!r}")
        return int(word)

    def numbers(self, line: int, words: list[str], what: str, count: int) -> list[float]:
        """Return `count` finite numbers, or raise."""
        self.check_count(line, words, what, count)
        return [self.number(line, word, what) for word in words]

    def check_count(self, line: int, words: list[str], what: str, count: int) -> None:
        """Raise unless there are `count` words."""
        if len(words) != count:
            self.fail(line, f"{what} has {len(words)} values, but must have {count}")


class KeywordHeader:
    """The header of a LIBSVM or LIBLINEAR model file: lines with a keyword and its values.

    Parameters
    ----------
    text : ModelText
    keywords : collection of str
    last : str
        The keyword, alone on its line, that ends the header.
    program : str
        Name of the program, for messages.
    """

    def __init__(self, text: ModelText, keywords: Collection[str], last: str, program: str) -> None:
        self.text, self.last = text, last
        self.found: dict[str, tuple[int, list[str]]] = {}
        for number, content in enumerate(text.lines, start=1):
            name, *words = content.split() or [""]
            if name == last:
                self.end = number
                text.check_count(number, words, last, 0)
                return
            if name and name not in keywords:
                text.fail(number, f"{name[:SHOWN_CHARACTERS]!r} is not a keyword of {program} model files")
            if name in self.found:
                text.fail(number, f"{name} occurs twice, first on line {self.found[name][0]}")
            if name:
                self.found[name] = number, words
        text.fail(max(1, len(text)), f"not a complete {program} model file: the line {last} is missing")

    def line(self, name: str) -> int:
        """Return the line number of a keyword, or raise if it is missing."""
        if name not in self.found:
            self.text.fail(self.end, f"the line {name} is missing before {self.last}")
        return self.found[name][0]

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """Return the value of a keyword, which must be one of the choices."""
        line = self.line(name)
        words = self.found[name][1]
        if len(words) != 1 or words[0] not in choices:
            found = " ".join(words)[:SHOWN_CHARACTERS]
            self.text.fail(line, f"{name} must be one of {', '.join(choices)}, not {found!r}")
        return words[0]

    def integer(self, name: str, least: int) -> int:
        """Return the integer value of a keyword."""
        return int(self.integers(name, 1, least)[0])

    def integers(self, name: str, count: int, least: int) -> Indices:
        """Return the integer values of a keyword."""
        line = self.line(name)
        words = self.found[name][1]
        self.text.check_count(line, words, name, count)
        return np.array([self.text.integer(line, word, name, least) for word in words], dtype=np.int64)

    def numbers(self, name: str, count: int) -> Floats:
        """Return the numeric values of a keyword."""
        return np.array(self.text.numbers(self.line(name), self.found[name][1], name, count), dtype=np.float64)

    def labels(self, classes: int) -> Indices:
        """Return the labels of the classes."""
        labels = self.integers("label", classes, -MAX_INT32 - 1)
        if len(set(labels.tolist())) != classes:
            self.text.fail(self.line("label"), "a label occurs twice")
        return labels


def integer_labels(classes: Any, program: str) -> Indices:
    """Return classes as the int32 labels of these files, or raise."""
    if classes.dtype.kind in "biuf" and np.array_equal(classes, np.clip(np.trunc(classes), -(2**31), MAX_INT32)):
        return np.asarray(classes, dtype=np.int64)
    shown = ", ".join(repr(label) for label in classes[:3].tolist())
    raise ModelFileError(
        f"labels in {program} files must be 32-bit integers, but the classes are {shown}…; fit on integers, for "
        "example those of sklearn.preprocessing.LabelEncoder, or use maxmargin.save"
    )


def format_number(value: Any) -> str:
    """Return a number as text, exactly."""
    return str(int(value)) if isinstance(value, int | np.integer) else f"{value:.17g}"
