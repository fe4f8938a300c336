"""Arrays of .npy files, and of uncompressed .npz files, that are mapped into memory block by block.

Each block is a mapping of its own: its pages leave the memory of the process when the block is no longer used, and a
file that was truncated is an error instead of a crash.
"""

from __future__ import annotations

import math
import mmap
import os
from typing import IO, Any

import numpy as np

from maxmargin.blocks.file_stamps import FileStamp
from maxmargin.datasets.errors import DataFileError


class MappedArray:
    """An array in a file, of one or two dimensions, that is read by ranges of the first one.

    Attributes
    ----------
    shape : tuple of int
    dtype : dtype
    name : str
        For messages.
    """

    def __init__(self, path: str | os.PathLike[str], start: int = 0, size: int | None = None, name: str = "") -> None:
        """Read the header of the array that occupies `size` bytes of a file from `start`."""
        self.name = name or os.fspath(path)
        self._stamp = FileStamp.of(path)
        with open(path, "rb") as stream:
            stream.seek(start)
            self.shape, by_columns, self.dtype = _read_header(stream, self.name)
            self._offset = stream.tell()
        self._by_columns = by_columns and len(self.shape) > 1
        expected = self._offset - start + self.dtype.itemsize * math.prod(self.shape)
        available = self._stamp.size - start if size is None else size
        if expected != available:
            state = "is truncated" if expected > available else "has extra bytes"
            raise DataFileError(
                self.name, f"the file {state}: its header says {expected:,} bytes, but it has {available:,}"
            )

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> np.ndarray[Any, Any]:
        """Return the rows of a range, without a copy unless the array is stored by columns."""
        first, last, _ = rows.indices(len(self))
        row = math.prod(self.shape[1:])
        if self._by_columns:
            whole = self._map(0, math.prod(self.shape)).reshape(self.shape, order="F")
            return np.ascontiguousarray(whole[first:last])
        return self._map(first * row, max(0, last - first) * row).reshape(-1, *self.shape[1:])

    def item(self) -> Any:
        """Return the value of an array without dimensions."""
        return self._map(0, 1)[0].item()

    def check_unchanged(self) -> None:
        """Raise if the file is not as it was."""
        self._stamp.check()

    def _map(self, first: int, count: int) -> np.ndarray[Any, Any]:
        """Map values of the file into memory; the mapping ends with the last array that uses it."""
        if not count:
            return np.empty(0, self.dtype)
        begin = self._offset + first * self.dtype.itemsize
        page = begin - begin % mmap.ALLOCATIONGRANULARITY
        length = begin - page + count * self.dtype.itemsize
        with open(self._stamp.path, "rb") as stream:
            if os.fstat(stream.fileno()).st_size < page + length:  # its pages could not be read
                self._stamp.check()
            mapping = mmap.mmap(stream.fileno(), length, access=mmap.ACCESS_READ, offset=page)
        if hasattr(mapping, "madvise"):
            mapping.madvise(mmap.MADV_SEQUENTIAL)
        return np.frombuffer(mapping, self.dtype, count, begin - page)


def _read_header(stream: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, order and type of an array."""
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    try:
        version = np.lib.format.read_magic(stream)
        if version not in readers:
            raise ValueError(f"version {version[0]}.{version[1]} of the format is unknown")
        shape, by_columns, dtype = readers[version](stream)
        if dtype.hasobject:
            raise ValueError("it contains Python objects, which are not read; save numbers or strings")
        if min(shape, default=0) < 0 or not dtype.itemsize:
            raise ValueError(f"its shape {shape} or type {dtype} is not possible")
    except Exception as error:  # damaged headers raise many kinds
        raise DataFileError(name, f"not a valid NumPy array: {error}") from error
    return shape, by_columns, dtype
