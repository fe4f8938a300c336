"""Methods that only some parameters give, in the manner of scikit-learn's `available_if`."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any


def available_if(check: Callable[[Any], bool]) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator of methods that an object has unless `check` raises AttributeError for it."""
    return lambda method: _AvailableMethod(method, check)


class _AvailableMethod:
    """The descriptor of such a method."""

    def __init__(self, method: Callable[..., Any], check: Callable[[Any], bool]) -> None:
        self.method, self.check = method, check
        update_wrapper(self, method)  # type: ignore[arg-type]  # not callable itself

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self.method
        try:
            self.check(instance)
        except AttributeError as error:
            raise AttributeError(f"This {owner.__name__!r} has no attribute {self.method.__name__!r}") from error
        return MethodType(self.method, instance)
