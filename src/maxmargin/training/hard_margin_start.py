"""A start for the hard margin from the nearest points of the two convex hulls, or the proof that there is none.

Iterations on the hard margin itself grow without limit on inseparable data and prove nothing for long. The distance of
the convex hulls of the two classes decides: its dual value bounds it from above, its primal value from below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from maxmargin._typing import Floats
from maxmargin.problems import DualProblem, Solution, Status, certify
from maxmargin.solvers import StoppingRule

#: Convex hulls whose squared distance is at most this fraction of the squared extent of the data are taken to
#: intersect: the distance is a difference of kernel values, and double precision does not resolve less.
MIN_RELATIVE_DISTANCE = 1e-12


def hard_margin_start(
    problem: DualProblem,
    hulls: DualProblem,
    stopping: StoppingRule,
    solve: Callable[[DualProblem, StoppingRule, Floats | None], Solution],
) -> Solution:
    """Return a start near the hard margin; its status is UNBOUNDED if the classes cannot be separated."""
    everything = np.arange(problem.size)
    to_first = hulls.matrix.diagonal() - 2.0 * hulls.matrix.block(everything[:1], everything)[0]
    extent = float((to_first - to_first[0]).max())  # the largest squared distance from the first sample
    solution: Solution | None = None
    for digits in (2, 4, 6, 8, 10, 12, 13):
        rule = replace(stopping, violation=10.0**-digits * max(extent, MIN_RELATIVE_DISTANCE), gap=None)
        solution = solve(hulls, rule, None if solution is None else solution.dual)
        certificate = certify(hulls, solution.dual)
        if certificate.squared_norm <= MIN_RELATIVE_DISTANCE * extent:
            return _scaled(solution, problem, 0.0, Status.UNBOUNDED)
        if certificate.primal < 0 or not solution.status.converged:
            break
    assert solution is not None
    return _scaled(solution, problem, 2.0 / certificate.squared_norm, solution.status)


def _scaled(solution: Solution, problem: DualProblem, factor: float, status: Status) -> Solution:
    """Return a point of the hulls as a point of the hard margin."""
    dual = factor * solution.dual
    return Solution(dual, problem.gradient(dual), status, solution.counters)
