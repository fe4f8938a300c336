"""The state of an estimator in plain values, for libraries that store objects without pickle.

skops asks users to trust every class in a file that it does not know. The state here contains arrays, numbers, strings,
lists and dicts instead of objects of this package, so that the estimators are the only classes of it to be trusted.
`pickle` and `copy` take the attributes as they are.

    object of this package    {"class": "problems.certificate.Certificate", "state": …}
    one that occurs again     {"same": 3}, its number in order of first occurrence
    named tuple               {"class": "training.trained_model.StoredModel", "items": [...]}
    enumeration member        {"class": "problems.solution.Status", "member": "CONVERGED"}
    dtype                     {"dtype": "<f8"}
    dict                      {"dict": [[key, value], …]}
"""

from __future__ import annotations

import copyreg
from collections.abc import Sequence
from enum import Enum
from importlib import import_module
from typing import Any

import numpy as np

PACKAGE = "maxmargin."

#: The key of a plain state, which no attribute has as its name.
KEY = "plain state"


class PlainState:
    """Let `__getstate__` return plain values; to be placed before scikit-learn's ``BaseEstimator``."""

    def __getstate__(self) -> Any:
        return {KEY: _Flattening().flat(super().__getstate__())}

    def __setstate__(self, state: Any) -> None:
        plain = isinstance(state, dict) and state.keys() == {KEY}
        attributes = _Restoration().restored(state[KEY]) if plain else state
        super().__setstate__(attributes)  # type: ignore[misc]  # of scikit-learn

    def __reduce_ex__(self, protocol: Any) -> Any:
        if type(self).__getstate__ is not PlainState.__getstate__:  # of a user's class
            return super().__reduce_ex__(protocol)
        return copyreg.__newobj__, (type(self),), super().__getstate__()  # type: ignore[attr-defined]


class _Flattening:
    """Plain values of objects, which may occur more than once."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no other object takes the place of one that has a number

    def flat(self, value: Any) -> Any:
        """Return the plain value."""
        kind = type(value)
        if kind is dict:
            return {"dict": [[self.flat(key), self.flat(part)] for key, part in value.items()]}
        if kind is list:
            return [self.flat(part) for part in value]
        if isinstance(value, np.dtype):
            return {"dtype": value.str}
        if kind is tuple:
            return tuple(self.flat(part) for part in value)
        if not kind.__module__.startswith(PACKAGE) or isinstance(value, PlainState):
            return value
        name = f"{kind.__module__.removeprefix(PACKAGE)}.{kind.__qualname__}"
        if isinstance(value, Enum):
            return {"class": name, "member": value.name}
        if isinstance(value, tuple):
            return {"class": name, "items": [self.flat(part) for part in value]}
        if isinstance(value, Sequence):  # trained models that are made when they are read
            return [self.flat(part) for part in value]
        return self._object(name, value)

    def _object(self, name: str, value: Any) -> dict[str, Any]:
        if id(value) in self._numbers:
            return {"same": self._numbers[id(value)]}
        self._numbers[id(value)] = len(self._kept)
        self._kept.append(value)
        return {"class": name, "state": self.flat(value.__getstate__())}


class _Restoration:
    """Objects of plain values."""

    def __init__(self) -> None:
        self._objects: list[Any] = []

    def restored(self, value: Any) -> Any:
        """Return the object."""
        if type(value) in (list, tuple):
            return type(value)(self.restored(part) for part in value)
        if type(value) is not dict:
            return value
        if "dict" in value:
            return {self.restored(key): self.restored(part) for key, part in value["dict"]}
        if "dtype" in value:
            return np.dtype(value["dtype"])
        if "same" in value:
            return self._objects[value["same"]]
        kind = _class_named(value["class"])
        if "member" in value:
            return kind[value["member"]]
        if "items" in value:
            return kind(*map(self.restored, value["items"]))
        restored = kind.__new__(kind)
        self._objects.append(restored)
        _set_state(restored, self.restored(value["state"]))
        return restored


def _set_state(restored: Any, state: Any) -> None:
    """Set the state as `pickle` does."""
    if hasattr(restored, "__setstate__"):
        restored.__setstate__(state)
        return
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    for name, value in {**(attributes or {}), **(slots or {})}.items():
        object.__setattr__(restored, name, value)


def _class_named(name: str) -> Any:
    """Return a class of this package."""
    module, _, attribute = (PACKAGE + name).rpartition(".")
    kind = vars(import_module(module)).get(attribute)
    if not isinstance(kind, type) or kind.__module__ != module:
        raise ValueError(f"{name[:60]!r} is not a class of this version of maxmargin")
    return kind
