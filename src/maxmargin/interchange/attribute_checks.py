"""Checks of fitted attributes: types, and named sizes that must agree wherever a name occurs.

A check is a function of a value and the `Sizes` found so far. The first occurrence of a name sets its size.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from numbers import Integral, Real
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin.interchange.class_registry import GEOMETRIES
from maxmargin.kernels import Kernel
from maxmargin.machines.kernel.kernel_classifier import STRATEGIES
from maxmargin.models.calibration import DENSITY_BINS, PlattSigmoid
from maxmargin.problems import Certificate, Status
from maxmargin.training import TrainedLinearModel, TrainedModel
from maxmargin.training.exact_certificate import ExactCertificate


class Sizes(dict[str, int]):
    """Named sizes."""

    def agree(self, names: tuple[str | int, ...], shape: tuple[int, ...]) -> bool:
        """Return whether a shape has the named sizes; set those that are new."""
        return len(names) == len(shape) and all(
            (name if isinstance(name, int) else self.setdefault(name, size)) == size
            for name, size in zip(names, shape, strict=True)
        )


Check = Callable[[Any, Sizes], bool]


def floats(*names: str | int) -> Check:
    """Return the check of an array of finite float64."""
    return lambda value, sizes: is_floats(value) and sizes.agree(names, value.shape)


def matrix(*names: str | int, allow_float32: bool = False) -> Check:
    """Return the check of a dense or CSR matrix of finite floats."""

    def check(value: Any, sizes: Sizes) -> bool:
        entries = value.data if sparse.issparse(value) else value
        return is_floats(entries, allow_float32) and sizes.agree(names, value.shape)

    return check


def integers(*names: str | int, below: str | None = None) -> Check:
    """Return the check of an int32 array of numbers from 0, optionally below a named size."""

    def check(value: Any, sizes: Sizes) -> bool:
        valid = isinstance(value, np.ndarray) and value.dtype == np.int32 and sizes.agree(names, value.shape)
        return valid and is_within(value, 2**31 if below is None else sizes.get(below, 2**31))

    return check


def number(value: Any, sizes: Sizes) -> bool:
    """Check a finite number."""
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_) and bool(np.isfinite(float(value)))


def gamma(value: Any, sizes: Sizes) -> bool:
    """Check a kernel's γ: a number, or one for each feature."""
    return floats("features")(value, sizes) if isinstance(value, np.ndarray) else number(value, sizes)


def device(value: Any, sizes: Sizes) -> bool:
    """Check the name of a device."""
    return isinstance(value, str) and re.fullmatch(r"cpu|cuda(:[0-9]{1,3})?", value) is not None


def count(name: str | None = None) -> Check:
    """Return the check of an integer from 0, or of a named size from 1."""
    least = 0 if name is None else 1

    def check(value: Any, sizes: Sizes) -> bool:
        valid = isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) < 2**62
        return valid and (name is None or sizes.agree((name,), (int(value),)))

    return check


def is_floats(value: Any, allow_float32: bool = False) -> bool:
    """Return whether it is an array of finite float64 (or float32)."""
    types = (np.float64, np.float32) if allow_float32 else (np.float64,)
    return isinstance(value, np.ndarray) and value.dtype in types and bool(np.isfinite(value).all())


def is_within(values: Any, end: int) -> bool:
    """Return whether all values are from 0 to end − 1."""
    return not values.size or (int(values.min()) >= 0 and int(values.max()) < end)


def training_shape(value: Any, sizes: Sizes) -> bool:
    """Check the shape of the training data."""
    valid = isinstance(value, tuple) and len(value) == 2
    return valid and all(count(name)(side, sizes) for name, side in zip(("samples", "features"), value, strict=True))


def feature_names(value: Any, sizes: Sizes) -> bool:
    """Check an array of strings, one per feature."""
    valid = isinstance(value, np.ndarray) and value.dtype == object and sizes.agree(("features",), value.shape)
    return valid and all(isinstance(name, str) for name in value)


def kernel(value: Any, sizes: Sizes) -> bool:
    """Check a kernel whose parameters are valid, or None for a precomputed kernel."""
    if value is None:
        return True
    try:
        with np.errstate(all="ignore"):
            sample = sparse.csr_array((1, sizes.get("features", 1)))  # no memory for each feature
            return isinstance(value, Kernel) and value(sample).shape == (1, 1)
    except (TypeError, ValueError, OverflowError):  # a parameter that the native loops reject
        return False


