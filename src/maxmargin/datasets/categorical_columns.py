"""One-hot encoding of columns of strings: a column for each category, 1 where it occurs and 0 elsewhere.

The categories are stored in `Samples.categories` so that other files can be encoded with the same columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from maxmargin._typing import Floats

#: Treatment of columns of strings: "error", "one-hot" with the categories that occur, or one-hot with the categories
#: listed for each column name.
Categorical = str | Mapping[str, Sequence[str]]

#: A column with more distinct strings is assumed to be an identifier, not a categorical variable.
MAX_CATEGORIES = 1000

#: Number of values listed in a message.
MAX_LISTED = 5


class CategoryError(ValueError):
    """A string that cannot be encoded; `sample` is the index of the sample, None if it concerns the whole column."""

    def __init__(self, message: str, sample: int | None = None) -> None:
        super().__init__(message)
        self.sample = sample


def non_numeric_message(columns: Mapping[str, Sequence[str]]) -> str:
    """Return the error message about columns of strings that were not declared categorical."""
    shown = [f"{name!r} ({listed(sorted(set(values)))})" for name, values in list(columns.items())[:MAX_LISTED]]
    more = f" and {len(columns) - MAX_LISTED} more" if len(columns) > MAX_LISTED else ""
    return (
        f"text instead of numbers in column {' and '.join(shown)}{more}; encode it with categorical='one-hot'"
        " (--one-hot FILE), or leave it out with ignore (--ignore)"
    )


def categories_of(column: str, values: Sequence[str], categorical: Categorical) -> tuple[str, ...]:
    """Return the categories of a column: those listed for it, or those that occur."""
    if not isinstance(categorical, str):
        return tuple(categorical[column])
    found = tuple(sorted(set(values)))
    if len(found) > MAX_CATEGORIES:
        raise CategoryError(
            f"column {column!r} has {len(found)} distinct values, too many for categories; leave it out (--ignore)"
        )
    return found


def one_hot(column: str, values: Sequence[str], categories: Sequence[str]) -> Floats:
    """Return the one-hot encoding of a column."""
    index = {category: number for number, category in enumerate(categories)}
    indices = np.fromiter((index.get(value, -1) for value in values), dtype=np.intp, count=len(values))
    unknown = np.flatnonzero(indices < 0)
    if len(unknown):
        sample = int(unknown[0])
        raise CategoryError(
            f"{values[sample]!r} is not a category of column {column!r}; the categories are {listed(categories)}",
            sample,
        )
    encoded = np.zeros((len(values), len(categories)))
    encoded[np.arange(len(values)), indices] = 1.0
    return encoded


def listed(values: Sequence[str]) -> str:
    """Return the first values as a list for a message."""
    return ", ".join(values[:MAX_LISTED]) + (", …" if len(values) > MAX_LISTED else "")
