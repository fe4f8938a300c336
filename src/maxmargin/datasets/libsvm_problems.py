"""Everything that is wrong with a file of LIBSVM's text, line by line, not only what comes first.

Beyond what `load_libsvm` refuses, this is what it reads but others do not, or what is rarely meant: LIBSVM stops at
blank lines and comments, and training at values that are not finite. The native loop finds the few lines that are worth
a look.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from maxmargin import _native
from maxmargin.datasets.compression import Source, open_bytes
from maxmargin.datasets.libsvm_lines import LineRules, line_problems, shown, whole_number, words_of
from maxmargin.datasets.libsvm_text import MOST_FEATURES, READ_BYTES
from maxmargin.datasets.text_blocks import TextBlock, blocks_of_lines

#: The largest index that fits LIBSVM's type for it.
LARGEST_LIBSVM_INDEX = 2**31 - 1

#: Lines that are looked at before the next are searched for.
LOOKED_AT = 64


class Problem(NamedTuple):
    """What is wrong, and on which line, counted from 1."""

    line: int
    message: str


def find_libsvm_problems(source: Source, limit: int = 100) -> list[Problem]:
    r"""Find what is wrong with LIBSVM's text, or unusual.

    Parameters
    ----------
    source : str, path or binary file
        As for `load_libsvm`.
    limit : int
        The search ends after so many problems.

    Returns
    -------
    list of Problem
        Line and message of each, in the order of the lines. Carriage returns and comments are reported where they
        appear first.

    Raises
    ------
    DataFileError
        If the file is compressed and damaged.

    Examples
    --------
    >>> import io
    >>> from maxmargin.datasets import find_libsvm_problems
    >>> for problem in find_libsvm_problems(io.BytesIO(b"+1 1:0.5 1:2\n\nyes 2:nan\n")):
    ...     print(problem.line, problem.message)
    1 index 1 is there twice; an index may be there once
    2 the line is blank; LIBSVM stops here
    3 the label 'yes' is not a number; number the classes, or use CSV, where labels may be words
    3 the value of '2:nan' is not finite
    """
    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    with open_bytes(source) as stream:
        found = islice(_Search().problems(blocks_of_lines(stream, READ_BYTES, 1)), limit)
        return sorted(found, key=lambda problem: problem.line)


class _Search:
    """What has been seen of a file so far."""

    def __init__(self) -> None:
        self.has_queries: bool | None = None
        self.returns = False  # whether carriage returns have been reported, and comments
        self.comments = False
        self.rows = 0
        self.rows_with_zero = 0
        self.first_zero = 0  # the line with the first index 0

    def problems(self, blocks: Iterator[TextBlock]) -> Iterator[Problem]:
        last = None
        for block in blocks:
            if self.has_queries is None:
                self.has_queries = block.first_query
            if block.marked:
                yield Problem(1, "the file begins with a byte order mark; LIBSVM takes it for a part of the label")
            for offset in self._odd_lines(block):
                for message in self._look_at(block.line(offset)):
                    yield Problem(block.line_number(offset), message)
            last = block.first_line + int(block.chunks[:, 1].sum()) - 1, block.text[block.length - 1 : block.length]
        if last is not None and last[1] != b"\n":
            yield Problem(last[0], "the last line has no end; LIBSVM's checkdata.py asks for one")
        if 0 < self.rows_with_zero < self.rows:
            message = "index 0, so that indices count from 0 in this file; LIBSVM's count from 1"
            yield Problem(self.first_zero, message)
        if self.has_queries is None:
            yield Problem(1, "there are no samples")

    def _odd_lines(self, block: TextBlock) -> Iterator[int]:
        """Yield where lines begin that are worth a look."""
        odd = np.empty(LOOKED_AT, np.int64)
        begin = 0
        while begin < block.length:
            count, begin, rows, with_zero, zero_line = _native.odd_lines(
                block.characters, block.length, begin, bool(self.has_queries), self.returns, self.comments, odd
            )
            if with_zero and not self.rows_with_zero:
                self.first_zero = block.line_number(zero_line)
            self.rows += rows
            self.rows_with_zero += with_zero
            yield from odd[:count].tolist()

    def _look_at(self, line: bytes) -> Iterator[str]:
        words = words_of(line)
        if not line.strip(b" \t\r"):
            yield "the line is blank; LIBSVM stops here"
        if words:
            yield from line_problems(line, LineRules(True, MOST_FEATURES, bool(self.has_queries)))
            yield from _unusual(words)
        if b"\r" in line and not self.returns:
            self.returns = True
            where = "at the end of the line, as Windows has it" if line.index(b"\r") == len(line) - 1 else "in the line"
            yield f"a carriage return {where}; here and perhaps on others"
        if b"#" in line and not self.comments:
            self.comments = True
            yield "a comment; here and perhaps on other lines; LIBSVM does not know them"
        try:
            line.decode()
        except UnicodeDecodeError as error:
            yield f"the byte {shown(line[error.start : error.start + 1])} is not UTF-8"


def _unusual(words: list[bytes]) -> Iterator[str]:
    """Yield what can be read but is rarely meant."""
    label, *pairs = words
    if not _finite(label):
        yield f"the label {shown(label)} is not finite"
    for pair in pairs:
        index, _, value = pair.partition(b":")
        if not _finite(value):
            yield f"the value of {shown(pair)} is not finite"
        if index.isdigit() and (whole_number(index) or 0) > LARGEST_LIBSVM_INDEX:
            yield f"the index of {shown(pair)} is above {LARGEST_LIBSVM_INDEX}, the largest that LIBSVM reads"


def _finite(word: bytes) -> bool:
    """Whether a word is a finite number, or none at all."""
    try:
        return bool(np.isfinite(float(word)))
    except ValueError:
        return True
