"""The samples in memory and their labels, costs and identities, in arrays that grow by half when they are full.

Samples occupy *slots* 0, 1, … in the order of arrival.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.kernels import Points


@dataclass
class SlotData:
    """Label, cost, identity and time of arrival of the sample in each slot."""

    label: Indices
    cost: Floats
    identity: Indices
    arrived: Indices

    @classmethod
    def empty(cls) -> SlotData:
        """Return the data of no slots."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))

    def take(self, slots: Indices) -> SlotData:
        """Return the data of some slots."""
        return SlotData(self.label[slots], self.cost[slots], self.identity[slots], self.arrived[slots])

    def extended(self, more: SlotData) -> SlotData:
        """Return the data with more slots appended."""
        pairs = zip(vars(self).values(), vars(more).values(), strict=True)
        return SlotData(*(np.concatenate(pair) for pair in pairs))


class SampleStore:
    """Feature rows by slot, dense or sparse as the first of them.

    Parameters
    ----------
    like : array or CSR matrix
        Determines the storage format, the number of features and the initial precision.
    """

    def __init__(self, like: Any) -> None:
        self.sparse = sparse.issparse(like)
        self.features = int(like.shape[1])
        self.count = 0
        self._values: NDArray[Any] = np.empty((0,) if self.sparse else (0, self.features), dtype=like.dtype)
        self._indices: NDArray[Any] = np.empty(0, dtype=np.int32 if self.features < 2**31 else np.int64)
        self._starts: Indices = np.zeros(1, dtype=np.int64)

    @property
    def points(self) -> Points:
        """All samples as a view, valid until the store changes."""
        if not self.sparse:
            return Points(self._values[: self.count], np.arange(self.count))
        starts = self._starts[: self.count + 1]
        stored = int(starts[-1])
        shape = self.count, self.features
        return Points.of_compressed(starts, self._indices[:stored], self._values[:stored], shape)

    def append(self, rows: Any) -> None:
        """Append copies of rows."""
        dtype = np.promote_types(self._values.dtype, rows.dtype)
        if dtype != self._values.dtype:  # double precision after single precision
            self._values = self._values.astype(dtype)
        if self.sparse:
            rows = Points(rows if sparse.issparse(rows) else sparse.csr_array(rows)).data
            begin = int(self._starts[self.count])
            self._values = _extended(self._values, begin, rows.data)
            self._indices = _extended(self._indices, begin, rows.indices)
            self._starts = _extended(self._starts, self.count + 1, begin + rows.indptr[1:])
        else:
            self._values = _extended(self._values, self.count, rows.toarray() if sparse.issparse(rows) else rows)
        self.count += int(rows.shape[0])

    def keep(self, slots: Indices) -> None:
        """Keep the samples in some slots, given in increasing order."""
        if self.sparse:
            kept = self.points.data[slots]
            self._values[: kept.nnz], self._indices[: kept.nnz] = kept.data, kept.indices
            self._starts[: len(slots) + 1] = kept.indptr
        else:
            first = first_moved(slots)
            self._values[first : len(slots)] = self._values[slots[first:]]
        self.count = len(slots)

    def __getstate__(self) -> dict[str, Any]:
        stored = int(self._starts[self.count]) if self.sparse else self.count
        return {
            **self.__dict__,
            "_values": self._values[:stored].copy(),
            "_indices": self._indices[:stored].copy(),
            "_starts": self._starts[: self.count + 1].copy() if self.sparse else self._starts,
        }


def _extended(array: NDArray[Any], count: int, more: Any) -> NDArray[Any]:
    """Return the first `count` entries of an array followed by `more`, reallocated with extra capacity if needed."""
    needed = count + len(more)
    if needed > len(array):
        larger = np.empty((needed + needed // 2, *array.shape[1:]), dtype=array.dtype)
        larger[:count] = array[:count]
        array = larger
    array[count:needed] = more
    return array


def first_moved(slots: Indices) -> int:
    """Return the first position whose slot number changes when only these slots are kept."""
    moved = slots != np.arange(len(slots))
    return int(moved.argmax()) if moved.any() else len(slots)
