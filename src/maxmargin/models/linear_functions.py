"""Several linear functions: f_c(x) = weights_c · x + offset_c."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats
from maxmargin.kernels.points import Points, float64_batches
from maxmargin.matrices.features import Features
from maxmargin.models.overflow import check_finite, ignored_overflow


@dataclass(frozen=True)
class LinearFunctions:
    """Several linear functions, evaluated in float64 for data of any precision.

    Parameters
    ----------
    weights : float array of shape (functions, features)
    offsets : float array, one per function
    """

    weights: Floats
    offsets: Floats

    def decision_values(self, X: Any, threads: int) -> Floats:
        """Return the value of every function for every sample, dense or CSR, or raise if one is not finite."""
        with ignored_overflow():
            return check_finite(self._values(X, threads))

    def _values(self, X: Any, threads: int) -> Floats:
        out = np.empty((X.shape[0], len(self.weights)))
        if len(self.weights) > 1 and not sparse.issparse(X):  # one pass over the data for all functions
            columns = np.ascontiguousarray(self.weights.T)
            for rows, part in float64_batches(X):
                out[rows] = part @ columns
        else:
            features = Features(Points(X), threads=threads)
            for c, weights in enumerate(self.weights):
                out[:, c] = features.decisions(np.append(weights, 0.0))
        out += self.offsets
        return out
