"""Tasks on one partition: validation, what the first scan finds, and the rows of a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats
from maxmargin.blocks.block_checks import Place, check_block, check_labels, check_weights
from maxmargin.blocks.dask_collections import Layout, as_rows, column_values
from maxmargin.kernels import Points
from maxmargin.machines.linear.block_data import ClassCounts, draw_rows
from maxmargin.matrices.features import Features
from maxmargin.matrices.numerics import inner
from maxmargin.training.block_training import TrainingBlock


class PartitionPlace(Place):
    """Where a partition is, for messages."""

    def error(self, problem: str, row: int | None = None) -> ValueError:
        """Return an error about the partition, or about a row of it."""
        at = "" if row is None else f", row {row}"
        return ValueError(f"partition {self.number} of {self.source}{at} (counting from 0): {problem}")


class Partition(NamedTuple):
    """Validated rows, labels or targets, and weights."""

    number: int
    X: Any
    y: np.ndarray[Any, Any]
    weights: Floats


def prepare(number: int, layout: Layout, X: Any, y: Any, weights: Any) -> Partition:
    """Return a validated partition; `X` and `y` are arrays, sparse matrices, or data frames and series."""
    place = PartitionPlace(layout.name, number, 0)
    X = as_rows(X, layout.dtype)
    count = X.shape[0]
    X = check_block(X, layout.n_features, layout.dtype, bool(sparse.issparse(X)), place)
    labels = check_labels(column_values(y), count, place) if count else np.empty(0)
    checked = np.ones(count) if weights is None else check_weights(column_values(weights), count, place)
    return Partition(number, X, labels, checked)


@dataclass
class Summary:
    """What the first scan finds in partitions: each by itself, and all of them together.

    Attributes
    ----------
    rows : int
    total_weight, target_sum : float
        Σ weight, and Σ weight · target for numbers.
    largest_norm : float
    classes : ClassCounts
        The labels and the weight of each, where the targets are labels.
    kinds : set of str
        Whether partitions with rows are dense or sparse.
    """

    rows: int = 0
    total_weight: float = 0.0
    target_sum: float = 0.0
    largest_norm: float = 0.0
    classes: ClassCounts = field(default_factory=ClassCounts)
    kinds: set[str] = field(default_factory=set)

    def add(self, other: Summary) -> None:
        """Add another part of the rows."""
        self.rows += other.rows
        self.total_weight += other.total_weight
        self.target_sum += other.target_sum
        self.largest_norm = max(self.largest_norm, other.largest_norm)
        self.kinds |= other.kinds
        for label, weight in other.classes.weights.items():
            self.classes.weights[label] = self.classes.weights.get(label, 0.0) + weight


def scan(part: Partition, layout: Layout, labels: bool) -> Summary:
    """Return the summary of a partition, whose targets are labels or numbers."""
    if not len(part.y):
        return Summary()
    used = part.weights > 0
    y, weights = part.y[used], part.weights[used]
    found = Summary(len(part.y), float(weights.sum()), largest_norm=_largest_norm(part.X))
    found.kinds.add("sparse" if sparse.issparse(part.X) else "dense")
    if labels:
        found.classes(y, weights)
    elif y.dtype.kind not in "biuf":
        place = PartitionPlace(layout.name, part.number, 0)
        raise place.error(f"targets must be numbers, not of type {y.dtype}")
    else:
        found.target_sum = inner(weights, y.astype(np.float64))
    return found


def draw(part: Partition, n_rows: int) -> tuple[Any, Any, Floats] | None:
    """Return the rows, targets and weights of a partition for a sample of all rows; None if it has none."""
    rows = draw_rows(part.X, np.flatnonzero(part.weights > 0), n_rows, part.number)
    return (part.X[rows], part.y[rows], part.weights[rows]) if len(rows) else None


def training_blocks(parts: Sequence[Partition], constant: float, threads: int) -> list[TrainingBlock]:
    """Return the rows with a positive weight of partitions that have some."""
    blocks: list[TrainingBlock] = []
    first = 0
    for part in parts:
        rows = np.flatnonzero(part.weights > 0)
        if len(rows):
            points = Points.wrap(part.X)
            taken = points if len(rows) == len(points) else points.take(rows)
            norm = float(np.hypot(_largest_norm(part.X), constant))
            features = Features(taken, constant, threads)
            blocks.append(TrainingBlock(features, part.y[rows], part.weights[rows], norm, first))
            first += len(rows)
    return blocks


def _largest_norm(X: Any) -> float:
    return float(np.sqrt(Features(Points.wrap(X), 0.0, 1).squared_norms().max(initial=0.0)))
