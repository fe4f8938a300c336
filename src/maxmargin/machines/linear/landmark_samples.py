"""Training of a kernel machine on the landmark features of samples in memory, as far as the time allows."""

from __future__ import annotations

from contextlib import suppress
from time import perf_counter
from typing import Any, NamedTuple

from maxmargin._typing import Floats, Indices
from maxmargin.deadline import Deadline, TimeLimitReachedError, check_deadline
from maxmargin.kernels import Points
from maxmargin.machines.devices import copied_to_device
from maxmargin.machines.linear.exact_bounds import ExactProblems
from maxmargin.machines.linear.landmarks import draw, features_until, fit_landmarks
from maxmargin.machines.linear.linear_svc import LinearSVC
from maxmargin.machines.validation.samples import check_random_state
from maxmargin.machines.validation.training_data import Labels
from maxmargin.problems import Status
from maxmargin.resources import usable_memory
from maxmargin.solvers import StoppingRule
from maxmargin.training.checkpoint import Checkpoint

#: The loss of the exact problem is estimated from at most this many training samples.
MAX_LOSS_SAMPLES = 10_000


class Samples(NamedTuple):
    """The samples that take part in a fit."""

    X: Any
    y: Any
    weights: Floats
    labels: Labels


class SampleFit(NamedTuple):
    """A fit to samples.

    Attributes
    ----------
    ended : Status
        Of the least converged cross-validation.
    rule : StoppingRule
    rows : int array
        The samples that were used: all, or those whose features were computed in time.
    few : bool
        Whether there was no time for more than a few landmarks.
    """

    ended: Status
    rule: StoppingRule
    rows: Indices
    few: bool


def fit_samples(
    estimator: Any, samples: Samples, linear: LinearSVC, deadline: Deadline, checkpoint: Checkpoint | None
) -> SampleFit:
    """Choose landmarks, train `linear` on their features, and set the fitted attributes of the estimator."""
    X, y, weights, labels = samples
    seed = estimator.random_state
    if seed is None and checkpoint is not None:
        seed = checkpoint.seed()
    random, few = check_random_state(seed), False
    try:
        with _half_of(deadline).in_force():
            features, estimator.approximation_error_ = fit_landmarks(estimator, X, weights, random)
    except TimeLimitReachedError:
        few, random = True, check_random_state(seed)
        features, estimator.approximation_error_ = fit_landmarks(estimator, X, weights, random, few=True)
    _check_memory(X.shape[0], features.factor)
    mapped, rows = features_until(_half_of(deadline).at, features, X, labels, random)
    linear.set_params(max_seconds=deadline.seconds_left())
    try:
        own_weights = weights[rows] * (X.shape[0] / len(rows))
        ended, rule = linear._fit(copied_to_device(mapped, features.device), y[rows], own_weights, checkpoint)
    finally:  # an interrupted fit leaves a model, too
        if hasattr(linear, "coef_"):
            estimator._set_fitted(features, linear)
    if all(model.status is not Status.INTERRUPTED for model in estimator._models_):
        drawn = draw(len(rows), MAX_LOSS_SAMPLES, random)
        with suppress(TimeLimitReachedError), deadline.in_force():
            check_deadline()
            exact = ExactProblems(estimator, Points(X), labels, weights, rows)
            primal = exact.estimate_primal(rows[drawn], linear.decision_function(mapped[drawn]))
            estimator.exact_primal_ = estimator._per_model(primal)
    return SampleFit(ended, rule, rows, few)


def _half_of(deadline: Deadline) -> Deadline:
    """Return the deadline after half of the time that is left."""
    left = deadline.seconds_left()
    return deadline if left is None else Deadline(perf_counter() + 0.5 * left)


def _check_memory(samples: int, factor: Any) -> None:
    needed = samples * factor.shape[1] * factor.itemsize
    if needed > usable_memory():
        raise ValueError(
            f"{factor.shape[1]:,} features of {samples:,} samples take {needed / 2**30:,.1f} GiB, and there are "
            f"{usable_memory() / 2**30:,.1f}; choose a smaller n_components"
        )
