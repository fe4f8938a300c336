"""Columns of words as columns of numbers: one for each word, 1 where it stands and 0 elsewhere ("one-hot").

Numbering the words would invent an order and distances among them. Other files must get the same columns, so the words
that occurred are kept (`Samples.categories`) and can be asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from maxmargin._typing import Floats

#: What becomes of columns of words: an error that gives advice ("refuse"), a column of 0 and 1 for each word that
#: occurs ("one-hot"), or for each word of a list by the column's name.
Words = str | Mapping[str, Sequence[str]]

#: A column with more different words than this is a name or a number of something, not a category.
MOST_WORDS = 1000

#: So many words are listed in a message.
LISTED = 5


class WordError(ValueError):
    """A word that has no column; `place` says which sample has it, if it is one."""

    def __init__(self, message: str, place: int | None = None) -> None:
        super().__init__(message)
        self.place = place


def refusal(columns: Mapping[str, Sequence[str]]) -> str:
    """Return the sentence about columns of words that nobody has asked for."""
    shown = " and ".join(f"{name!r} ({listed(sorted(set(words)))})" for name, words in list(columns.items())[:LISTED])
    more = f" and {len(columns) - LISTED} more" if len(columns) > LISTED else ""
    return (
        f"words in place of numbers in column {shown}{more}; make columns of 0 and 1, one for each word, with"
        " words='one-hot' (--one-hot FILE), or leave such columns out with ignore (--ignore)"
    )


def known_words(column: str, words: Sequence[str], asked: Words) -> tuple[str, ...]:
    """Return the words that get a column, in order."""
    if not isinstance(asked, str):
        return tuple(asked[column])
    found = tuple(sorted(set(words)))
    if len(found) > MOST_WORDS:
        raise WordError(f"column {column!r} has {len(found)} different words, too many for categories; leave it out")
    return found


def encode(column: str, words: Sequence[str], known: Sequence[str]) -> Floats:
    """Return columns of 0 and 1, one for each word that is known."""
    places = {word: place for place, word in enumerate(known)}
    at = np.fromiter((places.get(word, -1) for word in words), dtype=np.intp, count=len(words))
    strange = np.flatnonzero(at < 0)
    if len(strange):
        place = int(strange[0])
        raise WordError(f"{words[place]!r} is none of the words of column {column!r}: {listed(known)}", place)
    columns = np.zeros((len(words), len(known)))
    columns[np.arange(len(words)), at] = 1.0
    return columns


def listed(words: Sequence[str]) -> str:
    """Return the first of some words, for a message."""
    return ", ".join(words[:LISTED]) + (", …" if len(words) > LISTED else "")
