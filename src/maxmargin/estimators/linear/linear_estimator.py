"""What all linear machines share at the door: data as they are, solvers, machines side by side.

Data are never copied: float32 stays float32, compressed rows keep their indices, int32 or int64. Only dense data in
Fortran's order become C-ordered once, and compressed rows with unsorted or repeated indices are tidied up in a copy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, cast

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from maxmargin._typing import Floats, Indices
from maxmargin.estimators.calibration.cross_validation import deadline_of
from maxmargin.estimators.multiclass.parallel_training import side_by_side
from maxmargin.estimators.validation.callbacks import Reporting, trained_elsewhere
from maxmargin.estimators.validation.parameters import check_choice, check_count, check_flag, check_number
from maxmargin.estimators.validation.samples import without_zeros
from maxmargin.formulations.formulation import Formulation
from maxmargin.kernels import Linear, Points
from maxmargin.linear_training import TRAINING, LinearMachine, Training
from maxmargin.matrices import BiasAugmentedMatrix, KernelMatrix, SymmetricMatrix
from maxmargin.models import LinearFunctions
from maxmargin.problems import DualProblem, Status
from maxmargin.resources import blas_thread_limit, thread_count
from maxmargin.solvers import (
    BlockSolver,
    Callback,
    CoordinateDescentSolver,
    DualCoordinateAscentSolver,
    LinearSolver,
    PairwiseSolver,
    PrimalQuadraticProgramSolver,
    SemismoothNewtonSolver,
    SharedCallback,
    StochasticSubgradientSolver,
    StoppingRule,
    SubgradientSolver,
)
from maxmargin.training import Solver

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

#: Those for the penalty Σ |w_j|.
SPARSE_SOLVERS: dict[str, Any] = {"auto": CoordinateDescentSolver, "coordinate_descent": CoordinateDescentSolver}

#: Those of a machine with a function for each class.
ALL_IN_ONE: dict[str, Any] = {"auto": BlockSolver, "pairwise": PairwiseSolver, "block": BlockSolver}

#: What ``dual`` stands for where no solver is named.
SOLVER_OF: dict[Any, str] = {"auto": "auto", True: "dual_coordinate_ascent", False: "semismooth_newton"}

#: The violation that solvers are asked for which do not know a relative gap; it becomes smaller until the gap is right.
FIRST_VIOLATION = 1e-2

#: The violation that others take for optimal whatever the gap.
OPTIMAL_VIOLATION = 1e-13

#: Up to this many stored values a second thread does not pay.
WORTH_A_THREAD = 2**18

#: What helps most fits that run into their limit.
SCALE_THE_DATA = (
    "Features of similar size take far fewer steps: consider StandardScaler, or MaxAbsScaler for sparse data."
)

#: From the products of the training rows and a number to the problem of that machine.
Pose = Callable[[SymmetricMatrix, int], DualProblem]


@dataclass(frozen=True)
class Run:
    """A fit that is going on: who solves, who listens, and until when.

    Attributes
    ----------
    solver : Solver
    watch : SharedCallback
    deadline : float, optional
        A reading of ``time.perf_counter``.
    """

    solver: Solver
    watch: SharedCallback
    deadline: float | None

    @classmethod
    def of(cls, solver: Solver, report: Callback | None, started: float) -> Run:
        """Return a fit that started then."""
        return cls(solver, SharedCallback(report), deadline_of(solver, started))

    @property
    def training(self) -> Training:
        """How its machines are trained."""
        return TRAINING[_penalty_of(self.solver)]

    def heard(self, machine: LinearMachine) -> LinearMachine:
        """Return a machine, after others have been told if it was interrupted."""
        if machine.status is Status.INTERRUPTED:
            self.watch.stopped.set()
        return machine


class LinearEstimator(Reporting, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no type hints
    """Base of the linear machines: turns parameters and data into problems, solvers and weights."""

    # Set by the constructors of the estimators.
    tol: Any
    max_iter: Any
    solver: Any
    max_seconds: Any
    callback: Any
    verbose: Any
    warm_start: Any
    n_jobs: Any
    C: Any
    penalty: Any = "l2"
    dual: Any = "auto"
    fit_intercept: Any = True
    intercept_scaling: Any = None

    coef_: Any
    intercept_: Any
    _machines_: list[LinearMachine]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    @property
    def certificate_(self) -> Any:
        """What is proved about the solution: one certificate, or a list with one per machine."""
        return self._per_machine("certificate_", [machine.certificate for machine in self._trained("certificate_")])

    @property
    def status_(self) -> Any:
        """How the solver ended: one, or a list with one per machine."""
        return self._per_machine("status_", [machine.status for machine in self._trained("status_")])

    def densify(self) -> Any:
        """Make ``coef_`` a dense array, as it is after ``fit``."""
        check_is_fitted(self)
        if sparse.issparse(self.coef_):
            self.coef_ = self.coef_.toarray()
        return self

    def sparsify(self) -> Any:
        """Make ``coef_`` a sparse matrix, which is smaller if most weights are 0; predictions stay the same."""
        check_is_fitted(self)
        self.coef_ = sparse.csr_matrix(self.coef_)
        return self

    # What happens inside.

    def _trained(self, attribute: str) -> list[LinearMachine]:
        if "coef_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {attribute!r} before fit")
        if "_machines_" not in self.__dict__:
            raise AttributeError(trained_elsewhere(self, attribute))
        return self._machines_

    def _per_machine(self, attribute: str, values: list[Any]) -> Any:
        return values[0] if len(values) == 1 else values

    @property
    def _table(self) -> dict[str, Any]:
        """What is asked of a table of numbers."""
        return {
            "dtype": (np.float64, np.float32),
            "order": "C",
            "accept_sparse": "csr",
            "accept_large_sparse": True,
        }

    def _check_samples(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, **self._table)

    def _decide(self, X: Any) -> Floats:
        """Return the value of each function for each sample."""
        X = self._check_samples(X)
        weights = self.coef_.toarray() if sparse.issparse(self.coef_) else np.asarray(self.coef_, dtype=np.float64)
        weights = np.atleast_2d(weights)
        if weights.shape[1] != X.shape[1]:
            raise ValueError(f"coef_ has {weights.shape[1]} weights, but there are {X.shape[1]} features")
        offsets = np.atleast_1d(np.asarray(self.intercept_, dtype=np.float64))
        return LinearFunctions(weights, offsets).decision_values(X, self._threads(X))

    def _threads(self, X: Any) -> int:
        stored = X.nnz if sparse.issparse(X) else X.size
        return 1 if self.n_jobs is None and stored <= WORTH_A_THREAD else thread_count(self.n_jobs)

    def _check_intercept(self) -> float:
        """Return the value of the constant feature that makes the intercept, 0 if it is exact or there is none."""
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

    def _divide(self, X: Any, rows: Indices, machines: int) -> tuple[int, SymmetricMatrix]:
        """Return how many machines are trained side by side, and the products of their rows on the threads of each.

        If the intercept is a weight there is a constant feature.
        """
        threads = self._threads(X)
        beside = min(threads, machines)
        points = Points(without_zeros(X, threads))
        taken = points if len(rows) == len(points) else points.take(rows)
        matrix = KernelMatrix(Linear(), taken, max(1, threads // beside))
        scaling = self._check_intercept()
        return beside, BiasAugmentedMatrix(matrix, scaling**2) if scaling else matrix

    def _make_solver(self, solvers: dict[str, Any]) -> Solver:
        """Return the solver, of those by name or as it was given."""
        rule = StoppingRule(
            violation=OPTIMAL_VIOLATION,
            max_iterations=None if self.max_iter is None else check_count("max_iter", self.max_iter, 0),
            max_seconds=None if self.max_seconds is None else check_number("max_seconds", self.max_seconds, least=0),
            relative_gap=check_number("tol", self.tol, above=0),
        )
        check_flag("warm_start", self.warm_start)
        if not isinstance(self.dual, bool | np.bool_) and self.dual != "auto":
            raise ValueError(f"dual must be 'auto', True or False, not {self.dual!r}")
        if hasattr(self.solver, "solve"):
            if not is_dataclass(self.solver) or not hasattr(self.solver, "stopping"):
                raise ValueError("a solver object must be a dataclass with a field `stopping` and a method `solve`")
            if _penalty_of(self.solver) != self.penalty:
                raise ValueError(
                    f"{type(self.solver).__name__} is for penalty={_penalty_of(self.solver)!r}, not {self.penalty!r}"
                )
            return cast(Solver, self.solver)
        name = check_choice("solver", self.solver, tuple(solvers))
        kind = solvers[SOLVER_OF[self.dual] if name == "auto" and SOLVER_OF[self.dual] in solvers else name]
        if kind in (PairwiseSolver, BlockSolver):
            rule = replace(rule, violation=FIRST_VIOLATION)
        return cast(Solver, kind(stopping=rule))

    def _train(
        self,
        X: Any,
        rows: Indices,
        pose: Pose,
        count: int,
        formulation: Formulation,
        run: Run,
        starts: list[Floats] | None = None,
        least_gap: Callable[[DualProblem], float] | None = None,
    ) -> list[LinearMachine]:
        """Return machines for the problems 0 to `count` − 1 of some rows, side by side if there are threads.

        `least_gap` says which gap is small enough whatever the optimum is, where that may be 0.
        """
        beside, matrix = self._divide(X, rows, count)

        def train_one(number: int) -> LinearMachine:
            problem = pose(matrix, number)
            start = None if starts is None else starts[number]
            solver = self._fit_to(run.solver, problem, None if least_gap is None else least_gap(problem))
            trained = run.training.train(problem, solver, rows, formulation, start, run.watch, run.deadline)
            return run.heard(trained)

        # Once for all machines: BLAS's threads, called off and on again, would spin meanwhile.
        with blas_thread_limit(1) if count > 1 else nullcontext():
            machines, interrupted = side_by_side(train_one, count, run.watch, beside)
        if interrupted or any(machine.status is Status.INTERRUPTED for machine in machines):
            machines = [
                replace(machine, status=Status.INTERRUPTED) if machine.status is Status.STOPPED else machine
                for machine in machines
            ]
        return machines

    def _fit_to(self, solver: Solver, problem: DualProblem, gap: float | None = None) -> Solver:
        """Return the solver for a problem in which a gap is small enough; one of the user's keeps its options.

        To solvers by pairs an iteration is a step: then one of ``max_iter`` is as many as there are variables.
        """
        rule = solver.stopping
        own = self.solver is solver
        if own:
            return solver
        if isinstance(solver, PairwiseSolver | BlockSolver) and rule.max_iterations is not None:
            rule = replace(rule, max_iterations=rule.max_iterations * problem.size)
        fitted: Solver = replace(solver, stopping=replace(rule, gap=gap))  # type: ignore[type-var]  # a dataclass
        return fitted

    def _starts(self, rows: Indices, count: int, variables: int) -> list[Floats] | None:
        """Return the previous solutions as starts, if there are so many of so many variables, about the same rows."""
        machines: list[LinearMachine] | None = self.__dict__.get("_machines_")
        if not self.warm_start or machines is None or len(machines) != count:
            return None
        same = len(machines[0].dual) == variables and np.array_equal(machines[0].samples, rows)
        return [TRAINING[self.penalty].start(machine, False) for machine in machines] if same else None

    def _keep(self, machines: list[LinearMachine]) -> None:
        """Take over what was trained."""
        self._machines_ = machines
        self.coef_ = np.vstack([machine.weights for machine in machines])
        self.intercept_ = np.hstack([machine.offset for machine in machines])
        self.n_iter_ = max(machine.counters.iterations for machine in machines)
        self.fit_status_ = int(not all(machine.status.converged for machine in machines))

    def _speak_up(self, rule: StoppingRule, each: str) -> None:
        speak_up(self, rule, each, SCALE_THE_DATA, stacklevel=4)


def speak_up(estimator: Any, rule: StoppingRule, each: str, advice: str = "", stacklevel: int = 3) -> None:
    """Raise after an interruption, warn of a limit that was hit; the model is in place by now.

    `advice` is given where more work would have helped.
    """
    machines: list[LinearMachine] = estimator._machines_
    unfinished = [machine for machine in machines if not machine.status.converged]
    if not unfinished:
        return
    if any(machine.status is Status.INTERRUPTED for machine in unfinished):
        raise KeyboardInterrupt("fit was interrupted; the model so far is usable, see certificate_ for how good it is")
    worst = max(unfinished, key=lambda machine: machine.certificate.relative_gap)
    limited = worst.status in (Status.MAX_ITERATIONS, Status.MAX_SECONDS)
    which = "" if len(machines) == 1 else f" in {len(unfinished)} of {len(machines)} {each}"
    wanted = "" if rule.relative_gap is None else f" (tolerance {rule.relative_gap:g})"
    warnings.warn(
        f"{type(estimator).__name__} stopped before the tolerance{which}: {worst.status.value}. "
        f"A duality gap of {worst.certificate.relative_gap:.2g} of the objective{wanted} remains."
        + (f" {advice}" if limited and advice else ""),
        ConvergenceWarning,
        stacklevel=stacklevel,
    )


def _penalty_of(solver: Any) -> str:
    """Return the penalty that a solver is for."""
    penalty: str = getattr(solver, "penalty", "l2")
    return penalty
