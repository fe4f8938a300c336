"""The arrays of a file: a table in the header, followed by their little-endian bytes.

    entry   {"dtype": "<f8", "shape": [3, 2], "order": "C", "offset": 128}
    bytes   entry 0, padding to a multiple of 64, entry 1, padding, …, last entry

Offsets count from the end of the header. They follow from dtypes and shapes and are stored for validation: arrays
cannot overlap, leave gaps, or exceed the file. Only the dtypes listed here are allowed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Arrays are aligned to cache lines, counted from the start of the file.
ALIGNMENT = 64

#: Allowed NumPy dtypes: booleans, integers and floats; and strings such as "<U7".
DTYPES = frozenset(["|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8"])
STRINGS = re.compile(r"<U[1-9][0-9]{0,7}")

#: Maximum number of dimensions of an array.
MAX_DIMENSIONS = 4


def aligned(size: int) -> int:
    """Round a size up to a multiple of the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


class InvalidFileError(ValueError):
    """A file has no valid contents."""


class ArrayWriter:
    """Collect the arrays of a file; an array that is added twice is stored once."""

    def __init__(self) -> None:
        self.size = 0  # total size in bytes
        self._arrays: list[NDArray[Any]] = []
        self._offsets: list[int] = []
        self._numbers: dict[int, int] = {}

    @staticmethod
    def supports(array: NDArray[Any]) -> bool:
        """Return whether a file can store the array."""
        return is_allowed(array.dtype.newbyteorder("<").str) and array.ndim <= MAX_DIMENSIONS

    def add(self, array: NDArray[Any]) -> int:
        """Return the index of the array in the table."""
        if id(array) not in self._numbers:
            self._numbers[id(array)] = len(self._arrays)
            self._arrays.append(array)
            self._offsets.append(aligned(self.size))
            self.size = self._offsets[-1] + array.nbytes
        return self._numbers[id(array)]

    def table(self) -> list[dict[str, Any]]:
        """Return the table for the header."""
        return [
            {
                "dtype": array.dtype.newbyteorder("<").str,
                "shape": list(array.shape),
                "order": _order(array),
                "offset": offset,
            }
            for array, offset in zip(self._arrays, self._offsets, strict=True)
        ]

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Yield the bytes of all arrays with padding."""
        end = 0
        for array, offset in zip(self._arrays, self._offsets, strict=True):
            yield bytes(offset - end)
            if array.size:
                little = array.astype(array.dtype.newbyteorder("<"), copy=False)
                yield little.ravel(order="F" if _order(array) == "F" else "C").view(np.uint8).data
            end = offset + array.nbytes


def is_allowed(dtype: Any) -> bool:
    """Return whether a dtype is allowed."""
    return isinstance(dtype, str) and (dtype in DTYPES or STRINGS.fullmatch(dtype) is not None)


def read_arrays(table: Any, data: memoryview) -> list[NDArray[Any]]:
    """Return copies of all arrays; each entry of the table is validated before its bytes are read."""
    if not isinstance(table, list):
        raise InvalidFileError("the table of arrays is not a list")
    arrays, end = [], 0
    for number, entry in enumerate(table):
        if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "order", "offset"}:
            raise InvalidFileError(f"array {number}: its table entry must have dtype, shape, order and offset")
        if not is_allowed(entry["dtype"]):
            raise InvalidFileError(f"array {number}: its dtype is not allowed")
        dtype = np.dtype(entry["dtype"])
        shape = _checked_shape(number, entry["shape"], dtype.itemsize)
        if entry["order"] not in ("C", "F"):
            raise InvalidFileError(f"array {number}: its order is neither 'C' nor 'F'")
        start, size = aligned(end), dtype.itemsize * math.prod(shape)
        if type(entry["offset"]) is not int or entry["offset"] != start:
            raise InvalidFileError(f"array {number}: its offset must be {start}")
        if size > len(data) - start:
            raise InvalidFileError(f"array {number}: it exceeds the end of the file")
        arrays.append(_copied(number, dtype, shape, entry["order"], data[start : start + size]))
        end = start + size
    if end != len(data):
        raise InvalidFileError("there are bytes after the last array")
    return arrays


def _order(array: NDArray[Any]) -> str:
    """Return the order of an array, of a part of another array that of its strides: sums depend on it by rounding."""
    if array.flags.c_contiguous:
        return "C"
    return "F" if array.flags.f_contiguous or abs(array.strides[0]) < abs(array.strides[-1]) else "C"


def _checked_shape(number: int, shape: Any, itemsize: int) -> tuple[int, ...]:
    """Return a valid shape; the sizes are limited for empty arrays, too."""
    valid = isinstance(shape, list) and len(shape) <= MAX_DIMENSIONS and all(type(side) is int for side in shape)
    if not valid or min(shape, default=0) < 0 or itemsize * math.prod(max(1, side) for side in shape) >= 2**62:
        raise InvalidFileError(f"array {number}: its shape must be a list of up to {MAX_DIMENSIONS} sizes")
    return tuple(shape)


def _copied(number: int, dtype: np.dtype[Any], shape: tuple[int, ...], order: Any, data: memoryview) -> NDArray[Any]:
    if not len(data):
        return np.empty(shape, dtype.newbyteorder("="), order)
    if dtype.kind == "b" and np.frombuffer(data, np.uint8).max() > 1:
        raise InvalidFileError(f"array {number}: a boolean is neither 0 nor 1")
    if dtype.kind == "U" and np.frombuffer(data, "<u4").max() > 0x10FFFF:
        raise InvalidFileError(f"array {number}: a string has invalid characters")
    stored: NDArray[Any] = np.ndarray(shape, dtype, buffer=data, order=order)
    return stored.astype(dtype.newbyteorder("="), order="K")
