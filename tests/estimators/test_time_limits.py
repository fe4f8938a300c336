"""A time limit holds for every estimator, wherever it passes, and leaves a valid model that says what is known."""

import itertools
import warnings
from time import perf_counter, process_time
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import maxmargin.deadline
import maxmargin.training.trained_model
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
    _native,
)
from maxmargin.machines.linear import linear_svc, linear_svr
from maxmargin.matrices import features
from maxmargin.problems import Status
from maxmargin.solvers import monitor
from maxmargin.training import linear_verification


def samples(n, features, classes=2):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, features))
    score = X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + random.normal(size=n)
    labels = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    return X, labels, np.sin(X[:, 0]) + X[:, 1] + 0.3 * random.normal(size=n)


#: Estimator, its targets, and the number of classes.
CASES = {
    "svc": (SVC(), "labels", 2),
    "svc squared hinge": (SVC(loss="squared_hinge"), "labels", 2),
    "svc hard margin": (SVC(C=np.inf, gamma=10.0), "labels", 2),
    "svc probability": (SVC(probability=True), "labels", 2),
    "svc pairwise": (SVC(solver="pairwise"), "labels", 2),
    "svc gap": (SVC(gap_tol=1e-3), "labels", 2),
    "svc three classes": (SVC(probability=True), "labels", 3),
    "svc one-vs-rest": (SVC(multi_class="ovr"), "labels", 3),
    "svc crammer-singer": (SVC(multi_class="crammer_singer"), "labels", 3),
    "svc weston-watkins": (SVC(multi_class="weston_watkins"), "labels", 3),
    "nu_svc": (NuSVC(), "labels", 2),
    "svr": (SVR(), "targets", 2),
    "svr noise": (SVR(noise=True), "targets", 2),
    "nu_svr": (NuSVR(), "targets", 2),
    "quantile_svr": (QuantileSVR(), "targets", 2),
    "one_class_svm": (OneClassSVM(), "none", 2),
    "one_class_svm probability": (OneClassSVM(probability=True), "none", 2),
    "svdd": (SVDD(), "none", 2),
    "lssvc": (LSSVC(), "labels", 2),
    "lssvr": (LSSVR(), "targets", 2),
    "online_svc": (OnlineSVC(), "labels", 2),
    "online_svc finishing": (OnlineSVC(finishing=True), "labels", 2),
    "online_one_class_svm": (OnlineOneClassSVM(), "none", 2),
    "linear_svc": (LinearSVC(), "labels", 2),
    "linear_svc probability": (LinearSVC(probability=True), "labels", 3),
    "linear_svc l1": (LinearSVC(penalty="l1"), "labels", 2),
    "linear_svc crammer-singer": (LinearSVC(multi_class="crammer_singer"), "labels", 3),
    "linear_svc ascent": (LinearSVC(solver="dual_coordinate_ascent"), "labels", 2),
    "linear_svr": (LinearSVR(noise=True), "targets", 2),
    "linear_one_class_svm": (LinearOneClassSVM(), "none", 2),
    "kernel_approximation_svc": (KernelApproximationSVC(n_components=50), "labels", 2),
    "rank_svc": (RankSVC(), "targets", 2),
}


def fit(name, n, features, **options):
    """Fit a case; return the model, its samples and the convergence warnings."""
    estimator, target, classes = CASES[name]
    X, labels, targets = samples(n, features, classes)
    model = type(estimator)(**{**estimator.get_params(), **options})
    y = {"labels": labels, "targets": targets, "none": None}[target]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert all(issubclass(one.category, ConvergenceWarning) for one in caught), [str(one.message) for one in caught]
    return model, X, [str(one.message) for one in caught]


def check_valid(model, X):
    """Check that a model predicts finite values, and probabilities and intervals where it was asked for them."""
    assert len(model.predict(X[:50])) == 50
    if hasattr(model, "decision_function"):
        assert np.isfinite(model.decision_function(X[:50])).all()
    if getattr(model, "probability", False) is True:
        assert np.isfinite(model.predict_proba(X[:50])).all()
    if getattr(model, "noise", False):
        assert np.isfinite(model.predict_interval(X[:50])).all()


@pytest.mark.parametrize("n", [300, 3000])
@pytest.mark.parametrize("name", sorted(set(CASES) - {"rank_svc"}))
def test_a_limit_that_has_passed_already_leaves_a_valid_model(name, n):
    model, X, messages = fit(name, n, 5, max_seconds=0)
    assert len(messages) == 1
    assert "max_seconds" in messages[0]
    check_valid(model, X)


class CountingClock:
    """A clock that advances by 1,000 seconds with every reading, from now on."""

    def __init__(self):
        self.now = perf_counter()

    def __call__(self):
        self.now += 1000.0
        return self.now


@pytest.mark.parametrize("n", [300, 2500])
@pytest.mark.parametrize("name", sorted(set(CASES) - {"rank_svc", "online_svc", "online_one_class_svm"}))
def test_the_limit_may_pass_anywhere(name, n, monkeypatch):
    # A deadline passes at its k-th check, wherever in the computation that is.
    for k in [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377]:
        monkeypatch.setattr(maxmargin.deadline, "perf_counter", CountingClock())
        model, X, messages = fit(name, n, 5, max_seconds=1000.0 * k - 500.0, n_jobs=1)
        monkeypatch.undo()
        check_valid(model, X)
        if isinstance(model, OnlineSVC):
            continue
        statuses = model.status_ if isinstance(model.status_, list) else [model.status_]
        assert set(statuses) <= {Status.CONVERGED, Status.MAX_SECONDS, Status.PRECISION}
        certificates = model.certificate_ if isinstance(model.certificate_, list) else [model.certificate_]
        assert max(certificate.infeasibility for certificate in certificates) < 1e-6
        if not messages:
            return
        assert "max_seconds" in messages[0] or "time limit" in messages[0]


