"""Where a problem, a solver and the judge meet.

A solver claims; the certificate decides. If the judge, who computes the gradient afresh, does not confirm that the
tolerance is met, the point goes back to the solver as a new start, with rounding errors wiped out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.formulation import Formulation, KernelExpansion
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.matrices.numerics import inner
from maxmargin.problems import Certificate, Counters, DualProblem, Solution, Status, certify, feasible_start
from maxmargin.problems.gradient_extremes import gradient_extremes, offset_between, offset_bounds, violation_of
from maxmargin.solvers import Callback, StoppingRule

#: Multiplications up to which a solution is judged at once even if its solver has audited it.
JUDGED_AT_ONCE = 10**8

#: How often the judge sends a point back before double precision is declared exhausted.
REVIEWS = 3

#: Squared distance of two convex hulls, relative to their size, below which they are taken to meet.
MEETING = 1e-12


class Solver(Protocol):
    """What every algorithm in `maxmargin.solvers` offers."""

    @property
    def stopping(self) -> StoppingRule:
        """When it stops."""
        ...

    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of the problem."""
        ...


#: Poses a problem when it is needed.
Pose = Callable[[], DualProblem]


class MachineParts(NamedTuple):
    """What is kept of a machine that is stored: everything but its training data."""

    dual: Floats
    samples: Indices
    status: Status
    counters: Counters
    expansion: KernelExpansion
    judged: tuple[Certificate, Any] | None


