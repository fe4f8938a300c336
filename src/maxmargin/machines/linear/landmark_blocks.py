"""Landmark features of blocks of rows: a kernel machine on data that need not fit into memory, and its exact bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from maxmargin.blocks.read_ahead import read_ahead
from maxmargin.blocks.row_blocks import RowBlock, RowBlocks
from maxmargin.deadline import Deadline, TimeLimitReachedError, check_deadline
from maxmargin.kernels import Points
from maxmargin.machines.linear.block_data import BlockData, labels_of, weights_of
from maxmargin.machines.linear.block_fitting import check_options
from maxmargin.machines.linear.exact_sums import ExactSums, add_up, bounds_of_sums, exact_sums
from maxmargin.machines.linear.landmarks import fit_landmarks
from maxmargin.machines.linear.linear_svc import LinearSVC
from maxmargin.machines.validation.samples import check_random_state
from maxmargin.models.landmark_features import LandmarkFeatures
from maxmargin.problems import Status
from maxmargin.resources import thread_count
from maxmargin.solvers import StoppingRule
from maxmargin.training.exact_certificate import ExactCertificate, no_bounds_in_time


class MappedBlocks(RowBlocks):
    """Blocks whose rows are the landmark features of other rows, computed anew in each pass."""

    def __init__(self, blocks: RowBlocks, features: LandmarkFeatures) -> None:
        self.blocks, self.features = blocks, features

    @property
    def name(self) -> str:
        """The name of the rows that features are computed of."""
        return self.blocks.name

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.blocks.n_rows

    @property
    def n_features(self) -> int:
        """The number of landmark features."""
        return self.features.rank

    @property
    def has_labels(self) -> bool:
        """Whether blocks have labels."""
        return self.blocks.has_labels

    def __iter__(self) -> Iterator[RowBlock]:
        for block in self.blocks:
            points = Points.wrap(block.X)
            self.features.kernel.check(points)
            yield block._replace(X=self.features(points))


def fit_blocks(estimator: Any, blocks: RowBlocks, linear: LinearSVC) -> tuple[Status, StoppingRule, LandmarkFeatures]:
    """Train on blocks: landmarks are chosen among random rows of all blocks, then `linear` is trained on the features.

    A number as gamma, "scale" and landmarks by k-means are those of the random rows.
    """
    check_options(estimator, probability=False, checkpoint=None)
    data = BlockData(blocks, thread_count(estimator.n_jobs), 0.0, read_ahead)
    data.scan(lambda y, weights: None)
    rows, weights = data.sample.rows.points.data, data.sample.weights
    random = check_random_state(estimator.random_state)
    features, estimator.approximation_error_ = fit_landmarks(estimator, rows, weights, random)
    ended, rule = linear._fit(MappedBlocks(blocks, features), None, None)
    linear.n_passes_ += data.passes
    return ended, rule, features


def bound_blocks(machine: Any, blocks: RowBlocks, deadline: Deadline) -> list[ExactCertificate]:
    """Return bounds on the optima of the exact problems, from one pass over the rows.

    A time limit leaves the bounds known by then: none before the end of the pass.
    """
    if blocks.n_features != machine.n_features_in_:
        raise ValueError(
            f"{blocks.name} has {blocks.n_features} features, but the model was fitted with {machine.n_features_in_}"
        )
    with deadline.in_force():
        try:
            return bounds_of_sums(machine, add_up(_sums_of_blocks(machine, blocks)))
        except TimeLimitReachedError:
            return [no_bounds_in_time() for _ in machine.dual_coef_]


def _sums_of_blocks(machine: Any, blocks: RowBlocks) -> Iterator[ExactSums]:
    for block in read_ahead(blocks):
        check_deadline()
        X, y, weights = block.X, labels_of(block, blocks), weights_of(block)
        if not weights.all():
            rows = np.flatnonzero(weights)
            X, y, weights = X[rows], y[rows], weights[rows]
        if len(weights):
            yield exact_sums(machine, X, y, weights, block.first, blocks.name)
