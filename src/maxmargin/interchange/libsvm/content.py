"""The content of a LIBSVM model file for a fitted machine or estimator: all that svm-train needs to write one."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin.interchange.errors import ModelFileError
from maxmargin.interchange.libsvm.model import LibsvmModel
from maxmargin.interchange.libsvm.probability import marks_of_file
from maxmargin.interchange.model_text import integer_labels
from maxmargin.kernels import Gaussian, Linear, Polynomial, Sigmoid
from maxmargin.machines.base import parameter_names
from maxmargin.machines.kernel.kernel_classifier import KernelClassifier


def libsvm_model_of(model: Any) -> LibsvmModel:
    """Return a fitted machine or estimator as a LIBSVM model with sorted classes."""
    if isinstance(model, KernelClassifier):
        return _classifier(model, _check_fitted(model))
    # Imported here, because svm-train starts often and most models are classifiers.
    from maxmargin.machines.kernel.function_estimator import KernelRegressor
    from maxmargin.machines.kernel.one_class_svm import OneClassSVM

    if not isinstance(model, KernelRegressor | OneClassSVM):
        _raise_unknown(model)
    common = _check_fitted(model)
    if isinstance(model, OneClassSVM):
        marks = model.__dict__.get("density_marks_") if model.probability else None
        density = None if marks is None else marks_of_file(marks)
        return LibsvmModel(svm_type="one_class", density_marks=density, **common)
    if model._outputs_ is not None:
        raise ModelFileError("LIBSVM models have one output; fit and write a model for each output")
    noise = model.__dict__.get("noise_scale_") if getattr(model, "noise", False) else None
    scale = None if noise is None else np.array([float(noise)])
    return LibsvmModel(svm_type="nu_svr" if _has_nu(model) else "epsilon_svr", probA=scale, **common)


def _raise_unknown(model: Any) -> NoReturn:
    from maxmargin.machines.linear.linear_estimator import LinearEstimator

    name = type(model).__name__
    if isinstance(model, LinearEstimator):
        raise ModelFileError(f"{name} is a linear model without support vectors; use write_liblinear_model")
    raise ModelFileError(f"LIBSVM cannot represent {name}; use maxmargin.save")


def _check_fitted(model: Any) -> dict[str, Any]:
    """Return what all kinds of models have; raise if the model is not fitted."""
    if not hasattr(model, "support_"):
        raise ModelFileError(f"this {type(model).__name__} is not fitted yet; fit it before writing")
    coefficients = model.dual_coef_.toarray() if sparse.issparse(model.dual_coef_) else model.dual_coef_
    return {"coefficients": coefficients, "rho": -model.intercept_, **kernel_of(model), **_vectors_of(model)}


def _has_nu(model: Any) -> bool:
    return "nu" in parameter_names(type(model))


def _classifier(model: KernelClassifier, common: dict[str, Any]) -> LibsvmModel:
    check_pairs(model, "LIBSVM")
    if len(model.classes_) == 2:  # estimators are positive for the second class
        common = {**common, "coefficients": -common["coefficients"], "rho": -common["rho"]}
    slopes = shifts = None
    if model._knows_probabilities:
        slopes, shifts = model.probA_, model.probB_
    return LibsvmModel(
        svm_type="nu_svc" if _has_nu(model) else "c_svc",
        labels=integer_labels(model.classes_, "LIBSVM"),
        counts=model.n_support_.astype(np.int64),
        probA=slopes,
        probB=shifts,
        **common,
    )


def check_pairs(model: KernelClassifier, program: str) -> None:
    """Raise unless the multi-class strategy is one-vs-one."""
    if len(model.classes_) > 2 and model._multi_class_ != "ovo":
        raise ModelFileError(
            f"{program} uses one-vs-one, but this {type(model).__name__} has multi_class={model._multi_class_!r}; fit "
            "with multi_class='ovo', or use maxmargin.save"
        )


def kernel_of(model: Any) -> dict[str, Any]:
    """Return LIBSVM's name and parameters of the fitted kernel."""
    kernel = model._kernel_
    if kernel is None:
        return {"kernel": "precomputed"}
    if type(kernel) is Linear:
        return {"kernel": "linear"}
    if type(kernel) is Polynomial:
        parameters = {"degree": int(kernel.degree), "gamma": float(kernel.gamma), "coef0": float(kernel.coef0)}
        return {"kernel": "polynomial", **parameters}
    if type(kernel) is Gaussian:
        if not kernel.isotropic:
            raise ModelFileError(
                "LIBSVM and scikit-learn have one gamma, but this model has one for each feature; use maxmargin.save, "
                "or multiply the features by np.sqrt(gamma) and fit with gamma=1"
            )
        return {"kernel": "rbf", "gamma": float(kernel.gamma)}
    if type(kernel) is Sigmoid:
        return {"kernel": "sigmoid", "gamma": float(kernel.gamma), "coef0": float(kernel.coef0)}
    raise ModelFileError(
        f"LIBSVM and scikit-learn have no kernel {type(kernel).__name__}, only linear, polynomial, rbf, sigmoid and "
        "precomputed; use maxmargin.save"
    )


def _vectors_of(model: Any) -> dict[str, Any]:
    if model._kernel_ is None:
        return {"support_vectors": model.support_[:, None] + 1.0}
    vectors = model.support_vectors_
    return {"support_vectors": vectors if sparse.issparse(vectors) else np.asarray(vectors, dtype=np.float64)}
