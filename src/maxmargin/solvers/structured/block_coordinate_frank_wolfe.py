"""Block-coordinate Frank–Wolfe for structured outputs, with pairwise steps and stored constraints.

Lacoste-Julien, Jaggi, Schmidt & Pletscher (2013), pairwise steps and stored constraints as in Osokin et al. (2016):

    for each sample, in random order:
        add the constraint of its most violated output                    one call of the maximiser
        pair steps on its known constraints; w += the change
    for blocks of samples: solve the problem of their known constraints to a fraction of the gap
    if the sum of the gaps of the samples is small: compute the certificate, and stop if its gap is

The problem of a block is a `DualProblem` with a group for each sample: native pair steps solve it, which on known
constraints are the same steps as those of a sample. Without it, a pass with the maximiser would be needed for each of
the many passes that large costs take.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from maxmargin._typing import Floats
from maxmargin.deadline import check_deadline
from maxmargin.matrices import PrecomputedMatrix
from maxmargin.matrices.numerics import inner
from maxmargin.precision import SMALLEST_DOUBLE
from maxmargin.problems import Certificate, Counters, DualProblem, Progress, Status
from maxmargin.problems.structured_problem import StructuredDual, StructuredProblem, check_maximiser
from maxmargin.solvers.monitor import Interruption, Monitor, SolverStoppedError, status_of
from maxmargin.solvers.smo.pairwise import PairwiseSolver
from maxmargin.solvers.stopping import Callback, StoppingRule
from maxmargin.solvers.structured.sample_planes import SamplePlanes
from maxmargin.solvers.structured.structured_solution import StructuredSolution

#: Known constraints in a block, whose products are computed.
BLOCK_PLANES = 2048

#: The gap of the known constraints after a block, as a fraction of that of the pass before.
BLOCK_FRACTION = 0.1

#: Pair steps on a sample end at a violation of this fraction of the mean violation that the tolerance allows.
STEP_FRACTION = 0.1

#: Passes in a row that do not raise the dual value beyond rounding: the tolerance is finer than that.
MAX_IDLE_PASSES = 5


@dataclass(frozen=True)
class BlockCoordinateFrankWolfe:
    """Pairwise Frank–Wolfe steps on the dual variables of one sample at a time.

    Parameters
    ----------
    stopping : StoppingRule
        When to stop, by `relative_gap` or `gap`; its iterations are passes over the samples with the maximiser.
    seed : int
        Of the order of the samples.
    """

    stopping: StoppingRule = field(default_factory=lambda: StoppingRule(relative_gap=1e-3))
    seed: int = 0

    def solve(self, problem: StructuredProblem, callback: Callback | None = None) -> StructuredSolution:
        """Return a solution of the problem."""
        monitor = Monitor(self.stopping, callback)
        run = _Run(problem, monitor, self.seed)
        try:
            monitor.report_start(run.progress)
            try:
                status = run.iterate()
            except SolverStoppedError as stopped:
                status = stopped.status
            monitor.report(run.progress, now=True)
        except Interruption as interruption:
            status = status_of(interruption)
        counters = Counters(run.passes, seconds=monitor.seconds)
        return StructuredSolution(run.dual(), None, run.certificate, status, counters, monitor.trace)


class _Run:
    """One run of the solver."""

    def __init__(self, problem: StructuredProblem, monitor: Monitor, seed: int) -> None:
        self.problem, self.monitor = problem, monitor
        self.planes = [SamplePlanes(float(cost), problem.width) for cost in problem.costs]
        self.weights = np.zeros(problem.width)
        self.value = 0.0  # of the dual
        self.gap = np.inf  # an estimate: the gap of each sample when it was visited
        self.passes = 0
        self._random = np.random.default_rng(seed)
        self.certificate: Certificate | None = None

    def progress(self) -> Progress:
        """Return the progress report."""
        return Progress(
            iteration=self.passes,
            violation=np.nan,
            primal=self.value + self.gap,
            dual=self.value,
            active=self.problem.size,
            seconds=self.monitor.seconds,
            support_vectors=sum(len(planes) - 1 for planes in self.planes),
        )

    def iterate(self) -> Status:
        """Take passes until the certificate meets the tolerance."""
        idle, rule = 0, self.monitor.rule
        while True:
            before = self.value
            self._pass()
            if rule.accepts_gap(self.value + self.gap, self.value) or idle:
                certificate = self.problem.certify(self.dual())
                if rule.accepts_gap(certificate.primal, certificate.dual):
                    self.certificate = certificate
                    return Status.CONVERGED
            for block in self._blocks():
                self.monitor.check(self.progress, self.passes)
                self._solve_block(block)
            self._resum()
            idle = 0 if self.value - before > 4 * np.finfo(float).eps * abs(self.value) else idle + 1
            if idle >= MAX_IDLE_PASSES:
                return Status.PRECISION

    def _pass(self) -> None:
        """Visit all samples in random order, with the maximiser; estimate the gap by the sum of theirs."""
        total, problem = 0.0, self.problem
        for i in self._random.permutation(problem.size):
            self.monitor.check(self.progress, self.passes)
            check_deadline()
            planes = self.planes[i]
            worst = problem.worst_plane(i, self.weights)
            planes.add(check_maximiser(worst, planes.worst(self.weights), self.weights))
            change, gain, gap = planes.optimise(self.weights, self._violation(STEP_FRACTION * self._allowed_gap()))
            self.weights += change
            self.value += gain
            total += gap
        self.gap = total
        self.passes += 1

    def _allowed_gap(self) -> float:
        rule = self.monitor.rule
        return max(rule.gap or 0.0, (rule.relative_gap or 0.0) * abs(self.value))

    def _violation(self, gap: float) -> float:
        """Return the violation of all samples that together have a gap."""
        return gap / float(self.problem.costs.sum())

    def _blocks(self) -> list[list[int]]:
        """Divide the samples with several known constraints into blocks, in random order."""
        blocks: list[list[int]] = [[]]
        count = 0
        for i in self._random.permutation(self.problem.size):
            more = len(self.planes[i])
            if more == 1:
                continue
            if blocks[-1] and count + more > BLOCK_PLANES:
                blocks.append([])
                count = 0
            blocks[-1].append(int(i))
            count += more
        return blocks if blocks[0] else []

    def _solve_block(self, block: list[int]) -> None:
        """Solve the problem of the known constraints of some samples."""
        planes = [self.planes[i] for i in block]
        counts, costs = [len(one) for one in planes], self.problem.costs[block]
        differences = sparse.csr_array(sparse.vstack([one.differences for one in planes], format="csr"))
        start = np.concatenate([one.coefficients for one in planes])
        others = self.weights - differences.T @ start
        losses = np.concatenate([one.losses for one in planes])
        posed = DualProblem(
            PrecomputedMatrix((differences @ differences.T).toarray()),
            losses - differences @ others,
            np.zeros(len(start)),
            np.repeat(costs, counts),
            group=np.repeat(np.arange(len(block), dtype=np.int32), counts),
            total=costs,
        )
        violation = self._violation(max(BLOCK_FRACTION * self.gap, STEP_FRACTION * self._allowed_gap()))
        rule = StoppingRule(violation=max(violation, SMALLEST_DOUBLE), max_seconds=self.monitor.seconds_left())
        dual = PairwiseSolver(stopping=rule).solve(posed, start).dual
        for one, coefficients in zip(planes, np.split(dual, np.cumsum(counts)[:-1]), strict=True):
            one.coefficients = coefficients
        self.weights = others + differences.T @ dual

    def _resum(self) -> None:
        """Compute weights and dual value anew from the dual variables: sums of many steps have rounding errors."""
        weights: Floats = np.zeros(self.problem.width)
        loss = 0.0
        for planes in self.planes:
            weights += planes.differences.T @ planes.coefficients
            loss += inner(planes.losses, planes.coefficients)
        self.weights, self.value = weights, loss - 0.5 * inner(weights, weights)

    def dual(self) -> StructuredDual:
        """Return the positive dual variables."""
        supports = [planes.support() for planes in self.planes]
        return StructuredDual([outputs for outputs, _ in supports], [coefficients for _, coefficients in supports])
