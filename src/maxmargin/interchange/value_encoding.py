"""Encoding of Python values in the JSON header of a model file.

    None, True, 3, 0.5, "text"      as in JSON; the shortest decimal restores a float exactly
    [a, b]                          [a, b]
    inf, −inf, nan                  {"float": "inf"}, …
    (a, b)                          {"tuple": [a, b]}
    {k: v}                          {"dict": [[k, v], …]}           keys are None, booleans, numbers or strings
    array                           {"array": 4}                    index in the table of arrays
    NumPy scalar                    {"scalar": 5}                   an array without dimensions
    array of Python objects         {"objects": [a, b]}             one dimension, elements like dict keys
    CSR matrix                      {"csr": {"type": "matrix", "shape": [3, 9], "data": 6, "indices": 7, "indptr": 8}}
    enumeration member              {"Status": "CONVERGED"}
    object of a registered class    {"Gaussian": {"gamma": 0.5}}    see `maxmargin.interchange.class_registry`
    type, function, slice, …        {"type": "float64"}             see `maxmargin.interchange.named_values`

Other values are an error when a model is saved; other keys are an error when a file is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _sparse as sparse
from maxmargin.interchange.class_registry import CLASSES, ENUMERATIONS
from maxmargin.interchange.errors import ModelFileError
from maxmargin.interchange.named_values import NAMED, decode_named, encode_named, is_table
from maxmargin.storage.array_table import ArrayWriter

#: Maximum nesting depth of values, for example of sums of kernels.
MAX_DEPTH = 80

#: Limit of integers, so that they can be converted to float64.
INTEGER_LIMIT = 2**1023

#: Floats that JSON cannot represent.
NON_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}

#: Sparse matrices and sparse arrays of scipy.
CSR = {"matrix": sparse.csr_matrix, "array": sparse.csr_array}

_BY_TYPE = {registered.kind: (name, registered) for name, registered in CLASSES.items()}


class UnsupportedValueError(ModelFileError):
    """A value that a model file cannot store; the caller adds its name and advice."""


class Encoder:
    """Encode values for JSON and collect their arrays."""

    def __init__(self) -> None:
        self.arrays = ArrayWriter()

    def encode(self, value: Any, depth: int = 0) -> Any:
        """Return the encoded value."""
        if depth > MAX_DEPTH:
            raise ModelFileError(f"values are nested deeper than {MAX_DEPTH}; use a kernel with fewer nested sums")
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind is int and abs(value) < INTEGER_LIMIT:
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if kind in (list, tuple):
            items = [self.encode(item, depth + 1) for item in value]
            return items if kind is list else {"tuple": items}
        if kind is dict and is_table(value):
            return {"table": [list(value), self.encode(np.array(list(value.values())), depth + 1)]}
        if kind is dict and all(map(_is_scalar, value)):
            return {"dict": [[self.encode(k, depth + 1), self.encode(v, depth + 1)] for k, v in value.items()]}
        if isinstance(value, np.generic | np.ndarray) or kind in CSR.values():
            return self._encode_array(value, depth)
        if isinstance(value, Enum) and ENUMERATIONS.get(kind.__name__) is kind:
            return {kind.__name__: value.name}
        if kind in _BY_TYPE:
            name, registered = _BY_TYPE[kind]
            return {name: {field: self.encode(part, depth + 1) for field, part in registered.fields_of(value).items()}}
        return self.encode_object(value, depth)

    def encode_object(self, value: Any, depth: int) -> Any:
        """Return an encoded value of another type."""
        named = encode_named(value, lambda part: self.encode(part, depth + 1))
        if named is None:
            raise UnsupportedValueError(f"a value of type {type_name(value)}")
        return named

    def _encode_array(self, value: Any, depth: int) -> Any:
        if sparse.issparse(value) and ArrayWriter.supports(value.data):
            parts = {name: self.arrays.add(getattr(value, name)) for name in ("data", "indices", "indptr")}
            return {"csr": {"type": "matrix" if isinstance(value, sparse.spmatrix) else "array",
                            "shape": [int(side) for side in value.shape], **parts}}  # fmt: skip
        if isinstance(value, np.generic) and ArrayWriter.supports(np.asarray(value)):
            return {"scalar": self.arrays.add(np.asarray(value))}
        if type(value) is np.ndarray and ArrayWriter.supports(value):
            return {"array": self.arrays.add(value)}
        if type(value) is np.ndarray and value.dtype == object and value.ndim == 1 and all(map(_is_scalar, value)):
            return {"objects": [self.encode(item, depth + 1) for item in value]}
        named = encode_named(value, lambda part: self.encode(part, depth + 1))
        if named is not None:
            return named
        raise UnsupportedValueError(f"an array or scalar of {getattr(value, 'dtype', type(value).__name__)}")


class Decoder:
    """Decode and validate values read from JSON."""

    def __init__(self, arrays: list[NDArray[Any]]) -> None:
        self.arrays = arrays
        self._decoders: dict[str, Callable[[Any, int], Any]] = {
            "float": self._non_finite,
            "tuple": lambda part, depth: tuple(self._items(part, depth)),
            "dict": self._dict,
            "array": lambda part, depth: self._array(part),
            "scalar": self._scalar,
            "objects": self._objects,
            "csr": lambda part, depth: self._csr(part),
        }

    def decode(self, value: Any, depth: int = 0) -> Any:
        """Return the decoded value."""
        if depth > MAX_DEPTH:
            raise ModelFileError(f"values are nested deeper than {MAX_DEPTH}")
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind is int:
            return _require(value, abs(value) < INTEGER_LIMIT, "an integer is too large")
        if kind is float:
            return _require(value, math.isfinite(value), "a number overflows float64")
        if kind is list:
            return self._items(value, depth)
        if len(value) != 1:
            raise ModelFileError("an encoded value must be an object with one key")
        [(key, part)] = value.items()
        if key in self._decoders:
            return self._decoders[key](part, depth)
        if key in CLASSES and isinstance(part, dict):
            fields = {name: self.decode(field, depth + 1) for name, field in part.items()}
            return CLASSES[key].restore(key, fields)
        if key in ENUMERATIONS and isinstance(part, str) and part in ENUMERATIONS[key].__members__:
            return ENUMERATIONS[key][part]
        return self.decode_object(key, part, depth)

    def decode_object(self, key: str, part: Any, depth: int) -> Any:
        """Return a decoded value of another type."""
        if key in NAMED:
            return decode_named(key, part, lambda item: self.decode(item, depth + 1))
        raise ModelFileError(f"{key[:40]!r} is unknown to this version of maxmargin, or its value is invalid")

    def _items(self, part: Any, depth: int) -> list[Any]:
        _require(part, isinstance(part, list), "a list is expected")
        return [self.decode(item, depth + 1) for item in part]

    def _non_finite(self, part: Any, depth: int) -> float:
        _require(part, isinstance(part, str) and part in NON_FINITE, "a float must be inf, -inf or nan")
        return NON_FINITE[part]

    def _dict(self, part: Any, depth: int) -> dict[Any, Any]:
        pairs = self._items(part, depth)
        valid = all(isinstance(pair, list) and len(pair) == 2 and _is_scalar(pair[0]) for pair in pairs)
        _require(part, valid, "a dict must be a list of pairs of a key and a value")
        return dict(pairs)

    def _array(self, part: Any) -> NDArray[Any]:
        index = _require(part, type(part) is int and 0 <= part < len(self.arrays), "there is no array of that index")
        array: NDArray[Any] = self.arrays[index]
        return array

    def _scalar(self, part: Any, depth: int) -> Any:
        array = self._array(part)
        _require(part, array.ndim == 0, "a scalar must have no dimensions")
        return array[()]

    def _objects(self, part: Any, depth: int) -> NDArray[Any]:
        items = self._items(part, depth)
        _require(part, all(map(_is_scalar, items)), "an array of objects may contain numbers and strings only")
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array

    def _csr(self, part: Any) -> Any:
        names = {"type", "shape", "data", "indices", "indptr"}
        _require(part, isinstance(part, dict) and part.keys() == names, "the keys of a sparse matrix are wrong")
        _require(part, isinstance(part["type"], str) and part["type"] in CSR, "the type of a sparse matrix is unknown")
        data, indices, starts = (self._array(part[name]) for name in ("data", "indices", "indptr"))
        shape = _checked_csr(part["shape"], data, indices, starts)
        matrix = CSR[part["type"]](shape, dtype=data.dtype)
        matrix.data, matrix.indices, matrix.indptr = data, indices, starts
        return matrix


def _checked_csr(shape: Any, data: NDArray[Any], indices: NDArray[Any], starts: NDArray[Any]) -> tuple[int, int]:
    """Return the shape of a CSR matrix if its arrays are consistent with it."""
    valid = isinstance(shape, list) and len(shape) == 2 and all(type(side) is int for side in shape)
    valid = (
        valid and data.dtype.kind in "fiub" and indices.dtype == starts.dtype and indices.dtype in (np.int32, np.int64)
    )
    valid = valid and data.ndim == indices.ndim == starts.ndim == 1 and len(data) == len(indices)
    valid = valid and shape[0] == len(starts) - 1 and 0 <= shape[1] < 2**62
    valid = valid and starts[0] == 0 and starts[-1] == len(data) and bool((starts[1:] >= starts[:-1]).all())
    valid = valid and (not len(indices) or bool(indices.min() >= 0 and indices.max() < shape[1]))
    _require(shape, valid, "the arrays of a sparse matrix are inconsistent with its shape")
    return shape[0], shape[1]


def type_name(value: Any) -> str:
    """Return the name of a type with its package, such as "sklearn.SVC"."""
    package = type(value).__module__.partition(".")[0]
    return type(value).__name__ if package == "builtins" else f"{package}.{type(value).__name__}"


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | np.generic)


def _require(value: Any, valid: bool, message: str) -> Any:
    if not valid:
        raise ModelFileError(message)
    return value
