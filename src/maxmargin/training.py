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
from maxmargin.problems.certificate import offset_between, offset_bounds
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
        self._gradient: Floats | None = solution.gradient

    @cached_property
    def _judged(self) -> tuple[Certificate, MarginGeometry]:
        assert self._problem is not None
        certificate = certify(self._problem, self.dual)
        geometry = c_classification.read(self._problem, self.dual, certificate, self.samples)
        self._problem = self._gradient = None  # the data are not needed any more
        return certificate, geometry

    @cached_property
    def offset(self) -> float:
        """The offset b: the judge's, or as long as there was no judgement the one of the solver's gradient."""
        if "_judged" in self.__dict__:
            return self.geometry.offset
        assert self._problem is not None
        assert self._gradient is not None
        low, high = offset_bounds(self._problem, self.dual, self._gradient)
        return float(offset_between(low, high)[0]) if self._problem.groups else 0.0

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
    for _ in range(REVIEWS):
        # A converged or exhausted solver gets a second look, with a gradient that carries no rounding errors.
        if solution.status not in (Status.CONVERGED, Status.PRECISION):
            return machine
        if _accepted(machine.certificate, solver.stopping):
            machine.status = Status.CONVERGED
            return machine
        again = solver.solve(problem, solution.dual, callback)
        solution = replace(again, counters=solution.counters + again.counters)
        machine = BinaryMachine(problem, solution, samples)
    if solution.status is Status.CONVERGED and not _accepted(machine.certificate, solver.stopping):
        machine.status = Status.PRECISION
    return machine


def _accepted(certificate: Certificate, rule: StoppingRule) -> bool:
    gap_met = rule.gap is not None and certificate.gap <= rule.gap
    return gap_met or certificate.violation <= rule.violation
