"""Whether the parts of a fitted model fit together.

A checksum says that a file is as it was written, not that what was written makes sense: native code gets these arrays.
So every attribute of a fitted estimator is described here by its type and its named sizes, and sizes of one name must
agree: ``dual_coef_`` has as many columns as ``support_`` has entries. What is not described here is neither written nor
read. The same check runs before a model is saved and after it is loaded: what can be saved can be loaded, and what was
loaded can predict.

A new attribute is one line in `DESCRIPTIONS`, under the class that sets it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from numbers import Integral
from typing import Any

import numpy as np

from maxmargin import estimators
from maxmargin.estimators import (
    SVDD,
    KernelApproximationSVC,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    OneClassSVM,
    RankSVC,
)
from maxmargin.estimators.calibration.noise_scale import NoiseIntervals
from maxmargin.estimators.kernel.function_estimator import FunctionEstimator
from maxmargin.estimators.kernel.kernel_classifier import STRATEGIES, KernelClassifier
from maxmargin.estimators.kernel.kernel_estimator import KernelEstimator
from maxmargin.estimators.linear.linear_estimator import LinearEstimator
from maxmargin.estimators.online.online_estimator import OnlineMachine
from maxmargin.interchange.errors import ModelFileError
from maxmargin.interchange.records import GEOMETRIES
from maxmargin.interchange.schema_types import Check, Sizes, count, floats, is_floats, is_within, matrix, number, whole
from maxmargin.kernels import Kernel
from maxmargin.models.calibration import DENSITY_BINS, PlattSigmoid
from maxmargin.problems import Certificate
from maxmargin.training import TrainedLinearModel, TrainedModel

#: The estimators that a file may name; those that learn from a stream go on, and what they go on with is for pickle.
ESTIMATORS: dict[str, type[Any]] = {
    name: getattr(estimators, name)
    for name in estimators.__all__
    if not issubclass(getattr(estimators, name), OnlineMachine)
}

#: The parameters of each.
PARAMETERS: dict[type[Any], frozenset[str]] = {kind: frozenset(kind._get_param_names()) for kind in ESTIMATORS.values()}

#: Attributes that only some fitted models have.
OPTIONAL = frozenset(["feature_names_in_", "n_pairs_", "noise_scale_", "density_marks_", "exact_primal_"])

#: Attributes that tell of the training; a model that was trained elsewhere has no machines and may lack the others.
OF_TRAINING = frozenset(["_models_", "shape_fit_", "fit_status_", "n_iter_", "class_weight_"])


def _shape(value: Any, sizes: Sizes) -> bool:
    good = isinstance(value, tuple) and len(value) == 2
    return good and all(count(name)(side, sizes) for name, side in zip(("samples", "features"), value, strict=True))


def _feature_names(value: Any, sizes: Sizes) -> bool:
    good = isinstance(value, np.ndarray) and value.dtype == object and sizes.agree(("features",), value.shape)
    return good and all(isinstance(name, str) for name in value)


def _kernel(value: Any, sizes: Sizes) -> bool:
    """Whether it is None for a precomputed kernel, or a kernel whose parameters allow it to compute a value."""
    if value is None:
        return True
    try:
        return isinstance(value, Kernel) and value(np.zeros((1, 1))).shape == (1, 1)
    except (TypeError, ValueError, OverflowError):  # a parameter that the native loops cannot take
        return False


def _classes(value: Any, sizes: Sizes) -> bool:
    good = isinstance(value, np.ndarray) and value.ndim == 1 and len(value) >= 2 and value.dtype.kind in "biufUO"
    return good and len(set(value.tolist())) == len(value) and sizes.agree(("classes",), value.shape)


def _strategy(value: Any, sizes: Sizes) -> bool:
    """Whether it names a strategy; sets how many rows of coefficients, offsets and machines that one has."""
    if not isinstance(value, str) or value not in STRATEGIES:
        return False
    count = sizes["classes"]
    pairs = count * (count - 1) // 2
    functions = 1 if count == 2 else count
    rows, offsets, machines = {"ovo": (count - 1, pairs, pairs), "ovr": (count, count, count)}.get(
        value, (functions, functions, 1)
    )
    sizes.update({"rows": rows, "offsets": offsets, "machines": machines, "pairs": pairs if value == "ovo" else 0})
    if value not in ("ovo", "ovr"):
        sizes["columns"] = count  # a variable and a coefficient for each sample and class
    return not (value == "ovr" and count == 2)  # that is a single pair


def _outputs(value: Any, sizes: Sizes) -> bool:
    """Whether it is None for a vector of targets, or a number of outputs."""
    good = value is None or (count()(value, sizes) and int(value) >= 1)
    return good and sizes.agree(("outputs",), (1 if value is None else int(value),))


def _steps(value: Any, sizes: Sizes) -> bool:
    """Whether it is a number of steps, or one for each output."""
    return whole("outputs")(value, sizes) if isinstance(value, np.ndarray) else count()(value, sizes)


def _sigmoids(value: Any, sizes: Sizes) -> bool:
    """Whether it is None, or has a sigmoid for each pair of classes."""
    if value is None:
        return True
    good = isinstance(value, list) and all(isinstance(sigmoid, PlattSigmoid) for sigmoid in value)
    finite = good and all(np.isfinite([sigmoid.slope, sigmoid.shift]).all() for sigmoid in value)
    return finite and sizes["pairs"] == len(value)


def _noise(value: Any, sizes: Sizes) -> bool:
    """Whether it is a number of at least 0, or one for each output."""
    good = floats("outputs")(value, sizes) if isinstance(value, np.ndarray) else number(value, sizes)
    return good and bool(np.min(value) >= 0)


def _marks(value: Any, sizes: Sizes) -> bool:
    """Whether they are the ascending marks of the density of one class."""
    return floats(2 * DENSITY_BINS + 1)(value, sizes) and bool((np.diff(value) >= 0).all())


def machines(name: str) -> Check:
    """Describe the trained machines, of which there is a named number."""

    def check(value: Any, sizes: Sizes) -> bool:
        good = isinstance(value, list) and all(isinstance(machine, TrainedModel) for machine in value)
        return good and sizes.agree((name,), (len(value),)) and all(_is_machine(machine, sizes) for machine in value)

    return check


def _class_weights(value: Any, sizes: Sizes) -> bool:
    """Whether it has a line of weights for each class, or one for two; sets how many functions there are."""
    sizes["pairs"] = sizes["functions"] = 1 if sizes["classes"] == 2 else sizes["classes"]
    return matrix("functions", "features")(value, sizes)


def _output_weights(value: Any, sizes: Sizes) -> bool:
    """Whether it has a line of weights for each output, or is the only one."""
    if sizes["outputs"] == 1 and isinstance(value, np.ndarray) and value.ndim == 1:
        return floats("features")(value, sizes)
    return matrix("outputs", "features")(value, sizes)


def _linear_machines(value: Any, sizes: Sizes) -> bool:
    """Whether they are trained machines: one for each function or output, or one for all functions."""
    good = isinstance(value, list) and all(isinstance(machine, TrainedLinearModel) for machine in value)
    functions = sizes.get("functions", sizes.get("outputs", 1))
    return good and len(value) in (1, functions) and all(_is_linear_machine(machine, sizes) for machine in value)


def _landmark_weights(value: Any, sizes: Sizes) -> bool:
    """Whether it has a line of coefficients for each class, or one for two; sets how many functions there are."""
    sizes["pairs"] = sizes["functions"] = 1 if sizes["classes"] == 2 else sizes["classes"]
    return floats("functions", "landmarks")(value, sizes)


def _machines_of_features(value: Any, sizes: Sizes) -> bool:
    """Whether they are linear machines on features of landmarks, one for each function."""
    among_features = Sizes({**sizes, "features": sizes["rank"]})
    return _linear_machines(value, among_features) and len(value) == sizes["functions"]


def _objectives(value: Any, sizes: Sizes) -> bool:
    """Whether it is a number, or one for each of several functions."""
    values = value if isinstance(value, list) else [value]
    return len(values) == sizes["functions"] and all(number(one, sizes) for one in values)


#: The attributes that each class adds to those of its bases. Sizes are set before they are used.
DESCRIPTIONS: dict[type, dict[str, Check]] = {
    KernelEstimator: {
        "n_features_in_": count("features"),
        "feature_names_in_": _feature_names,
        "shape_fit_": _shape,
        "support_": whole("support", below="samples"),
        "_gamma": number,
        "_kernel_": _kernel,
        "support_vectors_": matrix("vectors", "width", single=True),
        "fit_status_": count(),
    },
    KernelClassifier: {
        "classes_": _classes,
        "class_weight_": floats("classes"),
        "n_support_": whole("classes"),
        "_multi_class_": _strategy,
        "dual_coef_": matrix("rows", "support"),
        "intercept_": floats("offsets"),
        "n_iter_": whole("machines"),
        "_models_": machines("machines"),
        "_sigmoids_": _sigmoids,
    },
    FunctionEstimator: {
        "_outputs_": _outputs,
        "dual_coef_": matrix("outputs", "support"),
        "intercept_": floats("outputs"),
        "n_iter_": _steps,
        "n_pairs_": count("ranked"),
        "_models_": machines("outputs"),
    },
    NoiseIntervals: {"noise_scale_": _noise},
    OneClassSVM: {"offset_": floats(1), "density_marks_": _marks},
    SVDD: {"offset_": number},
    LinearEstimator: {
        "n_features_in_": count("features"),
        "feature_names_in_": _feature_names,
        "fit_status_": count(),
        "n_iter_": count(),
    },
    LinearSVC: {
        "classes_": _classes,
        "class_weight_": floats("classes"),
        "coef_": _class_weights,
        "intercept_": floats("functions"),
        "_models_": _linear_machines,
        "_sigmoids_": _sigmoids,
    },
    KernelApproximationSVC: {
        "n_features_in_": count("features"),
        "feature_names_in_": _feature_names,
        "classes_": _classes,
        "class_weight_": floats("classes"),
        "_kernel_": _kernel,
        "landmarks_": matrix("landmarks", "features", single=True),
        "dual_coef_": _landmark_weights,
        "intercept_": floats("functions"),
        "rank_": count("rank"),
        "approximation_error_": number,
        "exact_primal_": _objectives,
        "n_iter_": count(),
        "fit_status_": count(),
        "_models_": _machines_of_features,
        "_sigmoids_": _sigmoids,
    },
    LinearSVR: {
        "_outputs_": _outputs,
        "coef_": _output_weights,
        "intercept_": floats("outputs"),
        "_models_": _linear_machines,
        "noise_scale_": _noise,
    },
    LinearOneClassSVM: {
        "coef_": matrix(1, "features"),
        "intercept_": floats(1),
        "_models_": _linear_machines,
        "offset_": floats(1),
        "density_marks_": _marks,
    },
}


def check_fitted(model: Any) -> None:
    """Raise unless every attribute is there, known, and fits the others."""
    name = type(model).__name__
    descriptions: dict[str, Check] = {}
    for kind in reversed(type(model).__mro__):
        descriptions.update(DESCRIPTIONS.get(kind, {}))
    if not descriptions:
        raise ModelFileError(f"model files of this version do not know what a fitted {name} consists of")
    fitted = fitted_attributes(model)
    for attribute in fitted:
        if attribute not in descriptions:
            raise ModelFileError(
                f"{name} has the attribute {attribute[:40]!r}, which model files of this version do not know; "
                "it can be kept beside the file, or with pickle"
            )
    sizes = Sizes()
    missing = OPTIONAL if "_models_" in fitted else OPTIONAL | OF_TRAINING
    for attribute, check in descriptions.items():
        if attribute in fitted and not check(fitted[attribute], sizes):
            raise ModelFileError(f"{name}: {attribute} has the wrong type, or does not fit the rest of the model")
        if attribute not in fitted and attribute not in missing:
            raise ModelFileError(f"{name} has no {attribute}; only fitted models have files")
    for kind, relations in RELATIONS.items():
        if isinstance(model, kind):
            relations(model, sizes)


def fitted_attributes(model: Any) -> dict[str, Any]:
    """Return what `fit` has set, without the parameters."""
    parameters = PARAMETERS[type(model)]
    return {name: value for name, value in vars(model).items() if name not in parameters}


def _check_kernel_machine(model: KernelEstimator, sizes: Sizes) -> None:
    precomputed = isinstance(model.kernel, str) and model.kernel == "precomputed"
    _require(precomputed == (model._kernel_ is None), "the kernel is not the one that was fitted")
    expected = (0, 0) if precomputed else (sizes["support"], sizes["features"])
    _require((sizes["vectors"], sizes["width"]) == expected, "support_vectors_ does not fit the rest of the model")
    samples = sizes.setdefault("samples", sizes["features"]) if precomputed else 0
    _require(not precomputed or sizes["features"] == samples, "a precomputed matrix must be square")
    _require(not precomputed or is_within(model.support_, samples), "support_ lies outside of the training samples")
    _check_common(model, sizes)


def _check_common(model: Any, sizes: Sizes) -> None:
    jobs = model.n_jobs
    whole_number = isinstance(jobs, Integral) and not isinstance(jobs, bool) and jobs != 0
    _require(jobs is None or whole_number, "n_jobs must be a whole number other than 0, or None")
    for name in ("probability", "noise"):
        flag = getattr(model, name, False)
        deprecated = isinstance(flag, str) and flag == "deprecated"
        _require(isinstance(flag, bool | np.bool_) or deprecated, f"{name} must be True or False")


def _check_classifier(model: KernelClassifier, sizes: Sizes) -> None:
    _require(int(model.n_support_.sum(dtype=np.int64)) == sizes["support"], "n_support_ does not count support_")
    ties, shape = model.break_ties, model.decision_function_shape
    _require(isinstance(ties, bool | np.bool_), "break_ties must be True or False")
    _require(isinstance(shape, str) and shape in ("ovr", "ovo"), "decision_function_shape must be 'ovr' or 'ovo'")
    _require(not (ties and shape == "ovo"), "break_ties must be False when decision_function_shape is 'ovo'")
    _require(shape == "ovr" or model._multi_class_ == "ovo", "decision_function_shape is 'ovo', but there are no pairs")


def _check_landmarks(model: KernelApproximationSVC, sizes: Sizes) -> None:
    _require(model._kernel_ is not None, "KernelApproximationSVC has no precomputed kernel")
    _check_common(model, sizes)


def _check_ranking(model: RankSVC, sizes: Sizes) -> None:
    _require("ranked" in sizes, "RankSVC has no n_pairs_")


def _check_ball(model: SVDD, sizes: Sizes) -> None:
    _require(model._kernel_ is not None, "SVDD has no precomputed kernel")


#: What holds between the parameters and the attributes of a class.
RELATIONS: dict[type, Callable[[Any, Sizes], None]] = {
    KernelEstimator: _check_kernel_machine,
    KernelClassifier: _check_classifier,
    KernelApproximationSVC: _check_landmarks,
    LinearEstimator: _check_common,
    RankSVC: _check_ranking,
    SVDD: _check_ball,
}


def _is_machine(machine: TrainedModel, sizes: Sizes) -> bool:
    """Whether the dual vector, the expansion and the proof of a machine are about the same samples."""
    parts = machine.stored()
    per_variable, per_sample = parts.dual.shape, parts.samples.shape
    if not (len(per_sample) == 1 and per_sample[0] > 0 and is_within(parts.samples, sizes["samples"])):
        return False
    columns = sizes.get("columns")  # of an all-in-one machine
    factors = (1, 2) if columns is None else (columns,)
    possible = [sizes["ranked"]] if "ranked" in sizes else [factor * per_sample[0] for factor in factors]
    shape = per_sample if columns is None else (*per_sample, columns)
    good = len(per_variable) == 1 and per_variable[0] in possible and is_floats(parts.dual)
    good = good and is_floats(parts.expansion.coefficients) and parts.expansion.coefficients.shape == shape
    if not good or parts.certified is None:
        return good
    certificate, geometry = parts.certified
    return _is_about(certificate, per_variable) and _is_seen(geometry, per_variable, shape, sizes)


def _is_linear_machine(machine: TrainedLinearModel, sizes: Sizes) -> bool:
    """Whether the dual vector, the weights and the proof of a linear machine are about the same rows and features."""
    per_variable, per_sample = machine.dual.shape, machine.samples.shape
    if not (len(per_variable) == len(per_sample) == 1 and per_sample[0] > 0 and is_within(machine.samples, 2**62)):
        return False
    good = per_variable[0] % per_sample[0] == 0 and is_floats(machine.dual) and is_floats(machine.weights)
    good = good and machine.weights.shape[-1:] == (sizes["features"],)
    return good and bool(np.isfinite(machine.offset).all()) and _is_about(machine.certificate, per_variable)


def _is_about(certificate: Certificate, per_variable: tuple[int, ...]) -> bool:
    groups = certificate.offset.shape
    good = len(groups) == 1 and certificate.offset_interval.shape == (*groups, 2)
    return good and certificate.slack.shape == certificate.residual.shape == per_variable


def _is_seen(geometry: Any, per_variable: tuple[int, ...], shape: tuple[int, ...], sizes: Sizes) -> bool:
    """Whether the arrays of a geometry name training rows or pairs of them, or have a number for each."""
    if type(geometry) not in GEOMETRIES:
        return False
    values = [getattr(geometry, field.name) for field in fields(geometry)]
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    rows = [array for array in arrays if array.dtype == np.int64]
    end = max(sizes["samples"], sizes.get("ranked", 0))
    return all(array.ndim <= 2 and is_within(array, end) for array in rows) and all(
        array.shape in (per_variable, shape, shape[1:]) for array in arrays if array.dtype != np.int64
    )


def _require(good: bool, sentence: str) -> None:
    if not good:
        raise ModelFileError(sentence)
