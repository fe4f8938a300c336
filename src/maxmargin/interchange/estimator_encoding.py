"""Encoding of estimators in model files: those of this package, and pipelines of scikit-learn's classes with them.

    estimator       {"StandardScaler": {"parameters": {…}, "fitted": {…}}}

The top level of the header has the same keys. An estimator that was not fitted, such as a template of a
`ColumnTransformer`, has no fitted attributes.
"""

from __future__ import annotations

import os
from typing import Any

from numpy.typing import NDArray

from maxmargin.interchange import sklearn_classes
from maxmargin.interchange.errors import ModelFileError
from maxmargin.interchange.fitted_schema import MACHINES, check_fitted, fitted_attributes
from maxmargin.interchange.sklearn_checks import check_object
from maxmargin.interchange.value_encoding import Decoder, Encoder, UnsupportedValueError
from maxmargin.machines.base import parameter_names

#: Advice about parameters that a file cannot store.
ADVICE = {
    "kernel": "fit with a kernel name or with an object of maxmargin.kernels",
    "callback": "remove it with set_params(callback=None)",
    "random_state": "replace it with set_params(random_state=None) or an integer",
    "memory": "remove it with set_params(memory=None)",
    "func": "use a NumPy function of one argument such as numpy.log1p",
    "inverse_func": "use a NumPy function of one argument such as numpy.expm1",
    "transformers": "select columns by names, numbers or make_column_selector, and use transformers listed there",
    "steps": "use estimators listed there, and maxmargin.interchange.from_sklearn for SVMs of scikit-learn",
}


class EstimatorEncoder(Encoder):
    """Encode values and estimators.

    Attributes
    ----------
    uses_sklearn : bool
        Whether there was an object of a class of scikit-learn.
    """

    def __init__(self) -> None:
        super().__init__()
        self.uses_sklearn = False

    def encode_object(self, value: Any, depth: int) -> Any:
        """Return an encoded estimator, or another value."""
        value = sklearn_classes.chosen_model(value)
        if is_machine(value) or sklearn_classes.is_storable(value):
            return {type(value).__name__: self.state(value, depth)}
        return super().encode_object(value, depth)

    def state(self, model: Any, depth: int = -1) -> dict[str, Any]:
        """Return the encoded parameters and fitted attributes of an estimator, which are checked."""
        name = type(model).__name__
        if is_machine(model):
            parameters, fitted = _without_paths(model.get_params(deep=False)), fitted_attributes(model)
        else:
            self.uses_sklearn = True
            parameters, fitted = sklearn_classes.state_of(model)
        encoded = {
            "parameters": self._encode_all(name, parameters, depth),
            "fitted": self._encode_all(name, fitted, depth),
        }
        _check(model, fitted)
        return encoded

    def _encode_all(self, name: str, values: dict[str, Any], depth: int) -> dict[str, Any]:
        encoded = {}
        for attribute, value in values.items():
            try:
                encoded[attribute] = self.encode(value, depth + 1)
            except UnsupportedValueError as error:
                advice = ADVICE.get(attribute.strip("_"), f"replace {attribute}")
                contains = "contains" if isinstance(value, list | tuple | dict) else "is"
                raise ModelFileError(
                    f"{attribute} of {name} {contains} {error}, which a model file cannot store (see "
                    f"docs/model_file.md): {advice}, or save the model with pickle or joblib"
                ) from None
        return encoded


class EstimatorDecoder(Decoder):
    """Decode and validate values and estimators.

    Parameters
    ----------
    arrays : list of array
    with_sklearn : bool
        Whether the file may contain objects of scikit-learn's classes.
    """

    def __init__(self, arrays: list[NDArray[Any]], with_sklearn: bool) -> None:
        super().__init__(arrays)
        self.with_sklearn = with_sklearn

    def decode_object(self, key: str, part: Any, depth: int) -> Any:
        """Return a decoded estimator, or another value."""
        if key not in MACHINES and key not in sklearn_classes.MODULE_OF:
            return super().decode_object(key, part, depth)
        if not isinstance(part, dict) or part.keys() != {"parameters", "fitted"}:
            raise ModelFileError(f"the object of {key} must have the keys parameters and fitted")
        model = self.model(key, part["parameters"], part["fitted"], depth)
        return _as_estimator(model) if key in MACHINES else model

    def model(self, name: str, parameters: Any, fitted: Any, depth: int = -1) -> Any:
        """Return the machine, or the object of scikit-learn, with this encoded state."""
        if not isinstance(parameters, dict) or not isinstance(fitted, dict):
            raise ModelFileError("the parameters and the fitted attributes of a model file must be JSON objects")
        states = [{key: self.decode(part, depth + 1) for key, part in state.items()} for state in (parameters, fitted)]
        if name in MACHINES:
            return _restore_machine(name, *states)
        if name not in sklearn_classes.MODULE_OF:
            raise ModelFileError(f"the estimator {name[:40]!r} is unknown to this version of maxmargin")
        if not self.with_sklearn:
            raise ModelFileError("the header has objects of scikit-learn, but not its version")
        restored = sklearn_classes.restore(name, *states)
        check_object(restored)
        return restored


def is_machine(model: Any) -> bool:
    """Return whether a model is a machine that a file may contain, or the estimator of one."""
    return MACHINES.get(type(model).__name__) in (type(model), *type(model).__bases__)


def _check(model: Any, fitted: dict[str, Any]) -> None:
    if not is_machine(model):
        check_object(model)
    elif fitted:
        check_fitted(model)


def _restore_machine(name: str, parameters: dict[str, Any], fitted: dict[str, Any]) -> Any:
    kind = MACHINES[name]
    for parameter in parameters:
        if parameter not in parameter_names(kind):
            raise ModelFileError(f"{name} has no parameter {parameter[:40]!r} in this version of maxmargin")
    model = kind(**parameters)
    vars(model).update(fitted)
    if fitted:
        check_fitted(model)
    return model


def _as_estimator(machine: Any) -> Any:
    from maxmargin.estimators.from_machine import as_estimator  # loads scikit-learn

    return as_estimator(machine)


def _without_paths(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters with the names of files as strings."""
    return {name: os.fspath(value) if isinstance(value, os.PathLike) else value for name, value in parameters.items()}
