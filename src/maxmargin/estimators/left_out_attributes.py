"""Attributes of fitted machines that leave every training sample out, computed when they are first read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maxmargin.problems import Status
from maxmargin.selection.leave_one_out import LeaveOneOut, leave_one_out


class LeftOutAttributes:
    """`loo_error_`, `loo_predictions_` and `loo_decision_function_` of an estimator."""

    # Of the machine.
    _models_: Sequence[Any]

    @property
    def loo_error_(self) -> float:
        """The leave-one-out error: fraction of wrong classes, of outliers, or mean squared error of regression.

        It takes a few fits when it is first read; `maxmargin.leave_one_out` shows progress and takes limits.
        """
        return self._left_out(False).error

    @property
    def loo_predictions_(self) -> Any:
        """The prediction of each training sample by the model without it."""
        return self._left_out(False).predictions

    @property
    def loo_decision_function_(self) -> Any:
        """The decision values of each training sample by the model without it, in the shape of `decision_function`."""
        return self._left_out(True).decision_function

    def _left_out(self, values: bool) -> LeaveOneOut:
        """Return the result that is known of the current fit, or compute it."""
        models, known = self.__dict__.get("_leave_one_out_", (None, None))
        found: LeaveOneOut | None = known if models is not None and models is self.__dict__.get("_models_") else None
        if found is None or (values and found.decision_function is None):
            found = leave_one_out(self, values=values)
            if found.status is Status.INTERRUPTED:
                raise KeyboardInterrupt("interrupted; maxmargin.leave_one_out keeps what is known until then")
            self.__dict__["_leave_one_out_"] = self._models_, found
        return found
