"""From decision values to probabilities.

Two classes, with decision values f that are positive for the first (Platt 2000):

    P(first | f) = 1 / (1 + exp(A f + B))

A and B minimise the cross-entropy with the targets (N₊ + 1)/(N₊ + 2) and 1/(N₋ + 2) in place of 1 and 0, by a Newton
method with line search (Lin, Lin & Weng 2007). A is kept negative, so that probabilities rise with f.

Several classes, with r_ij the probability of i rather than j (Wu, Lin & Weng 2004, the second method):

    minimise Σ_i Σ_{j≠i} (r_ji p_i − r_ij p_j)²   subject to   Σ p_i = 1

which is a linear system of a multiplier and k probabilities for each sample, and has a non-negative solution.

One class: bins of equal weight, five on either side of the boundary, are the tenths of the probability to be inside
(Que & Lin 2025, as in LIBSVM). Regression: errors follow a Laplace distribution, exp(−|z|/σ) / (2σ) (Lin & Weng 2004).
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from maxmargin._typing import Floats

#: Probabilities of one class rather than another are at least so far from 0 and 1 before they are coupled.
CERTAINTY = 1e-7

#: The least slope, by the largest decision value: where values tell nothing, or the contrary, they hardly count.
LEAST_SLOPE = 1e-3

#: The largest decision value must be above this to be a scale for the others.
SMALLEST = 1e-250

#: Newton steps, halvings of a step, and the gradient, by the weight of all samples, at which the fit ends.
STEPS, HALVINGS, GRADIENT = 100, 40, 1e-8

#: Bins on either side of the boundary of one class, and the least probability of either answer.
BINS, LEAST_PROBABILITY = 5, 1e-3

#: A decision value so close to a mark, relative to the largest mark, is at it.
MARK_TOLERANCE = 1e-9

#: Errors so many standard deviations of the first estimate from 0 do not count in the second.
OUTLIER = 5.0


class PlattSigmoid(NamedTuple):
    """P(first | f) = 1 / (1 + exp(slope · f + shift)); the slope is negative."""

    slope: float
    shift: float


def fit_sigmoid(values: Floats, first: np.ndarray, weights: Floats) -> PlattSigmoid:
    """Fit the sigmoid to decision values of samples, of which some are of the `first` class; weights are counts."""
    largest = float(np.abs(values).max(initial=0.0))
    scale = largest if largest > SMALLEST else 1.0
    scaled = values / scale
    of_first, of_second = float(weights[first].sum()), float(weights[~first].sum())
    targets = np.where(first, (of_first + 1.0) / (of_first + 2.0), 1.0 / (of_second + 2.0))
    start = np.array([0.0, np.log((of_second + 1.0) / (of_first + 1.0))])
    both = _newton(np.column_stack([scaled, np.ones(len(values))]), np.zeros(len(values)), targets, weights, start)
    if both[0] <= -LEAST_SLOPE:
        return PlattSigmoid(float(both[0]) / scale, float(both[1]))
    given = -LEAST_SLOPE * scaled
    shift = _newton(np.ones((len(values), 1)), given, targets, weights, start[1:])
    return PlattSigmoid(-LEAST_SLOPE / scale, float(shift[0]))


def _newton(features: Floats, given: Floats, targets: Floats, weights: Floats, start: Floats) -> Floats:
    """Minimise Σ weight · cross-entropy(target, expit(−(features · x + given))) over x."""

    def loss(x: Floats) -> float:
        margin = features @ x + given
        return float(weights @ (targets * margin + np.logaddexp(0.0, -margin)))

    x, value = start, loss(start)
    enough = GRADIENT * float(weights.sum())
    for _ in range(STEPS):
        probability = expit(-(features @ x + given))
        gradient = features.T @ (weights * (targets - probability))
        if np.abs(gradient).max() <= enough:
            break
        curvature = weights * probability * (1.0 - probability)
        hessian = (features.T * curvature) @ features
        hessian[np.diag_indices(len(x))] += 1e-12 * max(1e-300, float(weights.sum()))  # constant values: singular
        direction = -np.linalg.solve(hessian, gradient)
        slope = float(gradient @ direction)
        length = 1.0
        for _ in range(HALVINGS):
            moved = loss(x + length * direction)
            if moved < value + 1e-4 * length * slope:
                break
            length *= 0.5
        else:
            break  # rounding: no step makes it better
        x, value = x + length * direction, moved
    return x


def binary_probabilities(values: Floats, sigmoid: PlattSigmoid) -> Floats:
    """Return the probabilities of the first and the second class for each decision value."""
    exponent = sigmoid.slope * values + sigmoid.shift
    return np.column_stack([expit(-exponent), expit(exponent)])


def couple_pairwise(pairwise: Floats, classes: int) -> Floats:
    """Return the probability of each class, given those of the first of each pair (0, 1), (0, 2), …, (1, 2), …."""
    pairwise = np.clip(pairwise, CERTAINTY, 1.0 - CERTAINTY)
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
    """Return σ of a Laplace distribution of the errors, without those too far out for it; weights are counts."""
    size = np.abs(errors)
    first = float(np.average(size, weights=weights))
    near = size <= OUTLIER * np.sqrt(2.0) * first
    return float(np.average(size[near], weights=weights[near]))


def interval_half_width(scale: float | Floats, coverage: float) -> Floats:
    """Return the half-width of the interval around 0 that holds a part `coverage` of Laplace distributions."""
    return np.asarray(-scale * np.log1p(-coverage))


def density_marks(values: Floats, weights: Floats) -> Floats:
    """Return the decision values at which the probability to be inside is 0, 0.1, …, 1; 0.5 is at the boundary.

    On either side they cut the samples into bins of equal weight. A side without samples has all its marks at 0.
    """
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    outside = values < 0
    below = _cuts(values[outside], weights[outside])
    above = -_cuts(-values[~outside][::-1], weights[~outside][::-1])
    return np.concatenate([below, [0.0], above[::-1]])


def _cuts(values: Floats, weights: Floats) -> Floats:
    """Return the first value of each bin of equal weight, in ascending order."""
    if not len(values):
        return np.zeros(BINS)
    reached = np.cumsum(weights)
    cuts = reached[-1] * np.arange(BINS) / BINS
    return np.asarray(values[np.minimum(np.searchsorted(reached, cuts, side="right"), len(values) - 1)])


def one_class_probabilities(values: Floats, marks: Floats) -> Floats:
    """Return the probabilities to be inside and outside: straight lines between the marks, one half at the boundary."""
    steps = np.linspace(0.0, 1.0, 2 * BINS + 1)
    # Marks are values of training samples, often of one for several marks: rounding must not decide about those.
    nearest = marks[np.abs(values[:, None] - marks).argmin(axis=1)]
    close = (np.abs(values - nearest) <= MARK_TOLERANCE * np.abs(marks).max()) & (nearest * values > 0)
    values = np.where(close, nearest, values)
    below = np.interp(values, marks[: BINS + 1], steps[: BINS + 1])
    above = np.interp(values, marks[BINS:], steps[BINS:])
    inside = np.where(values < 0, np.minimum(below, np.nextafter(0.5, 0.0)), above)
    inside = np.clip(inside, LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
    return np.column_stack([inside, 1.0 - inside])
