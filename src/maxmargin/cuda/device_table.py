"""A table of samples in the memory of a GPU, which is used where it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats, Indices
from maxmargin.cuda.device import cupy
from maxmargin.cuda.transfer import to_device
from maxmargin.deadline import check_deadline
from maxmargin.kernels.device_rows import DeviceRows
from maxmargin.kernels.points import PRECISIONS

#: Values that are converted to float64 at a time.
CONVERTED_VALUES = 2**25


class DeviceTable(DeviceRows):
    """Samples on a GPU.

    Parameters
    ----------
    array : device array
    number : int
        The GPU.
    """

    def __init__(self, array: Any, number: int) -> None:
        self.array, self.number = array, number
        self.memo = {}
        self._host: NDArray[Any] | None = None
        self._copying = Lock()

    @classmethod
    def copy_of(cls, host: NDArray[Any], number: int) -> DeviceTable:
        """Return a copy of a table in host memory, which stays beside it."""
        with cupy().cuda.Device(number):
            table = cls(to_device(host), number)
            cupy().cuda.get_current_stream().synchronize()
        table._host = host
        return table

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.array.shape
        return int(rows), int(columns)

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        with self.current():
            chosen: NDArray[Any] = self.rows(rows).get()
        return chosen

    def rows(self, rows: Any) -> Any:
        """Return some rows on the GPU, which is the current one."""
        return self.array[rows if isinstance(rows, slice) else cupy().asarray(rows)]

    def current(self) -> Any:
        """Return a context in which this GPU is the current one."""
        return cupy().cuda.Device(self.number)

    def in_host_memory(self) -> NDArray[Any]:
        with self._copying:
            if self._host is None:
                with self.current():
                    self._host = self.array.get()
            return self._host

    def check(self, features: int | None, name: str) -> DeviceTable:
        """Return the samples in C order and floating point, or raise: as many features as those of the fit, finite.

        The messages are those of scikit-learn for samples in host memory.
        """
        xp = cupy()
        if self.array.dtype.kind == "c":
            raise ValueError("Complex data not supported")
        if self.array.ndim != 2:
            raise ValueError(f"samples must be a table, not an array of {self.array.ndim} dimensions")
        for count, what in zip(self.shape, ("sample(s)", "feature(s)"), strict=True):
            if not count:
                raise ValueError(
                    f"Found array with 0 {what} (shape={self.shape}) while a minimum of 1 is required by {name}."
                )
        if features is not None and self.array.shape[1] != features:
            raise ValueError(
                f"X has {self.array.shape[1]} features, but {name} is expecting {features} features as input."
            )
        with self.current():
            dtype = self.array.dtype if self.array.dtype in PRECISIONS else np.float64
            valid = self.array.dtype == dtype and self.array.flags.c_contiguous
            kept = self.array if valid else xp.ascontiguousarray(self.array, dtype=dtype)
            # The result of this test waits for the array that is kept, which streams of the fit read.
            if not bool(xp.isfinite(kept).all()):
                raise ValueError("the samples contain NaN or infinity; replace these values, or leave out their rows")
            return self if valid else DeviceTable(kept, self.number)

    def decisions(self, weights: Floats, index: Indices | None) -> Floats:
        with self.current():
            on_device = cupy().asarray(weights)
            found = [(block @ on_device).get() for _, block in self._blocks(index)]
        return np.concatenate([np.empty(0), *found])

    def combination(self, factors: Floats, index: Indices | None) -> Floats:
        used = np.flatnonzero(factors)
        if 2 * len(used) < len(factors):
            factors, index = factors[used], used if index is None else index[used]
        with self.current():
            xp = cupy()
            on_device, out = xp.asarray(factors), xp.zeros(self.shape[1])
            for rows, block in self._blocks(index):
                out += on_device[rows] @ block
            found: Floats = out.get()
        return found

    def moments(self, factors: Floats, origin: Floats | None, index: Indices | None) -> tuple[Floats, Floats]:
        with self.current():
            xp, width = cupy(), self.shape[1]
            on_device, sums, squares = xp.asarray(factors), xp.zeros(width), xp.zeros((width, width))
            for rows, block in self._blocks(index):
                block = block if origin is None else block - xp.asarray(origin)
                weighted = block * on_device[rows][:, None]
                sums += weighted.sum(axis=0)
                squares += block.T @ weighted
            found = sums.get(), squares.get()
        return found[0], np.tril(found[1])

    def _blocks(self, index: Indices | None) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of rows in float64, and which of all or of the index they are."""
        step = max(1, CONVERTED_VALUES // self.shape[1])
        for start in range(0, len(self) if index is None else len(index), step):
            check_deadline()
            rows = slice(start, start + step)
            yield rows, self.rows(rows if index is None else index[rows]).astype(np.float64)

    def row_sums(self, squares: bool, factors: Floats | None) -> Floats:
        xp = cupy()

        def sums(part: Any) -> Any:
            part = part if factors is None else part * xp.asarray(factors)
            return (part * part if squares else xp.abs(part)).sum(axis=1)

        with self.current():
            return self._by_rows(sums)

    def extremes(self) -> NDArray[Any]:
        xp = cupy()
        with self.current():
            found: NDArray[Any] = xp.stack([self.array.min(axis=0), self.array.max(axis=0)]).get()
        return found

    def variance(self, share: Floats) -> float:
        with self.current():
            mean = float(share @ self._by_rows(lambda part: part.sum(axis=1)))
            return float(share @ self._by_rows(lambda part: ((part - mean) ** 2).sum(axis=1)))

    def _by_rows(self, function: Callable[[Any], Any]) -> Floats:
        """Return a number for each row in host memory; the function gets blocks of rows in float64."""
        return np.concatenate([function(block).get() for _, block in self._blocks(None)])


class DeviceSubset(DeviceTable):
    """Some rows of a table on a GPU, which share what is prepared of all rows: the samples of a fold.

    The rows are copied when they are asked for, and not kept: there is no `array` of them.

    Parameters
    ----------
    table : DeviceTable
        Validated.
    index : int array
    """

    def __init__(self, table: DeviceTable, index: Indices) -> None:
        self.table, self.index = table, np.ascontiguousarray(index, dtype=np.int64)
        self.number = table.number
        self.memo = table.memo

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.index), self.table.shape[1]

    @property
    def dtype(self) -> Any:
        return self.table.dtype

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        return self.table[self.index[rows]]

    def origin(self) -> tuple[DeviceRows, Indices]:
        return self.table, self.index

    def rows(self, rows: Any) -> Any:
        return self.table.rows(self.index[rows])

    def in_host_memory(self) -> NDArray[Any]:
        return np.asarray(self.table.in_host_memory()[self.index])

    def check(self, features: int | None, name: str) -> DeviceTable:
        """Return these rows: all of the table are valid, and as wide as those of the fit."""
        return self

    def row_sums(self, squares: bool, factors: Floats | None) -> Floats:
        return self.table.row_sums(squares, factors)[self.index]

    def extremes(self) -> NDArray[Any]:
        return self.table.extremes()

    def variance(self, share: Floats) -> float:
        of_table = np.zeros(len(self.table))
        of_table[self.index] = share
        return self.table.variance(of_table)
