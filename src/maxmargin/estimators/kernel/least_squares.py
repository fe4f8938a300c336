"""What the least squares estimators share: their problem is a system of linear equations."""

from __future__ import annotations

from typing import cast

from maxmargin.estimators.kernel.kernel_estimator import CLASSICAL, KernelMachine
from maxmargin.solvers import make_solver
from maxmargin.training import Solver


class LeastSquaresMachine(KernelMachine):
    """Base of the least squares estimators: chooses their solver."""

    _solvers = ("linear_system", "pairwise", "block", *CLASSICAL)

    def _make_solver(self, size: int, bounded: bool, cache_bytes: int, threads: int, few: int = 0) -> Solver:
        stopping, name = self._stopping_rule(), self._solver_name()
        if not isinstance(name, str):
            return name
        name = "linear_system" if name == "auto" else name
        return cast(Solver, make_solver(name, cache_bytes=cache_bytes, stopping=stopping))
