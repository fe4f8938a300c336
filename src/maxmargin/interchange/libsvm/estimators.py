"""From LIBSVM's models to estimators, and back.

What they disagree in: LIBSVM keeps classes in the order of their first sample, scikit-learn's conventions sort them.
The only pair of two classes is positive for the first in LIBSVM, for the second in scikit-learn. ρ is minus the
intercept. A file has what predicts. Parameters of the training (C, ν, ε), the rows of the support vectors in the data
and the data are not in it, so that an estimator from a file has no certificate.
"""

from __future__ import annotations

import os
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse

from maxmargin._typing import Floats
from maxmargin.estimators import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.estimators.kernel.kernel_classifier import KernelClassifier
from maxmargin.estimators.kernel.kernel_estimator import KernelMachine
from maxmargin.estimators.kernel.kernel_regressor import KernelRegressor
from maxmargin.estimators.linear.linear_estimator import LinearEstimator
from maxmargin.interchange.errors import ModelFileError
from maxmargin.interchange.fitted_schema import check_fitted
from maxmargin.interchange.keyword_header import whole_labels
from maxmargin.interchange.libsvm.probability import marks_of_estimator, marks_of_file
from maxmargin.interchange.libsvm.record import LibsvmModel
from maxmargin.interchange.libsvm.text import read_text, write_text
from maxmargin.kernels import Gaussian, Linear, Polynomial, Sigmoid
from maxmargin.models.calibration import PlattSigmoid

ESTIMATORS: dict[str, type[KernelMachine]] = {
    "c_svc": SVC,
    "nu_svc": NuSVC,
    "one_class": OneClassSVM,
    "epsilon_svr": SVR,
    "nu_svr": NuSVR,
}

#: scikit-learn's names of the kernels.
KERNEL_NAMES = {
    "linear": "linear",
    "polynomial": "poly",
    "rbf": "rbf",
    "sigmoid": "sigmoid",
    "precomputed": "precomputed",
}


def read_libsvm_model(file: str | os.PathLike[str] | BinaryIO, n_features: int | None = None) -> Any:
    """Return the model in a file of LIBSVM as an estimator.

    It predicts, has probabilities if the file has them, and can be saved, but has no certificate: a file of LIBSVM
    knows neither the training data nor its own C. Classes are sorted, so that among those with equally many votes
    another one may win than in LIBSVM; `maxmargin.interchange.libsvm.read_text` keeps LIBSVM's order and rules.

    Parameters
    ----------
    file : path or binary file
    n_features : int, optional
        How many features samples have (training samples, if the kernel is precomputed). By default as many as the
        support vectors know of, which are fewer if the last ones are 0 in all of them.

    Returns
    -------
    SVC, NuSVC, SVR, NuSVR or OneClassSVM
        Its ``support_`` counts the support vectors, as their rows in the training data are unknown; with a precomputed
        kernel they are known.

    Raises
    ------
    ModelFileError
        With file, line and a sentence that says what is wrong.

    Examples
    --------
    >>> import io
    >>> from maxmargin import SVC
    >>> from maxmargin.interchange import read_libsvm_model, write_libsvm_model
    >>> file = io.BytesIO()
    >>> write_libsvm_model(SVC(kernel="linear").fit([[0.0], [1.0]], [3, 7]), file)
    >>> _ = file.seek(0)
    >>> read_libsvm_model(file).predict([[0.9]])
    array([7])
    """
    return estimator_of(read_text(file), n_features)


