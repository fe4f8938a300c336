"""The features of a date: days since 1970, year, month, day, weekday and hour, also as points on a circle."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from maxmargin._typing import Floats

#: The features of a date, those of a table by default, and the periods of those that repeat.
PARTS = ("days", "year", "month", "day", "weekday", "hour")
DEFAULT_PARTS = ("days", "month", "weekday")
PERIODS = {"month": 12, "day": 31, "weekday": 7, "hour": 24}


class DateParts(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no type hints
    """Turn dates, given as days since 1970, into numbers that a machine can use.

    A date as one number says when, not on which weekday or in which month. The values are those of the calendar; nan
    stays nan, to be imputed afterwards.

    Parameters
    ----------
    parts : sequence of {"days", "year", "month", "day", "weekday", "hour"}, default=("days", "month", "weekday")
        Months and days count from 1, weekdays from 0 (Monday).
    cyclic : bool, default=False
        Whether month, day, weekday and hour become the sine and cosine of their angle on a circle, on which December is
        next to January.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.preparation import DateParts
    >>> days = np.array([["2024-02-29"]], dtype="datetime64[D]").astype(float)
    >>> DateParts(parts=("day", "month", "weekday")).fit_transform(days)
    array([[29.,  2.,  3.]])
    """

    def __init__(self, parts: tuple[str, ...] = DEFAULT_PARTS, cyclic: bool = False) -> None:
        self.parts = parts
        self.cyclic = cyclic

    def fit(self, X: Any, y: Any = None) -> DateParts:
        """Check the parameters and the number of columns; nothing is learnt."""
        for part in self.parts:
            if part not in PARTS:
                raise ValueError(f"parts must be some of {', '.join(PARTS)}, not {part!r}")
        self.n_features_in_ = self._checked(X).shape[1]
        return self

    def transform(self, X: Any) -> Floats:
        """Return the parts of each column of dates."""
        check_is_fitted(self)
        days = self._checked(X)
        if days.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {days.shape[1]} columns, but DateParts was fitted with {self.n_features_in_}")
        columns = []
        for column in days.T:
            for part in self.parts:
                columns += self._features(part, part_of(part, column))
        return np.column_stack(columns)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the features: of the date and of its part."""
        check_is_fitted(self)
        names = [f"x{place}" for place in range(self.n_features_in_)] if input_features is None else input_features
        found = []
        for name in names:
            for part in self.parts:
                circle = self.cyclic and part in PERIODS
                found += [f"{name} {part} sine", f"{name} {part} cosine"] if circle else [f"{name} {part}"]
        return np.array(found, dtype=object)

    def _features(self, part: str, values: Floats) -> list[Floats]:
        if not self.cyclic or part not in PERIODS:
            return [values]
        angle = 2 * np.pi * values / PERIODS[part]
        return [np.sin(angle), np.cos(angle)]

    def _checked(self, X: Any) -> Floats:
        days: Floats = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")
        return days

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def part_of(part: str, days: Floats) -> Floats:
    """Return a part of dates given as days since 1970."""
    missing = np.isnan(days)
    whole = np.floor(np.where(missing, 0.0, days))
    if part == "days":
        return days
    if part == "hour":
        values = np.floor(24 * (np.where(missing, 0.0, days) - whole) + 1e-9)
    elif part == "weekday":
        values = (whole + 3) % 7  # the first of January 1970 was a Thursday
    else:
        date = whole.astype(np.int64).astype("datetime64[D]")
        month = date.astype("datetime64[M]")
        if part == "year":
            values = date.astype("datetime64[Y]").astype(np.int64) + 1970.0
        elif part == "month":
            values = month.astype(np.int64) % 12 + 1.0
        else:
            values = (date - month).astype(np.int64) + 1.0
    return np.where(missing, np.nan, values)
