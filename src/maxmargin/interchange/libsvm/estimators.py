"""Conversion between LIBSVM models, machines and estimators.

LIBSVM orders classes by their first sample, estimators sort them. For two classes the decision value is positive for
the first class in LIBSVM, for the second in scikit-learn. ρ is minus the intercept. A file contains only what is needed
for predictions, not the training parameters (C, ν, ε) or data, so that an estimator from a file has no certificate.
"""

from __future__ import annotations

import os
from typing import Any, BinaryIO

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats
from maxmargin.interchange.errors import ModelFileError
from maxmargin.interchange.fitted_schema import check_fitted
from maxmargin.interchange.libsvm.content import libsvm_model_of
from maxmargin.interchange.libsvm.model import LibsvmModel
from maxmargin.interchange.libsvm.probability import marks_of_estimator
from maxmargin.interchange.libsvm.text import read_text, write_text
from maxmargin.machines.kernel.kernel_classifier import KernelClassifier
from maxmargin.machines.kernel.kernel_estimator import KernelEstimator
from maxmargin.machines.kernel.nu_svc import NuSVC
from maxmargin.machines.kernel.nu_svr import NuSVR
from maxmargin.machines.kernel.one_class_svm import OneClassSVM
from maxmargin.machines.kernel.svc import SVC
from maxmargin.machines.kernel.svr import SVR
from maxmargin.models.calibration import PlattSigmoid

MACHINES: dict[str, type[KernelEstimator]] = {
    "c_svc": SVC,
    "nu_svc": NuSVC,
    "one_class": OneClassSVM,
    "epsilon_svr": SVR,
    "nu_svr": NuSVR,
}

#: scikit-learn's kernel names.
KERNEL_NAMES = {
    "linear": "linear",
    "polynomial": "poly",
    "rbf": "rbf",
    "sigmoid": "sigmoid",
    "precomputed": "precomputed",
}


def read_libsvm_model(file: str | os.PathLike[str] | BinaryIO, n_features: int | None = None) -> Any:
    """Read a LIBSVM model file as an estimator.

    The estimator predicts, has probabilities if the file has them, and can be saved, but has no certificate, because
    the file contains neither the training data nor C. Classes are sorted, so that ties of votes may be decided
    differently than in LIBSVM; `maxmargin.interchange.libsvm.read_text` keeps LIBSVM's order and rules.

    Parameters
    ----------
    file : path or binary file
    n_features : int, optional
        Number of features of the samples (of training samples for a precomputed kernel). By default the largest index
        of the support vectors, which is too small if the last features are 0 in all of them.

    Returns
    -------
    SVC, NuSVC, SVR, NuSVR or OneClassSVM
        Its ``support_`` is 0, 1, …, because the rows of the support vectors in the training data are unknown except
        for a precomputed kernel.

    Raises
    ------
    ModelFileError
        If the file is malformed; the message names the line and the problem.

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
    from maxmargin.estimators.from_machine import as_estimator  # loads scikit-learn

    return as_estimator(machine_of(read_text(file), n_features))


def write_libsvm_model(
    model: Any, file: str | os.PathLike[str] | BinaryIO, digits: int = 17, labels: Any = None
) -> None:
    """Write a fitted estimator as a LIBSVM model file.

    ``svm-predict`` makes the same predictions with it. Models that LIBSVM cannot train can be written if it can predict
    with them: those with squared hinge or least squares loss become ``c_svc`` or ``epsilon_svr``.

    Parameters
    ----------
    model : estimator
        A fitted SVC, NuSVC, LSSVC, SVR, NuSVR, QuantileSVR, LSSVR or OneClassSVM with one of LIBSVM's kernels, integer
        classes and the strategy one-vs-one.
    file : path or binary file
        A path is written atomically.
    digits : int, default=17
        Number of digits of the feature values. 17 are exact, 8 make a smaller file like LIBSVM's own.
    labels : array-like, optional
        Order of the classes in the file; by default ascending.

    Raises
    ------
    ModelFileError
        If LIBSVM cannot represent the model.
    """
    model = getattr(model, "best_estimator_", model)  # of one that has chosen its parameters
    found = libsvm_model_of(model)
    write_text(found if labels is None else found.reordered(labels), file, digits)


def machine_of(model: LibsvmModel, n_features: int | None = None) -> Any:
    """Return the machine with the predictions of a LIBSVM model."""
    if model.labels is not None:
        if len(model.labels) < 2:
            raise ModelFileError(
                f"the model has a single class, {model.labels[0]}, but a classifier requires at least two; use "
                "maxmargin.interchange.libsvm.read_text"
            )
        model = model.reordered(np.sort(model.labels))
    width = _width(model, n_features)
    kernel = KERNEL_NAMES[model.kernel]
    parameters = {"kernel": kernel, "degree": model.degree, "gamma": model.gamma, "coef0": model.coef0}
    machine = MACHINES[model.svm_type](**(parameters if kernel != "precomputed" else {"kernel": kernel}))
    machine.n_features_in_ = width
    machine._gamma = model.gamma
    machine._kernel_ = model.make_kernel()
    count = model.coefficients.shape[1]
    precomputed = model.kernel == "precomputed"
    machine.support_ = (model.sample_indices if precomputed else np.arange(count)).astype(np.int32)
    machine.support_vectors_ = np.empty((0, 0)) if precomputed else model.compact_vectors(width)
    sign = -1.0 if model.labels is not None and len(model.labels) == 2 else 1.0
    machine.intercept_ = -sign * model.rho
    coefficients = sign * model.coefficients
    in_rows = sparse.issparse(machine.support_vectors_)
    machine.dual_coef_ = sparse.csr_matrix(coefficients) if in_rows else coefficients
    _set_outputs(machine, model)
    check_fitted(machine)
    return machine


def _width(model: LibsvmModel, n_features: int | None) -> int:
    """Return the number of features of the machine."""
    what = "training samples" if model.kernel == "precomputed" else "features"
    if n_features is not None and n_features < model.n_features:
        raise ValueError(f"the support vectors have {model.n_features} {what}, but n_features is {n_features}")
    return max(1, model.n_features if n_features is None else int(n_features))


def _set_outputs(machine: Any, model: LibsvmModel) -> None:
    """Set the attributes that depend on the type of the estimator, and the probabilities."""
    if isinstance(machine, KernelClassifier):
        assert model.labels is not None
        assert model.counts is not None
        machine.classes_ = model.labels
        machine.n_support_ = model.counts.astype(np.int32)
        machine._multi_class_ = "ovo"
        machine._sigmoids_ = _sigmoids(model.probA, model.probB)
        machine.probability = model.has_probabilities
        return
    machine._outputs_ = None
    if isinstance(machine, OneClassSVM):
        machine.offset_ = -machine.intercept_
        machine.probability = model.has_probabilities
        if model.density_marks is not None:
            machine.density_marks_ = marks_of_estimator(model.density_marks)
    elif model.probA is not None:
        machine.noise, machine.noise_scale_ = True, float(model.probA[0])


def _sigmoids(slopes: Floats | None, shifts: Floats | None) -> list[PlattSigmoid] | None:
    if slopes is None or shifts is None:
        return None
    return [PlattSigmoid(float(slope), float(shift)) for slope, shift in zip(slopes, shifts, strict=True)]
