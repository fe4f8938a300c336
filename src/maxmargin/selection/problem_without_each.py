"""All samples of one trained problem, each left out: which method, and from which common points."""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats
from maxmargin.formulations.formulation import Formulation
from maxmargin.machines.calibration.fold import TOTAL_MARGIN
from maxmargin.matrices.signed_matrix import SignedMatrix
from maxmargin.problems import DualProblem
from maxmargin.selection.common_point import CommonPoint
from maxmargin.selection.left_out import LeftOutSamples
from maxmargin.selection.left_out_result import LeftOut, Report

#: Totals that differ by sample need a solution of the whole problem each; above so many, all samples are solved for.
MAX_POINTS = 4


def leave_each_out(
    problem: DualProblem,
    dual: Floats,
    formulation: Formulation,
    *,
    values: bool,
    tolerance: float,
    cache_bytes: int,
    threads: int,
    found: LeftOut,
    report: Report,
) -> CommonPoint | None:
    """Find the value of every sample by the model without it, or only its sign.

    Returns the solution of the whole problem to a small tolerance, None if it was not needed.

    Signs are proved where the problem allows it; values are solved to the tolerance of the fit.

    Parameters
    ----------
    problem : DualProblem
        With a variable for each sample, or two: those of the second half then belong to the same samples.
    dual : float array
        Its solution.
    formulation : Formulation
    values : bool
        Whether values are needed.
    tolerance : float
        On the violation, of values.
    cache_bytes, threads : int
    found : LeftOut
        Becomes the result, also where an exception ends the search.
    report : callable
        Called with the numbers of samples that are finished.
    """
    count = len(found.signs)
    totals = totals_without(problem, count)
    signs = not values and has_signs(problem)
    distinct, of_sample = np.unique(totals, axis=0, return_inverse=True)
    of_sample = of_sample.ravel()
    several = len(distinct) > MAX_POINTS
    for number, total in enumerate([problem.total] if several else distinct):
        samples = np.arange(count) if several else np.flatnonzero(of_sample == number)
        posed = problem if several else with_total(problem, total)
        scale = float(np.abs(problem.linear).max()) or 1.0
        point = CommonPoint(posed, count, dual, tolerance / scale, cache_bytes, threads)
        one_by_one = LeftOutSamples(point, formulation, found, report)
        if not several:
            samples = one_by_one.unchanged(samples)
        if signs and not several:
            one_by_one.find_signs(samples)
        else:
            one_by_one.find_values(samples, totals)
    whole = several or (len(distinct) == 1 and np.array_equal(distinct[0], problem.total))
    return point if whole else None


def has_signs(problem: DualProblem) -> bool:
    """Whether signs can be proved: finite losses that never increase with y f, and at most one offset, that of f."""
    one_sided = bool(((problem.lower == 0) | (problem.upper == 0)).all())
    signed = isinstance(problem.matrix, SignedMatrix)  # ν-classification: the offset of its group is −r
    return one_sided and not signed and problem.groups <= 1 and not problem.kinked and problem.coercive


def totals_without(problem: DualProblem, count: int) -> Floats:
    """Return the sums of the groups without each sample: in proportion to the bounds of the others, as ν asks for.

    Where they would not be feasible, because a class is too small without the sample, they are the largest feasible.
    """
    totals = np.tile(problem.total, (count, 1))
    if not problem.total.any():
        return totals
    widths = problem.upper - problem.lower
    fractions = 1.0 - widths.reshape(-1, count).sum(axis=0) / widths.sum()
    nonzero = np.flatnonzero(problem.total)
    available = np.where(problem.total > 0, problem.group_sums(problem.upper), problem.group_sums(problem.lower))
    own = np.where(problem.total > 0, problem.upper[:, None], problem.lower[:, None])
    own = np.where(problem.group[:, None] == np.arange(problem.groups), own, 0.0)
    left = available - own.reshape(-1, count, problem.groups).sum(axis=0)
    possible = (1.0 - TOTAL_MARGIN) * (left[:, nonzero] / problem.total[nonzero]).min(axis=1)
    return np.asarray(totals * np.minimum(fractions, possible)[:, None])


def with_total(problem: DualProblem, total: Floats) -> DualProblem:
    """Return the problem with other sums of the groups."""
    if np.array_equal(total, problem.total):
        return problem
    return DualProblem(
        problem.matrix,
        problem.linear,
        problem.lower,
        problem.upper,
        problem.ridge,
        problem.group,
        total,
        problem.kink,
        problem.linear_error,
    )
