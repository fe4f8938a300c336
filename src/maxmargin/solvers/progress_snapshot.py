"""Where a solver stands, by the dual vector and the gradient that it has: for callbacks, traces and stopping tests.

The judge's own formulas (`maxmargin.problems.certificate`), on numbers that the judge would compute afresh.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats
from maxmargin.backends.optimality import known_gap, known_violation
from maxmargin.problems import DualProblem, Progress
from maxmargin.solvers.monitor import Monitor


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
