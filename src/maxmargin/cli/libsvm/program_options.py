"""Command line syntax, error messages and exit codes of the programs of LIBSVM and LIBLINEAR.

An argument that starts with a minus is an option, named by its second character; only ``-wi`` uses the characters
after it. Options end at the first argument that is none. "-" is not an option but standard input.
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
    """An invalid command line: its message, if any, is printed before the usage text."""


class ProgramError(Exception):
    """An error with the message of the program."""


class Option(NamedTuple):
    """An option: its letter, the rest of the same argument, and its values."""

    letter: str
    rest: str
    values: list[str]

    @property
    def value(self) -> str:
        """The first value."""
        return self.values[0]

    @property
    def number(self) -> float:
        """The first value as a number."""
        return self.numbers[0]

    @property
    def numbers(self) -> list[float]:
        """All values as numbers."""
        try:
            numbers = [float(word) for word in self.values]
        except ValueError:
            numbers = [math.nan]
        if any(math.isnan(number) for number in numbers):
            raise ProgramError(f"ERROR: -{self.letter} needs a number, not {' '.join(self.values)}")
        return numbers

    @property
    def integer(self) -> int:
        """The first value as an integer."""
        number = self.number
        if not number.is_integer():
            raise ProgramError(f"ERROR: -{self.letter} needs an integer, not {self.value}")
        return int(number)


def split_options(
    words: Sequence[str], counts: Mapping[str, int], unknown: str = "Unknown option: -{}"
) -> tuple[list[Option], list[str]]:
    """Return the options and the arguments after them; `counts` is the number of values of each option."""
    options, position = [], 0
    while position < len(words) and len(words[position]) > 1 and words[position].startswith("-"):
        word = words[position]
        if word[1] not in counts:
            raise UsageError(unknown.format(word[1]))
        stop = position + 1 + counts[word[1]]
        if stop > len(words):
            raise UsageError("")
        options.append(Option(word[1], word[2:], list(words[position + 1 : stop])))
        position = stop
    return options, list(words[position:])


def run_program(usage: str, work: Callable[[], int]) -> int:
    """Run a program, print errors as it does, and return its exit code."""
    try:
        with _printed_warnings():
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


def read_predict_arguments(
    arguments: Sequence[str], unknown: str = "Unknown option: -{}"
) -> tuple[tuple[str, str, str], bool, bool]:
    """Return test, model and output file of svm-predict or predict, and its options: probabilities and quiet."""
    options, files = split_options(arguments, {"b": 1, "q": 0}, unknown)
    if len(files) < 3:
        raise UsageError("")
    probability = [option.integer for option in options if option.letter == "b"]
    quiet = any(option.letter == "q" for option in options)
    return (files[0], files[1], files[2]), bool(probability and probability[-1]), quiet


@contextmanager
def _printed_warnings() -> Iterator[None]:
    """Print warnings as the programs do, one line each."""

    def show(message: Warning | str, *location: object, **more: object) -> None:
        print(f"WARNING: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)  # others are for developers
        warnings.showwarning = show
        yield
