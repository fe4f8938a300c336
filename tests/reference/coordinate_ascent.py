"""Dual coordinate ascent as in the pseudo-code: the reference of `native/coordinate_ascent.hpp`."""

from __future__ import annotations

import numpy as np


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
            after = np.clip(before + gradient / curvature, s["lower"][i], s["upper"][i])
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
