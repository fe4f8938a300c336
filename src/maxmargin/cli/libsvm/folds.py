"""The folds of LIBSVM's and LIBLINEAR's cross-validation.

Both shuffle with C's ``rand()``, which nobody seeds, so that their folds are always the same on one platform. With the
generator of the GNU C library written out here, cross-validation on any platform has the folds of the programs on
Linux, and its rates can be compared digit by digit.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from itertools import count, islice, pairwise

import numpy as np

from maxmargin._typing import Indices

#: Lags of the additive feedback generator x_i = x_{i−3} + x_{i−31} mod 2³², and how many values are thrown away first.
SHORT_LAG, LONG_LAG, DISCARDED = 3, 31, 310


def random_numbers(seed: int = 1) -> Iterator[int]:
    """Yield what ``rand()`` of the GNU C library returns after ``srand(seed)``; 1 is what it starts with."""
    table = [seed]
    for _ in range(LONG_LAG - 1):  # Park and Miller's generator fills the table
        table.append(16807 * table[-1] % (2**31 - 1))
    recent = deque(table[SHORT_LAG:] + table[:SHORT_LAG], maxlen=LONG_LAG)
    for position in count():
        value = (recent[-SHORT_LAG] + recent[0]) & 0xFFFFFFFF
        recent.append(value)
        if position >= DISCARDED:
            yield value >> 1


def shuffle(members: Indices, numbers: Iterator[int]) -> Indices:
    """Return the members in the order that the programs bring them into."""
    order = members.tolist()
    for i, number in enumerate(islice(numbers, len(order))):
        j = i + number % (len(order) - i)
        order[i], order[j] = order[j], order[i]
    return np.array(order, dtype=np.int64)


def deal(samples: int, folds: int) -> list[Indices]:
    """Return the samples of each fold: all are shuffled and cut into parts of equal size."""
    return _cut(shuffle(np.arange(samples), random_numbers()), folds)


def deal_by_class(members: list[Indices], folds: int) -> list[Indices]:
    """Return the samples of each fold: every class is shuffled and cut, so that each fold has its share."""
    numbers = random_numbers()
    parts = [_cut(shuffle(rows, numbers), folds) for rows in members]
    return [np.concatenate([of_class[fold] for of_class in parts]) for fold in range(folds)]


def splits(folds: list[Indices]) -> Iterator[tuple[Indices, Indices]]:
    """Yield the samples to train on and those held out, fold after fold; small classes may leave a fold empty.

    The former stay in the order of the folds, as in the programs: the class that comes first in it wins a tie.
    """
    order, start = np.concatenate(folds), 0
    for held in filter(len, folds):
        yield np.delete(order, slice(start, start + len(held))), held
        start += len(held)


def _cut(order: Indices, folds: int) -> list[Indices]:
    edges = [fold * len(order) // folds for fold in range(folds + 1)]
    return [order[start:stop] for start, stop in pairwise(edges)]


def limit_folds(folds: int, samples: int) -> int:
    """Return how many folds there can be, with the programs' warning if fewer than asked for."""
    if folds <= samples:
        return folds
    print(
        "WARNING: # folds > # data. Will use # folds = # data instead (i.e., leave-one-out cross validation)",
        file=sys.stderr,
    )
    return samples