def write_libsvm_model(
    model: Any, file: str | os.PathLike[str] | BinaryIO, digits: int = 17, labels: Any = None
) -> None:
    """Write a fitted estimator as a model file of LIBSVM.

    ``svm-predict`` makes the same predictions with it. Machines that LIBSVM cannot train can be written as well if it
    can predict with them: a squared hinge or least squares become ``c_svc`` or ``epsilon_svr``.

    Parameters
    ----------
    model : estimator
        A fitted SVC, NuSVC, LSSVC, SVR, NuSVR, QuantileSVR, LSSVR or OneClassSVM with one of LIBSVM's kernels. Classes
        are whole numbers, and told apart in pairs.
    file : path or binary file
        A path is written beside its place and moved there when it is complete.
    digits : int, default=17
        Of the values of features. 17 keep them exactly, 8 make a smaller file as LIBSVM's own.
    labels : array-like, optional
        The classes in the order that they should have in the file, by default sorted.

    Raises
    ------
    ModelFileError
        If LIBSVM has no such model.
    """
    found = libsvm_model_of(model)
    write_text(found if labels is None else found.reordered(labels), file, digits)


def libsvm_model_of(model: Any) -> LibsvmModel:
    """Return what LIBSVM's files have of a fitted estimator; classes are sorted."""
    name = type(model).__name__
    if isinstance(model, LinearEstimator):
        raise ModelFileError(f"{name} has weights and no support vectors; write_liblinear_model writes it")
    if not isinstance(model, KernelClassifier | KernelRegressor | OneClassSVM):
        raise ModelFileError(f"LIBSVM has no model like {name}; maxmargin.save writes it")
    if not hasattr(model, "support_"):
        raise ModelFileError(f"this {name} is not fitted yet; only fitted models have files")
    coefficients = model.dual_coef_.toarray() if sparse.issparse(model.dual_coef_) else model.dual_coef_
    common = {"coefficients": coefficients, "rho": -model.intercept_, **kernel_of(model), **_vectors_of(model)}
    if isinstance(model, KernelClassifier):
        return _classifier(model, common)
    if isinstance(model, OneClassSVM):
        marks = model.__dict__.get("density_marks_") if model.probability else None
        density = None if marks is None else marks_of_file(marks)
        return LibsvmModel(svm_type="one_class", density_marks=density, **common)
    if model._outputs_ is not None:
        raise ModelFileError("LIBSVM's models have one output; write a model of each output alone")
    noise = model.__dict__.get("noise_scale_") if getattr(model, "noise", False) else None
    scale = None if noise is None else np.array([float(noise)])
    return LibsvmModel(svm_type="nu_svr" if isinstance(model, NuSVR) else "epsilon_svr", probA=scale, **common)


def _classifier(model: KernelClassifier, common: dict[str, Any]) -> LibsvmModel:
    check_pairs(model, "LIBSVM")
    if len(model.classes_) == 2:  # ours is positive for the second
        common = {**common, "coefficients": -common["coefficients"], "rho": -common["rho"]}
    slopes = shifts = None
    if model._knows_probabilities:
        slopes, shifts = model.probA_, model.probB_
    return LibsvmModel(
        svm_type="nu_svc" if isinstance(model, NuSVC) else "c_svc",
        labels=whole_labels(model.classes_, "LIBSVM"),
        counts=model.n_support_.astype(np.int64),
        probA=slopes,
        probB=shifts,
        **common,
    )


def check_pairs(model: KernelClassifier, program: str) -> None:
    """Raise unless the classes are told apart in pairs, of which two are always one."""
    if len(model.classes_) > 2 and model._multi_class_ != "ovo":
        raise ModelFileError(
            f"{program} tells classes apart in pairs, and this {type(model).__name__} has "
            f"multi_class={model._multi_class_!r}: fit with multi_class='ovo', or write it with maxmargin.save"
        )


def kernel_of(model: Any) -> dict[str, Any]:
    """Return LIBSVM's name and parameters of the kernel that was fitted."""
    kernel = model._kernel_
    if kernel is None:
        return {"kernel": "precomputed"}
    if type(kernel) is Linear:
        return {"kernel": "linear"}
    if type(kernel) is Polynomial:
        parameters = {"degree": int(kernel.degree), "gamma": float(kernel.gamma), "coef0": float(kernel.coef0)}
        return {"kernel": "polynomial", **parameters}
    if type(kernel) is Gaussian:
        return {"kernel": "rbf", "gamma": float(kernel.gamma)}
    if type(kernel) is Sigmoid:
        return {"kernel": "sigmoid", "gamma": float(kernel.gamma), "coef0": float(kernel.coef0)}
    raise ModelFileError(
        f"LIBSVM and scikit-learn have no kernel {type(kernel).__name__}; theirs are linear, polynomial, rbf, sigmoid "
        "and precomputed. maxmargin.save writes this model"
    )


