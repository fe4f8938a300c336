"""Conversion between fitted estimators of scikit-learn and ours, without training.

Both have LIBSVM's layout of coefficients under scikit-learn's names. They differ in their parameters and in
scikit-learn's private attributes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin import estimators
from maxmargin.estimators import LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.interchange.fitted_schema import check_fitted
from maxmargin.interchange.libsvm.content import check_pairs, kernel_of
from maxmargin.interchange.libsvm.estimators import KERNEL_NAMES
from maxmargin.kernels import make_kernel
from maxmargin.machines.kernel.function_estimator import KernelRegressor
from maxmargin.machines.kernel.kernel_classifier import KernelClassifier
from maxmargin.models.calibration import PlattSigmoid

#: Estimators of scikit-learn that have the same name here.
KERNEL_ESTIMATORS = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
LINEAR_ESTIMATORS = ("LinearSVC", "LinearSVR")

#: Our values of parameters that scikit-learn does not accept, and their replacement.
REPLACED_VALUES: dict[str, tuple[Any, Any]] = {
    "cache_size": ("auto", 200),
    "intercept_scaling": (None, 1.0),
    "max_iter": (None, 1000),
}


def from_sklearn(model: Any) -> Any:
    """Convert a fitted estimator of scikit-learn to ours, with the same parameters.

    Decision values agree to rounding. It has no certificate; ``fit`` with the training data computes one.

    Parameters
    ----------
    model : sklearn.svm.SVC, NuSVC, SVR, NuSVR, OneClassSVM, LinearSVC or LinearSVR
        A fitted estimator with a kernel given by name.

    Returns
    -------
    estimator
        The estimator of the same name. With ``probability=True`` its ``predict`` returns the most probable class;
        scikit-learn's returns the class with most votes.

    Examples
    --------
    >>> import sklearn.svm
    >>> from maxmargin.interchange import from_sklearn
    >>> theirs = sklearn.svm.SVC(kernel="linear").fit([[0.0], [1.0]], ["low", "high"])
    >>> from_sklearn(theirs).predict([[0.9]])
    array(['high'], dtype='<U4')
    """
    name = type(model).__name__
    if not type(model).__module__.startswith("sklearn.svm.") or name not in (*KERNEL_ESTIMATORS, *LINEAR_ESTIMATORS):
        known = ", ".join((*KERNEL_ESTIMATORS, *LINEAR_ESTIMATORS))
        raise ValueError(f"{name} cannot be converted, only scikit-learn's {known}")
    if "n_features_in_" not in vars(model) and not callable(getattr(model, "kernel", None)):
        raise ValueError(f"this {name} is not fitted yet; only fitted models can be converted")
    found: Any = getattr(estimators, name)(**model.get_params(deep=False))
    for attribute in ("n_features_in_", "feature_names_in_", "classes_", "class_weight_", "shape_fit_", "offset_"):
        if attribute in vars(model):
            setattr(found, attribute, _copied(getattr(model, attribute)))
    if isinstance(found, LinearSVC | LinearSVR):
        _copy_weights(found, model)
    else:
        _copy_expansion(found, model)
    check_fitted(found)
    return found


def _copy_weights(found: Any, model: Any) -> None:
    found.coef_ = _copied(model.coef_)
    functions = len(np.atleast_2d(model.coef_)) if not sparse.issparse(model.coef_) else model.coef_.shape[0]
    found.intercept_ = np.array(np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), (functions,)))
    found.n_iter_ = int(np.max(model.n_iter_))
    if isinstance(found, LinearSVC):
        found._sigmoids_ = None
    else:
        found._outputs_ = None


def _copy_expansion(found: Any, model: Any) -> None:
    if callable(model.kernel):
        raise ValueError(
            "scikit-learn stores no support vectors for a kernel function; fit the estimator of maxmargin with it"
        )
    found._gamma = float(model._gamma)
    precomputed = model.kernel == "precomputed"
    found._kernel_ = None if precomputed else make_kernel(model.kernel, found._gamma, model.coef0, model.degree)
    for attribute in ("support_", "support_vectors_", "dual_coef_", "intercept_", "n_iter_", "fit_status_"):
        setattr(found, attribute, _copied(getattr(model, attribute)))
    if not isinstance(found, KernelClassifier):
        found._outputs_ = None
        return
    found.n_support_ = _copied(model.n_support_)
    found._multi_class_ = "ovo"
    slopes, shifts = model._probA, model._probB
    sigmoids = [PlattSigmoid(float(slope), float(shift)) for slope, shift in zip(slopes, shifts, strict=True)]
    found._sigmoids_ = sigmoids or None


def to_sklearn(model: Any) -> Any:
    """Convert a fitted estimator to one of scikit-learn, with the parameters that both have.

    Decision values agree to rounding. Models that scikit-learn cannot train can be converted if it can predict with
    them: those with squared hinge or least squares loss become an SVC or SVR.

    Parameters
    ----------
    model : SVC, NuSVC, LSSVC, SVR, NuSVR, QuantileSVR, LSSVR, OneClassSVM, LinearSVC or LinearSVR
        A fitted estimator with one of scikit-learn's kernels; kernel classifiers with the strategy one-vs-one.

    Returns
    -------
    sklearn.svm.SVC, NuSVC, SVR, NuSVR, OneClassSVM, LinearSVC or LinearSVR
        An estimator trained on sparse data accepts sparse and dense samples, otherwise only dense ones. Even with
        ``probability=True`` scikit-learn's ``predict`` returns the class with most votes.

    Examples
    --------
    >>> from maxmargin import SVC
    >>> from maxmargin.interchange import to_sklearn
    >>> to_sklearn(SVC(kernel="linear").fit([[0.0], [1.0]], ["low", "high"])).predict([[0.9]])
    array(['high'], dtype='<U4')
    """
    model = getattr(model, "best_estimator_", model)  # of one that has chosen its parameters
    name = type(model).__name__
    if not isinstance(model, KernelClassifier | KernelRegressor | OneClassSVM | LinearSVC | LinearSVR):
        raise ValueError(f"scikit-learn has no counterpart of {name}; use maxmargin.save")
    if not hasattr(model, "intercept_"):
        raise ValueError(f"this {name} is not fitted yet; only fitted models can be converted")
    if getattr(model, "_outputs_", None) is not None:
        raise ValueError("scikit-learn's estimators have one output; fit and convert a model for each output")
    if isinstance(model, LinearSVC | LinearSVR):
        return _to_sklearn_linear(model)
    if isinstance(model, KernelClassifier):
        check_pairs(model, "scikit-learn")
    return _to_sklearn_kernel(model)


def _to_sklearn_linear(model: Any) -> Any:
    if isinstance(model, LinearSVC) and model._knows_probabilities:
        raise ValueError(
            "a LinearSVC with probability=True predicts the most probable class, but scikit-learn's LinearSVC has no "
            "probabilities; use set_params(probability=False) to predict by decision values"
        )
    found = _sklearn_estimator(model, "LinearSVC" if isinstance(model, LinearSVC) else "LinearSVR")
    for attribute in ("coef_", "intercept_", "classes_", "n_iter_"):
        if attribute in vars(model):
            setattr(found, attribute, _copied(getattr(model, attribute)))
    if isinstance(model, LinearSVR):
        found.coef_ = found.coef_.reshape(-1)
    return found


def _to_sklearn_kernel(model: Any) -> Any:
    kernel = kernel_of(model)
    parameters = {"kernel": KERNEL_NAMES[kernel.pop("kernel")]}
    if not isinstance(model.kernel, str):  # parameters of a kernel object
        parameters |= kernel
    classifier = isinstance(model, KernelClassifier)
    names = ("NuSVC", "SVC") if classifier else ("NuSVR", "SVR")
    name = names[0] if isinstance(model, NuSVC | NuSVR) else names[1]
    found = _sklearn_estimator(model, "OneClassSVM" if isinstance(model, OneClassSVM) else name, **parameters)
    for attribute in ("classes_", "class_weight_", "shape_fit_", "fit_status_", "n_iter_", "offset_", "support_"):
        if attribute in vars(model):
            setattr(found, attribute, _copied(getattr(model, attribute)))
    if found.kernel == "precomputed":
        found.shape_fit_ = (model.n_features_in_, model.n_features_in_)
    found._gamma = kernel.get("gamma", 0.0)
    found._sparse = sparse.issparse(model.support_vectors_)
    found.support_vectors_ = _copied(model.support_vectors_).astype(np.float64)
    counts = model.n_support_ if classifier else [len(model.support_)] * 2
    found._n_support = np.array(counts, dtype=np.int32)
    found.dual_coef_, found.intercept_ = _coefficients(model, found._sparse), model.intercept_.copy()
    sign = -1.0 if classifier and len(model.classes_) == 2 else 1.0
    found._dual_coef_, found._intercept_ = sign * found.dual_coef_, sign * found.intercept_
    calibrated = classifier and model._knows_probabilities
    found._probA, found._probB = (model.probA_, model.probB_) if calibrated else (np.empty(0), np.empty(0))
    found._effective_probability = calibrated
    return found


def _coefficients(model: Any, as_csr: bool) -> Any:
    """Return the coefficients in scikit-learn's layout: if sparse, with all zeros stored explicitly."""
    dense = model.dual_coef_.toarray() if sparse.issparse(model.dual_coef_) else model.dual_coef_
    if not as_csr:
        return dense.copy()
    rows, columns = dense.shape
    indices, starts = np.tile(np.arange(columns, dtype=np.int32), rows), np.arange(rows + 1, dtype=np.int32) * columns
    return sparse.csr_matrix((dense.ravel(), indices, starts), shape=dense.shape)


def _sklearn_estimator(model: Any, name: str, **changed: Any) -> Any:
    """Return scikit-learn's estimator with the common parameters and the feature names."""
    from sklearn import svm

    kind = getattr(svm, name)
    parameters = {key: value for key, value in model.get_params(deep=False).items() if key in kind._get_param_names()}
    for key, (ours, theirs) in REPLACED_VALUES.items():
        if key in parameters and parameters[key] == ours:
            parameters[key] = theirs
    if parameters.get("probability") is False:  # scikit-learn's default, which has several names
        del parameters["probability"]
    found = kind(**parameters | changed)
    for attribute in ("n_features_in_", "feature_names_in_"):
        if attribute in vars(model):
            setattr(found, attribute, _copied(getattr(model, attribute)))
    return found


def _copied(value: Any) -> Any:
    return value.copy() if hasattr(value, "copy") else value
