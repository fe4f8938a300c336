"""Dual coordinate ascent as in the pseudo-code: the reference of `native/coordinate_ascent.hpp`.

`ascend_to_gap` is that of `native/small_ascent.hpp`.
"""

from __future__ import annotations

import numpy as np

from maxmargin import _native
from maxmargin.solvers.linear.dual_coordinate_ascent import PASSES_BEFORE_FIRST_EVALUATION


def take_pass(rows, state, order, shrink_above=np.inf, shrink_below=np.inf):
    """Take one pass, in place; return the kept variables, highest and lowest projected gradient, and the sum of gaps.

    `state` has dual, weights (the last for the constant feature), linear, lower, upper, ridge, group, offset, excess,
    penalty and constant, under these names.
    """
    s, kept, highest, lowest, gap = state, list(order), 0.0, 0.0, 0.0
    k = 0
    while k < len(kept):
        i = kept[k]
        x, g = rows[i], s["group"][i]
        offset = s["constant"] * s["weights"][-1]
        if g >= 0:
            offset += s["offset"][g] + s["penalty"][g] * s["excess"][g]
        gradient = s["linear"][i] - x @ s["weights"][:-1] - offset - s["ridge"][i] * s["dual"][i]
        before, projected = s["dual"][i], gradient
        gap += gap_of(gradient + s["ridge"][i] * before, before, s["lower"][i], s["upper"][i], s["ridge"][i])
        at_upper, at_lower = before >= s["upper"][i], before <= s["lower"][i]
        if (at_upper and gradient > shrink_above) or (at_lower and not at_upper and gradient < -shrink_below):
            kept[k] = kept[-1]
            kept.pop()
            continue
        if at_upper:
            projected = min(gradient, 0.0)
        elif at_lower:
            projected = max(gradient, 0.0)
        highest, lowest = max(highest, projected), min(lowest, projected)
        if projected != 0.0:
            curvature = x @ x + s["constant"] ** 2 + (s["penalty"][g] if g >= 0 else 0.0) + s["ridge"][i]
            step = gradient / curvature if curvature > 0 else np.inf * gradient
            after = np.clip(before + step, s["lower"][i], s["upper"][i])
            s["dual"][i] = after
            s["weights"][:-1] += (after - before) * x
            s["weights"][-1] += (after - before) * s["constant"]
            if g >= 0:
                s["excess"][g] += after - before
        k += 1
    return kept, highest, lowest, gap


def gap_of(slack, dual, lower, upper, ridge):
    """Return the contribution of a sample to the duality gap."""
    best = np.clip(slack / ridge, lower, upper) if ridge > 0 else upper if slack > 0 else lower
    return (best * slack - ridge * best**2 / 2) - (dual * slack - ridge * dual**2 / 2)


def ascend_to_gap(rows, state, relative_gap, max_passes, max_remaining=np.inf):
    """Take passes from 0 until the gap is small; return how many, the gap evaluations, and whether it converged.

    `rows` are dense, without the constant feature; `state` as above, without groups.
    """
    s, order, thresholds, gaps = state, np.arange(len(rows)), (np.inf, np.inf), [np.inf] * 3
    passes, evaluations, due = 0, 0, PASSES_BEFORE_FIRST_EVALUATION
    while True:
        left, limited = 0.0, passes == max_passes
        if not limited:
            _native.shuffle(order, passes)
            kept, highest, lowest, gap = take_pass(rows, s, order, *thresholds)
            order, gaps, passes = np.array(kept, dtype=np.int64), [*gaps[1:], gap], passes + 1
            thresholds = highest if highest > 0 else np.inf, -lowest if lowest < 0 else np.inf
            value = dual_objective(s)
            left = remaining_passes(gaps, relative_gap * abs(value + gap))
            estimate = gap * (min(1.0, gap / gaps[1]) if 0 < gaps[1] < np.inf else 1.0)
            converged = estimate <= relative_gap * max(abs(value + estimate), abs(value))
            if not (left > max_remaining or passes >= due or converged):
                continue
        due, evaluations = passes + max(PASSES_BEFORE_FIRST_EVALUATION, passes), evaluations + 1
        s["weights"][:] = np.append(rows.T @ s["dual"], s["constant"] * s["dual"].sum())
        slack = s["linear"] - rows @ s["weights"][:-1] - s["constant"] * s["weights"][-1]
        losses = [
            gap_of(z, 0.0, lower, upper, ridge)
            for z, lower, upper, ridge in zip(slack, s["lower"], s["upper"], s["ridge"], strict=True)
        ]
        value, primal = dual_objective(s), 0.5 * s["weights"] @ s["weights"] + sum(losses)
        if primal - value <= relative_gap * max(abs(primal), abs(value)):
            return passes, evaluations, True
        if limited or left > max_remaining:
            return passes, evaluations, False
        gradient = slack - s["ridge"] * s["dual"]
        beyond = (s["dual"] >= s["upper"]) & (gradient > thresholds[0])
        order = np.flatnonzero(~(beyond | ((s["dual"] <= s["lower"]) & (gradient < -thresholds[1]))))


def dual_objective(s):
    """Return the dual objective, by the weights of the state."""
    return s["linear"] @ s["dual"] - 0.5 * (s["ridge"] * s["dual"]) @ s["dual"] - 0.5 * s["weights"] @ s["weights"]


def remaining_passes(gaps, target):
    """Return the number of passes until the gap is the target, extrapolated from the last three."""
    first, _, last = gaps
    if not np.isfinite(first) or last <= target:
        return 0.0
    return 2.0 * np.log(target / last) / np.log(last / first) if 0 < last < first and target > 0 else np.inf
