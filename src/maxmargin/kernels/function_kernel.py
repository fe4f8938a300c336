"""A kernel given by a Python callable k(X, Z) that returns a block of values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats
from maxmargin.kernels.kernel import DIAGONAL_BLOCK, Kernel
from maxmargin.kernels.points import Points, as_points


@dataclass(frozen=True)
class FunctionKernel(Kernel):
    """A kernel given by a function of two sets of samples, called on blocks as rows are needed."""

    function: Callable[[Any, Any], Any]

    @property
    def vectorised(self) -> bool:
        return False

    def evaluate(self, left: Points, right: Points) -> Floats:
        values = self.function(left.values(), right.values())
        values = values.toarray() if sparse.issparse(values) else np.asarray(values)
        expected = (len(left), len(right))
        if values.shape != expected:
            raise ValueError(
                f"the kernel function {_name(self.function)} returned an array of shape {values.shape} for "
                f"{expected[0]} and {expected[1]} samples; it must return a block of shape {expected}"
            )
        if values.dtype.kind not in "fiub":
            raise ValueError(f"the kernel function {_name(self.function)} returned {values.dtype}, not real numbers")
        return np.ascontiguousarray(values, dtype=np.float64)

    def diagonal(self, points: Any) -> Floats:
        # Computed once for all views of the data, since the function may be expensive. The memo keeps the kernel alive,
        # whose address is the key.
        samples = as_points(points)
        _, known = samples.memo.setdefault(("diagonal", id(self)), (self, np.full(samples.count, np.nan)))
        missing = np.unique(samples.index[np.isnan(known[samples.index])])
        # A call costs more than its values, so small square blocks are evaluated, but never the full matrix.
        side = min(DIAGONAL_BLOCK, max(1, len(samples) // 4))
        for start in range(0, len(missing), side):
            rows = missing[start : start + side]
            block = samples.pick(rows)
            known[rows] = np.diag(self.evaluate(block, block))
        return np.asarray(known[samples.index])


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)
