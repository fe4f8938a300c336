"""The linear estimators: linear machines in scikit-learn's interface; the docstrings are those of the machines."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.estimators.base import Classifier, OutlierDetector, Regressor
from maxmargin.machines.linear import kernel_approximation_svc, linear_one_class_svm, linear_svc, linear_svr
from maxmargin.machines.linear.block_data import as_blocks


class BlockScores:
    """Mixin of estimators whose `score` also takes blocks of rows."""

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the score of the predictions as in scikit-learn: the accuracy, or R²; blocks may have the labels."""
        if (blocks := as_blocks(X, y, sample_weight)) is not None:
            parts = list(zip(*((block.y, block.sample_weight) for block in blocks), strict=True))
            if any(part is None for part in parts[0]):
                raise ValueError(f"{blocks.name} has no labels to compare the predictions with")
            X, y = blocks, np.concatenate(parts[0])
            sample_weight = None if parts[1][0] is None else np.concatenate(parts[1])
        scored: float = super().score(X, y, sample_weight)  # type: ignore[misc]  # of scikit-learn
        return scored


class LinearSVC(BlockScores, Classifier, linear_svc.LinearSVC):  # noqa: D101
    pass


class LinearSVR(BlockScores, Regressor, linear_svr.LinearSVR):  # noqa: D101
    pass


class LinearOneClassSVM(OutlierDetector, linear_one_class_svm.LinearOneClassSVM):  # noqa: D101
    pass


class KernelApproximationSVC(BlockScores, Classifier, kernel_approximation_svc.KernelApproximationSVC):  # noqa: D101
    pass
