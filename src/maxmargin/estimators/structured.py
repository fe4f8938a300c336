"""`StructuredSVC` in scikit-learn's interface; the docstring is that of the machine."""

from __future__ import annotations

from typing import Any

from maxmargin.estimators.base import Estimator
from maxmargin.machines import structured_svc


class StructuredSVC(Estimator, structured_svc.StructuredSVC):  # noqa: D101
    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        return tags
