"""The vocabulary of a model file: which Python values it holds, and how they look in its header.

    None, True, 3, 0.5, "text"      themselves; JSON's shortest decimals bring a float back bit for bit
    [a, b]                          [a, b]
    inf, −inf, nan                  {"float": "inf"}, …
    (a, b)                          {"tuple": [a, b]}
    {k: v}                          {"dict": [[k, v], …]}           keys are None, truth values, numbers or strings
    an array                        {"array": 4}                    its number in the table of arrays
    a numpy scalar                  {"scalar": 5}                   an array without dimensions
    an array of Python objects      {"objects": [a, b]}             one dimension, of what may be a key
    compressed sparse rows          {"csr": {"type": "matrix", "shape": [3, 9], "data": 6, "indices": 7, "indptr": 8}}
    a member of an enumeration      {"Status": "CONVERGED"}
    an object with a known name     {"Gaussian": {"gamma": 0.5}}    see `maxmargin.interchange.records`

The list is closed. A value outside is an error when a model is saved; a word outside is one when a file is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.interchange.array_table import ArrayWriter
from maxmargin.interchange.errors import ModelFileError
from maxmargin.interchange.records import ENUMERATIONS, RECORDS

#: How deep values may be nested, as sums of sums of kernels are.
DEPTH = 64

#: Whole numbers stay below this, so that they become floating-point numbers without overflow.
LARGEST_WHOLE = 2**1023

#: Floating-point numbers that JSON does not have.
UNUSUAL = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}

#: Sparse matrices by the older or the newer interface of scipy.
CSR = {"matrix": sparse.csr_matrix, "array": sparse.csr_array}

_RECORD_OF = {record.kind: (name, record) for name, record in RECORDS.items()}


class UnknownValueError(ModelFileError):
    """A value that a model file does not hold; the maker of the message knows its name and what to do."""


class Encoder:
    """Turns values into what JSON can write, and collects their arrays."""

    def __init__(self) -> None:
        self.arrays = ArrayWriter()

    def encode(self, value: Any, depth: int = 0) -> Any:
        """Return the value in the vocabulary of the file."""
        if depth > DEPTH:
            raise ModelFileError(f"values nested deeper than {DEPTH} do not fit a model file; use a flatter kernel")
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind is int and abs(value) < LARGEST_WHOLE:
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if kind in (list, tuple):
            items = [self.encode(item, depth + 1) for item in value]
            return items if kind is list else {"tuple": items}
        if kind is dict and all(map(_is_scalar, value)):
            return {"dict": [[self.encode(k, depth + 1), self.encode(v, depth + 1)] for k, v in value.items()]}
        if isinstance(value, np.generic | np.ndarray) or kind in CSR.values():
            return self._encode_array(value, depth)
        if isinstance(value, Enum) and ENUMERATIONS.get(kind.__name__) is kind:
            return {kind.__name__: value.name}
        if kind in _RECORD_OF:
            name, record = _RECORD_OF[kind]
            return {name: {field: self.encode(part, depth + 1) for field, part in record.take(value).items()}}
        raise UnknownValueError(f"a value of type {kind.__name__}")

    def _encode_array(self, value: Any, depth: int) -> Any:
        if sparse.issparse(value) and ArrayWriter.holds(value.data):
            parts = {name: self.arrays.add(getattr(value, name)) for name in ("data", "indices", "indptr")}
            return {"csr": {"type": "matrix" if isinstance(value, sparse.spmatrix) else "array",
                            "shape": [int(side) for side in value.shape], **parts}}  # fmt: skip
        if isinstance(value, np.generic) and ArrayWriter.holds(np.asarray(value)):
            return {"scalar": self.arrays.add(np.asarray(value))}
        if type(value) is np.ndarray and ArrayWriter.holds(value):
            return {"array": self.arrays.add(value)}
        if type(value) is np.ndarray and value.dtype == object and value.ndim == 1 and all(map(_is_scalar, value)):
            return {"objects": [self.encode(item, depth + 1) for item in value]}
        raise UnknownValueError(f"an array or scalar of {getattr(value, 'dtype', type(value).__name__)}")


class Decoder:
    """Turns what JSON has read back into values; every word and every number is checked."""

    def __init__(self, arrays: list[NDArray[Any]]) -> None:
        self.arrays = arrays
        self._words: dict[str, Callable[[Any, int], Any]] = {
            "float": self._unusual,
            "tuple": lambda part, depth: tuple(self._items(part, depth)),
            "dict": self._dict,
            "array": lambda part, depth: self._array(part),
            "scalar": self._scalar,
            "objects": self._objects,
            "csr": lambda part, depth: self._csr(part),
        }

    def decode(self, value: Any, depth: int = 0) -> Any:
        """Return the value that the vocabulary stands for."""
        if depth > DEPTH:
            raise ModelFileError(f"values are nested deeper than {DEPTH}")
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind is int:
            return _require(value, abs(value) < LARGEST_WHOLE, "a whole number is too large")
        if kind is float:
            return _require(value, math.isfinite(value), "a number is too large")
        if kind is list:
            return self._items(value, depth)
        if len(value) != 1:
            raise ModelFileError("a value must be one word and what it stands for")
        [(word, part)] = value.items()
        if word in self._words:
            return self._words[word](part, depth)
        if word in RECORDS and isinstance(part, dict):
            fields = {name: self.decode(field, depth + 1) for name, field in part.items()}
            return RECORDS[word].restore(word, fields)
        if word in ENUMERATIONS and isinstance(part, str) and part in ENUMERATIONS[word].__members__:
            return ENUMERATIONS[word][part]
        raise ModelFileError(f"{word[:40]!r} is not a word of this version's model files, or stands for something else")

    def _items(self, part: Any, depth: int) -> list[Any]:
        _require(part, isinstance(part, list), "a list is expected")
        return [self.decode(item, depth + 1) for item in part]

    def _unusual(self, part: Any, depth: int) -> float:
        _require(part, isinstance(part, str) and part in UNUSUAL, "a number is none of inf, -inf and nan")
        return UNUSUAL[part]

    def _dict(self, part: Any, depth: int) -> dict[Any, Any]:
        pairs = self._items(part, depth)
        good = all(isinstance(pair, list) and len(pair) == 2 and _is_scalar(pair[0]) for pair in pairs)
        _require(part, good, "a dict must be pairs of a key and a value")
        return dict(pairs)

    def _array(self, part: Any) -> NDArray[Any]:
        number = _require(part, type(part) is int and 0 <= part < len(self.arrays), "there is no array of that number")
        array: NDArray[Any] = self.arrays[number]
        return array

    def _scalar(self, part: Any, depth: int) -> Any:
        array = self._array(part)
        _require(part, array.ndim == 0, "a scalar has dimensions")
        return array[()]

    def _objects(self, part: Any, depth: int) -> NDArray[Any]:
        items = self._items(part, depth)
        _require(part, all(map(_is_scalar, items)), "an array of objects holds more than numbers and strings")
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array

    def _csr(self, part: Any) -> Any:
        names = {"type", "shape", "data", "indices", "indptr"}
        _require(part, isinstance(part, dict) and part.keys() == names, "a sparse matrix lacks a part")
        _require(part, isinstance(part["type"], str) and part["type"] in CSR, "a sparse matrix is of no known type")
        data, indices, starts = (self._array(part[name]) for name in ("data", "indices", "indptr"))
        shape = _checked_csr(part["shape"], data, indices, starts)
        matrix = CSR[part["type"]](shape, dtype=data.dtype)
        matrix.data, matrix.indices, matrix.indptr = data, indices, starts
        return matrix


def _checked_csr(shape: Any, data: NDArray[Any], indices: NDArray[Any], starts: NDArray[Any]) -> tuple[int, int]:
    """Return the shape of compressed rows if every row lies within the arrays and every column within the shape."""
    good = isinstance(shape, list) and len(shape) == 2 and all(type(side) is int for side in shape)
    good = (
        good and data.dtype.kind in "fiub" and indices.dtype == starts.dtype and indices.dtype in (np.int32, np.int64)
    )
    good = good and data.ndim == indices.ndim == starts.ndim == 1 and len(data) == len(indices)
    good = good and shape[0] == len(starts) - 1 and 0 <= shape[1] < 2**31
    good = good and starts[0] == 0 and starts[-1] == len(data) and bool((starts[1:] >= starts[:-1]).all())
    good = good and (not len(indices) or bool(indices.min() >= 0 and indices.max() < shape[1]))
    _require(shape, good, "the rows or columns of a sparse matrix lie outside of it")
    return shape[0], shape[1]


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | np.generic)


def _require(value: Any, good: bool, sentence: str) -> Any:
    if not good:
        raise ModelFileError(sentence)
    return value
