"""External solvers of quadratic programs, each behind the same function.

    minimise    ½ xᵀ P x + qᵀ x
    subject to  least ≤ A x ≤ most        a row with least = most is an equation
                lower ≤ x ≤ upper

What MINOS and LOQO were to the first support vector machines (Bottou & Lin 1.6.2), these are today: Clarabel (Goulart &
Chen 2024) and PIQP (Schwan et al. 2023) are interior-point methods, OSQP (Stellato et al. 2020) an operator splitting,
ProxQP (Bambade et al. 2022) a method of multipliers, HiGHS (Huangfu & Hall 2018) an active-set method. Equations and
bounds are passed to each as such. The packages are optional; each is imported where it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats

#: The tightest tolerance that is requested; beyond it the backends fail in their own arithmetic.
TIGHTEST = 1e-10

#: The tightest tolerance of HiGHS, which adds as much to the diagonal of P and reports an error if it misses one.
HIGHS_TOLERANCE = 1e-7

#: Iteration limits if the caller sets none or a larger one: of interior-point methods and the method of multipliers, of
#: operator splitting, and per variable of the active-set method.
MAX_ITERATIONS, MAX_SPLITTING_ITERATIONS, MAX_ACTIVE_SET_ITERATIONS = 200, 20_000, 20


@dataclass(frozen=True)
class QuadraticProgram:
    """The arrays P, q, A, least, most, lower, upper; P is dense or sparse, A sparse."""

    quadratic: Any
    linear: Floats
    rows: Any
    least: Floats
    most: Floats
    lower: Floats
    upper: Floats

    @property
    def size(self) -> int:
        """The number of variables."""
        return len(self.linear)


class BackendResult(NamedTuple):
    """The result of a backend.

    Attributes
    ----------
    point : float array
        x; not finite, or empty, if there is none.
    multipliers : float array
        y of the rows, positive at `most`: P x + q + Aᵀ y + (multipliers of the bounds) = 0.
    iterations : int
    infeasible, unbounded : bool
        What the backend claims about the program.
    """

    point: Floats
    multipliers: Floats
    iterations: int
    infeasible: bool
    unbounded: bool


class BackendOptions(NamedTuple):
    """Tolerance and limits of a backend.

    Attributes
    ----------
    tolerance : float
        For every tolerance that the backend has.
    iterations, seconds : optional
        Limits.
    should_stop : function
        Called with the number of iterations; returns whether to stop.
    """

    tolerance: float = TIGHTEST
    iterations: int | None = None
    seconds: float | None = None
    should_stop: Callable[[int], bool] = lambda iterations: False

    def max_iterations(self, most: int = MAX_ITERATIONS) -> int:
        """Return the iteration limit: `most`, or the caller's if that is smaller."""
        return most if self.iterations is None else min(self.iterations, most)


#: A function that solves a program with one of the external packages.
Backend = Callable[[QuadraticProgram, BackendOptions], BackendResult]


def _clarabel(program: QuadraticProgram, options: BackendOptions) -> BackendResult:
    clarabel = _package("clarabel")
    equal = program.least == program.most
    above, below = ~equal & np.isfinite(program.most), ~equal & np.isfinite(program.least)
    has_upper, has_lower = np.isfinite(program.upper), np.isfinite(program.lower)
    identity = sparse.eye_array(program.size, format="csr")
    rows = program.rows.tocsr()
    stacked = [rows[equal], rows[above], -rows[below], identity[has_upper], -identity[has_lower]]
    right = [program.most[equal], program.most[above], -program.least[below]]
    right += [program.upper[has_upper], -program.lower[has_lower]]
    counts = [part.shape[0] for part in stacked]
    cones = [clarabel.ZeroConeT(counts[0]), clarabel.NonnegativeConeT(sum(counts[1:]))]
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_iter = False, options.max_iterations()
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = settings.tol_ktratio = options.tolerance
    if options.seconds is not None:
        settings.time_limit = options.seconds
    upper_triangle = sparse.csc_matrix(sparse.triu(sparse.csc_array(program.quadratic)))
    solver = clarabel.DefaultSolver(
        upper_triangle,
        program.linear,
        sparse.csc_matrix(sparse.vstack(stacked)),
        np.concatenate(right),
        [cone for cone, count in zip(cones, (counts[0], sum(counts[1:])), strict=True) if count],
        settings,
    )
    solver.set_termination_callback(lambda info: options.should_stop(info.iterations))
    solution = solver.solve()
    duals = np.split(np.array(solution.z), np.cumsum(counts)[:-1])
    multipliers = np.zeros(len(program.most))
    multipliers[equal], multipliers[above] = duals[0], duals[1]
    multipliers[below] -= duals[2]
    status = clarabel.SolverStatus
    return BackendResult(
        point=np.array(solution.x),
        multipliers=multipliers,
        iterations=int(solution.iterations),
        infeasible=solution.status == status.PrimalInfeasible,
        unbounded=solution.status == status.DualInfeasible,
    )


