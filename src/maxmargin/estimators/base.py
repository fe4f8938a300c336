"""The base of all estimators: what scikit-learn's interface adds to a machine.

`Estimator` comes before a machine in the bases of a class, so that its methods replace those of the machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from maxmargin.blocks.row_blocks import is_blocks
from maxmargin.estimators.array_library import ArrayLibraryMixin
from maxmargin.estimators.sklearn_callbacks import SklearnCallbacks
from maxmargin.machines.validation.samples import are_labels, are_valid_targets, is_valid_table
from maxmargin.resources import blas_libraries, thread_count
from maxmargin.storage.plain_state import PlainState

#: The arguments of scikit-learn's validation for a table of numbers.
TABLE: dict[str, Any] = {"dtype": (np.float64, np.float32), "accept_sparse": "csr", "accept_large_sparse": True}


class Estimator(ArrayLibraryMixin, SklearnCallbacks, PlainState, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no type hints
    """Parameters, tags, callbacks, errors and validation of scikit-learn for a machine."""

    _not_fitted_error = NotFittedError
    _convergence_warning = ConvergenceWarning

    # Of the machine.
    _precomputed: Any

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__doc__ is None:  # that of the machine, whose parameters it describes
            cls.__doc__ = next(kind.__doc__ for kind in cls.__mro__ if "__init__" in vars(kind))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.sparse = not self._precomputed
        return tags

    @property
    def _order(self) -> str | None:
        """The order of dense values; a matrix of kernel values is not copied for it."""
        return None if self._precomputed else "C"

    def _accepts(self, X: Any, reset: bool) -> bool:
        """Whether samples are a valid array or CSR already, which scikit-learn would return as they are.

        Its validation of fifty samples takes longer than their fit.
        """
        if self._precomputed:  # in a fit, values are checked with the symmetry of the matrix, in one pass over it
            valid = type(X) is np.ndarray and is_valid_table(X, self._thread_limit, check_finite=not reset)
        else:
            valid = (type(X) is not np.ndarray or X.flags.c_contiguous) and is_valid_table(X, self._thread_limit)
        if not valid:
            return False
        if reset:
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)
            return True
        return "feature_names_in_" not in self.__dict__ and bool(X.shape[1] == self.n_features_in_)

    def _thread_limit(self) -> int:
        return thread_count(getattr(self, "n_jobs", None))

    def _validate_samples(self, X: Any, reset: bool) -> Any:
        if self._accepts(X, reset):
            return X
        return validate_data(self, X, reset=reset, order=self._order, **TABLE)

    def _validate_pairs(self, X: Any, y: Any, reset: bool = True, **about_targets: bool) -> tuple[Any, Any]:
        if are_valid_targets(y) and self._accepts(X, reset) and X.shape[0] == len(y):
            return X, y
        if is_blocks(X):
            raise ValueError(
                f"{type(self).__name__} needs the data in memory, not blocks of rows, which LinearSVC, LinearSVR, "
                "LinearOneClassSVM and KernelApproximationSVC take"
            )
        checked: tuple[Any, Any] = validate_data(self, X, y, reset=reset, order=self._order, **TABLE, **about_targets)
        return checked

    def _validate_targets(self, y: Any, **about_targets: bool) -> Any:
        return validate_data(self, "no_validation", y, **about_targets)

    def _validate_objects(self, X: Any, reset: bool) -> Any:
        return validate_data(self, X, reset=reset, skip_check_array=True)

    def _validate_labels(self, y: Any) -> None:
        if not are_labels(y):  # fractional numbers are not labels, and objects are inspected
            check_classification_targets(y)


class Classifier(ClassifierMixin, Estimator):  # type: ignore[misc]  # scikit-learn has no type hints
    """An estimator of classes."""


class OutlierDetector(OutlierMixin, Estimator):  # type: ignore[misc]  # scikit-learn has no type hints
    """An estimator of what is inside and outside."""


class Regressor(RegressorMixin, Estimator):  # type: ignore[misc]  # scikit-learn has no type hints
    """An estimator of one or several targets."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


# What a process does once is done with the imports rather than in its first fit: the first validation of scikit-learn
# looks for plug-ins of data frames, and the default number of threads depends on the libraries of BLAS.
validate_data(BaseEstimator(), np.zeros((1, 1)))
blas_libraries()
