"""Calibration: probabilities and prediction intervals from decision values.

Two classes, with decision values f that are positive for the first (Platt 2000):

    P(first | f) = 1 / (1 + exp(A f + B))

A and B minimise the cross-entropy with the targets (N₊ + 1)/(N₊ + 2) and 1/(N₋ + 2) in place of 1 and 0, by a Newton
method with line search (Lin, Lin & Weng 2007). A is kept negative, so that probabilities increase with f.

Several classes by pairwise coupling, with r_ij the probability of i versus j (Wu, Lin & Weng 2004, second method):

    minimise Σ_i Σ_{j≠i} (r_ji p_i − r_ij p_j)²   subject to   Σ p_i = 1

which is a linear system in k probabilities and a multiplier for each sample, with a non-negative solution.

One class: the probability of an inlier increases by 0.1 per bin, with five bins of equal weight on either side of the
boundary (Que & Lin 2025, as in LIBSVM). Regression: residuals have a Laplace distribution, exp(−|z|/σ) / (2σ) (Lin &
Weng 2004).
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats
from maxmargin.deadline import check_deadline
from maxmargin.matrices.numerics import ordinary_weights
from maxmargin.models.overflow import ignored_overflow

#: Pairwise probabilities are clipped to this distance from 0 and 1 before coupling (LIBSVM's value).
MIN_PAIRWISE_PROBABILITY = 1e-7

#: Minimum |slope| for decision values scaled to at most 1: uninformative or reversed values have hardly any effect.
MIN_SLOPE = 1e-3

#: Decision values are scaled by the largest one if it is above this.
MIN_SCALE = 1e-250

#: Maximum number of Newton steps and of step halvings.
MAX_NEWTON_STEPS, MAX_HALVINGS = 100, 40

#: Gradient tolerance of the Newton method, relative to the total sample weight.
GRADIENT_TOLERANCE = 1e-8

#: Number of bins on either side of the boundary of a one-class model (LIBSVM's value).
DENSITY_BINS = 5

#: One-class probabilities are clipped to this distance from 0 and 1 (LIBSVM's value).
MIN_PROBABILITY = 1e-3

#: Decision values within this distance of a mark, relative to the largest mark, are considered equal to it.
MARK_TOLERANCE = 1e-9

#: Residuals above this number of estimated standard deviations are excluded from the second estimate (LIBSVM's value).
OUTLIER_DEVIATIONS = 5.0


class PlattSigmoid(NamedTuple):
    """P(first | f) = 1 / (1 + exp(slope · f + shift)); the slope is negative."""

    slope: float
    shift: float


def fit_sigmoid(values: Floats, first: np.ndarray, weights: Floats) -> PlattSigmoid:
    """Fit a Platt sigmoid to decision values; `first` marks samples of the first class, weights are counts."""
    largest = float(np.abs(values).max(initial=0.0))
    scale = largest if largest > MIN_SCALE else 1.0
    scaled = values / scale
    n_first, n_second = float(weights[first].sum()), float(weights[~first].sum())
    targets = np.where(first, (n_first + 1.0) / (n_first + 2.0), 1.0 / (n_second + 2.0))
    shift = math.log((n_second + 1.0) / (n_first + 1.0))
    samples = (np.ascontiguousarray(scaled), targets, np.ascontiguousarray(weights, dtype=np.float64))
    fitted = _newton(samples, (0.0, shift), fixed_slope=False)
    if fitted[0] <= -MIN_SLOPE:
        return PlattSigmoid(fitted[0] / scale, fitted[1])
    fitted = _newton(samples, (-MIN_SLOPE, shift), fixed_slope=True)
    return PlattSigmoid(-MIN_SLOPE / scale, fitted[1])


def _newton(
    samples: tuple[Floats, Floats, Floats], start: tuple[float, float], fixed_slope: bool
) -> tuple[float, float]:
    """Minimise the cross-entropy of values, targets and weights over slope and shift, or over the shift alone."""
    (slope, shift), total = start, float(samples[2].sum())
    loss, *derivatives = _native.sigmoid_loss(*samples, slope, shift)
    for _ in range(MAX_NEWTON_STEPS):
        check_deadline()
        of_slope, of_shift, aa, ab, bb = derivatives
        aa, bb = (curvature + 1e-12 * max(1e-300, total) for curvature in (aa, bb))  # constant values: singular
        if fixed_slope:
            of_slope = ab = 0.0
        if max(abs(of_slope), abs(of_shift)) <= GRADIENT_TOLERANCE * total:
            break
        along_shift = (ab / aa * of_slope - of_shift) / (bb - ab / aa * ab)
        along_slope = -(of_slope + ab * along_shift) / aa
        descent = of_slope * along_slope + of_shift * along_shift
        length = 1.0
        for _ in range(MAX_HALVINGS):
            moved = slope + length * along_slope, shift + length * along_shift
            new_loss, *new_derivatives = _native.sigmoid_loss(*samples, *moved)
            if new_loss < loss + 1e-4 * length * descent:
                break
            length *= 0.5
        else:
            break  # no step reduces the loss beyond rounding
        (slope, shift), loss, derivatives = moved, new_loss, new_derivatives
    return slope, shift


def expit(x: Floats) -> Floats:
    """Return 1 / (1 + exp(−x)), with small relative error for all x."""
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, small, 1.0) / (1.0 + small))


def binary_probabilities(values: Floats, sigmoid: PlattSigmoid) -> Floats:
    """Return the probabilities of the first and the second class for each decision value."""
    with ignored_overflow():  # probabilities are 0 and 1 then
        exponent = sigmoid.slope * values + sigmoid.shift
    return np.column_stack([expit(-exponent), expit(exponent)])


def couple_pairwise(pairwise: Floats, classes: int) -> Floats:
    """Return class probabilities from those of the first class of each pair (0, 1), (0, 2), …, (1, 2), …."""
    pairwise = np.clip(pairwise, MIN_PAIRWISE_PROBABILITY, 1.0 - MIN_PAIRWISE_PROBABILITY)
    system = np.zeros((len(pairwise), classes + 1, classes + 1))
    system[:, :classes, classes] = system[:, classes, :classes] = 1.0
    for pair, (a, b) in enumerate(combinations(range(classes), 2)):
        of_a, of_b = pairwise[:, pair], 1.0 - pairwise[:, pair]
        system[:, a, a] += of_b**2
        system[:, b, b] += of_a**2
        system[:, a, b] = system[:, b, a] = -of_a * of_b
    right = np.zeros((len(pairwise), classes + 1, 1))
    right[:, classes] = 1.0
    probabilities: Floats = np.maximum(np.linalg.solve(system, right)[:, :classes, 0], 0.0)
    return np.asarray(probabilities / probabilities.sum(axis=1, keepdims=True))


def noise_scale(errors: Floats, weights: Floats) -> float:
    """Return σ of a Laplace distribution fitted to the residuals without outliers; weights are counts."""
    size, weights = np.abs(errors), ordinary_weights(weights)
    first = float(np.average(size, weights=weights))
    kept = size <= OUTLIER_DEVIATIONS * np.sqrt(2.0) * first
    return float(np.average(size[kept], weights=weights[kept]))


def interval_half_width(scale: float | Floats, coverage: float) -> Floats:
    """Return the half-width of the interval about 0 with probability `coverage` under a Laplace distribution."""
    with ignored_overflow():  # an infinite interval
        return np.asarray(-scale * np.log1p(-coverage))


def density_marks(values: Floats, weights: Floats) -> Floats:
    """Return the decision values at which the inlier probability is 0, 0.1, …, 1; 0.5 is at the boundary.

    On either side they divide the samples into bins of equal weight. A side without samples has all its marks at 0.
    """
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    outside = values < 0
    below = _bin_edges(values[outside], weights[outside])
    above = -_bin_edges(-values[~outside][::-1], weights[~outside][::-1])
    return np.concatenate([below, [0.0], above[::-1]])


def _bin_edges(values: Floats, weights: Floats) -> Floats:
    """Return the first value of each bin of equal weight, in ascending order."""
    if not len(values):
        return np.zeros(DENSITY_BINS)
    cumulative = np.cumsum(weights)
    edges = cumulative[-1] * np.arange(DENSITY_BINS) / DENSITY_BINS
    return np.asarray(values[np.minimum(np.searchsorted(cumulative, edges, side="right"), len(values) - 1)])


def one_class_probabilities(values: Floats, marks: Floats) -> Floats:
    """Return the inlier and outlier probabilities: linear between the marks, one half at the boundary."""
    steps = np.linspace(0.0, 1.0, 2 * DENSITY_BINS + 1)
    # Marks are decision values of training samples, and may coincide: values equal up to rounding must match them.
    with ignored_overflow():
        nearest = marks[np.abs(values[:, None] - marks).argmin(axis=1)]
        close = (np.abs(values - nearest) <= MARK_TOLERANCE * np.abs(marks).max()) & (
            np.sign(nearest) * np.sign(values) > 0
        )
        values = np.where(close, nearest, values)
        below = np.interp(values, marks[: DENSITY_BINS + 1], steps[: DENSITY_BINS + 1])
        above = np.interp(values, marks[DENSITY_BINS:], steps[DENSITY_BINS:])
    inside = np.where(values < 0, np.minimum(below, np.nextafter(0.5, 0.0)), above)
    inside = np.clip(inside, MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)
    return np.column_stack([inside, 1.0 - inside])
