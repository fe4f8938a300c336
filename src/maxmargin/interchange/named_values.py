"""Values that a model file stores by name: types, functions of NumPy and of feature selection, slices and others.

    slice                     {"slice": [0, 4, null]}           numbers, strings or None
    set of strings, numbers   {"set": ["a", "b"]}
    dtype                     {"dtype": "<f8"}
    type of numbers, strings  {"type": "float64"}
    function                  {"function": "numpy.log1p"}       a ufunc of one argument, or a score of features
    dict of NumPy integers    {"table": [["a", "b"], {"array": 3}]}, keys and values
    array of arrays           {"arrays": [{"array": 4}, …]}
    pandas.NA                 {"missing": "pandas.NA"}

Columns of a pandas index become an array of their names.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from maxmargin.interchange.errors import ModelFileError

#: The keys of encoded values.
NAMED = frozenset(["slice", "set", "dtype", "type", "function", "table", "arrays", "missing"])

#: Types of numbers and strings by their names in files.
TYPES: dict[str, type[Any]] = {kind.__name__: kind for kind in (bool, int, float, str, object)}
TYPES |= {
    name: getattr(np, name)
    for name in (
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "bool_", "str_", "object_"),
    )
}

#: Modules whose ufuncs of one argument can be stored.
UFUNC_MODULES = ("numpy", "scipy.special")

#: Scores of features of scikit-learn.
SCORES = "sklearn.feature_selection"
SCORE_NAMES = ("chi2", "f_classif", "f_regression", "mutual_info_classif", "mutual_info_regression", "r_regression")

_DTYPE = re.compile(r"\|O|\|b1|[<|=][iuf][1248]|<U[0-9]{1,8}")
_TYPE_NAMES = {kind: name for name, kind in TYPES.items()}


def encode_named(value: Any, encode: Callable[[Any], Any]) -> Any:
    """Return the encoded value, or None if it is none of those above."""
    kind = type(value)
    if kind is slice:
        return {"slice": [encode(part) for part in (value.start, value.stop, value.step)]}
    if kind in (set, frozenset) and all(isinstance(item, str | int | float) for item in value):
        return {"set": [encode(item) for item in sorted(value, key=str)]}
    if isinstance(value, np.dtype) and is_dtype(value.str):
        return {"dtype": value.str}
    if isinstance(value, type) and value in _TYPE_NAMES:
        return {"type": _TYPE_NAMES[value]}
    if callable(value) and (name := function_name(value)):
        return {"function": name}
    if kind is np.ndarray and value.dtype == object and value.ndim == 1:
        return {"arrays": [encode(item) for item in value]} if all(map(_is_array, value)) else None
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(value, pandas.Index):
        return encode(np.asarray(value, dtype=object if value.dtype.kind not in "iub" else None))
    return {"missing": "pandas.NA"} if pandas is not None and value is pandas.NA else None


def function_name(function: Any) -> str | None:
    """Return the name of a function that can be stored, for example "numpy.log1p"."""
    name = getattr(function, "__name__", "")
    for module in (*UFUNC_MODULES, SCORES):
        full = f"{module}.{name}"
        if module in sys.modules and function_named(full) is function:
            return full
    return None


def function_named(full: str) -> Any:
    """Return the function of a name, or None."""
    module, _, name = full.rpartition(".")
    if module == SCORES and name in SCORE_NAMES:
        return getattr(import_module(module), name)
    if module not in UFUNC_MODULES:
        return None
    found = getattr(import_module(module), name, None)
    return found if isinstance(found, np.ufunc) and (found.nin, found.nout) == (1, 1) else None


def decode_named(key: str, part: Any, decode: Callable[[Any], Any]) -> Any:
    """Return the decoded value, or raise ModelFileError."""
    if key == "type" and isinstance(part, str) and part in TYPES:
        return TYPES[part]
    if key == "dtype" and isinstance(part, str) and is_dtype(part):
        return np.dtype(part)
    if key == "function" and isinstance(part, str) and (function := function_named(part)) is not None:
        return function
    if key == "missing" and part == "pandas.NA":
        return import_module("pandas").NA
    if isinstance(part, list):
        items = [decode(item) for item in part]
        if key == "slice" and len(items) == 3 and all(item is None or type(item) in (int, str) for item in items):
            return slice(*items)
        if key == "set" and all(isinstance(item, str | int | float) for item in items):
            return set(items)
        if key == "arrays" and all(map(_is_array, items)):
            array = np.empty(len(items), dtype=object)
            for k, item in enumerate(items):
                array[k] = item
            return array
        if key == "table" and len(items) == 2 and _is_table(*items):
            return dict(zip(items[0], items[1], strict=True))
    raise ModelFileError(f"the value of {key!r} is invalid")


def is_table(value: dict[Any, Any]) -> bool:
    """Return whether a dict has strings as keys and NumPy integers of one type as values."""
    kinds = set(map(type, value.values()))
    integers = len(kinds) == 1 and issubclass(kinds.pop(), np.integer)
    return integers and all(type(key) is str for key in value)


def is_dtype(name: str) -> bool:
    """Return whether a dtype can be stored."""
    if not _DTYPE.fullmatch(name):
        return False
    try:
        np.dtype(name)
    except (TypeError, ValueError):  # such as "<i16"
        return False
    return True


def _is_array(value: Any) -> bool:
    return type(value) is np.ndarray and value.dtype != object


def _is_table(keys: Any, values: Any) -> bool:
    valid = isinstance(keys, list) and isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iu"
    return valid and len(keys) == len(values) and all(type(key) is str for key in keys)
