"""The exact evaluation of the random search: what it says of right and wrong certificates, and short searches."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from mpmath import mpf

from maxmargin import (
    LSSVC,
    LSSVR,
    SVC,
    SVDD,
    SVR,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    QuantileSVR,
    RankSVC,
)
from maxmargin.kernels import Gaussian, Linear
from maxmargin.training import linear_certificate, linear_verification, small_linear_problems
from random_search.__main__ import main
from random_search.arithmetic import EXTENDED, MULTIPLE
from random_search.cases import ESTIMATORS, minimum_kernel, random_case
from random_search.checks import examine
from random_search.exact_values import evaluate, verify_certificate
from random_search.recorder import recorded_certificates
from random_search.worker import Worker

rng = np.random.default_rng(0)
X = rng.normal(size=(24, 3))
SIGNS = np.where(X[:, 0] + rng.normal(size=24) > 0, 1.0, -1.0)
CLASSES = np.digitize(X[:, 1] + 0.5 * rng.normal(size=24), [-0.5, 0.5])
TARGETS = X @ [1.0, -2.0, 0.5] + rng.normal(size=24)
WEIGHTS = rng.random(24) + 0.5
RANKS = rng.integers(3, size=24).astype(float)


def positive(values):
    return np.maximum(values, 0.0)


def tube(f, epsilon=0.1):
    return positive(np.abs(TARGETS - f) - epsilon)


def pinball(f, tau=0.7):
    error = TARGETS - f
    return np.where(error > 0, tau * error, (tau - 1) * error)


def kernel_norm(model):
    """Return ‖w‖² of a kernel model from its fitted attributes."""
    K = model._kernel_(X[model.support_])
    return float((model.dual_coef_ @ K @ model.dual_coef_.T).item())


def rank_loss(f):
    better = RANKS[:, None] > RANKS
    return positive(1.0 - (f[:, None] - f))[better].sum()


def own_margin(model):
    f = model.decision_function(X)
    margin = 1.0 - (f[np.arange(24), CLASSES][:, None] - f)
    margin[np.arange(24), CLASSES] = 0.0
    return positive(margin)


#: Estimators with their primal in the words of the textbook, from decision values f and ‖w‖² alone.
TEXTBOOK = {
    "hinge": (SVC(C=2.0), SIGNS, lambda f, norm: norm / 2 + 2 * (WEIGHTS * positive(1 - SIGNS * f)).sum()),
    "squared hinge": (
        SVC(C=2.0, loss="squared_hinge"),
        SIGNS,
        lambda f, norm: norm / 2 + 2 * (WEIGHTS * positive(1 - SIGNS * f) ** 2).sum(),
    ),
    "hard margin": (SVC(C=np.inf, gamma=20.0, tol=1e-10), SIGNS, lambda f, norm: norm / 2),
    "least squares": (LSSVC(C=2.0), SIGNS, lambda f, norm: norm / 2 + (WEIGHTS * (SIGNS - f) ** 2).sum()),
    "epsilon": (SVR(C=2.0), TARGETS, lambda f, norm: norm / 2 + 2 * (WEIGHTS * tube(f)).sum()),
    "squared epsilon": (
        SVR(C=2.0, loss="squared_epsilon_insensitive"),
        TARGETS,
        lambda f, norm: norm / 2 + 2 * (WEIGHTS * tube(f) ** 2).sum(),
    ),
    "least squares regression": (
        LSSVR(C=2.0),
        TARGETS,
        lambda f, norm: norm / 2 + (WEIGHTS * (TARGETS - f) ** 2).sum(),
    ),
    "quantile": (
        QuantileSVR(C=2.0, quantile=0.7),
        TARGETS,
        lambda f, norm: norm / 2 + 2 * (WEIGHTS * pinball(f)).sum(),
    ),
    "laplacian": (
        SVC(C=2.0, kernel="laplacian"),
        SIGNS,
        lambda f, norm: norm / 2 + 2 * (WEIGHTS * positive(1 - SIGNS * f)).sum(),
    ),
    "sum of kernels": (
        SVR(C=2.0, kernel=Gaussian(0.5) + 0.1 * Linear()),
        TARGETS,
        lambda f, norm: norm / 2 + 2 * (WEIGHTS * tube(f)).sum(),
    ),
    "function": (
        SVC(C=2.0, kernel=minimum_kernel),
        SIGNS,
        lambda f, norm: norm / 2 + 2 * (WEIGHTS * positive(1 - SIGNS * f)).sum(),
    ),
}


def certified_points(model, *data, **weights):
    with recorded_certificates() as records:
        model.fit(*data, **weights)
        return records.of(model)


@pytest.mark.parametrize("name", TEXTBOOK)
def test_primal_is_that_of_the_textbook(name):
    model, y, textbook = TEXTBOOK[name]
    (point,) = certified_points(model, X, y, sample_weight=WEIGHTS)
    f = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    expected = textbook(f, kernel_norm(model))
    assert float(evaluate(point, EXTENDED).primal) == pytest.approx(expected, rel=1e-9)


def test_primal_of_linear_models_is_that_of_the_textbook():
    (point,) = certified_points(LinearSVC(C=2.0, loss="hinge", tol=1e-3), X, SIGNS)
    model = LinearSVC(C=2.0, loss="hinge", tol=1e-3).fit(X, SIGNS)
    expected = (model.coef_**2).sum() / 2 + 2 * positive(1 - SIGNS * model.decision_function(X)).sum()
    assert float(evaluate(point, EXTENDED).primal) == pytest.approx(expected, rel=1e-9)

    sparse_model = LinearSVC(C=2.0, penalty="l1", intercept_scaling=1.0)
    (point,) = certified_points(sparse_model, X, SIGNS)
    loss = 2 * (positive(1 - SIGNS * sparse_model.decision_function(X)) ** 2).sum()
    expected = np.abs(sparse_model.coef_).sum() + np.abs(sparse_model.intercept_).sum() + loss
    assert float(evaluate(point, EXTENDED).primal) == pytest.approx(expected, rel=1e-9)

    regression = LinearSVR(C=2.0, epsilon=0.1)
    (point,) = certified_points(regression, X, TARGETS)
    expected = (regression.coef_**2).sum() / 2 + 2 * tube(regression.predict(X)).sum()
    assert float(evaluate(point, EXTENDED).primal) == pytest.approx(expected, rel=1e-9)


def test_primal_of_one_class_models_is_that_of_the_textbook():
    model = OneClassSVM(nu=0.3)
    (point,) = certified_points(model, X)
    score, rho = model.score_samples(X), -float(model.intercept_[0])
    expected = kernel_norm(model) / 2 - 0.3 * 24 * rho + positive(rho - score).sum()
    assert float(evaluate(point, EXTENDED).primal) == pytest.approx(expected, rel=1e-9)

    ball = SVDD(nu=0.3, kernel="poly", degree=2, coef0=1.0)
    (point,) = certified_points(ball, X)
    excess = positive(ball.geometry_.squared_distance - ball.geometry_.radius**2).sum() / (0.3 * 24)
    assert 2 * float(evaluate(point, EXTENDED, True).primal) == pytest.approx(
        ball.geometry_.radius**2 + excess, rel=1e-9
    )


@pytest.mark.parametrize("strategy", ["crammer_singer", "weston_watkins"])
def test_primal_of_all_in_one_models_is_that_of_the_textbook(strategy):
    model = SVC(C=2.0, multi_class=strategy, kernel="linear", tol=1e-6)
    (point,) = certified_points(model, X, CLASSES)
    weights = np.column_stack([model.coef_, model.intercept_])
    margin = own_margin(model)
    loss = margin.max(axis=1) if strategy == "crammer_singer" else margin.sum(axis=1)
    assert float(evaluate(point, EXTENDED).primal) == pytest.approx((weights**2).sum() / 2 + 2 * loss.sum(), rel=1e-8)


def test_primal_of_rankings_is_that_of_the_textbook():
    model = RankSVC(C=2.0)
    (point,) = certified_points(model, X, RANKS)
    expected = kernel_norm(model) / 2 + 2 * rank_loss(model.predict(X))
    assert float(evaluate(point, EXTENDED).primal) == pytest.approx(expected, rel=1e-8)


def exactly(value):
    """Return a longdouble number in multiple precision: the nearest float64 and the rest, which is one as well."""
    return mpf(float(value)) + mpf(float(value - np.longdouble(float(value))))


MODELS = [
    (SVC(), SIGNS),
    (SVC(kernel="chi_squared"), SIGNS),
    (SVC(kernel="sigmoid", gamma=0.1), SIGNS),
    (SVC(multi_class="weston_watkins"), CLASSES),
    (NuSVC(), SIGNS),
    (NuSVR(), TARGETS),
    (LinearSVC(), SIGNS),
    (LinearSVC(penalty="l1"), SIGNS),
    (LinearOneClassSVM(), None),
]


@pytest.mark.parametrize(("model", "y"), MODELS, ids=lambda value: repr(value)[:40] if hasattr(value, "fit") else "")
def test_extended_and_multiple_precision_agree_within_their_bounds(model, y):
    data = (np.abs(X),) if y is None else (np.abs(X), y)
    for point in certified_points(model, *data):
        coarse, fine = evaluate(point, EXTENDED), evaluate(point, MULTIPLE)
        assert 0 <= coarse.primal_error < 1e-15 * max(1.0, abs(coarse.primal)) + 1e-16 * 24
        assert abs(float(fine.primal - exactly(coarse.primal))) <= coarse.primal_error
        assert abs(float(fine.dual - exactly(coarse.dual))) <= coarse.dual_error
        assert fine.dual <= fine.primal + 1e-12


def test_a_wrong_certificate_is_refuted():
    (point,) = certified_points(SVC(), X, SIGNS)
    wide = replace(point.certificate, primal=point.certificate.primal + 1e-6, dual=point.certificate.dual - 1e-6)
    assert verify_certificate(replace(point, certificate=wide)).confirmed
    for wrong in (replace(wide, primal=wide.primal - 1.1e-6), replace(wide, dual=wide.dual + 1.1e-6)):
        verdict = verify_certificate(replace(point, certificate=wrong))
        assert not verdict.confirmed
        assert verdict.excess == pytest.approx(1e-7, rel=1e-2)
        assert "off by" in str(verdict)


def test_an_infeasible_dual_vector_is_made_feasible_before_it_is_evaluated():
    (point,) = certified_points(SVC(), X, SIGNS)
    shifted = replace(point, dual=point.dual + 1e-3 * SIGNS.max())  # beyond the box, and a sum of 0.024
    assert evaluate(shifted, EXTENDED).dual <= evaluate(point, EXTENDED).primal


@pytest.fixture(scope="module")
def worker():
    with Worker(max_cpu_seconds=3) as one:
        yield one


def findings_of(report):
    """Return what was found. Fits that take long are reported by the command: how long depends on the machine."""
    return [finding for finding in report.findings if finding[0] != "time"]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_certificate_of_random_problems_is_refuted(name, worker):
    """`python -m tests.random_search --problems 10000 --enclosure` is the long form."""
    for number in range(20):
        case = random_case(19, number, name=name)
        report = worker.examine(case, only_enclosure=True)
        assert findings_of(report) == [], case.snippet


@pytest.mark.parametrize("path", ["squared losses", "small", "ascent", "many samples"])
def test_no_native_certificate_is_refuted(path, monkeypatch):
    """The certificates that native code computes are recorded, and as right as those of `certify`."""
    if path != "squared losses":
        monkeypatch.setattr(small_linear_problems, "MAX_RIDGED_VALUES", -1)
    if path not in ("squared losses", "small"):
        monkeypatch.setattr(small_linear_problems, "MAX_STEP_MULTIPLICATIONS", -1)
    if path == "many samples":
        monkeypatch.setattr(small_linear_problems, "MAX_ASCENT_VALUES", -1)
        monkeypatch.setattr(linear_certificate, "MIN_VARIABLES", 0)
    compared = 0
    for name in ("LinearSVC", "LinearSVR", "KernelApproximationSVC"):
        for number in range(25):
            case = random_case(20, number, name=name)
            if case.estimator.get_params().get("solver", "auto") != "auto":
                continue
            report = examine(case, only_enclosure=True)
            assert findings_of(report) == [], case.snippet
            compared += report.certificates
    assert compared > 50


def test_native_certificates_are_recorded(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("the certificate was not computed in native code")

    monkeypatch.setattr(linear_verification, "certify", refuse)
    (small,) = certified_points(LinearSVC(loss="hinge"), X, SIGNS)
    monkeypatch.setattr(small_linear_problems, "MAX_STEP_MULTIPLICATIONS", -1)
    monkeypatch.setattr(linear_certificate, "MIN_VARIABLES", 0)
    (many,) = certified_points(LinearSVC(loss="hinge"), X, SIGNS)
    for point in (small, many):
        assert verify_certificate(point).confirmed
        wrong = replace(point.certificate, primal=point.certificate.dual - 1.0)
        assert not verify_certificate(replace(point, certificate=wrong)).confirmed


@pytest.mark.parametrize("extreme", [False, True])
def test_random_fits_have_no_findings(extreme, worker):
    """`python -m tests.random_search --minutes 10` is the long form."""
    for number in range(40):
        case = random_case(19, number, extreme)
        assert findings_of(worker.examine(case)) == [], case.snippet


@pytest.mark.parametrize(
    ("seed", "number", "extreme", "name"),
    [
        (102, 1426, False, "SVDD"),  # ν = 1: the bounds sum to the total, except for rounding
        (103, 2381, False, "OneClassSVM"),
        (103, 1062, True, "OneClassSVM"),
        (101, 569, False, "QuantileSVR"),  # tanh close to 1: indefinite by 1e-98
        (202, 760, False, "LinearSVC"),  # certificates that native calls compute
        (203, 118, False, "LinearSVR"),
        (101, 4, False, "KernelApproximationSVC"),
    ],
)
def test_former_findings(seed, number, extreme, name, worker):
    report = worker.examine(random_case(seed, number, extreme, name))
    assert findings_of(report) == []
    assert report.certificates == 1


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_certificates_of_native_calls_are_recorded_with_their_points(loss):
    (point,) = certified_points(LinearSVC(loss=loss), X, SIGNS)
    assert point.weights is not None
    assert point.certificate.primal - point.certificate.dual <= 1e-3 * point.certificate.primal
    assert verify_certificate(point).confirmed


def test_a_search_prints_its_seed_and_its_rate(capsys):
    assert main(["--problems", "3", "--seed", "19", "--enclosure"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("seed 19, from case 0\n")
    assert "3 fits in" in text
    assert "0 findings" in text


def broken(**changes):
    """Return a case whose model claims a wrong certificate, warns, or is not finite."""
    case = random_case(19, 1, name="SVC")

    class Broken(SVC):
        def fit(self, X, y, sample_weight=None):
            if "error" in changes:
                raise changes["error"]
            super().fit(X, y, sample_weight)
            if "warning" in changes:
                warnings.warn(changes["warning"], RuntimeWarning, stacklevel=1)
            return self

        def decision_function(self, X):
            return changes.get("decision", 1.0) * super().decision_function(X)

    return replace(case, estimator=Broken())


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"error": OverflowError(34, "Numerical result out of range")}, "error", "OverflowError"),
        ({"error": ValueError("Probabilities contain NaN")}, "error", "unclear ValueError"),
        ({"error": np.linalg.LinAlgError("Singular matrix")}, "error", "LinAlgError"),
        ({"error": ValueError("gap must be at least 0, not -inf")}, "error", "unclear"),
        ({"warning": "overflow encountered in multiply"}, "warning", "RuntimeWarning"),
        ({"decision": np.nan}, "not finite", "decision_function"),
    ],
)
def test_what_the_search_must_find(changes, kind, words):
    found = examine(broken(**changes)).findings
    assert any(of == kind and words in sentence for of, sentence in found)


class Endless(SVC):
    """An estimator whose fit never ends, on a thread that no exception in the main thread ends."""

    def fit(self, X, y, sample_weight=None):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(self._loop).result()

    def _loop(self):
        while True:
            pass


class Deadlocked(SVC):
    """An estimator whose fit waits for ever, without CPU time."""

    def fit(self, X, y, sample_weight=None):
        threading.Event().wait()


class Crashing(SVC):
    """An estimator whose fit ends the process."""

    def fit(self, X, y, sample_weight=None):
        os.kill(os.getpid(), signal.SIGSEGV)


@pytest.mark.parametrize(
    ("estimator", "limits", "kind", "words"),
    [
        (Endless(), {"max_cpu_seconds": 1}, "time", "the fit did not end within 1 s of CPU time"),
        (Deadlocked(), {"max_seconds": 3}, "time", "did not end within 3 s"),
        (Crashing(), {}, "crash", "exit status -11"),
    ],
    ids=["endless", "deadlocked", "crashing"],
)
def test_the_search_goes_on_after_a_fit_that_does_not_end(estimator, limits, kind, words):
    case = random_case(19, 1, name="SVC")
    with Worker(**limits) as worker:
        ((found, sentence),) = worker.examine(replace(case, estimator=estimator)).findings
        assert found == kind
        assert words in sentence
        worker.max_seconds = 600.0
        assert worker.examine(case).certificates > 0
