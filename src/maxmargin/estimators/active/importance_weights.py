"""Importance weights for covariate shift: training samples are weighted to match the test distribution.

If p(y | x) is the same in training and test, but p(x) differs (covariate shift, sample selection bias), the test risk
is the training risk with each sample weighted by

    β(x) = p_test(x) / p_train(x).

The ratio is estimated directly, without the densities (Kremer, Gieseke, Steenstrup Pedersen and Igel 2015): in the
smallest ball B around x that contains k of n training samples,

    β̂(x) = (test samples in B / m) / (training samples in B / n),       m test samples in all.

At a training sample itself, only the n other training samples count; including it would bias the density upwards.

A small k has less bias, a large one less variance. It is chosen by cross-validation of the squared error
½ ∫ (β̂ − β)² p_train up to a constant: the mean over held-out training samples of ½ β̂² minus the mean over held-out
test samples of β̂. (Loog 2012 counts test samples in the Voronoi cell of a training sample instead.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_random_state

from maxmargin._typing import Floats
from maxmargin.machines.validation.parameters import check_count

#: Folds of the cross-validation.
FOLDS = 5


def importance_weights(
    X_train: Any, X_test: Any, n_neighbors: int | str | Sequence[int] = "auto", *, random_state: Any = 0
) -> Floats:
    """Return p_test / p_train at each training sample, estimated from nearest neighbours: a ``sample_weight``.

    Neighbours have the smallest Euclidean distance: scale the features first. Suited to few features and many samples.

    Parameters
    ----------
    X_train : array-like of shape (n_train, n_features)
        Labelled samples.
    X_test : array-like of shape (n_test, n_features)
        Samples of the test distribution; labels are not needed.
    n_neighbors : int, "auto" or sequence of int, default="auto"
        The number of other training samples in the ball around one. Of several the best is chosen by cross-validation;
        "auto" tries 1, 2, 4, … up to half of the samples.
    random_state : int, RandomState or None, default=0
        Seed of the folds of the cross-validation.

    Returns
    -------
    float array of shape (n_train,)
        About 1 on average; 0 if no test sample is near.

    Examples
    --------
    >>> from maxmargin import importance_weights
    >>> importance_weights([[0.0], [1.0], [2.0], [3.0]], [[2.1], [2.4], [2.9], [3.3]], n_neighbors=1)
    array([0.   , 0.   , 1.125, 3.   ])
    """
    train = check_array(X_train, dtype=np.float64, ensure_min_samples=2, input_name="X_train")
    test = check_array(X_test, dtype=np.float64, input_name="X_test")
    if train.shape[1] != test.shape[1]:
        raise ValueError(f"X_train has {train.shape[1]} features, but X_test has {test.shape[1]}")
    neighbors = _choose(train, test, _numbers(n_neighbors, len(train) - 1), random_state)
    weights = density_ratio(train, train, test, neighbors, own=1)
    if not weights.any():
        raise ValueError(
            f"no test sample is among the {neighbors} nearest neighbours of a training sample: "
            "the two sets do not overlap, or n_neighbors is too small"
        )
    return weights


def density_ratio(points: Floats, train: Floats, test: Floats, neighbors: int, own: int = 0) -> Floats:
    """Return the estimated p_test / p_train at some points, from the balls with this number of training samples.

    `own` is the number of training samples that coincide with each point and do not count: 1 for training samples.
    """
    from sklearn.neighbors import KDTree  # slow to import

    trees = KDTree(train), KDTree(test)
    # Rounding errors of the square root must not exclude the outermost sample.
    radii = trees[0].query(points, neighbors + own)[0][:, -1] * (1.0 + 1e-12)
    in_train, in_test = (tree.query_radius(points, radii, count_only=True) for tree in trees)
    return np.asarray(in_test / len(test) / ((in_train - own) / (len(train) - own)))


def _numbers(n_neighbors: Any, count: int) -> list[int]:
    """Return the candidates for the number of neighbours."""
    if isinstance(n_neighbors, str):
        if n_neighbors != "auto":
            raise ValueError(f"n_neighbors must be an integer, a sequence of integers, or 'auto', not {n_neighbors!r}")
        return [2**power for power in range(max(1, count // 2).bit_length())]
    several = n_neighbors if isinstance(n_neighbors, Sequence | np.ndarray) else [n_neighbors]
    numbers = [check_count("n_neighbors", number, 1) for number in several]
    if not numbers or max(numbers) > count:
        raise ValueError(f"n_neighbors must be between 1 and the number of other training samples, {count}")
    return numbers


def _choose(train: Floats, test: Floats, numbers: list[int], random_state: Any) -> int:
    """Return the number of neighbours with the smallest cross-validation error."""
    if len(numbers) == 1:
        return numbers[0]
    random = check_random_state(random_state)
    if len(test) < 2:
        raise ValueError("the choice of n_neighbors needs at least two test samples; give a single number")
    folds = min(FOLDS, len(train), len(test))
    of_train, of_test = (random.permutation(np.arange(len(samples)) % folds) for samples in (train, test))
    errors = np.zeros(len(numbers))
    for fold in range(folds):
        kept = train[of_train != fold], test[of_test != fold]
        for place, number in enumerate(numbers):
            number = min(number, len(kept[0]))
            in_train, in_test = (
                density_ratio(points, *kept, number) for points in (train[of_train == fold], test[of_test == fold])
            )
            errors[place] += 0.5 * np.mean(in_train**2) - np.mean(in_test)
    return numbers[int(np.argmin(errors))]