def kernels(value: Any, sizes: Sizes) -> bool:
    """Check a list of kernels whose parameters are valid."""
    return isinstance(value, list) and all(one is not None and kernel(one, sizes) for one in value)


def certificate(value: Any, sizes: Sizes) -> bool:
    """Check a certificate of several problems together."""
    return isinstance(value, Certificate)


def classes(value: Any, sizes: Sizes) -> bool:
    """Check an array of at least two different labels."""
    valid = isinstance(value, np.ndarray) and value.ndim == 1 and len(value) >= 2 and value.dtype.kind in "biufUO"
    valid = valid and not any(isinstance(label, np.ndarray) for label in value)
    return valid and len(set(value.tolist())) == len(value) and sizes.agree(("classes",), value.shape)


def strategy(value: Any, sizes: Sizes) -> bool:
    """Check the name of a multi-class strategy; set the numbers of coefficient rows, offsets and binary models."""
    if not isinstance(value, str) or value not in STRATEGIES:
        return False
    count = sizes["classes"]
    pairs = count * (count - 1) // 2
    functions = 1 if count == 2 else count
    rows, offsets, models = {"ovo": (count - 1, pairs, pairs), "ovr": (count, count, count)}.get(
        value, (functions, functions, 1)
    )
    sizes.update({"rows": rows, "offsets": offsets, "models": models, "pairs": pairs if value == "ovo" else 0})
    if value not in ("ovo", "ovr"):
        sizes["columns"] = count  # all-in-one: a variable for each sample and class
    return not (value == "ovr" and count == 2)  # stored as one-vs-one


def outputs(value: Any, sizes: Sizes) -> bool:
    """Check a number of outputs, or None for one-dimensional targets."""
    valid = value is None or (count()(value, sizes) and int(value) >= 1)
    return valid and sizes.agree(("outputs",), (1 if value is None else int(value),))


def iterations(value: Any, sizes: Sizes) -> bool:
    """Check a number of iterations, or one per output."""
    return integers("outputs")(value, sizes) if isinstance(value, np.ndarray) else count()(value, sizes)


def sigmoids(value: Any, sizes: Sizes) -> bool:
    """Check the sigmoids of the pairs of classes, or None."""
    if value is None:
        return True
    valid = isinstance(value, list) and all(isinstance(sigmoid, PlattSigmoid) for sigmoid in value)
    finite = valid and all(np.isfinite([sigmoid.slope, sigmoid.shift]).all() for sigmoid in value)
    return finite and sizes["pairs"] == len(value)


def noise_scale(value: Any, sizes: Sizes) -> bool:
    """Check a number of at least 0, or one per output."""
    valid = floats("outputs")(value, sizes) if isinstance(value, np.ndarray) else number(value, sizes)
    return valid and bool(np.min(value) >= 0)


def density_marks(value: Any, sizes: Sizes) -> bool:
    """Check the ascending density marks of a novelty detector."""
    return floats(2 * DENSITY_BINS + 1)(value, sizes) and bool((value[1:] >= value[:-1]).all())


def class_weights(value: Any, sizes: Sizes) -> bool:
    """Check the coefficients of a linear classifier; set the number of decision functions."""
    _set_functions(sizes)
    return matrix("functions", "features")(value, sizes)


def landmark_weights(value: Any, sizes: Sizes) -> bool:
    """Check the coefficients of the landmarks; set the number of decision functions."""
    _set_functions(sizes)
    return floats("functions", "landmarks")(value, sizes)


def _set_functions(sizes: Sizes) -> None:
    sizes["pairs"] = sizes["functions"] = 1 if sizes["classes"] == 2 else sizes["classes"]


def output_weights(value: Any, sizes: Sizes) -> bool:
    """Check the coefficients of a linear regression with one or several outputs."""
    if sizes["outputs"] == 1 and isinstance(value, np.ndarray) and value.ndim == 1:
        return floats("features")(value, sizes)
    return matrix("outputs", "features")(value, sizes)


def objectives(value: Any, sizes: Sizes) -> bool:
    """Check a number, or a list with one per decision function."""
    values = value if isinstance(value, list) else [value]
    return len(values) == sizes["functions"] and all(number(one, sizes) for one in values)


def exact_certificates(value: Any, sizes: Sizes) -> bool:
    """Check a certificate of the exact kernel problem, or a list with one per decision function."""
    values = value if isinstance(value, list) else [value]
    return len(values) == sizes["functions"] and all(isinstance(one, ExactCertificate) for one in values)


