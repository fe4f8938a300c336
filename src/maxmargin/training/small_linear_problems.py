"""Training of small problems with the linear kernel, each in one native call.

Of a fit of milliseconds, Python between two steps and NumPy's passes over all samples take the larger part. A native
call solves a problem from start to end and computes its certificate with bounds on all rounding errors
(`native/small_linear_bindings.cpp`): with few features the semismooth Newton method, of which squared losses have a
variant for problems of medium size (`native/ridged_newton.hpp`); with more features and small costs dual coordinate
ascent, which then converges within a few passes over the data. Problems that take many steps, are of another kind, or
need a certificate in double-double arithmetic go through the pipeline.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from time import perf_counter
from typing import ClassVar

import numpy as np

from maxmargin import _native
from maxmargin import _sparse as sparse
from maxmargin._typing import Indices
from maxmargin.deadline import seconds_until_deadline
from maxmargin.formulations.formulation import bias_of
from maxmargin.matrices.features import Features
from maxmargin.problems import Certificate, Counters, DualProblem, Progress, Solution, Status
from maxmargin.problems.certificate import NEGLIGIBLE_ROUNDING, inconclusive
from maxmargin.solvers import LinearSolver, StoppingRule
from maxmargin.solvers.linear.linear_solver import (
    BLAS_SPEEDUP,
    MAX_CHEAP_STEP_PASSES,
    first_step_cost,
    newton_cost,
)
from maxmargin.solvers.monitor import Monitor
from maxmargin.training.linear_verification import meets
from maxmargin.training.pipeline import Session, Solver
from maxmargin.training.trained_model import TrainedLinearModel
from maxmargin.training.verification import MAX_ROUNDING_FRACTION

#: The most multiplications of a Newton step, with all rows free: up to 90 features of 2,000 rows. Faster than the
#: pipeline on one thread up to four times as many, on Gaussian data of 8 to 120 features; beyond, threads pay off.
MAX_STEP_MULTIPLICATIONS = 2**24

#: The most features with which the Newton method is the first choice at any cost; on Gaussian data as above.
MAX_NEWTON_FEATURES = 64

#: The most stored values of problems for coordinate ascent. Longer passes are divided among threads by the pipeline.
MAX_ASCENT_VALUES = 2**20

#: The largest curvature of the linear kernel relative to that of the loss, on average, with which coordinate ascent is
#: the first choice: it takes some ten passes. Tuned on a9a, binary features and text with C of 0.01 to 100.
MAX_ASCENT_CURVATURE = 8.0

#: The most stored values for which the Newton method for squared losses is one native call: that then takes up to some
#: 50 ms, between two checks of the deadline a few.
MAX_RIDGED_VALUES = 2**23

#: Nanoseconds of a product for each stored value, sparse and dense; of a multiplication for the moments, likewise; of
#: all else in a Newton fit for each sample; of a step of coordinate ascent besides its products. Measured on a9a, and
#: for dense rows on covtype.
VALUE_COSTS, MOMENT_COSTS, SAMPLE_COST, STEP_COST = (0.75, 0.15), (0.55, 0.12), 60.0, 25.0

#: Products with the data in a Newton fit, and its factorisations with the nanoseconds of one for each cubed dimension.
NEWTON_PRODUCTS, FACTORISATIONS, FACTORISATION_COST = 8, 8, 0.05

#: Passes of coordinate ascent that are assumed: where it converges soon, and elsewhere.
SUITED_PASSES, OTHER_PASSES = 5, 15

#: Passes of coordinate ascent after which a problem goes through the pipeline.
MAX_PASSES = 50

#: Newton steps after which a problem goes through the pipeline; most take fewer than 40.
MAX_STEPS = 200


def train_small(problem: DualProblem, solver: Solver, samples: Indices, session: Session) -> TrainedLinearModel | None:
    """Return the trained model of a small problem, None if it is left to the pipeline.

    Only the problems of a `LinearSolver` whose tolerance is a relative gap are trained here. Observers receive a report
    of the start and one of the end.
    """
    rule = solver.stopping
    if not isinstance(solver, LinearSolver) or rule.relative_gap is None or not problem.zero_is_feasible:
        return None
    rows = problem.matrix.features()
    if rows is None or rows.device_rows is not None or session.deadline.reached or session.callback.stopped.is_set():
        return None
    fit_of = choose_method(problem, rows)
    if fit_of is None:
        return None
    recorder = session.recorder(problem, samples)
    if recorder.start is not None or recorder.finished is not None:
        return None
    started, monitor = perf_counter(), None
    if session.callback.callback is not None:
        monitor = Monitor(rule, session.callback)
        start = fit_of(problem, rows, rule, 0)
        if start.certificate is None:
            return None
        if monitor.report(partial(start.progress, monitor), now=True):
            return start.model(samples, Status.STOPPED, 0.0)
    most = fit_of.max_steps if rule.max_iterations is None else min(fit_of.max_steps, rule.max_iterations)
    fit = fit_of(problem, rows, rule, most)
    if fit.certificate is None:
        return None
    if fit.converged:
        status = Status.CONVERGED
    elif rule.max_iterations is not None and fit.steps >= rule.max_iterations:
        status = Status.MAX_ITERATIONS
    else:
        return None
    if monitor is not None:
        monitor.report(partial(fit.progress, monitor), now=True)
    model = fit.model(samples, status, perf_counter() - started)
    recorder.close(Solution(model.dual, None, status, model.counters, fit.weights), model.dual)
    return model


def are_small(rows: int, features: int) -> bool:
    """Whether dense problems of so many rows and features are trained in one native call each."""
    few = features <= MAX_NEWTON_FEATURES
    return few and float(max(rows, features) * features**2) <= MAX_STEP_MULTIPLICATIONS


def choose_method(problem: DualProblem, rows: Features) -> type[SmallFit] | None:
    """Return the method for a small problem, None if it is left to the pipeline."""
    if suits_ridged_newton(problem, rows):
        return RidgedNewtonFit
    small = step_multiplications(problem, rows) <= MAX_STEP_MULTIPLICATIONS
    if small and rows.width <= MAX_NEWTON_FEATURES:
        return NewtonFit
    return AscentFit if suits_ascent(problem, rows) else NewtonFit if small else None


def suits_ridged_newton(problem: DualProblem, rows: Features) -> bool:
    """Whether the Newton method for squared losses is likely to be the fastest."""
    if not problem.ridged or problem.kinked or max(rows.stored, rows.size) > MAX_RIDGED_VALUES:
        return False
    n, stored, dense = rows.size, rows.stored, not sparse.issparse(rows.points.data)
    product = VALUE_COSTS[dense] * stored
    moments = MOMENT_COSTS[dense] * 0.5 * stored**2 / max(1, n)
    factorisations = FACTORISATIONS * FACTORISATION_COST * rows.dimension**3
    newton = NEWTON_PRODUCTS * product + moments + factorisations + SAMPLE_COST * n
    passes = SUITED_PASSES if suits_ascent(problem, rows) else OTHER_PASSES
    return newton <= passes * (2 * product + STEP_COST * n)


def step_multiplications(problem: DualProblem, rows: Features) -> float:
    """Return the multiplications of a Newton step with all rows free, a sparse one counted as several dense ones."""
    if not stays_compressed(problem, rows):
        return float(max(rows.size, rows.dimension) * rows.dimension**2)
    if first_step_cost(rows) > MAX_CHEAP_STEP_PASSES:  # then the pipeline begins with coordinate ascent
        return np.inf
    return BLAS_SPEEDUP * 0.5 * rows.stored**2 / max(1, rows.size) + float(rows.dimension) ** 3


def stays_compressed(problem: DualProblem, rows: Features) -> bool:
    """Whether a Newton step is shorter on sparse rows than on dense ones; with a group, rows are centred and dense."""
    if problem.groups or not sparse.issparse(rows.points.data):
        return False
    return BLAS_SPEEDUP * 0.5 * rows.stored**2 < float(rows.size * rows.dimension) ** 2


def suits_ascent(problem: DualProblem, rows: Features) -> bool:
    """Whether coordinate ascent is likely to converge within a few passes, each of which is short."""
    if problem.groups or rows.stored > MAX_ASCENT_VALUES or problem.kinked:
        return False
    curvature = float(rows.known_squared_norms().mean()) + rows.constant**2
    if problem.ridged:
        return curvature <= MAX_ASCENT_CURVATURE * float(problem.ridge.mean())
    return problem.bounded and curvature * float((problem.upper - problem.lower).mean()) <= MAX_ASCENT_CURVATURE


class SmallFit:
    """The result of one native call.

    Attributes
    ----------
    max_steps : int
        The limit of steps after which a problem goes through the pipeline.
    certificate : Certificate or None
        None if the problem is of another kind, or the bounds are not conclusive in float64.
    converged : bool
        Whether the certificate meets the stopping rule.
    """

    max_steps: ClassVar[int]

    def __init__(self, problem: DualProblem, rows: Features, rule: StoppingRule, max_steps: int) -> None:
        n, self.problem, self.rows, self.rule = problem.size, problem, rows, rule
        self.dual, self.weights, slack, residual = np.empty(n), np.empty(rows.dimension), np.empty(n), np.empty(n)
        assert rule.relative_gap is not None
        arrays = _native.SmallLinearArrays(dual=self.dual, weights=self.weights, slack=slack, residual=residual)
        result = self._solve(arrays, rule.relative_gap, max_steps)
        self.steps, self.rounds = result.steps, result.rounds
        self.certificate, self.converged = None, False
        if not result.conclusive:
            return
        offset, low, high = result.offsets
        some = slice(problem.groups)
        certificate = Certificate(
            *result.bounds, np.array([offset])[some], np.array([[low, high]])[some], slack, residual
        )
        if max_steps and inconclusive(certificate, max(NEGLIGIBLE_ROUNDING, MAX_ROUNDING_FRACTION * rule.relative_gap)):
            return
        self.certificate, self.converged = certificate, result.converged and meets(rule, certificate)

    @abstractmethod
    def _solve(
        self, arrays: _native.SmallLinearArrays, relative_gap: float, max_steps: int
    ) -> _native.SmallLinearResult: ...

    def model(self, samples: Indices, status: Status, seconds: float) -> TrainedLinearModel:
        """Return the trained model; the last feature is the constant one of a regularised intercept."""
        assert self.certificate is not None
        offset = bias_of(self.problem, self.certificate.offset) + self.rows.constant * float(self.weights[-1])
        counters = Counters(iterations=self.steps, rounds=self.rounds, seconds=seconds)
        return TrainedLinearModel(self.weights[:-1], offset, self.dual, samples, self.certificate, status, counters)

    def progress(self, monitor: Monitor) -> Progress:
        """Return the point as a progress report."""
        assert self.certificate is not None
        return Progress(
            iteration=self.steps,
            violation=self.certificate.violation,
            primal=self.certificate.primal,
            dual=self.certificate.dual,
            active=len(self.dual),
            seconds=monitor.seconds,
            support_vectors=int(np.count_nonzero(self.dual)),
            point=monitor.copy_point(self.dual),
        )


class NewtonFit(SmallFit):
    """The semismooth Newton method."""

    max_steps = MAX_STEPS

    def _solve(
        self, arrays: _native.SmallLinearArrays, relative_gap: float, max_steps: int
    ) -> _native.SmallLinearResult:
        options = _native.SmallLinearOptions(
            constant=self.rows.constant,
            relative_gap=relative_gap,
            gap=self.rule.gap or 0.0,
            max_steps=max_steps,
            compressed=stays_compressed(self.problem, self.rows),
        )
        return _native.solve_small_linear(self.rows.native, self.problem.native, arrays, options)


class RidgedNewtonFit(SmallFit):
    """The semismooth Newton method for squared losses."""

    max_steps = MAX_STEPS

    def _solve(
        self, arrays: _native.SmallLinearArrays, relative_gap: float, max_steps: int
    ) -> _native.SmallLinearResult:
        rows = self.rows
        options = _native.RidgedNewtonOptions(
            constant=rows.constant,
            relative_gap=relative_gap,
            gap=self.rule.gap or 0.0,
            max_steps=max_steps,
            max_seconds=seconds_until_deadline(),
            threads=rows.threads_for(rows.stored),
        )
        return _native.solve_ridged(rows.native, self.problem.native, arrays, rows.known_squared_norms(), options)


class AscentFit(SmallFit):
    """Dual coordinate ascent, as long as it is estimated to be cheaper than the Newton method."""

    max_steps = MAX_PASSES

    def _solve(
        self, arrays: _native.SmallLinearArrays, relative_gap: float, max_steps: int
    ) -> _native.SmallLinearResult:
        rows, problem = self.rows, self.problem
        options = _native.SmallAscentOptions(
            constant=rows.constant,
            relative_gap=relative_gap,
            gap=self.rule.gap or 0.0,
            max_remaining=newton_cost(problem, rows, rows.size),
            max_passes=max_steps,
        )
        return _native.solve_small_by_ascent(rows.native, problem.native, arrays, rows.squared_norms(), options)
