"""Schema of the fitted attributes of every machine.

The checksum of a file does not guarantee that its contents are consistent, and native code uses the arrays. Therefore
every fitted attribute is described here by a check of its type and named sizes, and sizes of the same name must agree:
``dual_coef_`` has as many columns as ``support_`` has entries. The same validation runs before saving and after
loading. A new attribute needs a line in `ATTRIBUTES`, under the class that sets it; other attributes are rejected.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np

from maxmargin.cuda.device import NAMES as DEVICE_NAMES
from maxmargin.interchange import attribute_checks as check
from maxmargin.interchange.attribute_checks import Check, Sizes, count, floats, integers, matrix
from maxmargin.interchange.errors import ModelFileError
from maxmargin.machines.base import parameter_names
from maxmargin.machines.calibration.noise_scale import NoiseIntervals
from maxmargin.machines.kernel.function_estimator import FunctionEstimator
from maxmargin.machines.kernel.kernel_classifier import KernelClassifier
from maxmargin.machines.kernel.kernel_estimator import KernelEstimator
from maxmargin.machines.kernel.lssvc import LSSVC
from maxmargin.machines.kernel.lssvr import LSSVR
from maxmargin.machines.kernel.mkl_one_class_svm import MKLOneClassSVM
from maxmargin.machines.kernel.mkl_svc import MKLSVC
from maxmargin.machines.kernel.mkl_svr import MKLSVR
from maxmargin.machines.kernel.multiple_kernels import MultipleKernels
from maxmargin.machines.kernel.nu_svc import NuSVC
from maxmargin.machines.kernel.nu_svr import NuSVR
from maxmargin.machines.kernel.one_class_svm import OneClassSVM
from maxmargin.machines.kernel.quantile_svr import QuantileSVR
from maxmargin.machines.kernel.rank_svc import RankSVC
from maxmargin.machines.kernel.svc import SVC
from maxmargin.machines.kernel.svdd import SVDD
from maxmargin.machines.kernel.svr import SVR
from maxmargin.machines.kernel.transductive_svc import TransductiveSVC
from maxmargin.machines.linear.kernel_approximation_svc import KernelApproximationSVC
from maxmargin.machines.linear.linear_estimator import LinearEstimator
from maxmargin.machines.linear.linear_one_class_svm import LinearOneClassSVM
from maxmargin.machines.linear.linear_svc import LinearSVC
from maxmargin.machines.linear.linear_svr import LinearSVR
from maxmargin.training.joined_models import JoinedModels

#: Machines that a file may contain, also as estimators; the state of online estimators requires pickle.
MACHINES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        *(SVC, NuSVC, LSSVC, SVR, NuSVR, LSSVR, QuantileSVR, OneClassSVM, SVDD, RankSVC, TransductiveSVC),
        *(MKLSVC, MKLSVR, MKLOneClassSVM),
        *(LinearSVC, LinearSVR, LinearOneClassSVM, KernelApproximationSVC),
    )
}

#: Attributes that only some fitted models have. Those of files from before the attribute was added are among them.
OPTIONAL = frozenset(
    [
        "feature_names_in_",
        "n_pairs_",
        "noise_scale_",
        "density_marks_",
        "exact_primal_",
        "exact_certificate_",
        "landmark_certificate_",
        "polish_status_",
        "n_passes_",
        "device_",
    ]
)

#: Attributes of the training, which models of other programs lack.
OF_TRAINING = frozenset(["_models_", "shape_fit_", "fit_status_", "n_iter_", "class_weight_"])

#: The attributes that each class adds to those of its bases. Sizes are set before they are used.
ATTRIBUTES: dict[type, dict[str, Check]] = {
    KernelEstimator: {
        "n_features_in_": count("features"),
        "feature_names_in_": check.feature_names,
        "shape_fit_": check.training_shape,
        "support_": integers("support", below="samples"),
        "_gamma": check.gamma,
        "_kernel_": check.kernel,
        "support_vectors_": matrix("vectors", "width", allow_float32=True),
        "fit_status_": count(),
        "device_": check.device,
    },
    KernelClassifier: {
        "classes_": check.classes,
        "class_weight_": floats("classes"),
        "n_support_": integers("classes"),
        "_multi_class_": check.strategy,
        "dual_coef_": matrix("rows", "support"),
        "intercept_": floats("offsets"),
        "n_iter_": integers("models"),
        "_models_": check.trained_models("models"),
        "_sigmoids_": check.sigmoids,
    },
    TransductiveSVC: {
        "class_fractions_": floats("classes"),
        "n_problems_": integers("models"),
        "_transduction_": integers("transduced", below="classes"),
    },
    FunctionEstimator: {
        "_outputs_": check.outputs,
        "dual_coef_": matrix("outputs", "support"),
        "intercept_": floats("outputs"),
        "n_iter_": check.iterations,
        "n_pairs_": count("ranked"),
        "_models_": check.trained_models("outputs"),
    },
    MultipleKernels: {
        "kernels_": check.kernels,
        "kernel_weights_": floats("kernels"),
        "kernel_coefficients_": floats("kernels"),
        "n_iter_": count(),
        "_joint_certificate_": check.certificate,
    },
    MKLOneClassSVM: {"offset_": floats(1)},
    NoiseIntervals: {"noise_scale_": check.noise_scale},
    OneClassSVM: {"offset_": floats(1), "density_marks_": check.density_marks},
    SVDD: {"offset_": check.number},
    LinearEstimator: {
        "n_features_in_": count("features"),
        "feature_names_in_": check.feature_names,
        "fit_status_": count(),
        "n_iter_": count(),
        "n_passes_": count(),
    },
    LinearSVC: {
        "classes_": check.classes,
        "class_weight_": floats("classes"),
        "coef_": check.class_weights,
        "intercept_": floats("functions"),
        "_models_": check.trained_linear_models,
        "_sigmoids_": check.sigmoids,
    },
    KernelApproximationSVC: {
        "n_features_in_": count("features"),
        "feature_names_in_": check.feature_names,
        "classes_": check.classes,
        "class_weight_": floats("classes"),
        "_kernel_": check.kernel,
        "landmarks_": matrix("landmarks", "features", allow_float32=True),
        "dual_coef_": check.landmark_weights,
        "intercept_": floats("functions"),
        "rank_": count("rank"),
        "approximation_error_": check.number,
        "exact_primal_": check.objectives,
        "exact_certificate_": check.exact_certificates,
        "landmark_certificate_": check.exact_certificates,
        "polish_status_": check.statuses,
        "device_": check.device,
        "n_iter_": count(),
        "n_passes_": count(),
        "fit_status_": count(),
        "_models_": check.trained_landmark_models,
        "_sigmoids_": check.sigmoids,
    },
    LinearSVR: {
        "_outputs_": check.outputs,
        "coef_": check.output_weights,
        "intercept_": floats("outputs"),
        "_models_": check.trained_linear_models,
        "noise_scale_": check.noise_scale,
    },
    LinearOneClassSVM: {
        "coef_": matrix(1, "features"),
        "intercept_": floats(1),
        "_models_": check.trained_linear_models,
        "offset_": floats(1),
        "density_marks_": check.density_marks,
    },
}


def check_fitted(model: Any) -> None:
    """Raise ModelFileError unless all fitted attributes are present, known and consistent."""
    name = type(model).__name__
    checks: dict[str, Check] = {}
    for kind in reversed(type(model).__mro__):
        checks.update(ATTRIBUTES.get(kind, {}))
    if not checks:
        raise ModelFileError(f"the fitted attributes of {name} are unknown to this version of maxmargin")
    fitted = fitted_attributes(model)
    for attribute in fitted:
        if attribute not in checks:
            raise ModelFileError(
                f"{name} has the attribute {attribute[:40]!r}, which a model file cannot store; remove it, or save the "
                "model with pickle"
            )
    sizes = Sizes()
    missing = OPTIONAL if "_models_" in fitted else OPTIONAL | OF_TRAINING
    for attribute, is_valid in checks.items():
        if attribute in fitted and not is_valid(fitted[attribute], sizes):
            raise ModelFileError(f"{name}: {attribute} has the wrong type, or is inconsistent with other attributes")
        if attribute not in fitted and attribute not in missing:
            raise ModelFileError(f"{name} has no {attribute}; only fitted models can be stored")
    for kind, check_relations in RELATIONS.items():
        if isinstance(model, kind):
            check_relations(model, sizes)


#: Attributes that are computed from the training data when they are read, and not stored.
COMPUTED = ("_leave_one_out_",)


def fitted_attributes(model: Any) -> dict[str, Any]:
    """Return the attributes set by `fit`, without the parameters; models of pairs of classes as a list."""
    parameters = parameter_names(type(model))
    left = {*parameters, *COMPUTED}
    fitted = {name: value for name, value in vars(model).items() if name not in left}
    return {name: list(value) if isinstance(value, JoinedModels) else value for name, value in fitted.items()}


def _check_kernel_estimator(model: KernelEstimator, sizes: Sizes) -> None:
    precomputed = isinstance(model.kernel, str) and model.kernel == "precomputed"
    _require(precomputed == (model._kernel_ is None), "the parameter kernel differs from the fitted kernel")
    expected = (0, 0) if precomputed else (sizes["support"], sizes["features"])
    _require((sizes["vectors"], sizes["width"]) == expected, "the shape of support_vectors_ is inconsistent")
    samples = sizes.setdefault("samples", sizes["features"]) if precomputed else 0
    _require(not precomputed or sizes["features"] == samples, "a precomputed kernel matrix must be square")
    inside = not precomputed or check.is_within(model.support_, samples)
    _require(inside, "support_ has indices outside the training samples")
    _check_common(model, sizes)


def _check_multiple_kernels(model: MultipleKernels, sizes: Sizes) -> None:
    given = len(model.kernels_)
    _require(given == (0 if model._precomputed else sizes["kernels"]), "kernels_ and kernel_weights_ differ in length")
    _require(bool((model.kernel_coefficients_ >= 0).all()), "kernel_coefficients_ must be at least 0")


def _check_common(model: Any, sizes: Sizes) -> None:
    jobs = model.n_jobs
    is_integer = isinstance(jobs, Integral) and not isinstance(jobs, bool) and jobs != 0
    _require(jobs is None or is_integer, "n_jobs must be an integer other than 0, or None")
    device = getattr(model, "device", "cpu")
    valid = isinstance(device, str) and (device == "auto" or check.device(device, sizes))
    _require(valid, f"device must be {DEVICE_NAMES}")
    for name in ("probability", "noise"):
        flag = getattr(model, name, False)
        deprecated = isinstance(flag, str) and flag == "deprecated"
        _require(isinstance(flag, bool | np.bool_) or deprecated, f"{name} must be True or False")


def _check_classifier(model: KernelClassifier, sizes: Sizes) -> None:
    total = int(model.n_support_.sum(dtype=np.int64))
    _require(total == sizes["support"], "the sum of n_support_ differs from the size of support_")
    ties, shape = model.break_ties, model.decision_function_shape
    _require(isinstance(ties, bool | np.bool_), "break_ties must be True or False")
    _require(isinstance(shape, str) and shape in ("ovr", "ovo"), "decision_function_shape must be 'ovr' or 'ovo'")
    _require(not (ties and shape == "ovo"), "break_ties must be False when decision_function_shape is 'ovo'")
    _require(shape == "ovr" or model._multi_class_ == "ovo", "decision_function_shape='ovo' requires one-vs-one")


def _check_landmarks(model: KernelApproximationSVC, sizes: Sizes) -> None:
    _require(model._kernel_ is not None, "KernelApproximationSVC has no precomputed kernel")
    _check_common(model, sizes)


#: Conditions on the parameters and attributes of a class.
RELATIONS: dict[type, Callable[[Any, Sizes], None]] = {
    KernelEstimator: _check_kernel_estimator,
    KernelClassifier: _check_classifier,
    MultipleKernels: _check_multiple_kernels,
    KernelApproximationSVC: _check_landmarks,
    LinearEstimator: _check_common,
    RankSVC: lambda model, sizes: _require("ranked" in sizes, "RankSVC has no n_pairs_"),
    SVDD: lambda model, sizes: _require(model._kernel_ is not None, "SVDD has no precomputed kernel"),
}


def _require(valid: bool, message: str) -> None:
    if not valid:
        raise ModelFileError(message)