#: Cases that take longer than the limit of the next test.
LONG = sorted(
    set(CASES)
    - {"rank_svc", "linear_svc", "linear_svc probability", "linear_svc l1", "linear_svc crammer-singer"}
    - {"linear_svc ascent", "linear_svr", "linear_one_class_svm", "kernel_approximation_svc"}
)


@pytest.mark.parametrize("name", LONG)
def test_fits_end_in_time(name):
    limit = 0.3
    samples(20_000, 50)
    began = process_time()  # one thread: at most the time that has passed, whatever else the computer does
    model, X, messages = fit(name, 20_000, 50, max_seconds=limit, n_jobs=1)
    taken = process_time() - began
    assert taken < limit + 0.5 + 0.3  # the last: generating and validating the samples
    assert "max_seconds" in messages[0] if messages else taken < limit + 0.3  # it has converged before the limit
    check_valid(model, X)


@pytest.mark.parametrize("name", ["svc", "one_class_svm", "svr", "svc three classes"])
def test_a_stopped_fit_computes_no_certificate(name, monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("the certificate was computed")

    monkeypatch.setattr(maxmargin.training.trained_model, "certify", forbidden)
    monkeypatch.setattr(maxmargin.deadline, "perf_counter", CountingClock())  # the limit passes at the tenth check
    model, _, messages = fit(name, 6000, 20, max_seconds=9_500, n_jobs=1)
    assert "certificate_" in messages[0] or "before the gradient was computed" in messages[0]
    with pytest.raises(AssertionError, match="was computed"):
        _ = model.certificate_
    monkeypatch.undo()
    certificates = model.certificate_ if isinstance(model.certificate_, list) else [model.certificate_]
    assert all(np.isfinite(certificate.gap) for certificate in certificates)


def test_the_message_states_what_the_solver_knew():
    model, _, messages = fit("svc", 6000, 20, max_iter=50)
    certificate = model.certificate_
    assert f"dual value {certificate.dual:.3g}"[:14] in messages[0]
    violation = float(messages[0].split("Violation ")[1].removeprefix("at least ").split()[0])
    assert 0.9 * violation <= certificate.violation  # the largest of the known ones


def test_the_start_of_one_class_problems_is_a_usable_model():
    for estimator in (OneClassSVM(nu=0.3, max_seconds=0), SVDD(nu=0.3, max_seconds=0)):
        X = samples(3000, 5)[0]
        with pytest.warns(ConvergenceWarning, match="before the gradient was computed"):
            estimator.fit(X)
        assert 0.05 < np.mean(estimator.predict(X) > 0) < 0.95  # the offset comes from a sample of the data


def test_sparse_samples_and_slices(monkeypatch):
    # Slices of one native call may have any size: no value depends on it.
    random = np.random.default_rng(0)
    dense = random.normal(size=(1200, 40))
    one_in_ten = sparse.random_array((1200, 300), density=0.1, format="csr", rng=random)
    labels = random.integers(0, 2, 1200)
    for X, multiplications in itertools.product([dense, dense.astype(np.float32), one_in_ten], [10**4, 10**6]):
        expected = SVC(solver="block", n_jobs=2).fit(X, labels)
        monkeypatch.setattr("maxmargin.kernels.kernel_columns.MULTIPLICATIONS_PER_CALL", multiplications)
        found = SVC(solver="block", n_jobs=2).fit(X, labels)
        monkeypatch.undo()
        assert found.dual_coef_.data.tobytes() == expected.dual_coef_.data.tobytes()
        assert found.decision_function(X).tobytes() == expected.decision_function(X).tobytes()


#: The products with all data, which the slices of a linear fit consist of.
PASSES = ["row_squared_norms", "row_decisions", "combine_rows", "row_moments", "responses_of_rows"]
PASSES += ["extended_decisions", "extended_combination", "coordinate_descent", "coordinate_ascent"]

#: Modules that read the clock in a linear fit.
READERS = [maxmargin.deadline, linear_svc, linear_svr, features, linear_verification]


@pytest.mark.parametrize("passes", [2, 10, 30, 60, 100, 150, 200, 300])
@pytest.mark.parametrize("name", ["linear_svc", "linear_svc probability", "linear_svc l1", "linear_svr"])
def test_a_linear_fit_ends_in_time_on_a_slow_computer(name, passes, monkeypatch):
    # A clock that advances with every pass over the data, by six times what one takes on an ordinary core.
    n, width, now = 1000, 200, [0.0]
    seconds = 6 * n * width * linear_verification.ORDINARY_SECONDS_PER_VALUE

    def advancing(function):
        def call(*arguments):
            now[0] += seconds
            return function(*arguments)

        return call

    for one in PASSES:
        monkeypatch.setattr(_native, one, advancing(getattr(_native, one)))
    for module in READERS:
        monkeypatch.setattr(module, "perf_counter", lambda: now[0])
    monkeypatch.setattr(monitor, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    model, X, messages = fit(name, n, width, max_seconds=passes * seconds, n_jobs=1, tol=1e-12)
    monkeypatch.undo()
    check_valid(model, X)
    assert now[0] <= (passes + 2 * len(np.atleast_2d(model.coef_)) + 4) * seconds
    assert messages or now[0] <= passes * seconds
