"""Headers of LIBSVM's and LIBLINEAR's model files: a keyword and its values a line, up to a last keyword."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.interchange.errors import ModelFileError
from maxmargin.interchange.text_lines import LARGEST_INDEX, SHOWN, TextLines


class KeywordHeader:
    """The lines before the numbers: the words behind each keyword, and where they stand.

    Parameters
    ----------
    text : TextLines
    keywords : collection of str
    last : str
        The keyword alone on a line after which the numbers come.
    program : str
        Whose file it is.
    """

    def __init__(self, text: TextLines, keywords: Collection[str], last: str, program: str) -> None:
        self.text, self.last = text, last
        self.found: dict[str, tuple[int, list[str]]] = {}
        for number, content in enumerate(text.lines, start=1):
            name, *words = content.split() or [""]
            if name == last:
                self.end = number
                text.expect(number, words, last, 0)
                return
            if name and name not in keywords:
                text.refuse(number, f"{name[:SHOWN]!r} is no keyword of {program}'s model files")
            if name in self.found:
                text.refuse(number, f"{name} is there twice, first on line {self.found[name][0]}")
            if name:
                self.found[name] = number, words
        text.refuse(max(1, len(text)), f"this is no complete model file of {program}: the line {last} is missing")

    def line(self, name: str) -> int:
        """Return the number of the line of a keyword, or raise if there is none."""
        if name not in self.found:
            self.text.refuse(self.end, f"the line {name} is missing before {self.last}")
        return self.found[name][0]

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """Return the one word of a keyword, if it is one of the choices."""
        line = self.line(name)
        words = self.found[name][1]
        if len(words) != 1 or words[0] not in choices:
            found = " ".join(words)[:SHOWN]
            self.text.refuse(line, f"{name} must be one of {', '.join(choices)}, not {found!r}")
        return words[0]

    def whole(self, name: str, least: int) -> int:
        """Return the one whole number of a keyword."""
        return self.text.wholes(self.line(name), self.found[name][1], name, 1, least)[0]

    def wholes(self, name: str, count: int, least: int) -> Indices:
        """Return the whole numbers of a keyword."""
        return np.array(self.text.wholes(self.line(name), self.found[name][1], name, count, least), dtype=np.int64)

    def numbers(self, name: str, count: int) -> Floats:
        """Return the numbers of a keyword."""
        return np.array(self.text.numbers(self.line(name), self.found[name][1], name, count), dtype=np.float64)


def read_labels(header: KeywordHeader, classes: int) -> Indices:
    """Return the labels of so many classes."""
    labels = header.wholes("label", classes, -LARGEST_INDEX - 1)
    if len(set(labels.tolist())) != classes:
        header.text.refuse(header.line("label"), "a label is there twice")
    return labels


def whole_labels(classes: Any, program: str) -> Indices:
    """Return classes as the whole numbers that labels in these files are, or raise."""
    if classes.dtype.kind in "biuf" and np.array_equal(classes, np.clip(np.trunc(classes), -(2**31), LARGEST_INDEX)):
        return np.asarray(classes, dtype=np.int64)
    shown = ", ".join(repr(label) for label in classes[:3].tolist())
    raise ModelFileError(
        f"labels in {program}'s files are whole numbers of four bytes, and the classes here are {shown}…: fit on "
        "numbers, for example those of sklearn.preprocessing.LabelEncoder, or write the model with maxmargin.save"
    )


def number_word(value: Any) -> str:
    """Return a number as these files have it."""
    return str(int(value)) if isinstance(value, int | np.integer) else f"{value:.17g}"
