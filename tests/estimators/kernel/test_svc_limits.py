"""`SVC` under limits, from warm starts, with callbacks, on several threads, and on data that are hard to finish."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, Status
from maxmargin.datasets import chessboard
from maxmargin.solvers import PairwiseSolver, StoppingRule, monitor


def test_limits_stop_with_a_valid_model_and_say_so():
    X, y = chessboard(400)
    with pytest.warns(ConvergenceWarning, match=r"limit on iterations.*raise max_iter.*duality gap"):
        model = SVC(C=100, gamma=1.0, max_iter=20).fit(X, y)
    assert model.fit_status_ == 1
    assert model.status_ is Status.MAX_ITERATIONS
    assert model.certificate_.gap > 1
    assert model.predict(X).shape == (400,)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        SVC(C=100, gamma=1.0, max_seconds=0.0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="in 3 of 3 pairs of classes"):
        SVC(max_iter=1).fit(*load_iris(return_X_y=True))


def test_gap_tolerance_stops_early():
    X, y = chessboard(400)
    exact = SVC(C=100, gamma=1.0, tol=1e-9, solver="pairwise").fit(X, y)
    rough = SVC(C=100, gamma=1.0, tol=1e-9, solver="pairwise", gap_tol=100.0).fit(X, y)
    assert rough.status_ is Status.CONVERGED
    assert rough.certificate_.gap <= 100.0
    assert rough.n_iter_[0] < exact.n_iter_[0]


def test_callback_stops_with_a_warning(monkeypatch):
    monkeypatch.setattr(monitor, "REPORT_INTERVAL", 0.0)  # a report at every opportunity
    X, y = chessboard(3000, noise=0.1)
    seen = []
    with pytest.warns(ConvergenceWarning, match="callback asked to stop"):
        model = SVC(C=1000, gamma=1.0, tol=1e-8, callback=lambda p: bool(seen.append(p)) or len(seen) == 2).fit(X, y)
    assert len(seen) >= 2
    assert seen[1].dual >= seen[0].dual
    assert model.status_ is Status.STOPPED
    assert seen[0].gap == pytest.approx(seen[0].primal - seen[0].dual)


def test_warm_start_continues():
    X, y = chessboard(600)
    with pytest.warns(ConvergenceWarning):
        model = SVC(C=100, gamma=1.0, warm_start=True, max_iter=200).fit(X, y)
    first = model.certificate_.dual
    model.set_params(max_iter=-1).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.certificate_.dual > first
    assert model.fit(X, y).n_iter_[0] == 0
    cold = SVC(C=100, gamma=1.0).fit(X, y)
    assert model.certificate_.dual == pytest.approx(cold.certificate_.dual, rel=1e-6)
    np.testing.assert_array_equal(SVC(C=100, gamma=1.0).fit(X, y).dual_coef_, cold.dual_coef_)
    model.fit(X[:300], y[:300])  # other data: a fresh start, not an error
    assert model.status_ is Status.CONVERGED


def test_a_solver_object_is_taken_as_it_is():
    X, y = load_iris(return_X_y=True)
    solver = PairwiseSolver("maximum_gain", stopping=StoppingRule(violation=1e-7), finish_below=0)
    model = SVC(solver=solver).fit(X, y)
    assert max(c.violation for c in model.certificate_) <= 1e-7


def test_selection_rules_agree():
    X, y = chessboard(500)
    values = [
        SVC(C=50, gamma=1.0, selection=rule, solver="pairwise").fit(X, y).certificate_.dual
        for rule in ("most_violating_pair", "second_order", "maximum_gain")
    ]
    np.testing.assert_allclose(values, values[0], rtol=1e-8)


def test_cache_size_changes_nothing():
    board, y = chessboard(300)
    for X, options in (
        (board, {}),
        (board, {"kernel": "poly", "coef0": 1.0, "degree": 2}),
        (sparse.csr_array(np.where(board > 1, board, 0.0)), {"kernel": "laplacian"}),
    ):
        at_once = SVC(gamma=1.0, **options).fit(X, y)
        large = SVC(gamma=1.0, solver="pairwise", **options).fit(X, y)
        small = SVC(gamma=1.0, solver="pairwise", cache_size=1e-6, **options).fit(X, y)
        assert abs(at_once.dual_coef_ - large.dual_coef_).max() < 1e-10  # one native call: the same up to rounding
        assert (large.dual_coef_ != small.dual_coef_).sum() == 0
        np.testing.assert_array_equal(large.support_, small.support_)
        np.testing.assert_allclose(large.intercept_, small.intercept_, rtol=1e-11)
        assert large.certificate_.primal == pytest.approx(small.certificate_.primal, rel=1e-12)


def test_many_threads_train_the_same_pairs():
    X, y = load_digits(return_X_y=True)
    X = np.vstack([X, X[:300] + 0.1])
    y = np.concatenate([y, y[:300]])
    one, many = SVC(n_jobs=1).fit(X, y), SVC(n_jobs=3).fit(X, y)
    np.testing.assert_array_equal(one.dual_coef_, many.dual_coef_)


def test_an_error_in_one_pair_ends_the_fit():
    X, y = load_digits(return_X_y=True)
    X, y = np.vstack([X, X]), np.concatenate([y, y])

    def moody(A, B):
        raise RuntimeError("not today")

    for jobs in (1, 2):
        with pytest.raises(RuntimeError, match="not today"):
            SVC(kernel=moody, n_jobs=jobs).fit(X, y)


def test_unscaled_data_end_with_an_honest_answer():
    X, y = load_wine(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SVC(kernel="linear", C=1.0).fit(X * [1e3, *[1.0] * 12], y)
    assert max(c.violation for c in model.certificate_) <= 1e-3


@pytest.mark.parametrize("C", [1e-8, 1e8])
def test_huge_and_tiny_costs(C):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = SVC(C=C).fit(X, y)
    assert model.certificate_.violation <= 1e-3
    assert model.certificate_.relative_gap < 1e-6


@pytest.mark.parametrize("C", [1e12, 1e15])
def test_a_cost_that_never_binds_is_a_hard_margin(C):
    X, y = load_iris(return_X_y=True)
    for rows, kernel in ((slice(0, 100), {"kernel": "linear"}), (slice(50, 150), {"gamma": 1.0})):
        hard = SVC(C=np.inf, **kernel).fit(X[rows], y[rows])
        soft = SVC(C=C, **kernel).fit(X[rows], y[rows])
        np.testing.assert_allclose(soft.decision_function(X), hard.decision_function(X), rtol=1e-6, atol=1e-6)
        assert len(soft.geometry_.bounded) == 0


def test_degenerate_data():
    for X, y in (
        ([[0.0], [1.0]], [0, 1]),  # two samples
        ([[1.0], [1.0]], [0, 1]),  # the same sample with both labels
        ([[0.0, 0.0]] * 4, [0, 1, 0, 1]),  # nothing but zeros
        ([[5.0]] * 5 + [[6.0]], [0, 0, 0, 0, 0, 1]),  # one sample of a class
    ):
        model = SVC().fit(X, y)
        assert model.certificate_.violation <= 1e-3
        assert np.isfinite(model.decision_function(X)).all()


class TestBeyondDoublePrecision:
    """One column ten thousand times the others: the tolerance is finer than the digits there are."""

    random = np.random.default_rng(0)
    X, y = random.normal(size=(30, 4)) * [1e4, 1, 1, 1], random.integers(0, 2, 30)

    @pytest.fixture(autouse=True)
    def _impatient(self, monkeypatch):
        monkeypatch.setattr("maxmargin.solvers.smo.pairwise.STALL_STEPS", 20_000)

    def test_a_fit_ends_and_says_so(self):
        with pytest.warns(ConvergenceWarning, match="finer than double precision"):
            model = SVC(kernel="poly", gamma=0.25).fit(self.X, self.y)
        assert model.status_ is Status.PRECISION
        assert model.certificate_.gap >= 0

    @pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numbers beyond the largest on the way
    def test_the_answer_is_not_worse_than_none(self):
        with pytest.warns(ConvergenceWarning, match="finer than double precision"):
            model = SVC(kernel="linear", C=1e6, loss="squared_hinge").fit(self.X, self.y)
        assert model.certificate_.dual >= -model.certificate_.rounding
        assert model.certificate_.primal <= 1.001 * 30 * 1e6  # that of w = 0
