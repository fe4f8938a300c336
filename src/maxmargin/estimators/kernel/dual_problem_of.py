"""The problem behind a classifier of two classes, for those who want to solve it themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin.estimators.kernel.kernel_classifier import KernelClassifier
from maxmargin.kernels import Kernel, Points
from maxmargin.matrices import KernelMatrix, PrecomputedMatrix
from maxmargin.problems import DualProblem


def problem_of(
    classifier: KernelClassifier, X: Any, y: Any, threads: int = 1
) -> tuple[Callable[[], DualProblem], Kernel | None]:
    """Return a function that poses the problem which ``classifier.fit(X, y)`` solves, and the kernel if it has one.

    Each call makes a new matrix, which knows nothing of what others have computed.
    """
    classifier._check_parameters()
    data, _, weights = classifier._check_labelled_data(X, y, None)
    if len(data.classes) > 2:
        raise ValueError(
            f"the labels are of {len(data.classes)} classes, which are several problems; "
            "choose one class against the rest, for example with y == label"
        )
    if classifier._strategy_name(data.classes) != "ovo":
        raise ValueError(
            f"multi_class={classifier.multi_class!r} poses a problem of its own even for two classes, which cannot be "
            "had here; use multi_class='ovo'"
        )
    kernel = classifier._make_kernel(data.X, weights)
    two_class = classifier._two_class()
    signs = np.where(data.labels == 0, -1.0, 1.0)  # the second class is the positive one, as in scikit-learn

    def pose() -> DualProblem:
        matrix = PrecomputedMatrix(data.X) if kernel is None else KernelMatrix(kernel, Points.wrap(data.X), threads)
        return two_class.pose(matrix, signs, data.costs)

    return pose, kernel