def statuses(value: Any, sizes: Sizes) -> bool:
    """Check how a solver ended, or a list with one per decision function."""
    values = value if isinstance(value, list) else [value]
    return len(values) == sizes["functions"] and all(isinstance(one, Status) for one in values)


def trained_models(name: str) -> Check:
    """Return the check of a list of trained kernel models, whose number has a name."""

    def check(value: Any, sizes: Sizes) -> bool:
        valid = isinstance(value, list) and all(isinstance(model, TrainedModel) for model in value)
        return valid and sizes.agree((name,), (len(value),)) and all(_is_consistent(model, sizes) for model in value)

    return check


def trained_linear_models(value: Any, sizes: Sizes) -> bool:
    """Check trained linear models: one per decision function or output, or one for all functions."""
    valid = isinstance(value, list) and all(isinstance(model, TrainedLinearModel) for model in value)
    functions = sizes.get("functions", sizes.get("outputs", 1))
    return valid and len(value) in (1, functions) and all(_is_linear_consistent(model, sizes) for model in value)


def trained_landmark_models(value: Any, sizes: Sizes) -> bool:
    """Check trained linear models on Nyström features, one per decision function."""
    on_features = Sizes({**sizes, "features": sizes["rank"]})
    return trained_linear_models(value, on_features) and len(value) == sizes["functions"]


def _is_consistent(model: TrainedModel, sizes: Sizes) -> bool:
    """Return whether dual vector, expansion and certificate have the sizes of the same samples."""
    stored = model.stored()
    per_variable, per_sample = stored.dual.shape, stored.samples.shape
    if not (len(per_sample) == 1 and per_sample[0] > 0 and is_within(stored.samples, sizes["samples"])):
        return False
    columns = sizes.get("columns")  # of an all-in-one model
    factors = (1, 2) if columns is None else (columns,)
    possible = [factor * per_sample[0] for factor in factors]
    if "ranked" in sizes:
        possible = [sizes["ranked"], per_sample[0]]  # by pair or, where pairs are not listed, by sample
    shape = per_sample if columns is None else (*per_sample, columns)
    valid = len(per_variable) == 1 and per_variable[0] in possible and is_floats(stored.dual)
    valid = valid and is_floats(stored.expansion.coefficients) and stored.expansion.coefficients.shape == shape
    if not valid or stored.certified is None:
        return valid
    certificate, geometry = stored.certified
    return _certificate_fits(certificate, per_variable) and _geometry_fits(geometry, per_variable, shape, sizes)


def _is_linear_consistent(model: TrainedLinearModel, sizes: Sizes) -> bool:
    """Return whether dual vector, weights and certificate have the sizes of the same samples and features.

    A model of blocks of rows has no samples.
    """
    per_variable, per_sample = model.dual.shape, model.samples.shape
    if not (len(per_variable) == len(per_sample) == 1 and is_within(model.samples, 2**62)):
        return False
    valid = per_variable[0] % max(1, per_sample[0]) == 0 and (per_sample[0] > 0 or per_variable[0] == 0)
    valid = valid and is_floats(model.dual) and is_floats(model.weights)
    valid = valid and model.weights.shape[-1:] == (sizes["features"],)
    return valid and bool(np.isfinite(model.offset).all()) and _certificate_fits(model.certificate, per_variable)


def _certificate_fits(certificate: Certificate, per_variable: tuple[int, ...]) -> bool:
    groups = certificate.offset.shape
    valid = len(groups) == 1 and certificate.offset_interval.shape == (*groups, 2)
    return valid and certificate.slack.shape == certificate.residual.shape == per_variable


def _geometry_fits(geometry: Any, per_variable: tuple[int, ...], shape: tuple[int, ...], sizes: Sizes) -> bool:
    """Return whether integer arrays are indices of samples or pairs, and other arrays have one entry for each."""
    if type(geometry) not in GEOMETRIES:
        return False
    values = [getattr(geometry, field.name) for field in fields(geometry)]
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    indices = [array for array in arrays if array.dtype == np.int64]
    end = max(sizes["samples"], sizes.get("ranked", 0))
    return all(array.ndim <= 2 and is_within(array, end) for array in indices) and all(
        array.shape in (per_variable, shape, shape[1:]) for array in arrays if array.dtype != np.int64
    )
