"""The base of all machines: parameters, fitted models, their certificates, warnings, and validation of samples.

A machine trains and predicts without scikit-learn. Methods that an estimator replaces by those of scikit-learn are
together at the end of the class.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import is_dataclass
from functools import partial, wraps
from typing import Any, Self, cast

import numpy as np

from maxmargin.cuda.device_table import DeviceTable
from maxmargin.machines.validation.device_arrays import host_array, training_samples
from maxmargin.machines.validation.samples import check_finite_targets, check_labels, check_samples, check_vector
from maxmargin.problems import Status
from maxmargin.solvers import Callback, StoppingRule
from maxmargin.training import Solver
from maxmargin.training.joined_models import farthest_from_optimal, statuses, unconverged


class NotFittedError(ValueError, AttributeError):
    """A machine is used before it is fitted; estimators raise scikit-learn's class of the same name and bases."""


class Machine:
    """Base of the machines: their parameters, and what they know about the problems they were trained on."""

    # Set by the constructors of the machines.
    callback: Any
    verbose: Any
    max_iter: Any

    # Defined by the machines.
    fit: Callable[..., Any]

    #: A fitted attribute, by which a fitted estimator is recognised.
    _fitted_attribute = "coef_"

    #: Advice for fits that reach their limit.
    _scaling_advice = ""

    #: The trained model of each problem: one, or one per pair of classes, class or output.
    _models_: Sequence[Any]

    #: Whether samples are rows of a kernel matrix.
    _precomputed: Any = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "fit" in vars(cls):
            cls.fit = keeping_previous_fit(cls.fit)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, self._fitted_attribute)

    @property
    def certificate_(self) -> Any:
        """The certificate of optimality: one, or a list with one per problem (pair of classes, class or output)."""
        return self._per_model([model.certificate for model in self._trained("certificate_")])

    @property
    def status_(self) -> Any:
        """How the solver ended: one, or a list with one per problem."""
        return self._per_model(statuses(self._trained("status_")))

    def _trained(self, attribute: str) -> Sequence[Any]:
        """Return the trained models, or raise if there are none."""
        name = type(self).__name__
        if self._fitted_attribute not in self.__dict__:
            raise AttributeError(f"{name!r} object has no attribute {attribute!r} before fit")
        if "_models_" not in self.__dict__:
            computes = callable(getattr(self, "certify", None))
            certify = "; certify(X, y) computes a certificate on any data" if computes else ""
            raise AttributeError(
                f"this {name!r} object has no attribute {attribute!r}: it was not trained by fit (it comes from "
                "another program, or from partial_fit), and a certificate needs the training data and the dual "
                f"variables. Call fit with the training data{certify}"
            )
        return self._models_

    def _per_model(self, values: list[Any]) -> Any:
        """Return one value per trained model: a list, or the value itself if there is one problem."""
        return values[0] if len(values) == 1 else values

    def _check_solver(self, solver: Any) -> Solver:
        """Return a solver object of the user, or raise."""
        if not is_dataclass(solver) or not hasattr(solver, "stopping"):
            raise ValueError("a solver object must be a dataclass with a field `stopping` and a method `solve`")
        return cast(Solver, solver)

    def _warn_if_unconverged(self, rule: StoppingRule, each: str, stacklevel: int = 3) -> None:
        """Raise after an interruption, warn if a limit was reached; the fitted attributes are set before."""
        models = self._models_
        unfinished = unconverged(models)
        if not unfinished:
            return
        if Status.INTERRUPTED in unfinished:
            raise KeyboardInterrupt(
                "fit was interrupted; the model so far is usable, see certificate_ for how good it is"
            )
        worst = farthest_from_optimal(models, partial(_distance, rule))
        which = "" if len(models) == 1 else f" in {len(unfinished)} of {len(models)} {each}"
        # One level more for `keeping_previous_fit`.
        warnings.warn(self._describe(rule, worst, which), self._convergence_warning, stacklevel=stacklevel + 1)

    def _describe(self, rule: StoppingRule, worst: Any, which: str) -> str:
        """Return the sentence about a fit that stopped before the tolerance."""
        name = type(self).__name__
        text = f"{name} stopped before the tolerance{which}: {worst.status.value}. "
        if rule.relative_gap is not None:
            limited = worst.status in (Status.MAX_ITERATIONS, Status.MAX_SECONDS)
            text += f"Relative duality gap {worst.certificate.relative_gap:.2g} (tolerance {rule.relative_gap:g})."
            return f"{text} {self._scaling_advice}".strip() if limited else text
        if worst.status is Status.MAX_ITERATIONS:  # the words of scikit-learn
            text = (
                f"Solver terminated early (max_iter={getattr(self, 'max_iter', None)}).  {self._scaling_advice} {text}"
            )
        return f"{text}{worst.known_progress(rule.violation)}"

    def _check_fitted(self) -> None:
        """Raise unless the machine is fitted."""
        if not self.__sklearn_is_fitted__():
            raise self._not_fitted_error(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments before "
                "using this estimator."
            )

    def _follows_library(self, array: Any) -> bool:
        """Whether results are arrays of the library of these samples, which are in host memory."""
        return False

    def _trains_in_place(self, table: DeviceTable) -> bool:
        """Whether `fit` takes samples in the memory of a GPU as they are."""
        return False

    # What estimators do as scikit-learn does.

    _not_fitted_error: type[Exception] = NotFittedError
    _convergence_warning: type[Warning] = UserWarning

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the constructor."""
        return {name: getattr(self, name) for name in parameter_names(type(self))}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters of the constructor."""
        for name, value in parameters.items():
            if name not in parameter_names(type(self)):
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}")
            setattr(self, name, value)
        return self

    def _validate_samples(self, X: Any, reset: bool) -> Any:
        """Return a table of samples as an array or CSR, of as many features as those of the fit unless it is one."""
        X = X.check(None, type(self).__name__) if isinstance(X, DeviceTable) else check_samples(X)
        if reset:
            self.n_features_in_ = X.shape[1]
        elif X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features "
                "as input."
            )
        return X

    def _validate_pairs(self, X: Any, y: Any, reset: bool = True, **about_targets: bool) -> tuple[Any, Any]:
        """Return a table of samples, and as many targets or labels."""
        X = self._validate_samples(X, reset)
        return X, check_finite_targets(check_vector(y, X.shape[0]))

    def _validate_targets(self, y: Any, **about_targets: bool) -> Any:
        """Return targets or labels of samples that are no table."""
        return check_finite_targets(check_vector(y))

    def _validate_objects(self, X: Any, reset: bool) -> Any:
        """Return samples that are no table of numbers, for a user's own kernel function."""
        return X

    def _validate_labels(self, y: Any) -> None:
        """Raise if numbers are no labels of classes."""
        check_labels(y)

    def _more_observers(self, stack: ExitStack) -> list[Callback]:
        """Return further callbacks of a fit, which end with the stack."""
        return []


