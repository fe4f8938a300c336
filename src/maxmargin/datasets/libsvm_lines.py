"""What is wrong with a line of LIBSVM's text, in words.

The native loop reads lines and stops at one that is not as it should be, without saying why. This is the slow and
careful look at that line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

BLANKS = re.compile(rb"[ \t\r]+")
# What is taken is not given back (++, *+): a long word that is no number costs one look.
NUMBER = re.compile(rb"[+-]?(?:(?:\d++(?:\.\d*+)?|\.\d++)(?:e[+-]?\d++)?|inf(?:inity)?|nan)", re.IGNORECASE)
WHOLE = re.compile(rb"\d+")
QUERY = re.compile(rb"-?\d+")

#: Digits of an index or a query, noughts in front left aside.
MOST_DIGITS = 18

#: How much of a word a message shows.
SHOWN = 40


@dataclass(frozen=True)
class LineRules:
    """What the lines around a line ask of it."""

    zero_allowed: bool
    limit: int  # the largest index
    has_query: bool


def line_problems(line: bytes, rules: LineRules) -> Iterator[str]:
    """Yield what is wrong with a line that has a sample, from left to right."""
    label, *rest = words_of(line)
    if not NUMBER.fullmatch(label):
        yield _label_problem(label)
    if rest and rest[0].startswith(b"qid:"):
        query = rest.pop(0)[4:]
        if not rules.has_query:
            yield "there is a qid, but the lines before have none; all lines must have one, or none"
        elif not QUERY.fullmatch(query) or len(query.lstrip(b"-0")) > MOST_DIGITS:
            yield f"qid: must be followed by a whole number of at most {MOST_DIGITS} digits, not by {shown(query)}"
    elif rules.has_query:
        yield "there is no qid after the label, but the lines before have one; all lines must have one, or none"
    last = -1
    for word in rest:
        index, colon, value = word.partition(b":")
        problem = _pair_problem(word, index, colon, value)
        number = whole_number(index) if WHOLE.fullmatch(index) else None
        if problem is not None or number is None:
            yield problem or f"the index of {shown(word)} is too large; it may have {MOST_DIGITS} digits"
            continue
        if number == last:
            yield f"index {number} is there twice; an index may be there once"
        elif number < last:
            yield f"index {number} comes after {last}; indices must ascend"
        elif number > rules.limit:
            yield f"index {number} is too large; the largest may be {rules.limit}"
        elif number == 0 and not rules.zero_allowed:
            yield "index 0, but indices count from 1 here; zero_based=True reads them from 0"
        last = number


def words_of(line: bytes) -> list[bytes]:
    """Return the words of a line, the comment left aside."""
    return [word for word in BLANKS.split(line.partition(b"#")[0]) if word]


def whole_number(digits: bytes) -> int | None:
    """Return the number that some digits are, None if it is too large for an index."""
    significant = digits.lstrip(b"0")
    return int(significant or b"0") if len(significant) <= MOST_DIGITS else None


def shown(word: bytes) -> str:
    """Return a word of a file as a message shows it: short, and nothing that a terminal would obey."""
    text = word[:SHOWN].decode("utf-8", "backslashreplace")
    return repr(text + ("…" if len(word) > SHOWN else ""))


def _label_problem(label: bytes) -> str:
    if NUMBER.fullmatch(label.replace(b",", b"")) and b"," in label:
        return f"several labels {shown(label)}; a sample has one label here"
    if b":" in label:
        return f"the line begins with {shown(label)}; a label must come first, as in: +1 3:0.5"
    return f"the label {shown(label)} is not a number; number the classes, or use CSV, where labels may be words"


def _pair_problem(word: bytes, index: bytes, colon: bytes, value: bytes) -> str | None:
    if not colon:
        return f"{shown(word)} is not index:value"
    if index.startswith(b"-") and WHOLE.fullmatch(index[1:]):
        return f"the index of {shown(word)} is negative; indices count from 1, or from 0"
    if not WHOLE.fullmatch(index):
        return f"the index of {shown(word)} is not a whole number"
    if not value:
        return f"{shown(word)} has no value; it must follow the colon, without a blank"
    if not NUMBER.fullmatch(value):
        return f"the value of {shown(word)} is not a number"
    return None
