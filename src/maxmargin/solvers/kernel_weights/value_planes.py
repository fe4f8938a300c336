"""Cutting planes of the optimal value, for weights of sum 1 where a quadratic model of it fails.

At feasible dual vectors α the optimal value V(d) of the subproblems is at least c(α) − ½ Σ_m d_m q_m(α), which is
linear in the weights d (Sonnenburg et al. 2006). Where most support vectors are at their bounds, V has kinks: dual
vectors at the best weights are not unique, and most of them are no solution of the joint problem. A mean of those of
several planes is: q_m is convex, so the joint dual value of the mean, with the multipliers of the linear program as
shares, is at least the bound of the planes.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from maxmargin._typing import Floats


class ValuePlanes:
    """The planes of some kernels, with the dual vectors that they come from."""

    def __init__(self) -> None:
        self._constants: list[float] = []
        self._squared: list[Floats] = []
        self._duals: list[list[Floats]] = []

    def add(self, constant: float, squared: Floats, duals: list[Floats]) -> None:
        """Add the plane of dual vectors with the value constant − ½ weights·squared."""
        self._constants.append(constant)
        self._squared.append(squared)
        self._duals.append(duals)

    def minimise(self) -> tuple[float, Floats, list[Floats]]:
        """Return the least value that all planes allow, weights that attain it, and the mean of the dual vectors."""
        constants, squared = np.array(self._constants), np.array(self._squared)
        unit = float(np.abs(constants).max()) or 1.0
        count = squared.shape[1]
        found = linprog(
            np.append(np.zeros(count), 1.0),
            A_ub=np.column_stack([-0.5 * squared / unit, -np.ones(len(constants))]),
            b_ub=-constants / unit,
            A_eq=np.append(np.ones(count), 0.0)[None, :],
            b_eq=[1.0],
            bounds=[(0.0, None)] * count + [(None, None)],
            method="highs",
        )
        if not found.success:
            raise ArithmeticError(f"the linear program of the planes was not solved: {found.message}")
        shares = np.maximum(-found.ineqlin.marginals, 0.0)
        shares /= shares.sum()
        mean = [sum(share * dual for share, dual in zip(shares, of_one, strict=True) if share > 0)
                for of_one in zip(*self._duals, strict=True)]  # fmt: skip
        return float(found.x[-1]) * unit, np.maximum(found.x[:-1], 0.0), mean
