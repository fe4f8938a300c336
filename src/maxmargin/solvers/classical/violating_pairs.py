"""Joachims' working sets: the variables responsible for the most severe violation of (1.11) (Joachims 1999).

The members of a group that can increase are ranked from the largest gradient down, those that can decrease from the
smallest up. The pair of rank k violates optimality by the difference of its gradients, and a working set takes pairs
from the worst on: with one group, half of the set from each end of the gradient; with several, from whichever group is
worst. A variable in no group moves alone and counts by its own gradient.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.problems import DualProblem


def violating_variables(problem: DualProblem, dual: Floats, gradient: Floats, most: int) -> Indices:
    """Return up to `most` variables, the worst pair first; none if there is no violation."""
    can_increase, can_decrease = dual < problem.upper, dual > problem.lower
    grouped = problem.group >= 0
    up, up_key = _ranked(problem, can_increase & grouped, -gradient, most)
    down, down_key = _ranked(problem, can_decrease & grouped, gradient, most)
    if problem.groups > 1:
        _, of_up, of_down = np.intersect1d(up_key, down_key, assume_unique=True, return_indices=True)
        first, second = up[of_up], down[of_down]
    else:
        pairs = min(len(up), len(down))
        first, second = up[:pairs], down[:pairs]
    violation = gradient[first] - gradient[second]
    if problem.ungrouped:
        alone = np.flatnonzero(~grouped & (np.where(gradient > 0, can_increase, can_decrease)))
        first, second = np.append(first, alone), np.append(second, alone)
        violation = np.append(violation, np.abs(gradient[alone]))
    order = np.argsort(-violation, kind="stable")
    order = order[violation[order] > 0][:most]
    sequence = np.stack([first[order], second[order]], axis=1).ravel()
    _, appearance = np.unique(sequence, return_index=True)
    return np.asarray(sequence[np.sort(appearance)][:most])


def _ranked(problem: DualProblem, chosen: np.ndarray, score: Floats, most: int) -> tuple[Indices, Indices]:
    """Return the chosen variables by group and score, and a number for each that says its group and rank there.

    With one group, only those are ranked that are among the first `most`, or as good.
    """
    members = np.flatnonzero(chosen)
    if problem.groups <= 1:
        if len(members) > most:
            scores = score[members]
            members = members[scores <= np.partition(scores, most - 1)[most - 1]]
        order = members[np.argsort(score[members], kind="stable")]
        return order, np.arange(len(order))
    order = members[np.lexsort((score[members], problem.group[members]))]
    group = problem.group[order].astype(np.int64)
    start = np.searchsorted(group, group)  # where the group begins
    return order, group * problem.size + np.arange(len(order)) - start
