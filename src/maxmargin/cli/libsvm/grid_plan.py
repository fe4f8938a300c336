"""The way of grid.py through C and gamma: from the middle outwards, ever finer, so that its shape is seen soon."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

#: A logarithm to base 2 on the grid; None where that parameter is not searched for.
Exponent = float | None

#: Powers of 2 beyond this are no numbers.
LARGEST = 1000

#: Logarithms of C and gamma.
Point = tuple[Exponent, Exponent]


@dataclass(frozen=True)
class Range:
    """begin, begin + step, …, up or down to end."""

    begin: float
    end: float
    step: float

    @classmethod
    def read(cls, text: str) -> Range | None:
        """Return what "begin,end,step" stands for; None for "null"."""
        if text == "null":
            return None
        try:
            begin, end, step = map(float, text.split(","))
        except ValueError:
            raise ValueError(f"a range is begin,end,step or null, not {text}") from None
        if not step or not 0 <= (end - begin) / step < 1e6:
            raise ValueError(f"a range needs a step that leads from begin to end, not {text}")
        if max(abs(begin), abs(end)) > LARGEST:
            raise ValueError(f"2 to the power of {text} is no number to search for")
        return cls(begin, end, step)

    def values(self) -> list[float]:
        """Return all values, in order."""
        found, value = [], self.begin
        while (value - self.end) * self.step <= 0:
            found.append(value)
            value += self.step
        return found


def middle_first(values: Sequence[float]) -> list[float]:
    """Return values so that each part of the list is spread over all: the middle, then those of both halves in turn."""
    if len(values) <= 1:
        return list(values)
    middle = len(values) // 2
    left, right = middle_first(values[:middle]), middle_first(values[middle + 1 :])
    both: list[float] = []
    for position in range(max(len(left), len(right))):
        both += left[position : position + 1] + right[position : position + 1]
    return [values[middle], *both]


def plan(costs: Range | None, gammas: Range | None) -> Iterator[Point]:
    """Yield all points: lines of constant C or gamma are added in turn, so that both become finer at the same pace."""
    c = [None] if costs is None else middle_first(costs.values())
    g = [None] if gammas is None else middle_first(gammas.values())
    i = j = 0
    while i < len(c) or j < len(g):
        if i * len(g) < j * len(c):
            yield from ((c[i], g[k]) for k in range(j))
            i += 1
        else:
            yield from ((c[k], g[j]) for k in range(i))
            j += 1


def read_rates(path: Path) -> dict[Point, float]:
    """Return what a file of an earlier search says."""
    found: dict[Point, float] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        said = dict(re.findall(r"(log2c|log2g|rate)=([0-9.eE+-]+)", line))
        try:
            numbers = {name: float(text) for name, text in said.items()}
        except ValueError:
            continue
        if "rate" in numbers:
            found[numbers.get("log2c"), numbers.get("log2g")] = numbers["rate"]
    return found
