"""Cells of text as numbers with decimal commas, and as dates in several formats."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats

#: Numbers with a decimal point or comma, and the other character between thousands; units around them are ignored.
NUMBERS = {
    ".": re.compile(r"[-+]?(\d+|\d{1,3}([,' \u00a0\u202f]\d{3})+)?(\.\d*)?([eE][-+]?\d+)?"),
    ",": re.compile(r"[-+]?(\d+|\d{1,3}([.' \u00a0\u202f]\d{3})+)?(,\d*)?([eE][-+]?\d+)?"),
}
UNITS = "€$£¥% \u00a0\u202f"
SEPARATORS = {".": str.maketrans("", "", ",' \u00a0\u202f"), ",": str.maketrans(",", ".", ".' \u00a0\u202f")}

#: Stands for all formats of ISO 8601.
ISO = "ISO"

#: Formats of dates as in `datetime.strptime`. Where two formats read a column equally well, the first one is taken:
#: the day before the month.
DATE_FORMATS = (
    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%y", "%d/%m/%y",
    "%m/%d/%y", "%d %b %Y", "%d %B %Y", "%d. %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y", "%d-%b-%y", "%b %Y", "%B %Y",
    "%m/%Y", "%m.%Y", "%Y-%m",
)  # fmt: skip
TIME_FORMATS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p")

#: What a cell must look like for its column to be tried as dates.
DATE_LIKE = re.compile(r"(?=.*\d)[\w.,:/+ -]*[-./ ][\w.,:/+ -]*\d[\w.,:/+ -]*")

#: Distinct cells on which formats are tried.
TRIED_CELLS = 500

#: A further format must read this fraction of the cells.
MIN_FORMAT_FRACTION = 0.01

EPOCH = datetime(1970, 1, 1)  # days are counted without a time zone
DAY_SECONDS = 86400.0


def to_number(cell: str, decimal: str) -> float | None:
    """Return a cell as a number; None if it is none."""
    cell = cell.strip(UNITS)
    if not NUMBERS[decimal].fullmatch(cell):
        return None
    try:
        number = float(cell.translate(SEPARATORS[decimal]))
    except ValueError:  # no digit
        return None
    return number if np.isfinite(number) else None


def to_days(cell: str, formats: Iterable[str]) -> float | None:
    """Return a date as days since 1970 in UTC; None if it has none of the formats."""
    for format in formats:
        try:
            found = datetime.fromisoformat(cell) if format == ISO else datetime.strptime(cell, format)
        except ValueError:
            continue
        if found.tzinfo is not None:
            found = found.astimezone(UTC).replace(tzinfo=None)
        return (found - EPOCH).total_seconds() / DAY_SECONDS
    return None


def days_of(dates: NDArray[Any]) -> Floats:
    """Return datetime64 values as days since 1970, nan for NaT."""
    seconds = dates.astype("datetime64[s]")
    days: Floats = np.where(np.isnat(seconds), np.nan, seconds.astype(np.int64) / DAY_SECONDS)
    return days


def converted(cells: NDArray[Any], convert: Callable[[str], float | None]) -> tuple[Floats, NDArray[np.intp]]:
    """Return cells of text as numbers, nan for missing ones, and the rows of those that are not numbers."""
    known: dict[str, float | None] = {cell: convert(cell) for cell in set(cells.tolist()) if cell}
    found = [known.get(cell, np.nan) if cell else np.nan for cell in cells.tolist()]
    wrong = np.array([row for row, value in enumerate(found) if value is None], dtype=np.intp)
    return np.array(found, dtype=np.float64), wrong  # None becomes nan


def find_date_formats(cells: Collection[str]) -> tuple[str, ...]:
    """Return the formats that read most of some distinct cells, few formats first; none if they are no dates."""
    left = list(cells)[:TRIED_CELLS]
    if sum(map(bool, map(DATE_LIKE.fullmatch, left))) < 0.5 * len(left):
        return ()
    formats: list[str] = []
    least = max(1.0, MIN_FORMAT_FRACTION * len(left))
    candidates = [ISO, *(date + time for time in TIME_FORMATS for date in DATE_FORMATS)]
    while left:
        allowed = [format for format in candidates if swapped(format) not in formats]
        counts = [_count(left, format) for format in allowed]
        best = int(np.argmax(counts))
        if counts[best] < least:
            break
        formats.append(allowed[best])
        left = [cell for cell in left if to_days(cell, formats[-1:]) is None]
    return tuple(formats)


def swapped(format: str) -> str:
    """Return a format with day and month in the other order: one column does not have both."""
    return format.translate(str.maketrans("dm", "md")) if format.startswith(("%d", "%m")) else ""


def is_ambiguous(cells: Collection[str], formats: Sequence[str]) -> bool:
    """Return whether the day could as well be the month in all cells."""
    other = swapped(formats[0])
    return other in DATE_FORMATS and all(to_days(cell, [other]) is not None for cell in cells)


def _count(cells: Sequence[str], format: str) -> int:
    return sum(to_days(cell, [format]) is not None for cell in cells)
