"""The table of estimators that must give the same model everywhere, and how two of their models are compared.

Where bits may differ, two models are compared by what their certificates prove. The primal objective is 1-strongly
convex in w, so ½‖w − w*‖² is at most the width of a certified interval, primal − dual, and for two models of one
problem

    |(f₁(x) − b₁) − (f₂(x) − b₂)| ≤ ‖Φ(x)‖ (√(2 width₁) + √(2 width₂)).

Run as a program, it writes the decision values and certificates of all models to an npz file: `parity.py FILE`. The
tests do that once for each instruction set.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

from maxmargin import (
    LSSVC,
    LSSVR,
    SVC,
    SVDD,
    SVR,
    KernelApproximationSVC,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OnlineOneClassSVM,
    OnlineSVC,
    QuantileSVR,
    RankSVC,
    TransductiveSVC,
    _native,
)
from maxmargin.kernels import Gaussian, Linear

rng = np.random.default_rng(7)
#: All samples are float32 numbers, so that both precisions hold the same values.
X = rng.normal(size=(240, 12)).astype(np.float32).astype(np.float64)
TWO = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=240) > 0.8, 1, -1)
THREE = np.digitize(X[:, 0] + 0.5 * rng.normal(size=240), [-0.6, 0.6])
TARGETS = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=240)
X_LARGE = rng.normal(size=(3000, 4)).astype(np.float32).astype(np.float64)
Y_LARGE = np.where(X_LARGE[:, 0] * X_LARGE[:, 1] + 0.3 * rng.normal(size=3000) > 0, 1, -1)
X_LONG = rng.normal(size=(60_000, 10)).astype(np.float32).astype(np.float64)
Y_LONG = np.where(X_LONG[:, 0] + rng.normal(size=60_000) > 0, 1, -1)

#: Estimator and data.
KERNEL_MODELS = {
    "SVC": (SVC(C=3.0), X, TWO),
    "SVC, squared hinge": (SVC(loss="squared_hinge"), X, TWO),
    "SVC, hard margin": (SVC(C=np.inf, gamma=1.0), X, TWO),
    "SVC, linear kernel": (SVC(kernel="linear"), X, TWO),
    "SVC, polynomial": (SVC(kernel="poly", degree=2, coef0=1.0), X, TWO),
    "SVC, laplacian": (SVC(kernel="laplacian"), X, TWO),
    "SVC, sum of kernels": (SVC(kernel=Gaussian(0.1) + 0.1 * Linear()), X, TWO),
    "SVC, three classes": (SVC(decision_function_shape="ovo"), X, THREE),
    "SVC, one-vs-rest": (SVC(multi_class="ovr"), X, THREE),
    "SVC, Crammer-Singer": (SVC(multi_class="crammer_singer"), X, THREE),
    "SVC, Weston-Watkins": (SVC(multi_class="weston_watkins"), X, THREE),
    "SVC, pairwise": (SVC(solver="pairwise"), X, TWO),
    "SVC, block": (SVC(solver="block"), X, TWO),
    "SVC, 3,000 samples": (SVC(), X_LARGE, Y_LARGE),
    "NuSVC": (NuSVC(nu=0.3), X, TWO),
    "LSSVC": (LSSVC(), X, TWO),
    "TransductiveSVC": (TransductiveSVC(), X, np.where(np.arange(len(X)) % 4, -1, (TWO + 1) // 2)),
    "SVR": (SVR(), X, TARGETS),
    "SVR, squared loss": (SVR(loss="squared_epsilon_insensitive"), X, TARGETS),
    "NuSVR": (NuSVR(), X, TARGETS),
    "QuantileSVR": (QuantileSVR(quantile=0.3), X, TARGETS),
    "LSSVR": (LSSVR(), X, TARGETS),
    "OneClassSVM": (OneClassSVM(nu=0.2), X, None),
    "SVDD": (SVDD(nu=0.2), X, None),
    "RankSVC": (RankSVC(), X[:60], THREE[:60]),
    "OnlineSVC": (OnlineSVC(finishing=True, random_state=0), X, TWO),
    "OnlineOneClassSVM": (OnlineOneClassSVM(finishing=True, random_state=0), X, None),
}
LINEAR_MODELS = {
    "LinearSVC": (LinearSVC(), X, TWO),
    "LinearSVC, hinge": (LinearSVC(loss="hinge"), X, TWO),
    "LinearSVC, three classes": (LinearSVC(), X, THREE),
    "LinearSVC, Crammer-Singer": (LinearSVC(multi_class="crammer_singer"), X, THREE),
    "LinearSVC, 60,000 samples": (LinearSVC(), X_LONG, Y_LONG),
    "LinearSVR": (LinearSVR(), X, TARGETS),
    "LinearOneClassSVM": (LinearOneClassSVM(nu=0.2), X, None),
    "KernelApproximationSVC": (KernelApproximationSVC(n_components=50, random_state=0), X_LARGE, Y_LARGE),
}
MODELS = KERNEL_MODELS | LINEAR_MODELS


def fitted(name, change=lambda samples: samples, **parameters):
    """Fit a model of the table to its samples in another form, or with other parameters."""
    model, samples, y = MODELS[name]
    model = type(model)(**{**model.get_params(deep=False), **parameters})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits that are stopped to be resumed say so
        return model.fit(change(samples)) if y is None else model.fit(change(samples), y)


def values(model, samples):
    """Return a column of values of f for each function of the model."""
    decide = getattr(model, "decision_function", None) or model.predict
    found = np.asarray(decide(samples), dtype=np.float64)
    return found.reshape(len(found), -1) / (2.0 if isinstance(model, SVDD) else 1.0)  # of SVDD, f = 2 w·Φ(x) + …


def intervals(model):
    """Return lower and upper bound of the optimum of each problem, a row each."""
    certificates = model.certificate_
    certificates = certificates if isinstance(certificates, list) else [certificates]
    return np.array([(certificate.dual, certificate.primal) for certificate in certificates])


def largest_norm(name, samples):
    """Return the largest ‖Φ(x)‖ of the samples, with the constant feature of a penalised intercept."""
    model = fitted(name)
    kernel = getattr(model, "_kernel_", None)
    if name in LINEAR_MODELS and kernel is None:
        return float(np.sqrt((samples**2).sum(axis=1).max() + 1.0))
    return float(np.sqrt(np.max(kernel.diagonal(samples)) + 1.0))


def assert_same_optimum(name, first, second):
    """Assert that two models, as (values, intervals), are solutions of one problem as far as certificates tell."""
    (f, f_bounds), (g, g_bounds) = first, second
    assert f.shape == g.shape
    assert (np.maximum(f_bounds[:, 0], g_bounds[:, 0]) <= np.minimum(f_bounds[:, 1], g_bounds[:, 1])).all()
    radius = np.sqrt(2 * (f_bounds[:, 1] - f_bounds[:, 0])) + np.sqrt(2 * (g_bounds[:, 1] - g_bounds[:, 0]))
    difference = f - g
    spread = 0.5 * (difference.max(axis=0) - difference.min(axis=0))  # the offsets cancel
    rounding = 1e-10 * (1.0 + np.abs(f).max())  # of the predictions
    assert (spread <= largest_norm(name, MODELS[name][1]) * radius + rounding).all()


def main(path):
    """Write values and certified intervals of all models."""
    found = {}
    for name, (_, samples, _) in MODELS.items():
        model = fitted(name, n_jobs=1)
        found[f"{name}/values"], found[f"{name}/intervals"] = values(model, samples), intervals(model)
    np.savez(path, level=_native.level, **found)


if __name__ == "__main__":
    main(sys.argv[1])
