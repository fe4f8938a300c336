"""Training with a weighted sum of kernels: the weights and the dual vectors of all subproblems together.

    sum        the matrix Σ d_m K_m of the current weights; matrices of kernels are computed once while they fit
    inner      the subproblems at these weights, each from its last solution, to a fraction of the joint gap
    step       new weights (`solvers.kernel_weights`), and a line search that makes the objective fall
    certify    where the joint gap is small enough by the solver's numbers, the certificate decides
               (`problems.combination_certificate`)

With weights of sum 1 (p = 1) most of many kernels get none. So large problems are solved on a sample of the rows
first, and then for the *active* kernels, those with a weight there. The certificate looks at all kernels, on the
support vectors alone; those that it misses become active as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.deadline import check_deadline
from maxmargin.formulations.formulation import Formulation
from maxmargin.matrices import PrecomputedMatrix, SymmetricMatrix
from maxmargin.matrices.combined_matrix import BaseMatrices
from maxmargin.problems import Certificate, Counters, DualProblem, Progress, Solution, Status, feasible_start
from maxmargin.problems.combination_certificate import certify_combination, squared_norms
from maxmargin.solvers import SharedCallback, StoppingRule
from maxmargin.solvers.kernel_weights import ValuePlanes, closed_form_step, curvature_of, second_order_step
from maxmargin.solvers.kernel_weights.second_order import free_variables
from maxmargin.solvers.monitor import Interruption, SolverStoppedError, status_of
from maxmargin.training.fit_context import MAX_PRECOMPUTED_ROWS, FitContext
from maxmargin.training.kernel_evaluation import Evaluation, values_of
from maxmargin.training.kernel_subproblem import KernelSubproblem, sample_of, samples_first
from maxmargin.training.pipeline import solve_in_units
from maxmargin.training.problem_scale import ProblemScale, check_representable
from maxmargin.training.trained_model import TrainedModel

#: The inner gap may be this fraction of the tolerance, or of what the last step has left of the joint gap.
INNER_SHARE, INNER_SHARE_OF_LAST = 0.3, 0.1

#: Where a step has to be shortened, inner solves are ten times as precise each time, up to this: errors of b enter q_m
#: at first order, but the gap at second order.
LEAST_INNER_SHARE = 1e-7

#: Inner solves start at this fraction of the size of the gradient, and end at the second one.
FIRST_VIOLATION, LEAST_VIOLATION = 1e-2, 1e-13

#: Relative rounding errors of the value.
ROUNDING = 1e-13

#: Halvings of a step before the weights are taken to be as good as float64 allows.
MAX_HALVINGS = 25

#: The share of the weights where the cutting planes have their minimum in new weights; the rest are the best ones.
PLANE_SHARE = 0.5

#: The most changes of the weights, unless the user sets a limit: a few dozen are usual.
MAX_STEPS = 1000

#: How often the certificate may contradict the numbers of the solver, with a tolerance of a third each time.
MAX_ATTEMPTS = 4

#: The relative gap to which a sample of the rows is solved, whose solution is off by more than that anyway.
SAMPLE_TOLERANCE = 1e-2

#: The most kernels that become active at a time.
MAX_NEW_KERNELS = 8

#: Of inner solves: observers are told of every change of the weights.
NO_OBSERVER = SharedCallback(None)


class TrainedCombination(NamedTuple):
    """The result: weights with ‖weights‖_p = 1, a model for each subproblem, and the joint certificate."""

    weights: Floats
    models: list[TrainedModel]
    certificate: Certificate
    status: Status
    iterations: int


def train_combination(
    sources: Sequence[SymmetricMatrix],
    scales: Floats,
    subproblems: Sequence[KernelSubproblem],
    samples: Indices,
    strata: Indices,
    formulation: Formulation,
    p: float,
    context: FitContext,
    threads: int,
) -> TrainedCombination:
    """Return weights and models; `scales` times `sources` are the matrices of kernels, `samples` their training rows.

    `strata` is a class of each row, of which a sample takes equal parts.
    """
    weights = np.full(len(sources), len(sources) ** (-1.0 / p))
    steps, of_sample = 0, sample_of(strata) if p == 1 and samples_first(sources) else None
    if of_sample is not None:
        place = np.full(sources[0].size, -1)
        place[of_sample] = np.arange(len(of_sample))
        taken = [one for one in (whole.taken(place) for whole in subproblems) if len(one.rows) > 1]
        first = _CombinationFit([source.take(of_sample) for source in sources], scales, taken, p, context, threads)
        first.run(weights)
        weights, steps = first.best_weights(weights), first.steps
    fit = _CombinationFit(sources, scales, subproblems, p, context, threads, samples, formulation, steps)
    if steps:
        fit.active = np.flatnonzero(weights)
    return fit.finish(fit.run(weights), weights)


class _CombinationFit:
    """The weights of kernels and the solutions of the subproblems on some rows."""

    def __init__(
        self,
        sources: Sequence[SymmetricMatrix],
        scales: Floats,
        subproblems: Sequence[KernelSubproblem],
        p: float,
        context: FitContext,
        threads: int,
        samples: Indices | None = None,
        formulation: Formulation | None = None,
        steps: int = 0,
    ) -> None:
        self.subproblems, self.p, self.context, self.steps = subproblems, p, context, steps
        self.scales, self.samples, self.formulation = scales, samples, formulation
        rule = context.options.stopping
        self.tolerance = rule.relative_gap or 0.0
        if samples is None:
            self.tolerance = max(self.tolerance, SAMPLE_TOLERANCE)
        self.active = np.arange(len(sources))
        self.max_steps = MAX_STEPS if rule.max_iterations is None else rule.max_iterations
        cache_bytes = context.matrix_bytes
        self.matrices = BaseMatrices(sources, cache_bytes, threads)
        most = MAX_PRECOMPUTED_ROWS if self.matrices.stores_sum else 0
        largest = max(len(one.rows) for one in subproblems)
        self.solver = context.solver(largest, True, 8 * largest**2 if most else cache_bytes, threads, most)
        self.starts: list[Floats | None] = [None] * len(subproblems)
        self.violation: float | None = None
        self.best: Evaluation | None = None
        self.certified: tuple[list[TrainedModel], Certificate] | None = None
        self.counters = Counters()

    def best_weights(self, default: Floats) -> Floats:
        """Return the best weights so far."""
        return default if self.best is None else self.best.weights

    # The loop over the weights.

    def run(self, weights: Floats) -> Status:
        """Move the weights until the joint gap is small enough; return how that ended."""
        try:
            with self.context.session.deadline.in_force():
                return self._minimise(weights)
        except Interruption as interruption:
            return status_of(interruption)
        except SolverStoppedError as ended:
            return ended.status

    def _minimise(self, weights: Floats) -> Status:
        current: Evaluation | None = self._evaluate(weights)
        attempts = 0
        while True:
            assert current is not None
            if current.joint_gap(self.p) > self.tolerance * current.size(self.p):
                following = self._solved_better(current) or self._improved(current) or self._by_planes(current)
                if following is not None:
                    current = following
                    continue
                attempts = MAX_ATTEMPTS
            missed = self._confirm(current)
            if missed is None:
                return Status.CONVERGED
            if len(missed):
                self.active = np.union1d(self.active, missed)
                squared, curvature = self._derivatives(self._posed(current.weights), current.solutions)
                current = replace(current, squared=squared, curvature=curvature)
                continue
            attempts += 1
            if attempts >= MAX_ATTEMPTS:
                return Status.PRECISION
            self.tolerance /= 3.0
            current = self._evaluate(current.weights, INNER_SHARE)

    def _solved_better(self, current: Evaluation) -> Evaluation | None:
        """Return an evaluation at the same weights if the inner gap is most of the joint one, None if it stays so."""
        if current.gap <= 0.5 * current.joint_gap(self.p):
            return None
        solved = self._evaluate(current.weights, INNER_SHARE)
        return solved if solved.gap < 0.5 * current.gap else None

    def _improved(self, current: Evaluation) -> Evaluation | None:
        """Return an evaluation of a smaller value, or None if there is none in the direction of the step.

        The value is convex; where it has risen, the secant of the derivatives at both ends says where to go.
        """
        target, active = np.zeros(len(current.weights)), self.active
        weights, squared = current.weights[active], current.squared[active]
        if self.p == 1:
            assert current.curvature is not None
            target[active] = second_order_step(weights, squared, current.curvature)
        else:
            target[active] = closed_form_step(weights, squared, self.p)
        direction, share = target - current.weights, 1.0
        slope = self._slope(current, direction)
        if not slope < 0:
            return None
        accuracy: float | None = None
        for _ in range(MAX_HALVINGS):
            tried = self._evaluate(self._normalised(current.weights + share * direction), accuracy)
            accuracy = max(LEAST_INNER_SHARE, 0.1 * (accuracy or INNER_SHARE))
            better = tried.joint_gap(self.p) < current.joint_gap(self.p)
            same = current.value + current.gap + ROUNDING * abs(current.value)
            if tried.value < current.value or (better and tried.value <= same):
                return tried
            end = self._slope(tried, direction)
            share *= min(0.7, max(0.1, slope / (slope - end))) if end > 0 else 0.5
        return None

    def _by_planes(self, current: Evaluation) -> Evaluation | None:
        """Return the mean of dual vectors that meets the tolerance; None if rounding is in the way.

        New weights are between the best ones and those that the planes allow at the least.
        """
        if self.p != 1:
            return None
        planes, best, last, idle = ValuePlanes(), current, -np.inf, 0
        tried = current
        while idle < MAX_HALVINGS:
            active = self.active
            planes.add(tried.constant, tried.squared[active], [one.dual for one in tried.solutions])
            bound, lowest, mean = planes.minimise()
            if best.value + best.gap - bound <= self.tolerance * best.size(self.p):
                averaged = self._at(best.weights, mean)
                if averaged.joint_gap(self.p) <= self.tolerance * averaged.size(self.p):
                    return averaged
            idle = idle + 1 if bound <= last + ROUNDING * abs(bound) else 0
            last = max(last, bound)
            outer = np.zeros(len(best.weights))
            outer[active] = lowest
            tried = self._evaluate(
                self._normalised(PLANE_SHARE * outer + (1.0 - PLANE_SHARE) * best.weights), INNER_SHARE
            )
            if tried.value + tried.gap < best.value + best.gap:
                best = tried
        return None

    def _at(self, weights: Floats, duals: Sequence[Floats]) -> Evaluation:
        """Return the evaluation of given dual vectors."""
        problems = self._posed(weights)
        solutions = [
            Solution(dual, problem.gradient(dual), Status.CONVERGED, Counters())
            for problem, dual in zip(problems, duals, strict=True)
        ]
        return Evaluation(weights, solutions, *values_of(problems, solutions), *self._derivatives(problems, solutions))

    def _slope(self, evaluation: Evaluation, direction: Floats) -> float:
        """Return the derivative of the value in a direction; that of a constant sum does not see what all q_m share."""
        squared = evaluation.squared
        shared = float(squared.max()) if self.p == 1 else 0.0
        return -0.5 * float((squared - shared)[self.active] @ direction[self.active])

    def _normalised(self, weights: Floats) -> Floats:
        """Return the weights with the norm 1, without those that are rounding errors."""
        kept = np.where(weights > 1e-12 * weights.max(), weights, 0.0)
        return kept / np.sum(kept**self.p) ** (1.0 / self.p)

    # The subproblems at fixed weights.

    def _posed(self, weights: Floats) -> list[DualProblem]:
        matrix = self.matrices.combined(weights * self.scales)
        whole = np.arange(matrix.size)
        problems = []
        for one in self.subproblems:
            part = matrix
            if not np.array_equal(one.rows, whole):
                part = matrix.take(one.rows)
                if isinstance(part, PrecomputedMatrix):
                    part = PrecomputedMatrix(part.values, part.index, matrix.uncached().take(one.rows))
            problems.append(one.posed(part))
        return problems

    def _evaluate(self, weights: Floats, share: float | None = None) -> Evaluation:
        """Solve the subproblems at these weights; raise `SolverStoppedError` at a limit.

        Their gap may be as large as this share of the tolerance; by default, as a part of what the last weights lacked.
        """
        if self.steps >= self.max_steps and self.best is not None:
            raise SolverStoppedError(Status.SLOW if self.max_steps == MAX_STEPS else Status.MAX_ITERATIONS)
        problems = self._posed(weights)
        last = self.best.lacking(self.p) if self.best is not None else np.inf
        while True:
            solutions = [self._solved(problem, start) for problem, start in zip(problems, self.starts, strict=True)]
            self.starts = [one.dual for one in solutions]
            value, gap, worst = values_of(problems, solutions)
            size = max(abs(value), abs(value + gap)) if np.isfinite(gap) else abs(value)
            wanted = (INNER_SHARE if share is None else share) * self.tolerance * size
            if share is None:
                wanted = max(wanted, INNER_SHARE_OF_LAST * min(last, 0.1 * size))
            assert self.violation is not None
            exhausted = self.violation <= LEAST_VIOLATION * self._scale
            if gap <= wanted or exhausted or any(one.status is Status.PRECISION for one in solutions):
                break
            self.violation *= max(0.03, min(0.3, 0.5 * wanted / gap))
        self.steps += 1
        squared, curvature = self._derivatives(problems, solutions)
        evaluation = Evaluation(weights, solutions, value, gap, worst, squared, curvature)
        if self.best is None or evaluation.joint_gap(self.p) <= self.best.joint_gap(self.p):
            self.best = evaluation
        self._report(evaluation)
        return evaluation

    def _solved(self, problem: DualProblem, start: Floats | None) -> Solution:
        """Return the solution of one subproblem, from the previous one."""
        if self.violation is None:
            dual = feasible_start(problem, start)
            largest = max(problem.facts.largest_linear, float(np.abs(problem.matrix.matvec(dual)).max(initial=0.0)))
            self._scale = largest or 1.0
            self.violation = FIRST_VIOLATION * self._scale
        session = self.context.session
        limited = session.limit(self.solver, StoppingRule(violation=self.violation), 0)
        solution = solve_in_units(problem, limited, start, NO_OBSERVER, ProblemScale.of(problem))
        self.counters = self.counters + solution.counters
        if solution.status not in (Status.CONVERGED, Status.PRECISION):
            raise SolverStoppedError(solution.status)
        return solution

    def _derivatives(
        self, problems: Sequence[DualProblem], solutions: Sequence[Solution]
    ) -> tuple[Floats, Floats | None]:
        """Return q_m = Σ bᵀ K_m b, 0 for inactive kernels, and, for p = 1, the curvature for active ones."""
        count, active = len(self.active), self.active
        squared = np.zeros(len(self.scales))
        curvature = np.zeros((count, count)) if self.p == 1 else None
        for one, problem, solution in zip(self.subproblems, problems, solutions, strict=True):
            dual = solution.dual
            used = np.flatnonzero(dual)
            products = np.empty((len(used), count))
            for k, m in enumerate(active.tolist()):
                check_deadline()
                products[:, k] = self.scales[m] * self.matrices.product(m, one.rows[used], dual[used])
            squared[active] += products.T @ dual[used]
            if curvature is not None and count > 1:
                free = free_variables(problem, dual)
                curvature += curvature_of(problem, free, products[np.searchsorted(used, free)])
        return np.maximum(squared, 0.0), curvature

    def _report(self, evaluation: Evaluation) -> None:
        callback = self.context.session.callback
        if callback.needs_no_report() and not callback.stopped.is_set():
            return
        lacking = evaluation.lacking(self.p)
        progress = Progress(
            iteration=self.steps,
            violation=evaluation.violation,
            primal=evaluation.value + evaluation.gap,
            dual=evaluation.value - lacking,
            active=int(np.count_nonzero(evaluation.weights)),
            seconds=self.counters.seconds,
            kernel_evaluations=self.counters.kernel_evaluations,
            support_vectors=int(sum(np.count_nonzero(one.dual) for one in evaluation.solutions)),
        )
        if callback(progress):
            raise SolverStoppedError(Status.STOPPED)

    # The certificate and the models.

    def _confirm(self, evaluation: Evaluation) -> Indices | None:
        """Return None if the certificate confirms the tolerance that was asked for, else the kernels that it misses.

        A sample has no certificate.
        """
        self.best = evaluation
        if self.samples is None:
            return None
        self.certified, norms = self._certified(evaluation.weights, evaluation.solutions)
        if self.certified[1].relative_gap <= (self.context.options.stopping.relative_gap or 0.0):
            return None
        inactive = np.setdiff1d(np.arange(len(self.scales)), self.active)
        missed = inactive[norms[inactive] > norms[self.active].max()]
        largest: Indices = missed[np.argsort(-norms[missed])[:MAX_NEW_KERNELS]]
        return largest

    def _certified(
        self, weights: Floats, solutions: Sequence[Solution]
    ) -> tuple[tuple[list[TrainedModel], Certificate], Floats]:
        """Return the models of the subproblems, the joint certificate, and q_m of all kernels."""
        assert self.samples is not None
        assert self.formulation is not None
        models = []
        problems = self._posed(weights)
        for one, problem, solution in zip(self.subproblems, problems, solutions, strict=True):
            model = TrainedModel(problem, solution, self.samples[one.rows], self.formulation)
            check_representable(problem, model.certificate)
            models.append(model)
        duals, rows = [one.dual for one in solutions], [one.rows for one in self.subproblems]
        norms = squared_norms(problems, duals, rows, self.matrices.sources, self.matrices.part, self.scales)
        certificate = certify_combination([model.certificate for model in models], weights, self.p, norms)
        for model in models:
            model.release_kernel_values()
        return (models, certificate), norms.high

    def finish(self, status: Status, default: Floats) -> TrainedCombination:
        """Return the best point; where no solve has ended, the one that each would start from."""
        weights = self.best_weights(default)
        if self.certified is None or status not in (Status.CONVERGED, Status.PRECISION):
            solutions = [] if self.best is None else self.best.solutions
            for problem in [] if solutions else self._posed(weights):
                dual = feasible_start(problem)
                solutions.append(Solution(dual, None if dual.any() else problem.linear.copy(), status, self.counters))
            self.certified, _ = self._certified(weights, solutions)
        models, certificate = self.certified
        for model in models:
            model.status = status
        return TrainedCombination(weights, models, certificate, status, self.steps)
