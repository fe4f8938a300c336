"""Where a solver stands, by the dual vector and the gradient that it has: for callbacks, traces and stopping tests.

The judge's own formulas (`maxmargin.problems.certificate`), on numbers that the judge would compute afresh.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats
from maxmargin.problems import DualProblem, Progress
from maxmargin.problems.certificate import of_samples, offset_bounds, offsets_for, residuals, violation_of
from maxmargin.solvers.stopping import Monitor


def known_gap(problem: DualProblem, dual: Floats, gradient: Floats) -> float:
    """Return the duality gap, taking variables as settled whose gradient is infinite, which means unknown."""
    known = np.isfinite(gradient)
    offset = offsets_for(problem, dual, gradient)
    slack = np.where(known, gradient, 0.0) + problem.ridge * dual - of_samples(problem, offset)
    return float(residuals(problem, dual, slack)[known].sum())


def known_violation(problem: DualProblem, dual: Floats, gradient: Floats) -> float:
    """Return the violation; a gradient that is not known is infinite on the side where it does not count."""
    with np.errstate(invalid="ignore"):  # ∞ − ∞ among those that do not count
        return violation_of(problem, *offset_bounds(problem, dual, gradient), dual, gradient)


def standing(
    problem: DualProblem,
    point: tuple[Floats, Floats],
    value: float,
    monitor: Monitor,
    iterations: int,
    evaluations: int,
    active: int | None = None,
) -> Progress:
    """Return the progress of a solver that is at a point, dual and gradient, of a known dual value."""
    dual, gradient = point
    return Progress(
        iteration=iterations,
        violation=known_violation(problem, dual, gradient),
        primal=value + known_gap(problem, dual, gradient),
        dual=value,
        active=problem.size if active is None else active,
        seconds=monitor.seconds,
        kernel_evaluations=evaluations,
        support_vectors=int(np.count_nonzero(dual)),
        point=monitor.copy_for_trace(dual),
    )
