"""Decision values of samples by linear machines that have not seen them.

As in `held_out`, a fold is the whole problem with the bounds of the variables held out closed at 0, and starts from the
solution of the whole. The judge's slacks are about all samples, so that nobody has to predict those held out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.estimators.calibration.cross_validation import LOOSER, hold_out
from maxmargin.estimators.linear.linear_estimator import Run
from maxmargin.formulations.formulation import Formulation
from maxmargin.linear_training import LinearMachine
from maxmargin.problems import DualProblem, Status
from maxmargin.training import Solver


def held_out_values(
    problem: DualProblem, machine: LinearMachine, formulation: Formulation, folds: Indices, run: Run
) -> tuple[Floats, Status]:
    """Return the value of each sample by the machine of the other folds, and how the least finished one ended.

    `folds` has an entry for each sample. A problem may have several variables for each: all first ones, then all
    second ones. The values of an interrupted cross-validation mean nothing.
    """
    of_variables = np.resize(folds, problem.size)
    values, worst = np.full(len(folds), np.nan), Status.CONVERGED
    solver = _looser(run.solver)
    for fold in np.unique(folds):
        held = of_variables == fold
        part = hold_out(problem, held, largest=np.inf)
        train, start = run.training
        trained = run.heard(
            train(part, solver, machine.samples, formulation, start(machine, held), run.watch, run.deadline)
        )
        if trained.status is Status.INTERRUPTED:
            return values, trained.status
        worst = worst if trained.status in (Status.CONVERGED, Status.PRECISION) else trained.status
        # A variable's slack is its linear term without the decision value; the first of a sample speaks for all.
        values[held[: len(folds)]] = (problem.linear - trained.certificate.slack)[: len(folds)][held[: len(folds)]]
    return values, worst


def _looser(solver: Solver) -> Solver:
    """Return the solver with a larger tolerance: what is made of the values blurs more than that."""
    rule = solver.stopping
    if rule.relative_gap is None:
        return solver
    return replace(solver, stopping=replace(rule, relative_gap=LOOSER * rule.relative_gap))  # type: ignore[type-var]
