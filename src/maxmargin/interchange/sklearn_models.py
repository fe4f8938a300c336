"""From scikit-learn's fitted machines to ours, and back: the same functions, without training again.

Both have LIBSVM's layout of coefficients and scikit-learn's names for it. What differs is beside it: which parameters
there are, and what scikit-learn keeps under private names.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from maxmargin import estimators
from maxmargin.estimators import LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.estimators.kernel.kernel_classifier import KernelClassifier
from maxmargin.estimators.kernel.kernel_regressor import KernelRegressor
from maxmargin.interchange.fitted_schema import check_fitted
from maxmargin.interchange.libsvm.estimators import KERNEL_NAMES, check_pairs, kernel_of
from maxmargin.kernels import make_kernel
from maxmargin.models.calibration import PlattSigmoid

#: The machines that scikit-learn and this package have under one name.
KERNEL_MACHINES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
LINEAR_MACHINES = ("LinearSVC", "LinearSVR")

#: What scikit-learn takes where a parameter here has a value that it does not know.
STAND_INS: dict[str, tuple[Any, Any]] = {
    "cache_size": ("auto", 200),
    "intercept_scaling": (None, 1.0),
    "max_iter": (None, 1000),
}


def from_sklearn(model: Any) -> Any:
    """Return a fitted machine of scikit-learn as ours, with the same parameters.

    It predicts the same: decision values agree to rounding. It has no certificate, since nobody has proved anything;
    ``fit`` with the training data makes one.

    Parameters
    ----------
    model : sklearn.svm.SVC, NuSVC, SVR, NuSVR, OneClassSVM, LinearSVC or LinearSVR
        Fitted, with a kernel by name.

    Returns
    -------
    estimator
        Of the same name. With ``probability=True`` its ``predict`` returns the most probable class, which votes do not
        always; scikit-learn's returns the class with most votes.

    Examples
    --------
    >>> import sklearn.svm
    >>> from maxmargin.interchange import from_sklearn
    >>> theirs = sklearn.svm.SVC(kernel="linear").fit([[0.0], [1.0]], ["low", "high"])
    >>> from_sklearn(theirs).predict([[0.9]])
    array(['high'], dtype='<U4')
    """
    name = type(model).__name__
    if not type(model).__module__.startswith("sklearn.svm.") or name not in (*KERNEL_MACHINES, *LINEAR_MACHINES):
        known = ", ".join((*KERNEL_MACHINES, *LINEAR_MACHINES))
        raise ValueError(f"a {name} cannot be converted; scikit-learn's {known} can")
    if "n_features_in_" not in vars(model) and not callable(getattr(model, "kernel", None)):
        raise ValueError(f"this {name} is not fitted yet; only fitted models can be converted")
    found: Any = getattr(estimators, name)(**model.get_params(deep=False))
    for attribute in ("n_features_in_", "feature_names_in_", "classes_", "class_weight_", "shape_fit_", "offset_"):
        if attribute in vars(model):
            setattr(found, attribute, _copied(getattr(model, attribute)))
    if isinstance(found, LinearSVC | LinearSVR):
        _take_weights(found, model)
    else:
        _take_expansion(found, model)
    check_fitted(found)
    return found


def _take_weights(found: Any, model: Any) -> None:
    found.coef_ = _copied(model.coef_)
    functions = len(np.atleast_2d(model.coef_)) if not sparse.issparse(model.coef_) else model.coef_.shape[0]
    found.intercept_ = np.array(np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), (functions,)))
    found.n_iter_ = int(np.max(model.n_iter_))
    if isinstance(found, LinearSVC):
        found._sigmoids_ = None
    else:
        found._outputs_ = None


def _take_expansion(found: Any, model: Any) -> None:
    if callable(model.kernel):
        raise ValueError(
            "scikit-learn keeps no support vectors of a kernel that is a function; fit the machine of maxmargin with it"
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
    """Return a fitted machine as one of scikit-learn, with those parameters that both have.

    It predicts the same: decision values agree to rounding. Machines that scikit-learn cannot train can be converted if
    it can predict with them: a squared hinge or least squares become an SVC or SVR.

    Parameters
    ----------
    model : SVC, NuSVC, LSSVC, SVR, NuSVR, QuantileSVR, LSSVR, OneClassSVM, LinearSVC or LinearSVR
        Fitted, with one of scikit-learn's kernels; classes are told apart in pairs, or by linear functions.

    Returns
    -------
    sklearn.svm.SVC, NuSVC, SVR, NuSVR, OneClassSVM, LinearSVC or LinearSVR
        Trained on sparse data it takes both kinds of samples, else dense ones alone. With ``probability=True``
        scikit-learn's ``predict`` returns the class with most votes all the same.

    Examples
    --------
    >>> from maxmargin import SVC
    >>> from maxmargin.interchange import to_sklearn
    >>> to_sklearn(SVC(kernel="linear").fit([[0.0], [1.0]], ["low", "high"])).predict([[0.9]])
    array(['high'], dtype='<U4')
    """
    name = type(model).__name__
    if not isinstance(model, KernelClassifier | KernelRegressor | OneClassSVM | LinearSVC | LinearSVR):
        raise ValueError(f"scikit-learn has no machine like {name}; maxmargin.save and maxmargin.interchange keep it")
    if not hasattr(model, "intercept_"):
        raise ValueError(f"this {name} is not fitted yet; only fitted models can be converted")
    if getattr(model, "_outputs_", None) is not None:
        raise ValueError("scikit-learn's machines have one output; convert a model of each output alone")
    if isinstance(model, LinearSVC | LinearSVR):
        return _with_weights(model)
    if isinstance(model, KernelClassifier):
        check_pairs(model, "scikit-learn")
    return _with_expansion(model)


def _with_weights(model: Any) -> Any:
    if isinstance(model, LinearSVC) and model._knows_probabilities:
        raise ValueError(
            "scikit-learn's LinearSVC has no probabilities, and one with probability=True predicts the most probable "
            "class; set_params(probability=False) makes it predict by decision values"
        )
    found = _alike(model, "LinearSVC" if isinstance(model, LinearSVC) else "LinearSVR")
    for attribute in ("coef_", "intercept_", "classes_", "n_iter_"):
        if attribute in vars(model):
            setattr(found, attribute, _copied(getattr(model, attribute)))
    if isinstance(model, LinearSVR):
        found.coef_ = found.coef_.reshape(-1)
    return found


def _with_expansion(model: Any) -> Any:
    kernel = kernel_of(model)
    own = {"kernel": KERNEL_NAMES[kernel.pop("kernel")]}
    if not isinstance(model.kernel, str):  # an object has its own parameters
        own |= kernel
    classifier = isinstance(model, KernelClassifier)
    names = ("NuSVC", "SVC") if classifier else ("NuSVR", "SVR")
    name = names[0] if isinstance(model, NuSVC | NuSVR) else names[1]
    found = _alike(model, "OneClassSVM" if isinstance(model, OneClassSVM) else name, **own)
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
    turn = -1.0 if classifier and len(model.classes_) == 2 else 1.0
    found._dual_coef_, found._intercept_ = turn * found.dual_coef_, turn * found.intercept_
    known = classifier and model._knows_probabilities
    found._probA, found._probB = (model.probA_, model.probB_) if known else (np.empty(0), np.empty(0))
    found._effective_probability = known
    return found


def _coefficients(model: Any, in_rows: bool) -> Any:
    """Return the coefficients as scikit-learn has them: compressed rows in which every coefficient is stored, 0 too."""
    dense = model.dual_coef_.toarray() if sparse.issparse(model.dual_coef_) else model.dual_coef_
    if not in_rows:
        return dense.copy()
    rows, columns = dense.shape
    indices, starts = np.tile(np.arange(columns, dtype=np.int32), rows), np.arange(rows + 1, dtype=np.int32) * columns
    return sparse.csr_matrix((dense.ravel(), indices, starts), shape=dense.shape)


def _alike(model: Any, name: str, **own: Any) -> Any:
    """Return scikit-learn's estimator with the parameters that both have, and its features."""
    from sklearn import svm

    kind = getattr(svm, name)
    parameters = {key: value for key, value in model.get_params(deep=False).items() if key in kind._get_param_names()}
    for key, (ours, theirs) in STAND_INS.items():
        if key in parameters and parameters[key] == ours:
            parameters[key] = theirs
    if parameters.get("probability") is False:  # scikit-learn's default, under whatever name
        del parameters["probability"]
    found = kind(**parameters | own)
    for attribute in ("n_features_in_", "feature_names_in_"):
        if attribute in vars(model):
            setattr(found, attribute, _copied(getattr(model, attribute)))
    return found


def _copied(value: Any) -> Any:
    return value.copy() if hasattr(value, "copy") else value
