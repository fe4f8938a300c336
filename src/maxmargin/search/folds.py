"""Which samples are held out together: every fold has its share of every class."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin._typing import Indices


def deal_folds(y: Any, folds: int, seed: int, stratified: bool) -> Indices:
    """Return the fold of each sample, by a shuffle that depends on the seed alone.

    The members of each class are dealt like cards, and the next class goes on where the one before ended: so folds
    differ by one sample at most, in all and in every class.
    """
    y = np.asarray(y)
    if stratified and len(np.unique(y)) < 2:
        raise ValueError(f"all {len(y)} samples are of class {y[0]}; there must be at least two classes")
    if not 2 <= folds <= len(y):
        raise ValueError(f"{len(y)} samples can be dealt into 2 to {len(y)} folds, not {folds}")
    strata = np.unique(y, return_inverse=True)[1] if stratified else np.zeros(len(y), dtype=np.intp)
    shuffled = np.random.default_rng(seed).permutation(len(y))
    shuffled = shuffled[np.argsort(strata[shuffled], kind="stable")]
    dealt = np.empty(len(y), dtype=np.intp)
    dealt[shuffled] = np.arange(len(y)) % folds
    for fold in range(folds) if stratified else ():
        if len(np.unique(y[dealt != fold])) < 2:
            raise ValueError(
                f"without fold {fold + 1} of {folds} only one class is left: all classes but one are too small for "
                "cross-validation"
            )
    return dealt


def draw_share(y: Any, count: int, seed: int, stratified: bool) -> Indices:
    """Return so many rows at random, in order, with every class in its proportion and at least two of each."""
    y = np.asarray(y)
    random = np.random.default_rng(seed)
    if count >= len(y):
        return np.arange(len(y))
    if not stratified:
        return np.sort(random.choice(len(y), count, replace=False))
    labels = np.unique(y, return_inverse=True)[1]
    picks = []
    for label in range(labels.max() + 1):
        members = random.permutation(np.flatnonzero(labels == label))
        picks.append(members[: max(2, round(count * len(members) / len(y)))])
    return np.sort(np.concatenate(picks))
