"""Arrays of .npy files, and of uncompressed .npz files, that are read block by block.

A file for which there is room beside the other data in memory is mapped as a whole, from pass to pass: its pages are
those that the system keeps of it anyway, and nothing is copied, which is nearly half of the time of a pass. Blocks of
larger files are read into memory that is used again, which is faster than a mapping for each block. A file that is
truncated meanwhile is an error in both cases (`native/mapped_file.hpp`). Arrays stored by columns are mapped, and
copied block by block.
"""

from __future__ import annotations

import errno
import math
import mmap
import os
from contextlib import suppress
from typing import IO, Any

import numpy as np

from maxmargin import _native
from maxmargin.blocks.file_buffers import FileBuffers
from maxmargin.blocks.file_stamps import FileStamp
from maxmargin.datasets.errors import DataFileError
from maxmargin.resources import available_memory

#: Files from this size on are mapped if they take at most this fraction of the available memory.
MIN_MAPPED_BYTES, MAX_MAPPED_FRACTION = 2**20, 0.5

#: Whether the system has mappings whose pages can be lost without ending the process.
MAPS = hasattr(_native, "MappedFile")


class FileArray:
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
        self._stamp, self._buffers = FileStamp.of(path), FileBuffers()
        with open(path, "rb") as stream:
            stream.seek(start)
            self.shape, by_columns, self.dtype = _read_header(stream, self.name)
            self._offset = stream.tell()
        self._pages: _native.MappedFile | None = None
        self._decided = False
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
        """Return the rows of a range."""
        first, last, _ = rows.indices(len(self))
        row = math.prod(self.shape[1:])
        if self._by_columns:
            return np.ascontiguousarray(self._mapped().reshape(self.shape, order="F")[first:last])
        return self._read(first * row, max(0, last - first) * row).reshape(-1, *self.shape[1:])

    def item(self) -> Any:
        """Return the value of an array without dimensions."""
        return self._read(0, 1)[0].item()

    def check_unchanged(self) -> None:
        """Raise if the file is not as it was."""
        self._stamp.check()
        if self._pages is not None and self._pages.lost:
            raise OSError(errno.EIO, "parts of the file could not be read", self._stamp.path)

    def _read(self, first: int, count: int) -> np.ndarray[Any, Any]:
        """Return values of the file, in memory of their own."""
        if not count:
            return np.empty(0, self.dtype)
        if (pages := self._mapped_pages()) is not None:
            self.check_unchanged()
            size = self.dtype.itemsize
            return np.frombuffer(pages.bytes(self._offset + first * size, count * size).data, self.dtype)
        values = self._buffers.array(count, self.dtype)
        raw = memoryview(values.view(np.uint8).data)
        with open(self._stamp.path, "rb", buffering=0) as stream:
            stream.seek(self._offset + first * self.dtype.itemsize)
            done = 0
            while done < len(raw):
                found = stream.readinto(raw[done:])
                if not found:
                    self._stamp.check()
                    raise DataFileError(self.name, "the file ends before its last value")
                done += found
        return values

    def _mapped_pages(self) -> _native.MappedFile | None:
        """Return the pages of the whole file, None if it is to be read; that is decided once."""
        if not self._decided:
            self._decided, size = True, self._stamp.size
            aligned = self._offset % self.dtype.alignment == 0
            if MAPS and aligned and MIN_MAPPED_BYTES <= size <= MAX_MAPPED_FRACTION * available_memory():
                with suppress(RuntimeError), open(self._stamp.path, "rb") as stream:  # a limit of the system
                    self._pages = _native.MappedFile(stream.fileno(), size)
        return self._pages

    def _mapped(self) -> np.ndarray[Any, Any]:
        """Map all values into memory; the mapping ends with the last array that uses it."""
        count = math.prod(self.shape)
        if not count:
            return np.empty(0, self.dtype)
        with open(self._stamp.path, "rb") as stream:
            if os.fstat(stream.fileno()).st_size < self._offset + count * self.dtype.itemsize:  # unreadable pages
                self._stamp.check()
            mapping = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(mapping, self.dtype, count, self._offset)


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
