"""Observers never change a fit: callbacks, traces, checkpoints and limits that are not reached keep every bit."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning

from maxmargin import (
    LSSVC,
    LSSVR,
    MKLSVC,
    MKLSVR,
    SVC,
    SVDD,
    SVR,
    KernelApproximationSVC,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    MKLOneClassSVM,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OnlineOneClassSVM,
    OnlineSVC,
    QuantileSVR,
    RankSVC,
    TransductiveSVC,
    estimators,
)
from maxmargin.datasets import chessboard
from maxmargin.solvers import Trace
from maxmargin.training import checkpoint

X_TWO, Y_TWO = load_breast_cancer(return_X_y=True)  # unscaled: the last digits depend on every step
X_THREE, Y_THREE = load_iris(return_X_y=True)
X_LARGE, Y_LARGE = chessboard(3000, seed=0)
TARGETS = X_TWO[:, 0] + 0.1 * X_TWO[:, 1]
LARGE_TARGETS = np.sin(4 * X_LARGE[:, 0]) + X_LARGE[:, 1]


def scaled(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


#: Estimator and data of every case.
CASES = {
    "svc": (SVC(), X_TWO, Y_TWO),
    "svc squared hinge": (SVC(loss="squared_hinge", C=10), X_TWO, Y_TWO),
    "svc three classes": (SVC(C=10), X_THREE, Y_THREE),
    "svc one-vs-rest": (SVC(C=10, multi_class="ovr"), X_THREE, Y_THREE),
    "svc crammer-singer": (SVC(C=10, multi_class="crammer_singer"), X_THREE, Y_THREE),
    "svc weston-watkins": (SVC(C=10, multi_class="weston_watkins"), X_THREE, Y_THREE),
    "svc hard margin": (SVC(C=np.inf), X_TWO, Y_TWO),
    "svc probability": (SVC(probability=True, random_state=0), X_TWO, Y_TWO),
    "svc three classes probability": (SVC(probability=True, random_state=0), X_THREE, Y_THREE),
    "svc large": (SVC(C=10), X_LARGE, Y_LARGE),
    "svc large probability": (SVC(C=10, probability=True, random_state=0), X_LARGE, Y_LARGE),
    "svc slow": (SVC(C=1e6, gamma=1e-4, tol=1e-6), X_TWO, Y_TWO),
    "nu_svc": (NuSVC(nu=0.2), X_TWO, Y_TWO),
    "nu_svc large": (NuSVC(nu=0.2), X_LARGE, Y_LARGE),
    "svr": (SVR(C=10), scaled(X_TWO), TARGETS),
    "svr noise": (SVR(C=10, noise=True), scaled(X_TWO), TARGETS),
    "svr large": (SVR(), X_LARGE, LARGE_TARGETS),
    "nu_svr": (NuSVR(), scaled(X_TWO), TARGETS),
    "quantile_svr": (QuantileSVR(quantile=0.3), scaled(X_TWO), TARGETS),
    "one_class_svm": (OneClassSVM(nu=0.2), X_TWO, None),
    "one_class_svm large": (OneClassSVM(nu=0.2, probability=True), X_LARGE, None),
    "svdd": (SVDD(nu=0.2), X_TWO, None),
    "rank_svc": (RankSVC(), X_THREE[::3], Y_THREE[::3]),
    "mkl_svc": (MKLSVC(C=10), scaled(X_TWO), Y_TWO),
    "mkl_svr": (MKLSVR(norm=2), scaled(X_TWO), TARGETS),
    "mkl_one_class_svm": (MKLOneClassSVM(nu=0.2, norm=2), scaled(X_TWO), None),
    "transductive_svc": (TransductiveSVC(), scaled(X_TWO), np.where(np.arange(len(Y_TWO)) % 9, -1, Y_TWO)),
    "transductive_svc concave-convex": (
        TransductiveSVC(method="concave_convex"),
        scaled(X_TWO),
        np.where(np.arange(len(Y_TWO)) % 9, -1, Y_TWO),
    ),
    "lssvc": (LSSVC(), scaled(X_TWO), Y_TWO),
    "lssvc large": (LSSVC(), X_LARGE, Y_LARGE),
    "lssvr": (LSSVR(), scaled(X_TWO), TARGETS),
    "linear_svc": (LinearSVC(), scaled(X_TWO), Y_TWO),
    "linear_svc unscaled": (LinearSVC(C=100), X_TWO, Y_TWO),
    "linear_svc three classes": (LinearSVC(probability=True), X_THREE, Y_THREE),
    "linear_svc crammer-singer": (LinearSVC(multi_class="crammer_singer"), X_THREE, Y_THREE),
    "linear_svc l1": (LinearSVC(penalty="l1"), scaled(X_TWO), Y_TWO),
    "linear_svc large": (LinearSVC(), X_LARGE, Y_LARGE),
    "linear_svr": (LinearSVR(noise=True), scaled(X_TWO), TARGETS),
    "linear_svr large": (LinearSVR(C=0.1), X_LARGE, LARGE_TARGETS),
    "linear_one_class_svm": (LinearOneClassSVM(nu=0.1), X_TWO, None),
    "kernel_approximation_svc": (KernelApproximationSVC(n_components=50, random_state=0), X_LARGE, Y_LARGE),
    "online_svc": (OnlineSVC(random_state=0), X_THREE, Y_THREE),
    "online_svc finished": (OnlineSVC(finishing=True, random_state=0), X_THREE, Y_THREE),
    "online_one_class_svm": (OnlineOneClassSVM(random_state=0), X_THREE, None),
}
CLASSICAL = ("pairwise", "block", "platt", "gradient_projection", "active_set", "quadratic_program", "chunking")
CASES |= {
    f"svc {solver}": (SVC(solver=solver), scaled(X_TWO)[::3], Y_TWO[::3]) for solver in (*CLASSICAL, "decomposition")
}
CASES |= {  # a tolerance that the subgradient methods reach before their default limit on iterations
    f"linear_svc {solver}": (LinearSVC(solver=solver, tol=0.2), scaled(X_TWO), Y_TWO)
    for solver in ["dual_coordinate_ascent", "semismooth_newton", "subgradient", "stochastic_subgradient", "pairwise"]
}

#: What observes a fit: parameters that must not change it.
OBSERVERS = {
    "callback": lambda: {"callback": lambda progress: None},
    "trace": lambda: {"callback": Trace()},
    "verbose": lambda: {"verbose": True},
    "max_seconds": lambda: {"max_seconds": 1e6},
    "max_iter": lambda: {"max_iter": 10**9},
    "gap_tol": lambda: {"gap_tol": 1e-300},
    "checkpoint": lambda: {"checkpoint": "fit.checkpoint", "checkpoint_seconds": 0.0},
}


def bits(model, X):
    """Return everything that predicts, as bytes."""
    found = {}
    for name in ("dual_coef_", "coef_", "intercept_", "support_", "offset_", "noise_scale_", "probA_", "probB_"):
        if name in model.__dict__ or name in ("probA_", "probB_"):
            value = getattr(model, name, None)
            found[name] = None if value is None else np.asarray(value).tobytes()
    decide = getattr(model, "decision_function", None) or model.predict
    found["decision values"] = np.asarray(decide(X)).tobytes()
    return found


def fit(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # slow cases may end at the limit of double precision
        return model.fit(X) if y is None else model.fit(X, y)


@pytest.fixture(scope="module")
def silent():
    known = {}

    def get(name):
        if name not in known:
            model, X, y = CASES[name]
            known[name] = bits(fit(_clone(model), X, y), X)
        return known[name]

    return get


def _clone(model, **parameters):
    return type(model)(**{**model.get_params(deep=False), **parameters})


@pytest.mark.parametrize("observer", OBSERVERS)
@pytest.mark.parametrize("name", CASES)
def test_observers_leave_every_bit_alone(name, observer, silent, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # for checkpoints
    monkeypatch.setattr(checkpoint, "MAX_WRITING_FRACTION", 0.5)  # many writes
    model, X, y = CASES[name]
    parameters = OBSERVERS[observer]()
    if not set(parameters) <= set(model.get_params(deep=False)):
        return  # the estimator has no such parameter, so there is nothing that could change it
    observed = fit(_clone(model, **parameters), X, y)
    assert bits(observed, X) == silent(name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["svc", "svc large", "svr", "linear_svc", "lssvc", "one_class_svm"])
def test_sklearn_callbacks_leave_every_bit_alone(name, silent):
    pytest.importorskip("sklearn.callback", reason="scikit-learn's callbacks came with version 1.9")
    from sklearn.callback import ProgressBar

    model, X, y = CASES[name]
    observed = _clone(model)
    observed.set_callbacks(ProgressBar())
    assert bits(fit(observed, X, y), X) == silent(name)


def test_every_estimator_is_covered():
    fitted = {type(model).__name__ for model, _, _ in CASES.values()}
    assert set(estimators.__all__) == fitted


def test_callbacks_are_called_on_small_problems():
    reports = []
    SVC(callback=reports.append).fit(X_THREE, Y_THREE)
    assert len(reports) >= 3
    assert {report.problems for report in reports} == {3}
    last = reports[-1]
    assert last.gap <= 1e-6
    assert last.iteration > 0


def test_a_callback_stops_small_problems():
    with pytest.warns(ConvergenceWarning, match="1 of 3 pairs"):
        model = SVC(callback=lambda progress: progress.finished == 1).fit(X_THREE, Y_THREE)
    assert [status.converged for status in model.status_] == [True, True, False]
    assert model.predict(X_THREE).shape == Y_THREE.shape