def _vectors_of(model: Any) -> dict[str, Any]:
    if model._kernel_ is None:
        return {"support_vectors": sparse.csr_matrix(model.support_[:, None] + 1.0)}
    return {"support_vectors": sparse.csr_matrix(model.support_vectors_, dtype=np.float64)}


def estimator_of(model: LibsvmModel, n_features: int | None = None) -> Any:
    """Return the estimator that predicts what a model of LIBSVM does."""
    if model.labels is not None:
        if len(model.labels) < 2:
            raise ModelFileError(
                f"the model knows a single class, {model.labels[0]}, and answers nothing else; no estimator does that, "
                "maxmargin.interchange.libsvm.read_text reads it"
            )
        model = model.reordered(np.sort(model.labels))
    width = _width(model, n_features)
    kernel = KERNEL_NAMES[model.kernel]
    parameters = {"kernel": kernel, "degree": model.degree, "gamma": model.gamma, "coef0": model.coef0}
    estimator = ESTIMATORS[model.svm_type](**(parameters if kernel != "precomputed" else {"kernel": kernel}))
    estimator.n_features_in_ = width
    estimator._gamma = model.gamma
    estimator._kernel_ = model.make_kernel()
    count = model.coefficients.shape[1]
    precomputed = model.kernel == "precomputed"
    estimator.support_ = (model.serials if precomputed else np.arange(count)).astype(np.int32)
    estimator.support_vectors_ = np.empty((0, 0)) if precomputed else model.compact_vectors(width)
    turn = -1.0 if model.labels is not None and len(model.labels) == 2 else 1.0
    estimator.intercept_ = -turn * model.rho
    coefficients = turn * model.coefficients
    in_rows = sparse.issparse(estimator.support_vectors_)
    estimator.dual_coef_ = sparse.csr_matrix(coefficients) if in_rows else coefficients
    _set_outputs(estimator, model)
    check_fitted(estimator)
    return estimator


def _width(model: LibsvmModel, n_features: int | None) -> int:
    """Return how many features samples will have."""
    what = "training samples" if model.kernel == "precomputed" else "features"
    if n_features is not None and n_features < model.n_features:
        raise ValueError(f"the support vectors know of {model.n_features} {what}, but n_features is {n_features}")
    return max(1, model.n_features if n_features is None else int(n_features))


def _set_outputs(estimator: Any, model: LibsvmModel) -> None:
    """Set what machines of one kind have alone, and probabilities if there are any."""
    if isinstance(estimator, KernelClassifier):
        assert model.labels is not None
        assert model.counts is not None
        estimator.classes_ = model.labels
        estimator.n_support_ = model.counts.astype(np.int32)
        estimator._multi_class_ = "ovo"
        estimator._sigmoids_ = _sigmoids(model.probA, model.probB)
        estimator.probability = model.has_probabilities
        return
    estimator._outputs_ = None
    if isinstance(estimator, OneClassSVM):
        estimator.offset_ = -estimator.intercept_
        estimator.probability = model.has_probabilities
        if model.density_marks is not None:
            estimator.density_marks_ = marks_of_estimator(model.density_marks)
    elif model.probA is not None:
        estimator.noise, estimator.noise_scale_ = True, float(model.probA[0])


def _sigmoids(slopes: Floats | None, shifts: Floats | None) -> list[PlattSigmoid] | None:
    if slopes is None or shifts is None:
        return None
    return [PlattSigmoid(float(slope), float(shift)) for slope, shift in zip(slopes, shifts, strict=True)]