class Machine:
    """One trained machine: its solution, what is proved about it, and what it looks like.

    The proof is computed when it is first asked for. Whether the point is optimal is looked at before.
    """

    def __init__(
        self, problem: DualProblem | Pose, solution: Solution, samples: Indices, formulation: Formulation
    ) -> None:
        self._problem: DualProblem | Pose | None = problem
        self._formulation: Formulation | None = formulation
        self.dual = solution.dual
        self.status = solution.status
        self.counters = solution.counters
        self.samples = samples
        self._gradient: Floats | None = solution.gradient
        self._checksum: int | None = None

    @classmethod
    def confirmed(
        cls,
        pose: Pose,
        solution: Solution,
        samples: Indices,
        formulation: Formulation,
        expansion: KernelExpansion,
        checksum: int,
    ) -> Machine:
        """Return a machine whose point has been found optimal; its problem is posed when a proof is wanted."""
        machine = cls(pose, solution, samples, formulation)
        machine.__dict__["expansion"] = expansion
        machine._checksum = checksum
        return machine

    def _posed(self) -> DualProblem | None:
        """Return the problem, as long as it is not judged."""
        problem = self._problem
        if problem is None or isinstance(problem, DualProblem):
            return problem
        self._problem = posed = problem()
        return posed

    @classmethod
    def of_parts(cls, parts: MachineParts) -> Machine:
        """Return a machine that was stored."""
        machine = cls.__new__(cls)
        machine._problem = machine._formulation = machine._gradient = machine._checksum = None
        machine.dual, machine.samples, machine.status, machine.counters = parts[:4]
        machine.__dict__["expansion"] = parts.expansion
        if parts.judged is not None:
            machine.__dict__["_judged"] = parts.judged
        return machine

    def parts(self) -> MachineParts:
        """Return what is stored of the machine."""
        state = self.__getstate__()
        return MachineParts(
            self.dual, self.samples, self.status, self.counters, state["expansion"], state.get("_judged")
        )

    def look(self, rule: StoppingRule) -> bool:
        """Whether the point meets the rule, by a gradient computed afresh; the rest of the proof follows when asked."""
        problem = self._posed()
        assert problem is not None
        if rule.gap is not None:
            return self.certificate.gap <= rule.gap or self.certificate.violation <= rule.violation
        self._gradient = problem.gradient(self.dual)
        if not np.isfinite(self._gradient).all():
            raise ValueError(NON_FINITE_MESSAGE)
        extremes = gradient_extremes(problem, self.dual, self._gradient)
        self.judge_later()
        return violation_of(extremes, self._gradient) <= rule.violation

    @property
    def dual_value(self) -> float:
        """D at the point: as it was proved, or by the gradient that the solver or the last look has left."""
        problem = self._posed()
        if problem is None or "_judged" in self.__dict__:
            return self.certificate.dual
        return 0.5 * inner(self.dual, problem.linear + self.gradient_for(problem))

    def judge_later(self) -> None:
        """Put the judgement off until somebody asks; the data must not change until then, and are watched.

        Kernel values that were computed for the fit are let go.
        """
        problem = self._posed()
        assert problem is not None
        self._problem = problem.with_matrix(problem.matrix.uncached())
        self._checksum = self._problem.matrix.checksum()

    @cached_property
    def _judged(self) -> tuple[Certificate, Any]:
        problem, formulation, known = self._posed(), self._formulation, self.__dict__.get("_judged")
        if known is not None:  # by another thread, just now
            found: tuple[Certificate, Any] = known
            return found
        if problem is None or formulation is None or self._data_changed():
            raise RuntimeError(
                "the training data were changed after fit, so nothing can be proved about the solution any more; "
                "fit on a copy, or read certificate_ before changing them"
            )
        certificate = certify(problem, self.dual)
        judged = certificate, formulation.read(problem, self.dual, certificate, self.samples)
        if "expansion" not in self.__dict__:
            self.__dict__["expansion"] = formulation.expand(problem, self.dual, certificate.offset)
        self.__dict__["_judged"] = judged  # before the data are let go, for threads that ask at the same time
        self._problem = self._formulation = self._gradient = None
        return judged

    @cached_property
    def expansion(self) -> KernelExpansion:
        """The decision function, with the judge's offset, or as long as there was no judgement that of the gradient."""
        problem = self._posed()
        assert problem is not None
        assert self._formulation is not None
        assert self._gradient is not None
        low, high = offset_bounds(problem, self.dual, self._gradient)
        return self._formulation.expand(problem, self.dual, offset_between(low, high))

    def gradient_for(self, problem: DualProblem) -> Floats:
        """Return the gradient of the solved problem at the solution, as it was left or computed afresh."""
        known = self._gradient
        return known if known is not None and np.isfinite(known).all() else problem.gradient(self.dual)

    @property
    def certificate(self) -> Certificate:
        """What is proved about the solution."""
        return self._judged[0]

    @property
    def geometry(self) -> Any:
        """Support vectors, slacks and what else the formulation reads off the solution."""
        return self._judged[1]

    def _data_changed(self) -> bool:
        problem = self._posed()
        return problem is not None and self._checksum is not None and self._checksum != problem.matrix.checksum()

    def __getstate__(self) -> dict[str, Any]:
        # A stored machine must not drag its training data along: it is judged now, or never if they have changed.
        _ = self.expansion
        if self._problem is not None and not self._data_changed():
            _ = self._judged
        return {**self.__dict__, "_problem": None, "_formulation": None, "_gradient": None}


