"""A first look at data: how many, how sparse, which labels, and whether they ask to be scaled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from maxmargin.resources import usable_memory

#: With fewer values than this part of all, zeros are left out; with more, a plain table is smaller and quicker.
SPARSE = 0.3

#: Tables may take this part of the memory.
ROOM = 0.125


@dataclass(frozen=True)
class Look:
    """What there is to know about data before anything is trained.

    Attributes
    ----------
    rows, columns : int
    density : float
        The part of the values that are not 0.
    least, most : float
        The smallest and the largest value.
    classes : array or None
        The labels in order; None for a regression.
    counts : int array
        How many samples of each class.
    spread : float
        The standard deviation of the targets of a regression.
    """

    rows: int
    columns: int
    density: float
    least: float
    most: float
    classes: Any
    counts: Any
    spread: float

    @property
    def smallest_share(self) -> float:
        """The part of the samples that are of the smallest class."""
        return float(self.counts.min() / self.rows)


def look_at(X: Any, y: Any, classification: bool) -> Look:
    """Return what there is to know about samples and their labels."""
    rows, columns = X.shape
    values = X.data if sparse.issparse(X) else np.asarray(X)
    count = np.count_nonzero(values)
    zeros = [0.0] if count < rows * columns else []
    extremes = [*zeros, *((float(values.min()), float(values.max())) if values.size else ())]
    classes, counts = np.unique(y, return_counts=True) if classification else (None, None)
    spread = 0.0 if classification else float(np.std(y))
    return Look(rows, columns, count / max(1, rows * columns), min(extremes), max(extremes), classes, counts, spread)


def as_table(X: Any) -> Any:
    """Return sparse samples as a plain table where that is smaller or quicker, and fits into memory."""
    if not sparse.issparse(X) or X.nnz < SPARSE * X.shape[0] * X.shape[1]:
        return X
    return X.toarray() if 8 * X.shape[0] * X.shape[1] < ROOM * usable_memory() else X


def choose_range(look: Look) -> tuple[tuple[float, float] | None, str]:
    """Return the range that all columns should be scaled to, None for data that should stay as they are; and why."""
    if look.least >= -1.0 and look.most <= 1.0:
        return None, f"not scaled: all values are between {look.least:g} and {look.most:g} already"
    if look.density >= SPARSE:
        return (-1.0, 1.0), f"each column is scaled to [-1, 1]: values were between {look.least:g} and {look.most:g}"
    if look.least >= 0.0:
        return (0.0, 1.0), f"each column is scaled to [0, 1], so that zeros stay zeros: {look.density:.2%} are not"
    return None, (
        f"not scaled: {1 - look.density:.2%} of the values are 0, and negative ones would make them all something else"
    )


def typical_gamma(X: Any) -> float:
    """Return the power of two next to 1 / (columns · variance): distances are typically about 1 then."""
    if sparse.issparse(X):
        mean = X.mean()
        variance = float(X.multiply(X).mean() - mean**2)
    else:
        variance = float(np.var(X))
    wanted = 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    return float(2.0 ** np.clip(round(np.log2(wanted)), -60, 60))
