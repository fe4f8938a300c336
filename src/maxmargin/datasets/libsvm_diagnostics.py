"""Diagnostics for files in LIBSVM format.

The native reader stops at a malformed line without a message; `line_problems` then explains what is wrong with it.
`find_libsvm_problems` lists the problems of a whole file, including what `load_libsvm` accepts but LIBSVM does not
(blank lines, comments) and values that are rarely intended (nan, inf).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from maxmargin import _native
from maxmargin.datasets.compression import Source, open_bytes, source_name
from maxmargin.datasets.text_blocks import READ_BYTES, TextBlock, blocks_of_lines

BLANKS = re.compile(rb"[ \t\r]+")
# Possessive quantifiers (++, *+) avoid backtracking on long words that are not numbers.
NUMBER = re.compile(rb"[+-]?(?:(?:\d++(?:\.\d*+)?|\.\d++)(?:e[+-]?\d++)?|inf(?:inity)?|nan)", re.IGNORECASE)
INTEGER = re.compile(rb"\d+")
QUERY = re.compile(rb"-?\d+")

#: Largest number of digits of an index or a query id, without leading zeros.
MAX_DIGITS = 18

#: Number of bytes of a word that a message shows.
SHOWN_BYTES = 40

#: Default limit of the number of features.
MAX_FEATURES = 10**18

#: The largest index that LIBSVM can represent (int32).
MAX_LIBSVM_INDEX = 2**31 - 1

#: Number of suspicious lines that the native search returns at once.
LINES_PER_SEARCH = 64


class FileProblem(NamedTuple):
    """A problem of a file and its line number, from 1."""

    line: int
    message: str


def find_libsvm_problems(source: Source, limit: int = 100) -> list[FileProblem]:
    r"""List the errors and unusual lines of a file in LIBSVM format.

    Parameters
    ----------
    source : str, path or binary file
        As for `load_libsvm`.
    limit : int
        Maximum number of problems.

    Returns
    -------
    list of FileProblem
        Line and message of each problem, in the order of the lines. Carriage returns and comments are reported only
        at their first occurrence.

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
    1 index 1 occurs twice; each index may occur once
    2 the line is blank; LIBSVM stops here
    3 the label 'yes' is not a number; encode the classes as integers, or use a CSV file
    3 the value of '2:nan' is not finite
    """
    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    with open_bytes(source, in_blocks=True) as stream:
        blocks = blocks_of_lines(stream, source_name(source), READ_BYTES, 1)
        found = islice(_ProblemSearch().problems(blocks), limit)
        return sorted(found, key=lambda problem: problem.line)


class _ProblemSearch:
    """State of the search for problems in a file."""

    def __init__(self) -> None:
        self.has_queries: bool | None = None
        self.reported_returns = False
        self.reported_comments = False
        self.rows = 0
        self.rows_with_zero = 0
        self.first_zero = 0  # line of the first index 0

    def problems(self, blocks: Iterator[TextBlock]) -> Iterator[FileProblem]:
        last = None
        for block in blocks:
            if self.has_queries is None:
                self.has_queries = block.first_query
            if block.has_mark:
                yield FileProblem(
                    1, "the file begins with a byte order mark, which LIBSVM reads as part of the label; remove it"
                )
            for offset in self._suspicious_lines(block):
                for message in self._messages(block.line(offset)):
                    yield FileProblem(block.line_number(offset), message)
            last = block.first_line + int(block.chunks[:, 1].sum()) - 1, block.text[block.length - 1 : block.length]
        if last is not None and last[1] != b"\n":
            yield FileProblem(last[0], "the last line has no newline at its end, which LIBSVM's checkdata.py requires")
        if 0 < self.rows_with_zero < self.rows:
            message = "index 0: indices start at 0 in this file, but at 1 in LIBSVM"
            yield FileProblem(self.first_zero, message)
        if self.has_queries is None:
            yield FileProblem(1, "there are no samples")

    def _suspicious_lines(self, block: TextBlock) -> Iterator[int]:
        """Yield the offsets of lines that need to be checked in Python."""
        offsets = np.empty(LINES_PER_SEARCH, np.int64)
        begin = 0
        while begin < block.length:
            found = _native.find_irregular_lines(
                block.characters,
                block.length,
                begin,
                bool(self.has_queries),
                self.reported_returns,
                self.reported_comments,
                offsets,
            )
            begin = found.next
            if found.rows_with_zero and not self.rows_with_zero:
                self.first_zero = block.line_number(found.zero_line)
            self.rows += found.rows
            self.rows_with_zero += found.rows_with_zero
            yield from offsets[: found.count].tolist()

    def _messages(self, line: bytes) -> Iterator[str]:
        """Yield the problems of a line."""
        words = split_words(line)
        if not line.strip(b" \t\r"):
            yield "the line is blank; LIBSVM stops here"
        if words:
            yield from line_problems(line, LineRules(True, MAX_FEATURES, bool(self.has_queries)))
            yield from _unusual_values(words)
        if b"\r" in line and not self.reported_returns:
            self.reported_returns = True
            where = "at the end of the line (Windows)" if line.index(b"\r") == len(line) - 1 else "in the line"
            yield f"a carriage return {where}; here and possibly on other lines"
        if b"#" in line and not self.reported_comments:
            self.reported_comments = True
            yield "a comment, which LIBSVM does not support; here and possibly on other lines"
        try:
            line.decode()
        except UnicodeDecodeError as error:
            yield f"the byte {shown(line[error.start : error.start + 1])} is not UTF-8"


def _unusual_values(words: list[bytes]) -> Iterator[str]:
    """Yield values that are readable but rarely intended."""
    label, *pairs = words
    if not _finite(label):
        yield f"the label {shown(label)} is not finite"
    for pair in pairs:
        index, _, value = pair.partition(b":")
        if not _finite(value):
            yield f"the value of {shown(pair)} is not finite"
        if index.isdigit() and (parse_index(index) or 0) > MAX_LIBSVM_INDEX:
            yield f"the index of {shown(pair)} is above {MAX_LIBSVM_INDEX}, the largest index of LIBSVM"


def _finite(word: bytes) -> bool:
    """Return whether a word is a finite number or not a number at all."""
    try:
        return bool(np.isfinite(float(word)))
    except ValueError:
        return True


@dataclass(frozen=True)
class LineRules:
    """Requirements on a line that depend on the file and the options."""

    zero_allowed: bool
    limit: int  # the largest index
    has_query: bool


def line_problems(line: bytes, rules: LineRules) -> Iterator[str]:
    """Yield the problems of a nonblank line from left to right."""
    label, *rest = split_words(line)
    if not NUMBER.fullmatch(label):
        yield _label_problem(label)
    if rest and rest[0].startswith(b"qid:"):
        query = rest.pop(0)[4:]
        if not rules.has_query:
            yield "there is a qid, but the lines before have none; all lines must have one, or none"
        elif not QUERY.fullmatch(query) or len(query.lstrip(b"-0")) > MAX_DIGITS:
            yield f"qid: must be followed by an integer of at most {MAX_DIGITS} digits, not by {shown(query)}"
    elif rules.has_query:
        yield "there is no qid after the label, but the lines before have one; all lines must have one, or none"
    last = -1
    for word in rest:
        index, colon, value = word.partition(b":")
        problem = _pair_problem(word, index, colon, value)
        number = parse_index(index) if INTEGER.fullmatch(index) else None
        if problem is not None or number is None:
            yield problem or f"the index of {shown(word)} is too large; at most {MAX_DIGITS} digits are allowed"
            continue
        if number == last:
            yield f"index {number} occurs twice; each index may occur once"
        elif number < last:
            yield f"index {number} comes after {last}; indices must be in ascending order"
        elif number > rules.limit:
            yield f"index {number} is too large; the largest index allowed is {rules.limit}"
        elif number == 0 and not rules.zero_allowed:
            yield "index 0, but indices start at 1 here; use zero_based=True if they start at 0"
        last = number


def split_words(line: bytes) -> list[bytes]:
    """Return the words of a line without its comment."""
    return [word for word in BLANKS.split(line.partition(b"#")[0]) if word]


def parse_index(digits: bytes) -> int | None:
    """Return the index given by digits, None if it is too large."""
    significant = digits.lstrip(b"0")
    return int(significant or b"0") if len(significant) <= MAX_DIGITS else None


def shown(word: bytes) -> str:
    """Return a word of a file for a message: shortened, with control characters escaped."""
    text = word[:SHOWN_BYTES].decode("utf-8", "backslashreplace")
    return repr(text + ("…" if len(word) > SHOWN_BYTES else ""))


def _label_problem(label: bytes) -> str:
    if NUMBER.fullmatch(label.replace(b",", b"")) and b"," in label:
        return f"several labels {shown(label)}; multi-label data are not supported"
    if b":" in label:
        return f"the line begins with {shown(label)}; a label must come first, as in: +1 3:0.5"
    return f"the label {shown(label)} is not a number; encode the classes as integers, or use a CSV file"


def _pair_problem(word: bytes, index: bytes, colon: bytes, value: bytes) -> str | None:
    if not colon:
        return f"{shown(word)} is not of the form index:value"
    if index.startswith(b"-") and INTEGER.fullmatch(index[1:]):
        return f"the index of {shown(word)} is negative; indices start at 1 or 0"
    if not INTEGER.fullmatch(index):
        return f"the index of {shown(word)} is not an integer"
    if not value:
        return f"{shown(word)} has no value; it must follow the colon without a space"
    if not NUMBER.fullmatch(value):
        return f"the value of {shown(word)} is not a number"
    return None
