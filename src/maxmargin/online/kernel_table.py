"""Kernel rows of the samples in memory, cached within a byte budget.

A stored row covers all slots. Samples arrive in chunks: the rows of a chunk are computed together, and their transpose
extends the stored rows by new columns. If memory is short, the least recently used row is replaced, and recomputed when
it is needed.

Values are float32, or float64 if costs are so large that rounding errors would matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats, Indices
from maxmargin.kernels import Kernel, NativeKernel, Points
from maxmargin.kernels.formula import Term
from maxmargin.kernels.kernel_columns import pack_columns
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.online.sample_store import SampleStore, first_moved

#: The fewest cached rows, whatever the budget: those of a pair, and of a chunk of two.
MIN_ROWS = 4

#: The initial capacity in slots.
INITIAL_WIDTH = 64

#: The capacity doubles as long as all rows fit into the budget; then it grows by this number plus an eighth of the
#: slots, or by half if that is less.
WIDTH_INCREMENT = 512

#: Values that are moved or computed together.
CHUNK_VALUES = 2**22

#: Rows longer than this are moved one at a time.
SHORT_ROW = 2**12

#: Values that are copied between two checks of the time limit, about ten milliseconds.
VALUES_BETWEEN_STOPS = 2**20

#: The product of cost and kernel value from which on values are float64: float32 gradients err by about 1e-7 of it.
MAX_FLOAT32_SCALE = 1e3


@dataclass
class RowCopy:
    """A copy of stored rows to a larger array that a time limit can stop, and a later call resume.

    Attributes
    ----------
    storage : float array of shape (rows, width)
        The new values.
    slots : int array
        The slots whose rows are copied, in the order of their new rows.
    done : int
        How many of them are copied.
    """

    storage: NDArray[Any]
    slots: Indices
    done: int = 0

    def advance(self, table: KernelTable, stop: Callable[[], bool]) -> bool:
        """Copy rows, at least some of them; return whether all are copied, or False when `stop` returns True."""
        count, total = table.count, len(self.slots)
        at_once = max(1, VALUES_BETWEEN_STOPS // max(1, count))
        while self.done < total:
            end = min(self.done + at_once, total)
            for row in range(self.done, end):
                self.storage[row, :count] = table.storage[table.row_of[self.slots[row]], :count]
            self.done = end
            if end < total and stop():
                return False
        return True


class KernelTable:
    """Cached kernel rows of the samples in memory.

    Attributes
    ----------
    storage : float array of shape (rows, width)
        The values.
    row_of : int array
        Where the row of each slot is stored, −1 if it is not.
    diagonal : float array
        The diagonal in the precision of the table, so that the curvature between equal samples is exactly 0.
    last_use : int array
        For each row the value of `clock` at its last use.
    evaluations : int
        The number of kernel evaluations.
    """

    def __init__(self, kernel: Kernel, budget: int) -> None:
        self.kernel, self.budget = kernel, budget
        self.count = self.clock = self.evaluations = 0
        self.storage: NDArray[Any]
        self.row_of: Indices
        self._owner: Indices
        self.last_use: Indices
        self.diagonal: Floats
        self._shift: Floats | None = None
        self._copy: RowCopy | None = None  # stopped by a time limit
        self._shape(np.dtype(np.float32), INITIAL_WIDTH)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision of the values."""
        dtype: np.dtype[Any] = self.storage.dtype
        return dtype

    @property
    def width(self) -> int:
        """The capacity in slots."""
        return int(self.storage.shape[1])

    @property
    def complete(self) -> bool:
        """Whether the rows of all slots are stored."""
        return bool((self.row_of[: self.count] >= 0).all())

    def max_new_samples(self, wanted: int) -> int:
        """Return how many of `wanted` samples can be added as one chunk: their rows and two others must fit."""
        rows = self._rows_for(self._width_for(self.count + wanted), self.dtype)
        return max(1, min(wanted, rows - 2))

    def reserve(self, slots: int, stop: Callable[[], bool]) -> bool:
        """Extend the capacity to so many slots; return False, with the slots as before, if `stop` ends it.

        To copy gigabytes of values takes seconds, so the next call continues the copy, unless the rows have changed.
        """
        if slots <= self.width:
            return True
        if self._copy is None or self._copy.storage.shape[1] < slots:
            self._copy = self._begin_copy(self.dtype, self._width_for(slots))
        copied = self._copy.advance(self, stop)
        if copied:
            self._move_to(self._copy)
        return copied

    def append(self, store: SampleStore, last: int, threads: int) -> None:
        """Compute the rows of new samples up to slot `last`."""
        first = self.count
        if last > self.width:
            self._shape(self.dtype, self._width_for(last))
        new = np.arange(first, last)
        rows = self._free_rows(len(new))
        self._fill(store, new, rows, last, threads)
        old = np.flatnonzero(self.row_of[:first] >= 0)
        computed = self.storage[rows, :first]
        step = max(1, CHUNK_VALUES // max(1, len(new)))
        for start in range(0, len(old), step):
            part = old[start : start + step]
            self.storage[self.row_of[part], first:last] = computed[:, part].T
        self._assign(new, rows)
        self.diagonal[new] = self.storage[rows, new]
        self.count = last

    def fetch(self, store: SampleStore, slot: int, threads: int) -> NDArray[Any]:
        """Return the row of a slot, computed if it is not stored; the two rows fetched last are always stored."""
        if self.row_of[slot] < 0:
            rows = self._free_rows(1)
            self._fill(store, np.array([slot]), rows, self.count, threads)
            self._assign(np.array([slot]), rows)
        row = int(self.row_of[slot])
        self.clock += 1
        self.last_use[row] = self.clock
        return self.storage[row, : self.count]

    def keep(self, slots: Indices) -> None:
        """Keep some slots, given in increasing order; remove the rows and columns of the others."""
        removed = np.ones(self.count, dtype=bool)
        removed[slots] = False
        freed = self.row_of[: self.count][removed]
        self._owner[freed[freed >= 0]] = -1
        first = first_moved(slots)
        stored, source = np.flatnonzero(self._owner >= 0), slots[first:]
        # A long row stays in the CPU cache while its values are moved; short rows are moved together.
        step = max(1, SHORT_ROW // max(1, len(source)))
        for start in range(0, len(stored) if len(source) else 0, step):
            part = stored[start : start + step]
            rows = part[0] if len(part) == 1 else part
            self.storage[rows, first : len(slots)] = self.storage[rows, source[0] :].take(source - source[0], axis=-1)
        self.row_of[: len(slots)] = self.row_of[slots]
        self.row_of[len(slots) :] = -1
        self.diagonal[: len(slots)] = self.diagonal[slots]
        owners = np.flatnonzero(self.row_of >= 0)
        self._owner[self.row_of[owners]] = owners
        self._copy = None  # it has the rows of other slots
        self.count = len(slots)

    def append_all(self, store: SampleStore, threads: int) -> None:
        """Compute the rows of all new samples, in chunks that fit into the budget."""
        at_once = max(1, CHUNK_VALUES // max(1, store.count))
        while self.count < store.count:
            self.append(store, self.count + self.max_new_samples(min(at_once, store.count - self.count)), threads)

    def restart(self, store: SampleStore, dtype: Any, threads: int) -> None:
        """Recompute all values."""
        self.count = 0
        self._shape(np.dtype(dtype), max(self.width, store.count))
        self.append_all(store, threads)

    def needs_double_precision(self, scale: float) -> bool:
        """Whether float32 is not accurate enough for products of costs and kernel values of this size."""
        return self.dtype == np.float32 and not scale <= MAX_FLOAT32_SCALE

    def _fill(self, store: SampleStore, slots: Indices, rows: Indices, last: int, threads: int) -> None:
        """Compute the values of some slots with all up to `last`, into unassigned rows."""
        points = store.points.take(slice(0, last))
        self.evaluations += len(slots) * last
        if isinstance(self.kernel, NativeKernel):
            formula = self.kernel.formula
            shift = self._shift_for(points) if formula.term in (Term.SQUARED, Term.ABSOLUTE) else None
            pack_columns(formula, points, self.dtype, threads, shift).fill(points.take(slots), self.storage, rows)
        else:
            with np.errstate(over="ignore"):
                self.storage[rows, :last] = self.kernel.evaluate(points.take(slots), points)
        if not np.isfinite(self.storage[rows, :last]).all():
            raise ValueError(NON_FINITE_MESSAGE)

    def _shift_for(self, points: Points) -> Floats | None:
        """Return the first sample, which is subtracted from all to avoid cancellation of a common offset in float32."""
        if self.dtype != np.float32 or not isinstance(points.data, np.ndarray):
            return None
        if self._shift is None:
            self._shift = points.data[0].astype(np.float64)
        return self._shift

    def _width_for(self, slots: int) -> int:
        if slots <= self.width:
            return self.width
        if self.dtype.itemsize * (2 * slots) ** 2 <= self.budget:
            return 2 * slots
        return slots + min(slots // 2, WIDTH_INCREMENT + slots // 8)

    def _rows_for(self, width: int, dtype: np.dtype[Any]) -> int:
        return int(min(width, max(MIN_ROWS, self.budget // (dtype.itemsize * max(1, width)))))

    def _shape(self, dtype: np.dtype[Any], width: int) -> None:
        """Reallocate for this capacity; rows that do not fit are dropped, the least recently used first."""
        copy = self._begin_copy(dtype, width)
        copy.advance(self, lambda: False)
        self._move_to(copy)

    def _begin_copy(self, dtype: np.dtype[Any], width: int) -> RowCopy:
        rows, slots = self._rows_for(width, dtype), np.empty(0, dtype=np.int64)
        if self.count:
            slots = np.flatnonzero(self.row_of[: self.count] >= 0)
            order = np.argsort(self.last_use[self.row_of[slots]], kind="stable")
            slots = np.sort(slots[order[max(0, len(slots) - rows) :]])
        return RowCopy(np.empty((rows, width), dtype=dtype), slots)  # untouched pages of an empty array are free

    def _move_to(self, copy: RowCopy) -> None:
        """Use the copied values."""
        rows, width = copy.storage.shape
        row_of, owner = np.full(width, -1), np.full(rows, -1)
        last_use, diagonal = np.zeros(rows, dtype=np.int64), np.zeros(width)
        if self.count:
            slots = copy.slots
            row_of[slots], owner[: len(slots)] = np.arange(len(slots)), slots
            last_use[: len(slots)] = self.last_use[self.row_of[slots]]
            diagonal[: self.count] = self.diagonal[: self.count]
        self.storage, self.row_of, self._owner, self.last_use, self.diagonal = (
            copy.storage, row_of, owner, last_use, diagonal,
        )  # fmt: skip
        self._copy = None

    def _free_rows(self, wanted: int) -> Indices:
        """Return rows that may be overwritten: unassigned ones first, then the least recently used."""
        free = np.flatnonzero(self._owner < 0)[:wanted]
        if len(free) < wanted:
            held = np.flatnonzero(self._owner >= 0)
            oldest = held[np.argsort(self.last_use[held], kind="stable")][: wanted - len(free)]
            self.row_of[self._owner[oldest]] = -1
            self._owner[oldest] = -1
            free = np.concatenate([free, oldest])
        return free

    def _assign(self, slots: Indices, rows: Indices) -> None:
        self.clock += 1
        self._copy = None  # it lacks these rows
        self._owner[rows], self.row_of[slots], self.last_use[rows] = slots, rows, self.clock

    def __getstate__(self) -> dict[str, Any]:
        # Values that can be recomputed bit for bit are not pickled; those of a user-defined function are.
        state = {**self.__dict__, "_shape_before": (self.storage.shape, self.dtype), "_held": None, "_copy": None}
        state.pop("storage")
        if not isinstance(self.kernel, NativeKernel):
            state["_held"] = self.storage[self._owner >= 0, : self.count].copy()
        return state

    def restore(self, store: SampleStore, threads: int) -> None:
        """Restore the rows of an unpickled table."""
        if "storage" in self.__dict__:
            return
        shape, dtype = self.__dict__.pop("_shape_before")
        held = self.__dict__.pop("_held")
        storage = np.empty(shape, dtype=dtype)
        rows = np.flatnonzero(self._owner >= 0)
        if held is not None:
            storage[rows, : self.count] = held
        self.storage = storage
        if held is None and len(rows):
            before = self.evaluations
            step = max(1, CHUNK_VALUES // max(1, self.count))
            for start in range(0, len(rows), step):
                part = rows[start : start + step]
                self._fill(store, self._owner[part], part, self.count, threads)
            self.evaluations = before  # recomputed values do not count
