"""Landmark features on a cluster: the choice of landmarks from a sample, and the features of each partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin.blocks.dask_collections import Layout
from maxmargin.dask.partitions import Partition
from maxmargin.kernels import Points
from maxmargin.machines.linear.landmarks import fit_landmarks
from maxmargin.machines.validation.samples import check_random_state
from maxmargin.models import LandmarkFeatures


class ChosenLandmarks(NamedTuple):
    """The features of landmarks, and the mean of what they miss of k(x, x)."""

    features: LandmarkFeatures
    error: float


def choose_landmarks(machine: Any, random: np.random.RandomState, sample: Sequence[Any]) -> ChosenLandmarks:
    """Return the features that a machine asks for, with landmarks among the rows of a sample of all partitions."""
    drawn = [part for part in sample if part is not None]
    tables, weights = [part[0] for part in drawn], np.concatenate([part[2] for part in drawn])
    rows = sparse.vstack(tables, format="csr") if sparse.issparse(tables[0]) else np.concatenate(tables)
    features, error = fit_landmarks(machine, rows, weights, random)
    return ChosenLandmarks(replace(features), error)  # a copy without packed landmarks, which do not travel


def landmark_layout(layout: Layout, chosen: ChosenLandmarks) -> Layout:
    """Return the layout of the features of a table."""
    factor = chosen.features.factor
    return Layout(f"the landmark features of {layout.name}", factor.shape[1], factor.dtype)


def map_partition(part: Partition, chosen: ChosenLandmarks) -> Partition:
    """Return a partition whose rows are landmark features, computed by this thread alone: tasks run side by side."""
    features = replace(chosen.features, threads=1)
    if not len(part.y):
        return part._replace(X=np.empty((0, features.rank), dtype=features.factor.dtype))
    return part._replace(X=features(Points.wrap(part.X)))


def generator(random_state: Any) -> np.random.RandomState:
    """Return a generator for a task: that of a seed, or one whose seed is drawn from the generator that is given."""
    random: np.random.RandomState = check_random_state(random_state)
    return random if isinstance(random_state, Integral) else np.random.RandomState(random.randint(2**31 - 1))


def check_worker_memory(client: Any, n_rows: int, features: LandmarkFeatures) -> None:
    """Raise if the features of all rows take more than the workers may use together."""
    limits = client.run(_memory_limit)
    if not limits or not all(limits.values()):  # a worker has no limit
        return
    needed, usable = n_rows * features.rank * features.factor.itemsize, sum(limits.values())
    if needed > usable:
        raise ValueError(
            f"{features.rank:,} features of {n_rows:,} samples take {needed / 2**30:,.1f} GiB, and the "
            f"{len(limits)} workers may use {usable / 2**30:,.1f} GiB together; choose a smaller n_components, or add "
            "workers"
        )


def _memory_limit(dask_worker: Any) -> int | None:
    limit: int | None = dask_worker.memory_manager.memory_limit
    return limit
