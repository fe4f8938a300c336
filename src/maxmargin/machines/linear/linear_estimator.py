"""The base of the linear estimators: input validation, solvers, training of one problem per class or output.

Data are not copied: float32 stays float32, and CSR keeps its indices, int32 or int64. Only Fortran-ordered dense data
become C-ordered once, and CSR with unsorted or repeated indices is canonicalised in a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, cast

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.blocks.row_blocks import is_blocks
from maxmargin.formulations.formulation import Formulation
from maxmargin.kernels import Linear, Points
from maxmargin.kernels.points import VERY_WIDE
from maxmargin.machines.base import Machine
from maxmargin.machines.validation.parameters import check_choice, check_count, check_flag, check_number
from maxmargin.machines.validation.training_data import without_zeros
from maxmargin.matrices import BiasAugmentedMatrix, KernelMatrix, SymmetricMatrix
from maxmargin.models import LinearFunctions
from maxmargin.problems import DualProblem, Status
from maxmargin.resources import blas_thread_limit, check_memory, thread_count
from maxmargin.solvers import (
    BlockSolver,
    CoordinateDescentSolver,
    DualCoordinateAscentSolver,
    LinearSolver,
    PairwiseSolver,
    PrimalQuadraticProgramSolver,
    SemismoothNewtonSolver,
    StochasticSubgradientSolver,
    StoppingRule,
    SubgradientSolver,
)
from maxmargin.training import Session, Solver, TrainedLinearModel
from maxmargin.training.linear_verification import LINEAR_FORMS, penalty_of
from maxmargin.training.pipeline import solve_and_verify, train_parallel
from maxmargin.training.small_linear_problems import train_small

#: The solvers by name.
LINEAR_SOLVERS: dict[str, Any] = {
    "auto": LinearSolver,
    "dual_coordinate_ascent": DualCoordinateAscentSolver,
    "semismooth_newton": SemismoothNewtonSolver,
    "subgradient": SubgradientSolver,
    "stochastic_subgradient": StochasticSubgradientSolver,
    "pairwise": PairwiseSolver,
    "primal_quadratic_program": PrimalQuadraticProgramSolver,
}

#: The solvers for the penalty Σ |w_j|.
SPARSE_SOLVERS: dict[str, Any] = {"auto": CoordinateDescentSolver, "coordinate_descent": CoordinateDescentSolver}

#: The solvers of a problem with a weight vector for each class.
ALL_IN_ONE_SOLVERS: dict[str, Any] = {"auto": BlockSolver, "pairwise": PairwiseSolver, "block": BlockSolver}

#: The solver that ``dual`` selects where none is named.
SOLVER_OF_DUAL: dict[Any, str] = {"auto": "auto", True: "dual_coordinate_ascent", False: "semismooth_newton"}

#: The first violation tolerance of solvers that have no relative gap; it is reduced until the gap is met.
INITIAL_VIOLATION = 1e-2

#: A violation of rounding size: solvers stop there whatever the gap.
MIN_VIOLATION = 1e-13

#: Up to this many stored values a second thread costs more than it saves.
MAX_SINGLE_THREAD_VALUES = 2**18

#: From the matrix of the training rows and the number of a class or output to its problem.
PoseNumber = Callable[[SymmetricMatrix, int], DualProblem]


class LinearEstimator(Machine):
    """Base of the linear estimators: from parameters and data to problems, solvers and weights."""

    # Set by the constructors of the estimators.
    tol: Any
    solver: Any
    max_seconds: Any
    warm_start: Any
    n_jobs: Any
    C: Any
    penalty: Any = "l2"
    dual: Any = "auto"
    fit_intercept: Any = True
    intercept_scaling: Any = None

    # Set by fit.
    coef_: Any
    intercept_: Any
    _outputs_: int | None
    _models_: Sequence[TrainedLinearModel]

    _scaling_advice = (
        "Features of similar scale need far fewer iterations: consider StandardScaler, or MaxAbsScaler for sparse data."
    )

    def densify(self) -> Any:
        """Make ``coef_`` a dense array, as it is after ``fit``."""
        self._check_fitted()
        if sparse.issparse(self.coef_):
            self.coef_ = self.coef_.toarray()
        return self

    def sparsify(self) -> Any:
        """Make ``coef_`` a sparse matrix, which is smaller if most weights are 0; predictions stay the same."""
        self._check_fitted()
        self.coef_ = sparse.csr_matrix(self.coef_)
        return self

    # Input validation.

    def _check_samples(self, X: Any) -> Any:
        self._check_fitted()
        return self._validate_samples(X, reset=False)

    def _decide(self, X: Any) -> Floats:
        """Return the value of each function for each sample."""
        if is_blocks(X):
            self._check_fitted()
            return np.concatenate([self._decide(block.X) for block in X])
        X = self._check_samples(X)
        weights = self.coef_.toarray() if sparse.issparse(self.coef_) else np.asarray(self.coef_, dtype=np.float64)
        weights = np.atleast_2d(weights)
        if weights.shape[1] != X.shape[1]:
            raise ValueError(f"coef_ has {weights.shape[1]} weights, but there are {X.shape[1]} features")
        offsets = np.atleast_1d(np.asarray(self.intercept_, dtype=np.float64))
        return LinearFunctions(weights, offsets).decision_values(X, self._threads(X))

    def _threads(self, X: Any) -> int:
        stored = X.nnz if sparse.issparse(X) else X.size
        return 1 if self.n_jobs is None and stored <= MAX_SINGLE_THREAD_VALUES else thread_count(self.n_jobs)

    def _check_intercept(self) -> float:
        """Return the value of the constant feature of a regularised intercept, 0 if it is unregularised or absent."""
        fit_intercept = check_flag("fit_intercept", self.fit_intercept)
        if self.intercept_scaling is None or not fit_intercept:
            return 0.0
        return check_number("intercept_scaling", self.intercept_scaling, above=0)

    def _check_cost(self) -> float:
        """Return C, or raise."""
        if isinstance(self.C, float) and np.inf == self.C:
            raise ValueError("C must be finite here; for a hard margin use C=inf in SVC or SVR with kernel='linear'")
        return check_number("C", self.C, above=0)

    @property
    def _exact_intercept(self) -> bool:
        return bool(self.fit_intercept) and self.intercept_scaling is None

    # Training.

    def _make_matrix(self, X: Any, rows: Indices, problems: int) -> tuple[int, SymmetricMatrix]:
        """Return how many problems are trained at the same time, and the linear kernel matrix of some rows.

        A regularised intercept is a constant feature.
        """
        threads = self._threads(X)
        workers = min(threads, problems)
        if X.shape[1] >= VERY_WIDE:  # the weights of each problem, and about three vectors of that size in its solver
            what = f"coef_ of {X.shape[1]:,} features"
            check_memory(8 * X.shape[1] * (problems + 3 * workers), what, "leave out features that do not occur")
        points = Points.wrap(without_zeros(X, threads))
        taken = points if len(rows) == len(points) else points.take(rows)
        matrix = KernelMatrix(Linear(), taken, max(1, threads // workers))
        scaling = self._check_intercept()
        return workers, BiasAugmentedMatrix(matrix, scaling**2) if scaling else matrix

    def _make_solver(self, solvers: dict[str, Any]) -> Solver:
        """Return the solver: one of `solvers` by name, or the object that was given."""
        rule = StoppingRule(
            violation=MIN_VIOLATION,
            max_iterations=None if self.max_iter is None else check_count("max_iter", self.max_iter, 0),
            max_seconds=None if self.max_seconds is None else check_number("max_seconds", self.max_seconds, least=0),
            relative_gap=check_number("tol", self.tol, above=0),
        )
        check_flag("warm_start", self.warm_start)
        if not isinstance(self.dual, bool | np.bool_) and self.dual != "auto":
            raise ValueError(f"dual must be 'auto', True or False, not {self.dual!r}")
        if hasattr(self.solver, "solve"):
            given = self._check_solver(self.solver)
            if penalty_of(given) != self.penalty:
                raise ValueError(f"{type(given).__name__} is for penalty={penalty_of(given)!r}, not {self.penalty!r}")
            return given
        name = check_choice("solver", self.solver, tuple(solvers))
        kind = solvers[SOLVER_OF_DUAL[self.dual] if name == "auto" and SOLVER_OF_DUAL[self.dual] in solvers else name]
        if kind in (PairwiseSolver, BlockSolver):
            rule = replace(rule, violation=INITIAL_VIOLATION)
        return cast(Solver, kind(stopping=rule))

    def _train(
        self,
        X: Any,
        rows: Indices,
        pose: PoseNumber,
        count: int,
        formulation: Formulation,
        solver: Solver,
        session: Session,
        starts: list[Floats] | None = None,
        min_gap: Callable[[DualProblem], float] | None = None,
    ) -> list[TrainedLinearModel]:
        """Return trained models for the problems 0 to `count` − 1 of some rows.

        `min_gap` returns an absolute gap that is always small enough, for problems whose optimum may be 0.
        """
        workers, matrix = self._make_matrix(X, rows, count)
        form = LINEAR_FORMS[penalty_of(solver)]

        def train_one(number: int) -> TrainedLinearModel:
            problem = pose(matrix, number)
            own = self._adapt(solver, problem, None if min_gap is None else min_gap(problem))
            start = None if starts is None else form.place_start(problem, starts[number])
            if start is None:
                small = train_small(problem, own, rows, session)
                if small is not None:
                    return small
            verifier = form.verifier(problem, rows, formulation, own.stopping)
            model: TrainedLinearModel = solve_and_verify(problem, own, verifier, start, session)
            return model

        # One BLAS thread limit for all problems: changing it between problems leaves BLAS threads spinning.
        with blas_thread_limit(1) if count > 1 else nullcontext():
            return train_parallel(train_one, count, session, workers, _mark_interrupted)

    def _adapt(self, solver: Solver, problem: DualProblem, gap: float | None = None) -> Solver:
        """Return the solver with an absolute gap for one problem; a solver object of the user keeps its options.

        An iteration of the pair solvers is a step: there one of ``max_iter`` stands for as many as there are variables.
        """
        rule, given = solver.stopping, self.solver is solver
        if given:
            return solver
        if gap is not None and not np.isfinite(gap):  # of extreme costs: no gap would be too large
            gap = None
        if isinstance(solver, PairwiseSolver | BlockSolver) and rule.max_iterations is not None:
            rule = replace(rule, max_iterations=rule.max_iterations * problem.size)
        adapted: Solver = replace(solver, stopping=replace(rule, gap=gap))  # type: ignore[type-var]  # a dataclass
        return adapted

    def _starts(self, rows: Indices, count: int, variables: int) -> list[Floats] | None:
        """Return the previous solutions as starts, if there are `count` of `variables` variables on the same rows."""
        models: list[TrainedLinearModel] | None = self.__dict__.get("_models_")
        if not self.warm_start or models is None or len(models) != count:
            return None
        same = len(models[0].dual) == variables and np.array_equal(models[0].samples, rows)
        return [LINEAR_FORMS[self.penalty].start(model, False) for model in models] if same else None

    def _set_fitted(self, models: list[TrainedLinearModel]) -> None:
        """Set the fitted attributes."""
        self.__dict__.pop("n_passes_", None)  # of an earlier fit on blocks of rows
        self._models_ = models
        self.coef_ = np.vstack([model.weights for model in models])
        self.intercept_ = np.hstack([model.offset for model in models])
        self.n_iter_ = max(model.counters.iterations for model in models)
        self.fit_status_ = int(not all(model.status.converged for model in models))


def _mark_interrupted(model: TrainedLinearModel) -> TrainedLinearModel:
    return replace(model, status=Status.INTERRUPTED)
