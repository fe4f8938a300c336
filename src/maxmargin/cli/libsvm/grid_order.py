"""The order in which grid.py visits the grid: from the centre outwards, with increasing resolution."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

#: Binary logarithm of a parameter; None if it is not searched for.
Exponent = float | None

#: Limit on exponents, against overflow.
MAX_EXPONENT = 1000

#: Binary logarithms of C and gamma.
Point = tuple[Exponent, Exponent]


@dataclass(frozen=True)
class Range:
    """The values begin, begin + step, …, end."""

    begin: float
    end: float
    step: float

    @classmethod
    def read(cls, text: str) -> Range | None:
        """Return the range of "begin,end,step"; None for "null"."""
        if text == "null":
            return None
        try:
            begin, end, step = map(float, text.split(","))
        except ValueError:
            raise ValueError(f"a range is begin,end,step or null, not {text}") from None
        if not step or not 0 <= (end - begin) / step < 1e6:
            raise ValueError(f"a range needs a step that leads from begin to end, not {text}")
        if max(abs(begin), abs(end)) > MAX_EXPONENT:
            raise ValueError(f"2 to the power of {text} overflows")
        return cls(begin, end, step)

    def values(self) -> list[float]:
        """Return all values in order."""
        values, value = [], self.begin
        while (value - self.end) * self.step <= 0:
            values.append(value)
            value += self.step
        return values


def centre_first(values: Sequence[float]) -> list[float]:
    """Return the middle value first, then alternately the values of both halves in the same order."""
    if len(values) <= 1:
        return list(values)
    middle = len(values) // 2
    left, right = centre_first(values[:middle]), centre_first(values[middle + 1 :])
    both: list[float] = []
    for position in range(max(len(left), len(right))):
        both += left[position : position + 1] + right[position : position + 1]
    return [values[middle], *both]


def grid_order(costs: Range | None, gammas: Range | None) -> Iterator[Point]:
    """Yield all points: rows of constant C or gamma are added in turn, so that both axes are refined evenly."""
    c = [None] if costs is None else centre_first(costs.values())
    g = [None] if gammas is None else centre_first(gammas.values())
    i = j = 0
    while i < len(c) or j < len(g):
        if i * len(g) < j * len(c):
            yield from ((c[i], g[k]) for k in range(j))
            i += 1
        else:
            yield from ((c[k], g[j]) for k in range(i))
            j += 1


def read_rates(path: Path) -> dict[Point, float]:
    """Return the rates in the output file of an earlier search."""
    rates: dict[Point, float] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        fields = dict(re.findall(r"(log2c|log2g|rate)=([0-9.eE+-]+)", line))
        try:
            numbers = {name: float(text) for name, text in fields.items()}
        except ValueError:
            continue
        if "rate" in numbers:
            rates[numbers.get("log2c"), numbers.get("log2g")] = numbers["rate"]
    return rates