def parameter_names(kind: type[Machine]) -> tuple[str, ...]:
    """Return the names of the parameters of a constructor."""
    return tuple(inspect.signature(kind).parameters)


def keeping_previous_fit(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method `fit` that leaves the estimator as it was if there is not enough memory, and says so.

    Its arrays are in host memory, but for samples on the GPU that trains on them.
    """

    @wraps(fit)
    def fit_or_restore(self: Any, *arguments: Any, **named: Any) -> Any:
        before = dict(vars(self))
        arguments = tuple((host_array if k else training_samples)(self, value) for k, value in enumerate(arguments))
        named = {name: (training_samples if name == "X" else host_array)(self, value) for name, value in named.items()}
        try:
            return fit(self, *arguments, **named)
        except MemoryError as error:
            vars(self).clear()
            vars(self).update(before)
            cause = str(error).strip().rstrip(".")
            if not cause or cause == "std::bad_alloc":  # of Python and of native code
                cause = "an allocation failed"
            fitted = "; the previous fit is kept" if self.__sklearn_is_fitted__() else ""
            raise MemoryError(
                f"not enough memory to fit {type(self).__name__}: {cause}. Use less data or float32, or lower what it "
                f"stores (cache_size, n_components, n_jobs){fitted}"
            ) from error

    return fit_or_restore


def warn_if_unvalidated(estimator: Any, status: Status, stacklevel: int) -> None:
    """Warn if cross-validation for probabilities or noise reached a limit, or raise after an interruption."""
    if status is Status.INTERRUPTED:
        raise KeyboardInterrupt(
            "fit was interrupted during cross-validation; the model is usable, without probabilities or noise scale"
        )
    if not status.converged and not estimator.fit_status_:  # else there was a warning already
        warnings.warn(
            f"{type(estimator).__name__} stopped before the tolerance in cross-validation, so its estimates of "
            f"probabilities or noise are less precise: {status.value}.",
            estimator._convergence_warning,
            stacklevel=stacklevel + 1,  # for `keeping_previous_fit`
        )


def no_solution_message(estimator: Any, hard: str) -> str:
    """Return the error message about an unbounded dual: of a hard margin, `hard`, else due to an indefinite kernel."""
    if not np.isfinite(getattr(estimator, "C", np.inf)):
        return hard
    return (
        "the kernel is indefinite, and with these costs the dual problem has no maximum; use a positive semi-definite "
        "kernel such as 'rbf', or a smaller C"
    )


def wants_probabilities(estimator: Any) -> bool:
    """Whether the estimator was asked for probabilities; "deprecated" is scikit-learn's default and means no."""
    return bool(estimator.probability) and estimator.probability != "deprecated"


def _distance(rule: StoppingRule, model: Any) -> float:
    """Return how far a model is from the tolerance, by what is known of it."""
    if rule.relative_gap is not None:
        return float(model.certificate.relative_gap)
    violation = model.known_violation
    return float("inf") if violation is None else float(violation)
