"""How LIBSVM's and LIBLINEAR's programs read a command line, and how they end.

A word that begins with a minus is an option, and its second letter says which; what follows the letter counts for
``-wi`` alone. Options end at the first word that is none. "-" is no option: it is standard input.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from maxmargin.datasets import DataFileError


class UsageError(Exception):
    """A command line that makes no sense: a line about it, if there is one, and the usage text follows."""


class ProgramError(Exception):
    """What cannot be done, as a line."""


class Option(NamedTuple):
    """An option as it was written: its letter, what follows it in the same word, and its values."""

    letter: str
    rest: str
    values: list[str]

    @property
    def value(self) -> str:
        """The only value."""
        return self.values[0]

    @property
    def number(self) -> float:
        """The value as a number."""
        return self._numbers()[0]

    @property
    def numbers(self) -> list[float]:
        """All values as numbers."""
        return self._numbers()

    @property
    def whole(self) -> int:
        """The value as a whole number."""
        number = self.number
        if not number.is_integer():
            raise ProgramError(f"ERROR: -{self.letter} needs a whole number, not {self.value}")
        return int(number)

    def _numbers(self) -> list[float]:
        try:
            found = [float(word) for word in self.values]
        except ValueError:
            found = [math.nan]
        if any(math.isnan(number) for number in found):
            raise ProgramError(f"ERROR: -{self.letter} needs a number, not {' '.join(self.values)}")
        return found


def split_options(
    words: Sequence[str], takes: Mapping[str, int], unknown: str = "Unknown option: -{}"
) -> tuple[list[Option], list[str]]:
    """Return options and the words after them; `takes` says how many values each letter has."""
    options, position = [], 0
    while position < len(words) and len(words[position]) > 1 and words[position].startswith("-"):
        word = words[position]
        if word[1] not in takes:
            raise UsageError(unknown.format(word[1]))
        stop = position + 1 + takes[word[1]]
        if stop > len(words):
            raise UsageError("")
        options.append(Option(word[1], word[2:], list(words[position + 1 : stop])))
        position = stop
    return options, list(words[position:])


def answer(usage: str, work: Callable[[], int]) -> int:
    """Do the work of a program; say what went wrong in its own words, and return its exit code."""
    try:
        with _spoken_warnings():
            return work()
    except UsageError as error:
        if str(error):
            print(error, file=sys.stderr)
        print(usage, end="")
    except ProgramError as error:
        print(error, file=sys.stderr)
    except DataFileError as error:
        if error.line is not None:
            print(f"Wrong input format at line {error.line}", file=sys.stderr)
        print(error, file=sys.stderr)
    return 1


@contextmanager
def _spoken_warnings() -> Iterator[None]:
    """Print warnings as the programs do, one line each."""

    def speak(message: Warning | str, *about: object, **more: object) -> None:
        print(f"WARNING: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)  # others are for developers
        warnings.showwarning = speak
        yield
