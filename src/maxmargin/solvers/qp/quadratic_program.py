"""The whole dual solved by a generic solver of quadratic programs: how support vector machines began (1.5).

    minimise    ½ bᵀ (M + diag(ridge)) b − linear·b
    subject to  Σ_{i in group g} b_i = total_g,   lower ≤ b ≤ upper

with the sums passed as equations and the box as bounds. The matrix is dense: 8 n² bytes, several times as much inside
the backend, and n³ multiplications in each of its iterations. That is why the field moved on to methods that use a few
rows at a time.

The program is transformed in two ways, neither of which changes its solution. Since every group has a fixed sum, M may
be centred by groups: bᵀ M b = (b − m)ᵀ M (b − m) + 2 (M m)·b − mᵀ M m for any m with the sums of b. Only differences
within groups remain, which are far better conditioned. Variables are scaled by the width of the box if that is small:
backends have absolute tolerances.

The result is moved to its bounds and refined by a crossover, see `maxmargin.solvers.qp.crossover`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.linalg import eigvalsh
from scipy.linalg.lapack import dpotrf

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats
from maxmargin.matrices import PrecomputedMatrix
from maxmargin.matrices.numerics import check_finite
from maxmargin.precision import DOUBLE_EPSILON, NEGATIVE_EIGENVALUE
from maxmargin.problems import DualProblem, Solution
from maxmargin.resources import usable_memory
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.qp.qp_backends import QuadraticProgram, get_backend
from maxmargin.solvers.qp.qp_run import PosedProgram, QpRun
from maxmargin.solvers.split_form import in_split_form
from maxmargin.solvers.stopping import Callback, StoppingRule

#: Bytes per value of the matrix, with all copies: ours, and those of the backend as measured.
BYTES_PER_VALUE = {"clarabel": 88, "osqp": 64, "highs": 88, "piqp": 64, "proxqp": 128}


@dataclass(frozen=True)
class QuadraticProgramSolver:
    """A generic solver of quadratic programs, and a crossover to the exact optimum.

    Parameters
    ----------
    backend : {"clarabel", "osqp", "highs", "piqp", "proxqp"}
        The package that solves the program, installed by ``pip install 'maxmargin[qp]'``. Clarabel checks callback,
        Ctrl-C and limits in every iteration, OSQP and HiGHS limits only, PIQP and ProxQP the iteration limit; the
        others are checked when the backend has returned.
    crossover : int
        Maximum number of crossover rounds after the backend, each one solution of the linear equations of the free
        variables and at most as many pair steps as there are variables. 0 returns the result as it is, moved to its
        bounds. ``Solution.counters.rounds`` is the number of rounds, and ``iterations`` counts pair steps in addition
        to the iterations of the backend.
    memory_bytes : int, optional
        Memory limit; by default all that the process may use. It is an error if the dense matrix takes more.
    stopping : StoppingRule
        When to stop. The backend runs at its tightest tolerance, with a tolerance on the gap first at rougher ones.
    """

    backend: str = "clarabel"
    crossover: int = 20
    memory_bytes: int | None = None
    stopping: StoppingRule = field(default_factory=StoppingRule)
    audited: ClassVar[bool] = False

    @in_split_form
    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of the problem. A `start` is returned if it is optimal; backends have no warm start."""
        backend = get_backend(self.backend)
        self._check_memory(problem.size)
        run = QpRun(problem, start, Monitor(self.stopping, callback))
        return run.solve(lambda: pose_dual(problem), backend, self.crossover)

    def _check_memory(self, size: int) -> None:
        budget = usable_memory() if self.memory_bytes is None else self.memory_bytes
        needed = BYTES_PER_VALUE[self.backend] * size**2
        if needed > budget:
            raise MemoryError(
                f"a quadratic program of {size} variables takes about {needed / 2**30:.3g} GiB with the backend "
                f"{self.backend!r}, and {budget / 2**30:.3g} GiB may be used; the solvers 'block', 'pairwise', "
                "'decomposition' and 'chunking' do with a part of the matrix"
            )


def pose_dual(problem: DualProblem) -> PosedProgram:
    """Return the program of a problem; raise if it is not convex."""
    everything = np.arange(problem.size)
    values = np.ascontiguousarray(problem.matrix.block(everything, everything))
    check_finite(values)
    program, unit, scale = pose_program(problem, values)
    rounding = DOUBLE_EPSILON * problem.size * float(np.abs(values).max(initial=0.0))
    check_convex(program.quadratic, rounding * scale)
    return PosedProgram(
        program=program,
        read=lambda result: unit * result.point,
        is_unbounded=lambda result: result.unbounded,
        problem=problem.with_matrix(_InMemory(values)),
        evaluations=values.size,
        cache_bytes=values.nbytes,
    )


def pose_program(problem: DualProblem, values: Floats) -> tuple[QuadraticProgram, float, float]:
    """Return the program of a problem with these matrix values, the unit of its variables and its scale."""
    members = (problem.group[:, None] == np.arange(problem.groups)).astype(np.float64)
    means = members / np.maximum(members.sum(axis=0), 1.0)
    images = values @ means  # M m for m = means · total
    quadratic = values - images @ members.T
    quadratic -= members @ images.T
    quadratic += members @ (means.T @ images) @ members.T
    quadratic += quadratic.T.copy()
    quadratic *= 0.5
    quadratic.ravel()[:: problem.size + 1] += problem.ridge
    linear = problem.linear - images @ problem.total
    width = float((problem.upper - problem.lower).max(initial=0.0))
    unit = width if 0 < width < 1 else 1.0
    slope = float(np.abs(linear).max(initial=0.0)) or unit * float(np.abs(quadratic).max(initial=0.0)) or 1.0
    quadratic *= unit / slope
    program = QuadraticProgram(
        quadratic=quadratic,
        linear=-linear / slope,
        rows=sparse.csr_array(members.T),
        least=problem.total / unit,
        most=problem.total / unit,
        lower=problem.lower / unit,
        upper=problem.upper / unit,
    )
    return program, unit, unit / slope


def check_convex(quadratic: Floats, rounding: float = 0.0) -> None:
    """Raise if the matrix has an eigenvalue that is negative beyond rounding errors."""
    largest = float(np.abs(quadratic).max(initial=0.0))
    shifted = quadratic.copy()
    shifted.ravel()[:: len(quadratic) + 1] += (NEGATIVE_EIGENVALUE * largest or 1.0) + rounding
    if dpotrf(shifted, lower=1, overwrite_a=True)[1] == 0:
        return
    least = eigvalsh(quadratic, subset_by_index=[0, 0])[0] / largest
    raise ValueError(
        f"the kernel is indefinite (its smallest eigenvalue is {least:.2g} of its largest value), and solvers of "
        "convex quadratic programs reject it; 'pairwise' and 'block' end at a stationary point"
    )


class _InMemory(PrecomputedMatrix):
    """A matrix of values that count as in memory, whatever their number."""

    def in_memory(self) -> Floats:
        return np.asarray(self.values)
