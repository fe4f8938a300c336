"""Cross-validated decision values of linear models.

As in `cross_validation`, a fold is the full problem with the bounds of the held-out variables set to 0, started from
the solution of the full problem. The slacks of the certificate cover all samples, so that the held-out ones need no
prediction.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.estimators.calibration.cross_validation import FOLD_TOLERANCE_FACTOR, hold_out
from maxmargin.formulations.formulation import Formulation
from maxmargin.problems import DualProblem, Status
from maxmargin.training import Session, Solver, TrainedLinearModel
from maxmargin.training.pipeline import solve_and_verify
from maxmargin.training.verification import LINEAR_FORMS, penalty_of


def held_out_values(
    problem: DualProblem,
    model: TrainedLinearModel,
    formulation: Formulation,
    folds: Indices,
    solver: Solver,
    session: Session,
) -> tuple[Floats, Status]:
    """Return the value of each sample by the model of the other folds, and the status of the least converged fold.

    `folds` has an entry for each sample. A problem may have several variables for each: all first ones, then all
    second ones. The values of an interrupted cross-validation are undefined.
    """
    of_variables = np.resize(folds, problem.size)
    values, worst = np.full(len(folds), np.nan), Status.CONVERGED
    form, rule = LINEAR_FORMS[penalty_of(solver)], solver.stopping
    if rule.relative_gap is not None:
        rule = replace(rule, relative_gap=FOLD_TOLERANCE_FACTOR * rule.relative_gap)
        solver = replace(solver, stopping=rule)  # type: ignore[type-var]  # solvers are dataclasses
    for fold in np.unique(folds):
        held = of_variables == fold
        part = hold_out(problem, held, largest=np.inf)
        verifier = form.verifier(part, model.samples, formulation, rule)
        trained: TrainedLinearModel = solve_and_verify(
            part, solver, verifier, form.place_start(part, form.start(model, held)), session
        )
        if trained.status is Status.INTERRUPTED:
            session.callback.stopped.set()
            return values, trained.status
        worst = worst if trained.status in (Status.CONVERGED, Status.PRECISION) else trained.status
        # The slack of a variable is its linear term minus the decision value; the first of each sample is used.
        held_out = held[: len(folds)]
        values[held_out] = (problem.linear - trained.certificate.slack)[: len(folds)][held_out]
    return values, worst