def _osqp(program: QuadraticProgram, options: BackendOptions) -> BackendResult:
    osqp = _package("osqp")
    bounded = np.isfinite(program.lower) | np.isfinite(program.upper)
    identity = sparse.eye_array(program.size, format="csr")[bounded]
    solver = osqp.OSQP()
    solver.setup(
        P=sparse.csc_matrix(sparse.triu(sparse.csc_array(program.quadratic))),
        q=program.linear,
        A=sparse.csc_matrix(sparse.vstack([program.rows, identity])),
        l=np.concatenate([program.least, program.lower[bounded]]),
        u=np.concatenate([program.most, program.upper[bounded]]),
        verbose=False,
        eps_abs=options.tolerance,
        eps_rel=options.tolerance,
        max_iter=max(1, options.max_iterations(MAX_SPLITTING_ITERATIONS)),
        time_limit=1e10 if options.seconds is None else max(options.seconds, 1e-6),
    )
    result = solver.solve(raise_error=False)
    status = osqp.SolverStatus
    return BackendResult(
        point=np.array(result.x, dtype=np.float64),
        multipliers=np.array(result.y, dtype=np.float64)[: len(program.most)],
        iterations=int(result.info.iter),
        infeasible=result.info.status_val == status.OSQP_PRIMAL_INFEASIBLE,
        unbounded=result.info.status_val == status.OSQP_DUAL_INFEASIBLE,
    )


def _highs(program: QuadraticProgram, options: BackendOptions) -> BackendResult:
    highspy = _package("highspy")
    model = highspy.HighsModel()
    triangle = sparse.csc_matrix(sparse.tril(program.quadratic))
    model.hessian_.dim_, model.hessian_.start_ = program.size, triangle.indptr
    model.hessian_.index_, model.hessian_.value_ = triangle.indices, triangle.data
    rows, lp = sparse.csr_matrix(program.rows), model.lp_
    lp.num_col_, lp.num_row_ = program.size, len(program.most)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = program.linear, program.lower, program.upper
    lp.row_lower_, lp.row_upper_ = program.least, program.most
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.num_row_, lp.a_matrix_.num_col_ = rows.shape
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = rows.indptr, rows.indices, rows.data
    solver = highspy.Highs()
    settings: dict[str, Any] = {
        "output_flag": False,
        "threads": 1,
        "primal_feasibility_tolerance": max(HIGHS_TOLERANCE, options.tolerance),
        "dual_feasibility_tolerance": max(HIGHS_TOLERANCE, options.tolerance),
        "qp_iteration_limit": max(1, options.max_iterations(1000 + MAX_ACTIVE_SET_ITERATIONS * program.size)),
        "time_limit": np.inf if options.seconds is None else options.seconds,
    }
    for name, value in settings.items():
        solver.setOptionValue(name, value)
    solver.passModel(model)
    solver.run()
    status, solution = solver.getModelStatus(), solver.getSolution()
    return BackendResult(
        point=np.array(solution.col_value if solution.value_valid else []),
        multipliers=-np.array(solution.row_dual),
        iterations=max(0, int(solver.getInfo().qp_iteration_count)),
        infeasible=status == highspy.HighsModelStatus.kInfeasible,
        unbounded=status == highspy.HighsModelStatus.kUnbounded,
    )


