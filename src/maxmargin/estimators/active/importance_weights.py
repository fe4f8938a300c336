"""Importance weights: training samples that are not where the test samples are, weighted as if they were.

If labels depend on x in the same way in training and test, but x is distributed differently (sample selection bias,
covariate shift), then the risk on test data is the training risk with each sample weighted by

    β(x) = p_test(x) / p_train(x).

The ratio is estimated directly, without the densities (Kremer, Gieseke, Steenstrup Pedersen and Igel 2015): in the
smallest ball B around x that holds k of n training samples,

    β̂(x) = (test samples in B / m) / (training samples in B / n),       m test samples in all.

At a training sample the n are the others: counted itself, it would always find one, and seem likelier than it is.

A small k follows the ratio closely, a large one is steadier. It is chosen by cross-validation on what the squared
error ½ ∫ (β̂ − β)² p_train is but for a constant: the mean over held-out training samples of ½ β̂² minus the mean over
held-out test samples of β̂. (Loog 2012 counts test samples in the Voronoi cell of a training sample instead.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_random_state

from maxmargin._typing import Floats
from maxmargin.estimators.validation.parameters import check_count

#: In how many parts samples are held out.
FOLDS = 5


def importance_weights(
    X_train: Any, X_test: Any, n_neighbors: int | str | Sequence[int] = "auto", *, random_state: Any = 0
) -> Floats:
    """Return p_test / p_train at each training sample, estimated from nearest neighbours: a ``sample_weight``.

    Neighbours are those of the Euclidean distance: scale the features first. Meant for few features and many samples.

    Parameters
    ----------
    X_train : array-like of shape (n_train, n_features)
        The samples that have labels.
    X_test : array-like of shape (n_test, n_features)
        Samples from where the machine will be used; they need no labels.
    n_neighbors : int, "auto" or sequence of int, default="auto"
        How many other training samples the ball around one holds. Of several the best is chosen by cross-validation;
        "auto" tries 1, 2, 4, … up to half of the samples.
    random_state : int, RandomState or None, default=0
        Of the folds of the cross-validation.

    Returns
    -------
    float array of shape (n_train,)
        About 1 on average; 0 where no test sample is near.

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
            "the two sets have nothing in common, or n_neighbors is too small"
        )
    return weights


def density_ratio(points: Floats, train: Floats, test: Floats, neighbors: int, own: int = 0) -> Floats:
    """Return the estimated p_test / p_train at some points, from the ball that holds so many training samples.

    `own` is how many training samples each point is itself, which do not count: 1 for the training samples, or 0.
    """
    from sklearn.neighbors import KDTree  # takes time to import

    trees = KDTree(train), KDTree(test)
    # The square root may come out a little short of the sample that the ball is to hold.
    radii = trees[0].query(points, neighbors + own)[0][:, -1] * (1.0 + 1e-12)
    in_train, in_test = (tree.query_radius(points, radii, count_only=True) for tree in trees)
    return np.asarray(in_test / len(test) / ((in_train - own) / (len(train) - own)))


def _numbers(n_neighbors: Any, count: int) -> list[int]:
    """Return the numbers of neighbours to try."""
    if isinstance(n_neighbors, str):
        if n_neighbors != "auto":
            raise ValueError(f"n_neighbors must be a whole number, several, or 'auto', not {n_neighbors!r}")
        return [2**power for power in range(max(1, count // 2).bit_length())]
    several = n_neighbors if isinstance(n_neighbors, Sequence | np.ndarray) else [n_neighbors]
    numbers = [check_count("n_neighbors", number, 1) for number in several]
    if not numbers or max(numbers) > count:
        raise ValueError(f"n_neighbors must be between 1 and the number of other training samples, {count}")
    return numbers


def _choose(train: Floats, test: Floats, numbers: list[int], random_state: Any) -> int:
    """Return the number of neighbours with the least error on samples held out."""
    if len(numbers) == 1:
        return numbers[0]
    random = check_random_state(random_state)
    if len(test) < 2:
        raise ValueError("to choose n_neighbors there must be two test samples; give one number")
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
