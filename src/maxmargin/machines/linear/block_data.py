"""Blocks of rows as the training of linear machines takes them, and what a first pass over them finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.blocks.row_blocks import RowBlock, RowBlocks, is_blocks
from maxmargin.kernels import Points
from maxmargin.machines.validation.training_data import check_sample_weights, single_class_message
from maxmargin.matrices.features import Features
from maxmargin.precision import UNIT_ROUNDOFF
from maxmargin.problems import DualProblem
from maxmargin.resources import available_memory
from maxmargin.solvers.linear.pass_bounds import DualConstraints
from maxmargin.training.block_training import TrainingBlock

#: About so many values of the rows are kept in memory for a first solution: 64 MB in float32.
SAMPLE_VALUES = 2**24

#: At least so many rows are kept, if there are as many.
MIN_SAMPLE_ROWS = 2000


#: Labels are counted in a table of this size, if they are integers in a smaller range.
MAX_LABEL_RANGE = 1000

#: Memory maps that are larger than this fraction of the available memory are read block by block.
MAX_MAPPED_FRACTION = 0.5


def as_blocks(X: Any, y: Any = None, sample_weight: Any = None) -> RowBlocks | None:
    """Return data that are read block by block, None for others: blocks, and memory maps beside which there is no room.

    Labels and weights that are given apart take the place of those of the blocks.
    """
    large = isinstance(X, np.memmap) and X.nbytes > MAX_MAPPED_FRACTION * available_memory()
    if not is_blocks(X) and not large:
        return None
    from maxmargin.blocks import open as open_blocks  # few fits need it

    return open_blocks(X, y, sample_weight)


@dataclass
class BlockData:
    """A table of blocks for training.

    Parameters
    ----------
    blocks : RowBlocks
    threads : int
    constant : float
        The value of the constant feature of a regularised intercept, 0 for none.
    read : callable
        From the blocks to an iterator over them, which may read ahead.
    labelled : bool
        Whether the machine takes labels or targets.

    Attributes
    ----------
    sample : TrainingBlock
        Random rows of all blocks, in memory; their targets are as given.
    total_weight, sample_weight : float
        The sums of the weights of all rows and of the sample.
    origin : float array or None
        The mean of the sample, None for CSR rows.
    weighted_rows : float array
        Σ weight · row, for a machine without labels.
    passes : int
        Passes over the blocks so far.
    """

    blocks: RowBlocks
    threads: int
    constant: float
    read: Callable[[RowBlocks], Iterator[RowBlock]] = iter
    labelled: bool = True
    total_weight: float = 0.0
    sample_weight: float = 0.0
    passes: int = 0
    sample: TrainingBlock = field(init=False)
    origin: Floats | None = field(init=False, default=None)
    weighted_rows: Floats = field(init=False)
    _norms: dict[int, float] = field(default_factory=dict)

    def scan(self, inspect: Callable[[np.ndarray[Any, Any], Floats], None]) -> None:
        """Read all blocks once: call `inspect` with the targets and weights of each, and draw the sample."""
        parts: list[tuple[Any, Any, Floats]] = []
        self.weighted_rows = np.zeros(self.blocks.n_features + 1)
        text: bool | None = None
        for number, block in enumerate(self._read()):
            weights, y = weights_of(block), self._targets(block)
            text = self._check_kind(y, number, block, text)
            rows = np.flatnonzero(weights > 0)
            inspect(y[rows], weights[rows])
            self.total_weight += float(weights.sum())
            features = Features(Points.wrap(block.X), self.constant, self.threads)
            if not self.labelled:
                self.weighted_rows += features.weights(weights)
            self._norms[block.first] = float(np.sqrt(features.squared_norms().max(initial=0.0)))
            chosen = draw_rows(block.X, rows, self.blocks.n_rows, block.first)
            parts.append((block.X[chosen], y[chosen], weights[chosen]))
        if not self.total_weight > 0:
            raise ValueError(f"{self.blocks.name}: all sample weights are 0, and rows of weight 0 are left out")
        self._keep_sample(parts)

    def _check_kind(self, y: np.ndarray[Any, Any], number: int, block: RowBlock, text: bool | None) -> bool:
        """Return whether labels are text, or raise if those of the blocks before, `text`, are of the other kind."""
        found = y.dtype.kind in "US"
        if text is not None and found != text:
            kinds = ("numbers", "text")
            raise ValueError(
                f"{self.blocks.name}, block {number}: row {block.first} (counting from 0): the label "
                f"{y[:1].tolist()[0]!r} is {kinds[found]}, but those of the blocks before are {kinds[text]}"
            )
        return found

    @property
    def n_rows(self) -> int:
        """The number of rows of all blocks."""
        return self.blocks.n_rows

    @property
    def facts(self) -> Floats:
        """Numbers that a first pass over the same data always finds."""
        norms = [number for item in self._norms.items() for number in item]
        targets = self.sample.targets
        known = targets.astype(np.float64) if targets.dtype.kind in "biuf" else np.empty(0)
        return np.array([*self.blocks.shape, self.total_weight, known.sum(), *norms])

    def _keep_sample(self, parts: list[tuple[Any, Any, Floats]]) -> None:
        largest = max(self._norms.values())
        self.sample, self.sample_weight, self.origin = joined_sample(parts, self.constant, self.threads, largest)

    def __iter__(self) -> Iterator[TrainingBlock]:
        for block in self._read():
            weights, targets, points = weights_of(block), self._targets(block), Points.wrap(block.X)
            if block.sample_weight is not None and not weights.all():
                rows = np.flatnonzero(weights)
                if not len(rows):
                    continue
                weights, targets, points = weights[rows], targets[rows], points.take(rows)
            largest = self._norms.get(block.first, self.sample.largest_norm)  # an object may cut other blocks now
            norm = float(np.hypot(largest, self.constant))
            yield TrainingBlock(Features(points, self.constant, self.threads), targets, weights, norm, block.first)

    def constraints(self, problem: DualProblem) -> DualConstraints:
        """Return the constraints of a problem of all rows; `problem` is that of the sample, with larger costs."""
        if not problem.total.any():
            return DualConstraints(problem.total, scalable=not problem.bounded)
        of_total = (self.blocks.n_rows + 8) * UNIT_ROUNDOFF * self.total_weight
        error = of_total * max(self._norms.values())
        return DualConstraints(problem.total, False, self.weighted_rows, self.total_weight, error, of_total)

    def _targets(self, block: RowBlock) -> np.ndarray[Any, Any]:
        """Return the labels or targets of a block; zeros for a machine that takes none."""
        return labels_of(block, self.blocks) if self.labelled else np.zeros(block.X.shape[0])

    def _read(self) -> Iterator[RowBlock]:
        self.passes += 1
        return self.read(self.blocks)


def weights_of(block: RowBlock) -> Floats:
    """Return the weights of a block, 1 for each row if it has none."""
    if block.sample_weight is None:
        return np.ones(block.X.shape[0])
    weights = np.asarray(block.sample_weight, dtype=np.float64)
    return check_sample_weights(weights, block.X) if weights.max(initial=0.0) > 0 else np.zeros(len(weights))


def labels_of(block: RowBlock, blocks: RowBlocks) -> np.ndarray[Any, Any]:
    """Return the labels or targets of a block, or raise if there are none."""
    if block.y is None:
        raise ValueError(f"{blocks.name} has no labels: give them to maxmargin.blocks.open, or to fit as y")
    return block.y


def draw_rows(X: Any, rows: Indices, n_rows: int, seed: int) -> Indices:
    """Return random ones of some rows of a block, always the same: the share of the block in a sample of all rows."""
    stored = X.nnz if sparse.issparse(X) else X.size
    per_row = max(1.0, stored / max(1, X.shape[0]))
    share = max(SAMPLE_VALUES / per_row, MIN_SAMPLE_ROWS) / n_rows
    if share >= 1.0:
        return rows
    count = min(len(rows), int(np.ceil(share * len(rows))))
    return np.sort(np.random.default_rng(seed).choice(rows, count, replace=False))


def joined_sample(
    parts: list[tuple[Any, Any, Floats]], constant: float, threads: int, largest_norm: float
) -> tuple[TrainingBlock, float, Floats | None]:
    """Return the sample of rows, targets and weights of all blocks, the sum of its weights, and its mean if dense."""
    tables = [part[0] for part in parts]
    X = sparse.vstack(tables, format="csr") if sparse.issparse(tables[0]) else np.concatenate(tables)
    targets, weights = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
    sample = TrainingBlock(Features(Points.wrap(X), constant, threads), targets, weights, largest_norm)
    return sample, float(weights.sum()), None if sparse.issparse(X) else X.mean(axis=0, dtype=np.float64)


class ClassCounts:
    """The classes of all blocks and the weight of each, found in a first pass."""

    def __init__(self) -> None:
        self.weights: dict[Any, float] = {}
        self.dtype: np.dtype[Any] | None = None  # of all blocks, as far as they agree

    def __call__(self, y: np.ndarray[Any, Any], weights: Floats) -> None:
        """Count the labels of a block."""
        self.dtype = y.dtype if self.dtype is None else np.promote_types(self.dtype, y.dtype)
        labels, sums = _weights_of_labels(y, weights)
        for label, weight in zip(labels.tolist(), sums, strict=True):
            self.weights[label] = self.weights.get(label, 0.0) + float(weight)

    @property
    def classes(self) -> np.ndarray[Any, Any]:
        """The labels that occur, sorted; raise if there is only one."""
        try:
            ordered = sorted(self.weights)
        except TypeError:
            raise ValueError("the labels of some blocks are text and those of others are numbers") from None
        classes = np.array(ordered, dtype=self.dtype if self.dtype is not None and self.dtype.kind in "biufO" else None)
        if len(classes) < 2:
            raise ValueError(single_class_message(classes.tolist()[0]))
        return classes

    def among(self, known: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
        """Return the classes of an earlier fit; raise if there is another label."""
        for label in self.weights:
            if label not in known.tolist():
                raise ValueError(f"{name} has the label {label!r}, which is not one of the {len(known)} classes of fit")
        return known


def _weights_of_labels(y: np.ndarray[Any, Any], weights: Floats) -> tuple[np.ndarray[Any, Any], Floats]:
    """Return the labels that occur, and the sum of the weights of each."""
    least, most = (int(y.min()), int(y.max())) if y.dtype.kind in "iu" and len(y) else (0, MAX_LABEL_RANGE)
    if most - least < MAX_LABEL_RANGE and most <= np.iinfo(np.intp).max:  # to count is faster than to sort
        numbers = y.astype(np.intp) - least if least or y.dtype.kind == "u" else y
        occurring = np.flatnonzero(np.bincount(numbers))
        sums: Any = np.bincount(numbers, weights)[occurring]
        return (occurring + least).astype(y.dtype), sums
    labels, numbers = np.unique(y, return_inverse=True)
    sums = np.bincount(numbers, weights, len(labels))
    return labels, sums