def train(
    problem: DualProblem,
    solver: Solver,
    samples: Indices,
    formulation: Formulation,
    start: Floats | None = None,
    callback: Callback | None = None,
    deadline: float | None = None,
    judge_up_to: int = JUDGED_AT_ONCE,
) -> Machine:
    """Solve a problem and have the solution judged.

    `deadline` is a reading of ``time.perf_counter`` that replaces the solver's own limit on seconds. If the judgement
    takes more than `judge_up_to` multiplications and the solver has audited itself, it waits until somebody asks.
    """
    if deadline is None and solver.stopping.max_seconds is not None:
        deadline = perf_counter() + solver.stopping.max_seconds
    spent = Counters()

    def solve(posed: DualProblem, rule: StoppingRule, start: Floats | None) -> Solution:
        nonlocal spent
        own = solver
        seconds = None if deadline is None else max(0.0, deadline - perf_counter())
        steps = None if rule.max_iterations is None else max(0, rule.max_iterations - spent.iterations)
        if rule is not solver.stopping or seconds is not None or steps is not None:
            limited = replace(rule, max_seconds=seconds, max_iterations=steps)
            own = replace(solver, stopping=limited)  # type: ignore[type-var]  # solvers are dataclasses
        solution = own.solve(posed, start, callback)
        spent = spent + solution.counters
        return replace(solution, counters=spent)

    pose_hulls = getattr(formulation, "pose_hulls", None)  # of the formulations that know hard margins
    if start is None and not problem.has_limit and problem.groups == 1 and pose_hulls is not None:
        try:
            hulls = _meet_hulls(problem, pose_hulls(problem), solver.stopping, solve)
        except KeyboardInterrupt:  # between two of the solver's own looks
            simplest = feasible_start(problem)
            hulls = Solution(simplest, problem.gradient(simplest), Status.INTERRUPTED, spent)
        if hulls.status not in (Status.CONVERGED, Status.PRECISION):
            return Machine(problem, hulls, samples, formulation)
        start = hulls.dual
    solution = solve(problem, solver.stopping, start)
    work = problem.size * int(np.count_nonzero(solution.dual)) * problem.matrix.cost
    trusted = getattr(solver, "audited", False) and solver.stopping.gap is None
    if trusted and solution.status is Status.CONVERGED and work > judge_up_to:
        machine = Machine(problem, solution, samples, formulation)
        machine.judge_later()
        return machine
    best: tuple[float, Solution] | None = None
    for review in range(REVIEWS + 1):
        # A converged or exhausted solver gets a second look, with a gradient that carries no rounding errors.
        machine = Machine(problem, solution, samples, formulation)
        if solution.status not in (Status.CONVERGED, Status.PRECISION):
            break
        try:
            accepted = machine.look(solver.stopping)
        except KeyboardInterrupt:
            machine.status = Status.INTERRUPTED
            break
        machine.status = Status.CONVERGED if accepted else Status.PRECISION
        if accepted:
            break
        value = machine.dual_value
        if best is None or value > best[0]:
            best = value, solution
        if review == REVIEWS:
            return _exhausted(problem, best, samples, formulation, spent)
        solution = solve(problem, solver.stopping, solution.dual)
    return machine


def _exhausted(
    problem: DualProblem, best: tuple[float, Solution], samples: Indices, formulation: Formulation, spent: Counters
) -> Machine:
    """Return the best point that was seen, or the simplest one if rounding made it worse than that, dual or primal."""
    _, solution = best
    simplest = feasible_start(problem)
    reached, given = certify(problem, solution.dual), certify(problem, simplest)
    if not (reached.dual >= given.dual and reached.primal <= given.primal):
        solution = Solution(simplest, problem.gradient(simplest), Status.PRECISION, spent)
    machine = Machine(problem, replace(solution, status=Status.PRECISION, counters=spent), samples, formulation)
    machine.judge_later()
    return machine


def _meet_hulls(
    problem: DualProblem,
    hulls: DualProblem,
    stopping: StoppingRule,
    solve: Callable[[DualProblem, StoppingRule, Floats | None], Solution],
) -> Solution:
    """Return a start near the hard margin; its status is UNBOUNDED if the classes cannot be told apart.

    Iterations on the hard margin itself would grow without limit on inseparable data and prove nothing for long. The
    distance of the two convex hulls settles it: the dual value bounds it from above, the primal from below.
    """
    everything = np.arange(problem.size)
    to_first = hulls.matrix.diagonal() - 2.0 * hulls.matrix.block(everything[:1], everything)[0]
    size = float((to_first - to_first[0]).max())  # the largest squared distance from the first sample
    solution: Solution | None = None
    for digits in (2, 4, 6, 8, 10, 12, 13):
        rule = replace(stopping, violation=10.0**-digits * max(size, MEETING), gap=None)
        solution = solve(hulls, rule, None if solution is None else solution.dual)
        certificate = certify(hulls, solution.dual)
        if certificate.squared_norm <= MEETING * size:
            return _scaled(solution, problem, 0.0, Status.UNBOUNDED)
        if certificate.primal < 0 or not solution.status.converged:
            break
    assert solution is not None
    return _scaled(solution, problem, 2.0 / certificate.squared_norm, solution.status)


def _scaled(solution: Solution, problem: DualProblem, factor: float, status: Status) -> Solution:
    """Return the point of the hulls as a point of the hard margin."""
    dual = factor * solution.dual
    return Solution(dual, problem.gradient(dual), status, solution.counters)
