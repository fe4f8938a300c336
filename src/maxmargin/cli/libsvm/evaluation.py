"""Accuracy and errors of predictions, as LIBSVM and LIBLINEAR print them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin._typing import Floats


@dataclass
class Evaluation:
    """Accuracy and errors, accumulated over blocks of predictions.

    Attributes
    ----------
    count, correct : int
    squared_error : float
    """

    count: int = 0
    correct: int = 0
    squared_error: float = 0.0
    _sums: tuple[float, ...] = (0.0,) * 5

    def add(self, predicted: Floats, targets: Floats) -> None:
        """Add a block of predictions and targets."""
        self.count += len(targets)
        self.correct += int(np.sum(predicted == targets))
        self.squared_error += float(np.sum((predicted - targets) ** 2))
        more = (predicted.sum(), targets.sum(), predicted @ predicted, targets @ targets, predicted @ targets)
        self._sums = tuple(float(old + new) for old, new in zip(self._sums, more, strict=True))

    @property
    def accuracy(self) -> float:
        """Percentage of correct labels."""
        return 100.0 * self.correct / self.count if self.count else float("nan")

    @property
    def mean_squared_error(self) -> float:
        """Mean squared error."""
        return self.squared_error / self.count if self.count else float("nan")

    @property
    def squared_correlation(self) -> float:
        """Square of Pearson's correlation; NaN if predictions or targets are constant."""
        p, t, pp, tt, pt = self._sums
        n = self.count
        variances = (n * pp - p * p) * (n * tt - t * t)
        return (n * pt - p * t) ** 2 / variances if variances else float("nan")

    def lines(self, regression: bool, prefix: str = "", suffixes: tuple[str, str] = ("", "")) -> list[str]:
        """Return the lines of a program with a prefix, and suffixes for classification and regression."""
        if regression:
            return [
                f"{prefix}Mean squared error = {self.mean_squared_error:g}{suffixes[1]}",
                f"{prefix}Squared correlation coefficient = {self.squared_correlation:g}{suffixes[1]}",
            ]
        return [f"{prefix}Accuracy = {self.accuracy:g}%{suffixes[0]}"]