def _piqp(program: QuadraticProgram, options: BackendOptions) -> BackendResult:
    piqp = _package("piqp")
    equal = program.least == program.most
    rows = program.rows.tocsr()
    dense = not sparse.issparse(program.quadratic)
    shape = (lambda part: np.asfortranarray(part.toarray())) if dense else sparse.csc_matrix
    solver = piqp.DenseSolver() if dense else piqp.SparseSolver()
    settings = solver.settings
    settings.verbose, settings.max_iter = False, max(1, options.max_iterations())
    settings.eps_abs = settings.eps_duality_gap_abs = options.tolerance
    settings.eps_rel = settings.eps_duality_gap_rel = options.tolerance
    quadratic = np.asfortranarray(program.quadratic) if dense else sparse.csc_matrix(program.quadratic)
    solver.setup(
        quadratic, program.linear, shape(rows[equal]), program.most[equal], shape(rows[~equal]),
        program.least[~equal], program.most[~equal], program.lower, program.upper,
    )  # fmt: skip
    status, result = solver.solve(), solver.result
    multipliers = np.zeros(len(program.most))
    multipliers[equal], multipliers[~equal] = result.y, result.z_u - result.z_l
    return BackendResult(
        point=np.array(result.x),
        multipliers=multipliers,
        iterations=int(result.info.iter),
        infeasible=status == piqp.PIQP_PRIMAL_INFEASIBLE,
        unbounded=status == piqp.PIQP_DUAL_INFEASIBLE,
    )


def _proxqp(program: QuadraticProgram, options: BackendOptions) -> BackendResult:
    proxqp = _package("proxsuite").proxqp
    equal = program.least == program.most
    rows, dense = program.rows.tocsr(), not sparse.issparse(program.quadratic)
    arrays = [program.linear, program.most[equal], program.least[~equal], program.most[~equal]]
    if dense:
        solver = proxqp.dense.QP(program.size, int(equal.sum()), int((~equal).sum()), True)
        solver.init(
            program.quadratic, arrays[0], rows[equal].toarray(), arrays[1], rows[~equal].toarray(), *arrays[2:],
            program.lower, program.upper,
        )  # fmt: skip
    else:  # the sparse form has no bounds: they are rows
        bounded = np.isfinite(program.lower) | np.isfinite(program.upper)
        others = sparse.vstack([rows[~equal], sparse.eye_array(program.size, format="csr")[bounded]])
        solver = proxqp.sparse.QP(program.size, int(equal.sum()), others.shape[0])
        solver.init(
            sparse.csc_matrix(program.quadratic), arrays[0], sparse.csc_matrix(rows[equal]), arrays[1],
            sparse.csc_matrix(others), np.concatenate([arrays[2], program.lower[bounded]]),
            np.concatenate([arrays[3], program.upper[bounded]]),
        )  # fmt: skip
    solver.settings.eps_abs, solver.settings.eps_rel = options.tolerance, 0.0
    solver.settings.max_iter = max(1, options.max_iterations())
    solver.solve()
    result, status = solver.results, proxqp.QPSolverOutput
    multipliers = np.zeros(len(program.most))
    multipliers[equal], multipliers[~equal] = result.y, result.z[: int((~equal).sum())]
    return BackendResult(
        point=np.array(result.x),
        multipliers=multipliers,
        iterations=int(result.info.iter_ext),
        infeasible=result.info.status == status.PROXQP_PRIMAL_INFEASIBLE,
        unbounded=result.info.status == status.PROXQP_DUAL_INFEASIBLE,
    )


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"this backend needs the package {name!r}; install it with: pip install 'maxmargin[qp]'"
        ) from error


BACKENDS: dict[str, Backend] = {
    "clarabel": _clarabel,
    "osqp": _osqp,
    "highs": _highs,
    "piqp": _piqp,
    "proxqp": _proxqp,
}


def get_backend(name: str) -> Backend:
    """Return the function that calls a backend; an unknown name is an error that lists the backends."""
    if not isinstance(name, str) or name not in BACKENDS:
        raise ValueError(f"unknown backend {name!r}; the backends are {', '.join(map(repr, BACKENDS))}")
    return BACKENDS[name]
