"""The stochastic subgradient method as in the lecture: the reference of `native/subgradient_steps.hpp`.

The weights and their sum are updated in full in every step, without a separate scale.
"""

from __future__ import annotations

import numpy as np

from maxmargin.problems import DualProblem


def response_to(problem: DualProblem, i: int, slack: float) -> float:
    if problem.ridge[i] > 0:
        unclipped = slack / problem.ridge[i]
    else:
        unclipped = problem.upper[i] if slack > 0 else problem.lower[i] if slack < 0 else 0.0
    return min(max(unclipped, problem.lower[i]), problem.upper[i])


def descend(problem, F, order, step_size, batch_size, samples, offset_rate, radius, growing):
    """Return weights, offsets, their averages and the mean responses after one step for every batch of the order."""
    weights, offset = np.zeros(F.shape[1]), np.zeros(problem.groups)
    sums, offset_sums, total = np.zeros_like(weights), np.zeros_like(offset), 0.0
    responses, visits = np.zeros(problem.size), np.zeros(problem.size)
    for t, first in enumerate(range(0, len(order), batch_size), start=1):
        batch = order[first : first + batch_size]
        weight = t if growing else 1
        subgradient, slope = weights.copy(), samples * problem.total / problem.size
        for i in batch:
            group = problem.group[i]
            slack = problem.linear[i] - F[i] @ weights - (offset[group] if group >= 0 else 0.0)
            response = response_to(problem, i, slack)
            subgradient -= samples / len(batch) * response * F[i]
            if group >= 0:
                slope[group] -= samples / len(batch) * response
            responses[i] += weight * response
            visits[i] += weight
        weights -= step_size(t) * subgradient
        offset -= step_size(t) * offset_rate * slope
        norm = np.linalg.norm(weights)
        if norm > radius:
            weights *= radius / norm
        sums += weight * weights
        offset_sums += weight * offset
        total += weight
    return weights, offset, sums / total, offset_sums / total, responses, visits
