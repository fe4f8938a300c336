"""A kernel of some of the features."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.double_double import DoubleDouble
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.points import Points, as_points
from maxmargin.kernels.split_sums import FeatureSums


@dataclass(frozen=True)
class OnFeatures(Kernel):
    """k(x, z) = kernel(x_S, z_S) for the features S, by number: a kernel for each group of features.

    Parameters
    ----------
    kernel : Kernel
    features : sequence of int

    Examples
    --------
    >>> from maxmargin.kernels import Linear, OnFeatures
    >>> OnFeatures(Linear(), [1])([[1.0, 2.0], [5.0, 3.0]])
    array([[4., 6.],
           [6., 9.]])
    """

    kernel: Kernel
    features: tuple[int, ...]

    def __init__(self, kernel: Kernel, features: Iterable[int]) -> None:
        numbers = np.atleast_1d(np.asarray(list(features)))
        if not len(numbers) or numbers.ndim != 1 or numbers.dtype.kind not in "iu" or numbers.min() < 0:
            raise ValueError(f"features must be numbers of columns from 0 on, at least one, not {features!r}")
        if len(np.unique(numbers)) != len(numbers):
            raise ValueError(f"features names a column twice: {features!r}")
        object.__setattr__(self, "kernel", kernel)
        object.__setattr__(self, "features", tuple(numbers.tolist()))

    @property
    def vectorised(self) -> bool:
        return self.kernel.vectorised

    @property
    def positive_semidefinite(self) -> bool:
        return self.kernel.positive_semidefinite

    def restricted(self, samples: Any) -> Points:
        """Return the samples with these features only, which are copied once for all views of the data."""
        points = as_points(samples)
        key = ("features", self.features)
        if key not in points.memo:
            if getattr(points.table, "ndim", 0) != 2:
                raise ValueError("a kernel of some features needs samples that are rows of numbers")
            width = points.table.shape[1]
            if max(self.features) >= width:
                raise ValueError(
                    f"a kernel is for feature {max(self.features)}, counted from 0, but X has {width} features"
                )
            points.memo[key] = Points(points.data[:, list(self.features)])
        whole: Points = points.memo[key]
        return whole.pick(points.index)

    def check(self, points: Points) -> None:
        self.kernel.check(self.restricted(points))

    def evaluate(self, left: Points, right: Points) -> Floats:
        if left.table.shape[1] != right.table.shape[1]:
            raise ValueError(
                f"both samples must have the same number of features, not {left.table.shape[1]} and "
                f"{right.table.shape[1]}"
            )
        return self.kernel.evaluate(self.restricted(left), self.restricted(right))

    def diagonal(self, points: Any) -> Floats:
        return self.kernel.diagonal(self.restricted(points))

    def magnitudes(self, points: Points) -> Floats:
        return self.kernel.magnitudes(self.restricted(points))

    def diagonal_error(self, points: Points) -> Floats:
        return self.kernel.diagonal_error(self.restricted(points))

    def error_bound(
        self, rows: Points, columns: Points, weights: Floats, sums: FeatureSums = FeatureSums.DOUBLE
    ) -> Floats:
        return self.kernel.error_bound(self.restricted(rows), self.restricted(columns), weights, sums)

    def evaluate_extended(self, left: Points, right: Points, threads: int = 1) -> DoubleDouble:
        return self.kernel.evaluate_extended(self.restricted(left), self.restricted(right), threads)
