"""The primal of the linear kernel, solved by a generic solver of quadratic programs.

For the linear kernel, or any explicit feature map, the weights themselves are variables. The loss of a sample is the
conjugate of its box and ridge (see `maxmargin.problems.certificate`), and slacks make it quadratic:

    minimise    ½ ‖w‖² + Σ_g ρ_g total_g + Σ_i (upper_i p_i − lower_i m_i + ½ ridge_i s_i²)
    subject to  f_i·w + ρ of the group + p_i − m_i + ridge_i s_i = linear_i,      p, m ≥ 0

A slack of cost 0 turns the equation into an inequality, and one of infinite cost is omitted. So the hinge loss has one
slack per sample, y_i (f_i·w + ρ) ≥ 1 − p_i, the hard margin has none, and the squared hinge has s. The multipliers of
the rows are the dual vector. There are d + n variables instead of n, but a sparse matrix of the size of the data
instead of a dense one of n²: suitable if the features are few (H.-T. Lin).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats
from maxmargin.matrices.features import Features
from maxmargin.problems import DualProblem, Solution
from maxmargin.resources import usable_memory
from maxmargin.solvers.linear.linear_point import features_of, finite_norms
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.qp.qp_backends import BackendResult, QuadraticProgram, get_backend
from maxmargin.solvers.qp.qp_run import PosedProgram, QpRun
from maxmargin.solvers.split_form import in_split_form
from maxmargin.solvers.stopping import Callback, StoppingRule

#: Bytes per stored value of the data, per sample and per pair of features, with all copies inside a backend.
BYTES_PER_VALUE, BYTES_PER_SAMPLE, BYTES_PER_SQUARE = 200, 2000, 50


@dataclass(frozen=True)
class PrimalQuadraticProgramSolver:
    """The weights of the linear kernel by a generic solver of quadratic programs, and a crossover to the exact optimum.

    Parameters
    ----------
    backend, crossover, memory_bytes
        As in `QuadraticProgramSolver`.
    cache_bytes : int
        Memory for rows of the matrix of products in the crossover.
    stopping : StoppingRule
        When to stop, as in `QuadraticProgramSolver`.
    """

    backend: str = "clarabel"
    crossover: int = 20
    memory_bytes: int | None = None
    cache_bytes: int = 200 * 2**20
    stopping: StoppingRule = field(default_factory=StoppingRule)
    audited: ClassVar[bool] = False

    @in_split_form
    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of the problem. A `start` is returned if it is optimal; backends have no warm start."""
        backend = get_backend(self.backend)
        linear = problem.with_matrix(problem.matrix.uncached())  # precomputed values have no features
        rows = features_of(linear, "primal_quadratic_program")
        self._check_memory(rows)
        run = QpRun(linear, start, Monitor(self.stopping, callback))
        return run.solve(lambda: pose_primal(linear, rows, self.cache_bytes), backend, self.crossover)

    def _check_memory(self, rows: Features) -> None:
        budget = usable_memory() if self.memory_bytes is None else self.memory_bytes
        needed = BYTES_PER_VALUE * rows.stored + BYTES_PER_SAMPLE * rows.size + BYTES_PER_SQUARE * rows.width**2
        if needed > budget:
            raise MemoryError(
                f"a quadratic program of {rows.size} samples and {rows.width} features takes about "
                f"{needed / 2**30:.3g} GiB, and {budget / 2**30:.3g} GiB may be used; the solvers "
                "'dual_coordinate_ascent' and 'semismooth_newton' work on the data directly"
            )


def pose_primal(problem: DualProblem, rows: Features, cache_bytes: int) -> PosedProgram:
    """Return the program of the weights, the offsets and the slacks, in this order.

    As in the dual program, weights are scaled by the width of the box if that is small, and dense features are centred
    by groups, which changes the offsets only.
    """
    finite_norms(rows)
    members = (problem.group[:, None] == np.arange(problem.groups)).astype(np.float64)
    features, means = _features(rows, members)
    lower, upper, ridge = problem.lower, problem.upper, problem.ridge
    width = float((upper - lower).max(initial=0.0))
    unit = width if 0 < width < 1 else 1.0
    fixed = lower == upper
    above = np.isfinite(upper) & (upper != 0)  # slacks p and m of positive and finite cost
    below = np.isfinite(lower) & (lower != 0) & ~fixed
    curved = ridge > 0
    identity = sparse.eye_array(problem.size, format="csc")
    columns = [
        unit * features,
        sparse.csc_array(members),
        identity[:, above],
        -identity[:, below],
        (identity * (unit * ridge))[:, curved],
    ]
    sizes = [part.shape[1] for part in columns]
    linear = [-(problem.total @ means), problem.total / unit, upper[above] / unit, -lower[below] / unit]
    free = np.full(sizes[0] + sizes[1], -np.inf)
    used = ~((lower == 0) & (upper == 0))
    program = QuadraticProgram(
        quadratic=sparse.diags_array(
            np.concatenate([np.full(sizes[0], unit), np.zeros(sum(sizes[1:4])), unit * ridge[curved]]), format="csc"
        ),
        linear=np.concatenate([*linear, np.zeros(sizes[4])]),
        rows=sparse.csr_array(sparse.hstack(columns, format="csr")[used]),
        least=np.where((upper == 0) & ~fixed, -np.inf, problem.linear)[used],
        most=np.where((lower == 0) & ~fixed, np.inf, problem.linear)[used],
        lower=np.concatenate(
            [free, np.where(fixed[above], -np.inf, 0.0), np.zeros(sizes[3]), np.full(sizes[4], -np.inf)]
        ),
        upper=np.full(sum(sizes), np.inf),
    )

    def read(result: BackendResult) -> Floats:
        dual = np.zeros(problem.size)
        dual[used] = -unit * result.multipliers
        return dual

    return PosedProgram(program, read, lambda result: result.infeasible, problem, rows.stored, cache_bytes)


def _features(rows: Features, members: Floats) -> tuple[sparse.csc_array, Floats]:
    """Return the features, centred by groups if they are dense, and the means."""
    points = rows.points
    data = points.data[points.index]
    none = np.zeros((members.shape[1], rows.width + (rows.constant != 0)))
    if sparse.issparse(data):
        constant = np.full((rows.size, int(rows.constant != 0)), rows.constant)
        return sparse.csc_array(sparse.hstack([data, constant]), dtype=np.float64), none
    features = np.asarray(data, dtype=np.float64)
    if rows.constant:
        features = np.column_stack([features, np.full(rows.size, rows.constant)])
    means = none + (members / np.maximum(members.sum(axis=0), 1.0)).T @ features
    return sparse.csc_array(features - members @ means), means
