"""Readable twins of the native sums over the pairs of a ranking: double loops as matrices of all pairs."""

import numpy as np


def above(targets, queries):
    """Return which sample should score above which."""
    return (queries[:, None] == queries) & (targets[:, None] > targets)


def partner_sums(pairs, scores, values, low, high):
    """Return the sums of the values of partners, of pairs whose scores differ by less than `low`, and `low` to `high`.

    First as the first, then as the second of the pairs.
    """
    difference = scores[:, None] - scores
    inner, window = pairs & (difference < low), pairs & (difference >= low) & (difference < high)
    return inner @ values, window @ values, inner.T @ values, window.T @ values


def pair_extremes(pairs, scores, values, low, high):
    """Return the least lead of pairs that differ by at least `low`, and the largest of those below `high`."""
    difference, lead = scores[:, None] - scores, values[:, None] - values
    far, near = pairs & (difference >= low), pairs & (difference < high)
    return lead[far].min(initial=np.inf), lead[near].max(initial=-np.inf)


def responses(pairs, scores, costs, width):
    """Return the matrix of dual variables that scores imply, with the width of the transition."""
    return np.where(pairs, costs * np.clip((1.0 - (scores[:, None] - scores)) / width, 0.0, 1.0), 0.0)
