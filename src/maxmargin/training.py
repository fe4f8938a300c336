"""Where a problem, a solver and the judge meet.

A solver claims; the certificate decides. If the judge, who computes the gradient afresh, does not confirm that the
tolerance is met, the point goes back to the solver as a new start, with rounding errors wiped out.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol

from maxmargin.formulations import c_classification
from maxmargin.formulations.c_classification import MarginGeometry
from maxmargin.matrices.symmetric_matrix import Floats, Indices
from maxmargin.problems import Certificate, DualProblem, Solution, Status, certify
from maxmargin.problems.certificate import offset_bounds, offset_between
from maxmargin.solvers import Callback, StoppingRule

#: How often the judge sends a point back before double precision is declared exhausted.
REVIEWS = 3


class Solver(Protocol):
    """What every algorithm in `maxmargin.solvers` offers."""

    @property
    def stopping(self) -> StoppingRule:
        """When it stops."""
        ...

    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of the problem."""
        ...


class BinaryMachine:
    """One trained two-class machine: its solution, what is proved about it, and what it looks like.

    After an interruption the proof is computed when it is first asked for, so that Ctrl-C answers at once.
    """

    def __init__(self, problem: DualProblem, solution: Solution, samples: Indices) -> None:
        self._problem: DualProblem | None = problem
        self.dual = solution.dual
        self.status = solution.status
        self.counters = solution.counters
        self.samples = samples
        bounds = offset_bounds(problem, solution.dual, solution.gradient)
        self.offset = float(offset_between(*bounds)[0]) if problem.groups else 0.0

    @cached_property
    def _judged(self) -> tuple[Certificate, MarginGeometry]:
        assert self._problem is not None
        certificate = certify(self._problem, self.dual)
        geometry = c_classification.read(self._problem, self.dual, certificate, self.samples)
        self._problem = None  # the data are not needed any more
        return certificate, geometry

    @property
    def certificate(self) -> Certificate:
        """What is proved about the solution."""
        return self._judged[0]

    @property
    def geometry(self) -> MarginGeometry:
        """Support vectors, slacks and margin."""
        return self._judged[1]

    def __getstate__(self) -> dict[str, Any]:
        _ = self._judged  # a stored machine must not drag its training data along
        return self.__dict__


def train_binary(
    problem: DualProblem,
    solver: Solver,
    samples: Indices,
    start: Floats | None = None,
    callback: Callback | None = None,
) -> BinaryMachine:
    """Solve a two-class problem and have the solution judged."""
    solution = solver.solve(problem, start, callback)
    machine = BinaryMachine(problem, solution, samples)
    if solution.status in (Status.INTERRUPTED, Status.UNBOUNDED):
        return machine
    claims = (Status.CONVERGED, Status.PRECISION)  # both ask for a second look with a fresh gradient
    for _ in range(REVIEWS):
        if solution.status not in claims or _accepted(machine.certificate, solver.stopping):
            break
        again = solver.solve(problem, solution.dual, callback)
        solution = replace(again, counters=solution.counters + again.counters)
        machine = BinaryMachine(problem, solution, samples)
    if solution.status in claims and solution.status is not Status.INTERRUPTED:
        accepted = _accepted(machine.certificate, solver.stopping)
        machine.status = Status.CONVERGED if accepted else Status.PRECISION
    if solution.status is not Status.INTERRUPTED:
        # The judge's gradient is exact, the solver's nearly so: the offset is the judge's.
        machine.offset = machine.geometry.offset
    return machine


def _accepted(certificate: Certificate, rule: StoppingRule) -> bool:
    gap_met = rule.gap is not None and certificate.gap <= rule.gap
    return gap_met or certificate.violation <= rule.violation
