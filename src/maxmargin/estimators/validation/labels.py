"""Labels of any type as numbers of classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from maxmargin._typing import Floats, Indices


@dataclass(frozen=True)
class Labels:
    """The classes of training rows.

    Attributes
    ----------
    classes : array
        The labels that occur, sorted.
    numbers : int array
        The class of each row by its number, −1 for rows without weight, which are left out.
    taking_part : int array
        The rows of all classes, in order.
    """

    classes: Any
    numbers: Indices
    taking_part: Indices

    @cached_property
    def members(self) -> list[Indices]:
        """The rows of each class."""
        codes = self.numbers[self.taking_part]
        return [self.taking_part[codes == c] for c in range(len(self.classes))]


def number_classes(y: Any, weights: Floats, lone: Callable[[Any], str]) -> Labels:
    """Return the classes of the rows with a weight, or raise: `lone` says what is wrong with a single one."""
    whole = y.dtype.kind in "biuUS" or (y.dtype.kind == "f" and np.array_equal(y, np.rint(y)))
    if not whole:  # numbers with a fraction are no labels, and objects are looked at
        check_classification_targets(y)
    taking_part = np.flatnonzero(weights > 0)
    classes, codes = _two_classes(y[taking_part]) or np.unique(y[taking_part], return_inverse=True)
    if len(classes) < 2:
        raise ValueError(lone(classes.tolist()[0]))
    numbers = np.full(len(y), -1)
    numbers[taking_part] = codes
    return Labels(classes, numbers, taking_part)


def _two_classes(y: Any) -> tuple[Any, Any] | None:
    """Return two classes and which one each label is, None if they are not two numbers: quicker than to sort them."""
    if y.dtype.kind not in "biuf" or not len(y):
        return None
    differs = y != y[0]
    other = int(differs.argmax())
    if not differs[other] or not np.array_equal(differs, y == y[other]):
        return None
    if y[0] < y[other]:
        return y[[0, other]], differs.astype(np.intp)
    return y[[other, 0]], np.logical_not(differs).astype(np.intp)


def lone_class(label: Any) -> str:
    """Return the sentence about data of a single class."""
    return (
        "Invalid input - all samples with positive weights belong to the same class: training needs at least two "
        f"classes, but there is only one class, {label!r}"
    )
