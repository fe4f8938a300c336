"""Summary of a data set: size, density, range, labels; recommended scaling and default γ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin.resources import usable_memory

#: Fraction of nonzeros above which a dense array is smaller and faster than a sparse matrix.
MIN_DENSE_FRACTION = 0.3

#: Fraction of the memory that the dense copy of a sparse matrix may occupy.
DENSE_MEMORY_FRACTION = 0.125


@dataclass(frozen=True)
class DataSummary:
    """Summary of samples and labels.

    Attributes
    ----------
    rows, columns : int
    density : float
        Fraction of nonzero values.
    minimum, maximum : float
        Of all values, implicit zeros included.
    classes : array or None
        The distinct labels in ascending order; None for regression.
    counts : int array or None
        Number of samples of each class.
    target_std : float
        Standard deviation of the targets of a regression; 0 for classification.
    """

    rows: int
    columns: int
    density: float
    minimum: float
    maximum: float
    classes: Any
    counts: Any
    target_std: float

    @property
    def smallest_class_fraction(self) -> float:
        """Fraction of the samples that belong to the smallest class."""
        return float(self.counts.min() / self.rows)


def summarize(X: Any, y: Any, classification: bool) -> DataSummary:
    """Return the summary of samples and their labels."""
    rows, columns = X.shape
    values = X.data if sparse.issparse(X) else np.asarray(X)
    count = np.count_nonzero(values)
    zeros = [0.0] if count < rows * columns else []
    extremes = [*zeros, *((float(values.min()), float(values.max())) if values.size else ())]
    classes, counts = np.unique(y, return_counts=True) if classification else (None, None)
    target_std = 0.0 if classification else float(np.std(y))
    density = count / max(1, rows * columns)
    return DataSummary(rows, columns, density, min(extremes), max(extremes), classes, counts, target_std)


def densify(X: Any) -> Any:
    """Return a sparse matrix as a dense array where that is smaller or faster, and fits into memory."""
    if not sparse.issparse(X) or X.nnz < MIN_DENSE_FRACTION * X.shape[0] * X.shape[1]:
        return X
    return X.toarray() if 8 * X.shape[0] * X.shape[1] < DENSE_MEMORY_FRACTION * usable_memory() else X


def choose_range(summary: DataSummary) -> tuple[tuple[float, float] | None, str]:
    """Return the range to scale all columns to (None: do not scale), and the reason."""
    if summary.minimum >= -1.0 and summary.maximum <= 1.0:
        return None, f"not scaled: all values are between {summary.minimum:g} and {summary.maximum:g} already"
    if summary.density >= MIN_DENSE_FRACTION:
        reason = f"values were between {summary.minimum:g} and {summary.maximum:g}"
        return (-1.0, 1.0), f"columns scaled to [-1, 1]: {reason}"
    if summary.minimum >= 0.0:
        reason = f"{summary.density:.2%} of the values are nonzero"
        return (0.0, 1.0), f"columns scaled to [0, 1], which keeps zeros: {reason}"
    reason = f"{1 - summary.density:.2%} of the values are 0, and with negative values scaling would make them nonzero"
    return None, f"not scaled: {reason}"


def typical_gamma(X: Any) -> float:
    """Return the power of two nearest to 1 / (columns · variance), scikit-learn's ``gamma="scale"``."""
    if sparse.issparse(X):
        mean = X.mean()
        variance = float(X.multiply(X).mean() - mean**2)
    else:
        variance = float(np.var(X))
    gamma = 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    return float(2.0 ** np.clip(round(np.log2(gamma)), -60, 60))
