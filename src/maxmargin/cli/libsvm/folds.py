"""The folds of LIBSVM's and LIBLINEAR's cross-validation.

Both programs shuffle with C's ``rand()`` without a seed, so their folds are constant on a platform. This module
implements the generator of the GNU C library: the folds on every platform are those of the programs on Linux.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from itertools import count, islice, pairwise

import numpy as np

from maxmargin._typing import Indices

#: Lags of the additive feedback generator x_i = x_{i−3} + x_{i−31} mod 2³², and the number of discarded initial values.
SHORT_LAG, LONG_LAG, DISCARDED = 3, 31, 310


def random_numbers(seed: int = 1) -> Iterator[int]:
    """Yield the values of ``rand()`` of the GNU C library after ``srand(seed)``; 1 is the default seed."""
    table = [seed]
    for _ in range(LONG_LAG - 1):  # Park and Miller's generator initialises the table
        table.append(16807 * table[-1] % (2**31 - 1))
    recent = deque(table[SHORT_LAG:] + table[:SHORT_LAG], maxlen=LONG_LAG)
    for position in count():
        value = (recent[-SHORT_LAG] + recent[0]) & 0xFFFFFFFF
        recent.append(value)
        if position >= DISCARDED:
            yield value >> 1


def shuffle(members: Indices, numbers: Iterator[int]) -> Indices:
    """Return the members shuffled as the programs do."""
    order = members.tolist()
    for i, number in enumerate(islice(numbers, len(order))):
        j = i + number % (len(order) - i)
        order[i], order[j] = order[j], order[i]
    return np.array(order, dtype=np.int64)


def plain_folds(samples: int, folds: int) -> list[Indices]:
    """Return the samples of each fold: all are shuffled and split into folds of equal size."""
    return _split(shuffle(np.arange(samples), random_numbers()), folds)


def stratified_folds(members: list[Indices], folds: int) -> list[Indices]:
    """Return the samples of each fold: every class is shuffled and split into folds of equal size."""
    numbers = random_numbers()
    parts = [_split(shuffle(rows, numbers), folds) for rows in members]
    return [np.concatenate([of_class[fold] for of_class in parts]) for fold in range(folds)]


def splits(folds: list[Indices]) -> Iterator[tuple[Indices, Indices]]:
    """Yield the training and the test samples of each fold; folds may be empty if classes are small.

    Training samples are in the order of the folds, as in the programs: ties are won by the class that occurs first.
    """
    order, start = np.concatenate(folds), 0
    for test in filter(len, folds):
        yield np.delete(order, slice(start, start + len(test))), test
        start += len(test)


def _split(order: Indices, folds: int) -> list[Indices]:
    edges = [fold * len(order) // folds for fold in range(folds + 1)]
    return [order[start:stop] for start, stop in pairwise(edges)]


def clip_folds(folds: int, samples: int) -> int:
    """Return the number of folds, at most the number of samples, with the warning of the programs."""
    if folds <= samples:
        return folds
    print(
        "WARNING: # folds > # data. Will use # folds = # data instead (i.e., leave-one-out cross validation)",
        file=sys.stderr,
    )
    return samples
