"""`NuSVC`, `SVR`, `NuSVR` and `OneClassSVM`: scikit-learn's answers, proved."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import maxmargin
from maxmargin import MKLSVC, MKLSVR, SVC, SVDD, SVR, MKLOneClassSVM, NuSVC, NuSVR, OneClassSVM, QuantileSVR, Status
from maxmargin.kernels import Gaussian
from reference.data import diabetes, iris, waves, wine

CHECKED = [
    NuSVC(nu=0.3),  # with 0.5 the weights of a check would be infeasible
    NuSVC(fit_intercept=False),
    NuSVR(fit_intercept=False),
    SVR(),
    NuSVR(),
    OneClassSVM(),
    QuantileSVR(),
    SVDD(),
    MKLSVC(tol=1e-8),  # weights and repetitions of samples are compared to 1e-7
    MKLSVC(norm=2.0, tol=1e-8),
    MKLSVR(tol=1e-8),
    MKLOneClassSVM(tol=1e-8),
    SVC(loss="squared_hinge"),
    SVR(loss="squared_epsilon_insensitive"),
]


def cannot_pass(estimator):
    """scikit-learn's NuSVC is excused from this check too, because it ignores class_weight."""
    if isinstance(estimator, NuSVC) and estimator.fit_intercept:
        return {"check_class_weight_classifiers": "no nu is feasible for classes whose weights differ 10⁷ times"}
    return {}


@parametrize_with_checks(CHECKED, expected_failed_checks=cannot_pass)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


REGRESSORS = [
    ("SVR", {"C": 0.1, "epsilon": 0.2}),
    ("SVR", {"C": 10.0, "epsilon": 0.05}),
    ("SVR", {"C": 1.0, "epsilon": 0.0}),
    ("NuSVR", {"C": 1.0, "nu": 0.3}),
    ("NuSVR", {"C": 10.0, "nu": 0.9}),
]
KERNELS = [
    {"kernel": "rbf", "gamma": 0.1},
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.1},
]


def both(name, **parameters):
    """Our estimator and scikit-learn's; at small tolerances LIBSVM may need for ever."""
    return getattr(maxmargin, name)(tol=1e-6, **parameters), getattr(svm, name)(tol=1e-5, max_iter=10**6, **parameters)


def squared_norm(model, X):
    """‖w‖² from the model's own decision values: Σ coefficient · (f − b)."""
    coefficients = model.dual_coef_.toarray()[0] if sparse.issparse(model.dual_coef_) else model.dual_coef_[0]
    decide = getattr(model, "decision_function", None) or model.predict
    return float(coefficients @ (decide(X[model.support_]) - model.intercept_[0]))


def tube_objective(model, X, y, weights, parameters):
    """The textbook primal; the width of a tube that comes out is the best one for the errors."""
    errors = np.abs(y - model.predict(X))
    costs = parameters["C"] * weights
    value = 0.5 * squared_norm(model, X)
    if "epsilon" in parameters:
        return value + float(costs @ np.maximum(0.0, errors - parameters["epsilon"]))
    widths = [0.0, *errors]
    return value + min(
        parameters["nu"] * costs.sum() * width + float(costs @ np.maximum(0.0, errors - width)) for width in widths
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # scikit-learn's, at its limit of steps
@pytest.mark.parametrize(("name", "parameters"), REGRESSORS)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel["kernel"])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_regression_is_at_least_as_good_as_scikit_learns(name, parameters, kernel, as_sparse):
    X, y = diabetes()
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    ours, theirs = both(name, **parameters, **kernel)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    given = sparse.csr_matrix(X) if as_sparse else X
    ours.fit(given, y, sample_weight=weights)
    theirs.fit(given, y, sample_weight=weights)
    found, expected = (tube_objective(model, X, y, weights, parameters) for model in (ours, theirs))
    assert found == pytest.approx(expected, rel=1e-3)
    assert found <= expected * (1 + 1e-7)
    assert found == pytest.approx(ours.certificate_.primal, rel=1e-6)
    assert ours.dual_coef_.shape == (1, len(ours.support_))
    assert abs(ours.dual_coef_.sum()) < 1e-6
    np.testing.assert_allclose(ours.predict(given), theirs.predict(given), atol=0.02)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("load", [iris, wine])
@pytest.mark.parametrize("nu", [0.1, 0.5])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel["kernel"])
def test_nu_classification_is_scikit_learns(load, nu, kernel):
    X, y = load()
    ours, theirs = both("NuSVC", nu=nu, decision_function_shape="ovo", **kernel)
    ours.fit(X, y)
    theirs.fit(X, y)
    assert [len(machine.free) + len(machine.bounded) >= nu * len(machine.samples) - 1e-6 for machine in ours.geometry_]
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert all(certificate.relative_gap < 1e-6 for certificate in ours.certificate_)
    if kernel["kernel"] == "rbf":  # else LIBSVM is rough, or the offsets are any point of an interval
        scale = np.abs(theirs.decision_function(X)).max()
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3 * scale)
        np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)


def test_two_classes_of_nu_classification():
    X, y = wine()
    y = np.where(y == 1, "yes", "no")
    ours, theirs = both("NuSVC", nu=0.3)
    ours.fit(X, y)
    theirs.fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)
    assert ours.geometry_.cost == pytest.approx(np.abs(ours.dual_coef_).max(), rel=1e-6)
    same = SVC(C=ours.geometry_.cost, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(same.decision_function(X), ours.decision_function(X), atol=1e-5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("nu", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel["kernel"])
def test_novelty_detection_is_at_least_as_good_as_scikit_learns(nu, kernel):
    X, _ = diabetes()
    ours, theirs = both("OneClassSVM", nu=nu, **kernel)
    ours.fit(X)
    theirs.fit(X)

    def objective(model):
        scores = model.score_samples(X)
        return 0.5 * squared_norm(model, X) + min(
            float(np.maximum(0.0, rho - scores).sum()) - nu * len(X) * rho for rho in scores
        )

    found, expected = objective(ours), objective(theirs)
    assert found <= expected + 1e-7 * abs(expected)
    assert found == pytest.approx(ours.certificate_.primal, rel=1e-6, abs=1e-9)
    assert ours.dual_coef_.sum() == pytest.approx(nu * len(X))
    assert np.mean(ours.decision_function(X) < -1e-6) <= nu
    np.testing.assert_array_equal(ours.offset_, -ours.intercept_)


class TestLarge:
    """Large enough for the block solver."""

    @pytest.mark.parametrize(
        "model",
        [
            SVR(C=5.0),
            SVR(C=1.0, fit_intercept=False),
            NuSVR(nu=0.2),
            OneClassSVM(nu=0.1),
            QuantileSVR(quantile=0.2),
            SVDD(nu=0.1, kernel="linear"),
        ],
        ids=lambda model: type(model).__name__,
    )
    def test_certified(self, model):
        X, y = waves()
        model = clone(model).fit(X, y)
        assert model.status_ is Status.CONVERGED
        assert model.certificate_.violation <= 1e-3
        exact = clone(model).set_params(solver="pairwise", tol=1e-5).fit(X, y)
        assert model.certificate_.dual == pytest.approx(exact.certificate_.dual, rel=1e-4)

    def test_nu_classification(self):
        X, y = waves()
        labels = (y > 0.3).astype(int)
        model = NuSVC(nu=0.2).fit(X, labels)
        assert model.certificate_.violation <= 1e-3
        assert model.score(X, labels) > 0.95
        X, labels = np.vstack([X, X + 6.0]), np.concatenate([labels, labels + 2])
        assert NuSVC(nu=0.2, n_jobs=2).fit(X, labels).score(X, labels) > 0.95


class TestAnyData:
    @pytest.mark.parametrize("model", [SVR(gamma=0.1), NuSVR(gamma=0.1), OneClassSVM(gamma=0.1), NuSVC(gamma=0.1)])
    def test_kernels_of_all_kinds_agree(self, model):
        X, y = iris()
        expected = clone(model).fit(X, y)
        K = Gaussian(0.1)(X)
        decide = "decision_function" if hasattr(model, "decision_function") else "predict"
        precomputed = clone(model).set_params(kernel="precomputed").fit(K, y)
        own = clone(model).set_params(kernel=lambda A, B: Gaussian(0.1)(A, B)).fit(X, y)
        for other, given in ((precomputed, K), (own, X)):
            np.testing.assert_allclose(
                getattr(other, decide)(given), getattr(expected, decide)(X), rtol=1e-6, atol=1e-6
            )
        with pytest.raises(AttributeError, match="linear kernel"):
            _ = expected.coef_

    def test_coefficients_of_linear_machines(self):
        X, y = diabetes()
        for given in (X, sparse.csr_matrix(X)):
            model = SVR(kernel="linear").fit(given, y)
            weights = model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_
            np.testing.assert_allclose(X @ weights[0] + model.intercept_[0], model.predict(X), atol=1e-10)

    def test_weights_are_repetitions(self):
        X, y = diabetes()
        counts = np.random.default_rng(0).integers(0, 4, len(y))
        for model in (SVR(tol=1e-7), NuSVR(tol=1e-7), OneClassSVM(tol=1e-7)):
            weighted = clone(model).set_params(gamma=0.1).fit(X, y, sample_weight=counts)
            repeated = clone(model).set_params(gamma=0.1).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
            decide = "decision_function" if hasattr(model, "decision_function") else "predict"
            np.testing.assert_allclose(getattr(weighted, decide)(X), getattr(repeated, decide)(X), atol=1e-5)

    def test_constant_targets(self):
        X, _ = iris()
        for model in (SVR(), NuSVR()):
            fitted = clone(model).fit(X, np.full(len(X), 7.0))
            np.testing.assert_allclose(fitted.predict(X), 7.0, atol=0.11)

    def test_few_samples(self):
        assert SVR(epsilon=0.5).fit([[0.0], [1.0]], [0.0, 4.0]).predict([[0.0]]) == pytest.approx(1.4, abs=1.0)
        assert len(SVR().fit([[1.0]], [2.0]).support_) == 0
        assert SVR().fit([[1.0]], [2.0]).predict([[5.0]]) == pytest.approx(2.0)
        assert OneClassSVM(nu=1.0).fit([[0.0], [1.0]]).decision_function([[0.5]]).shape == (1,)
        np.testing.assert_array_equal(NuSVC(nu=1.0).fit([[0.0], [1.0]], [0, 1]).predict([[0.0], [1.0]]), [0, 1])


class TestWhatMachinesShare:
    def test_pickles_and_warm_starts(self):
        X, y = diabetes()
        for model in (SVR(warm_start=True), NuSVR(warm_start=True), OneClassSVM(warm_start=True)):
            model.fit(X, y)
            steps, _ = model.n_iter_, model.certificate_  # computed before it is stored
            copy = pickle.loads(pickle.dumps(model))
            np.testing.assert_array_equal(copy.dual_coef_, model.dual_coef_)
            assert copy.certificate_.gap == model.certificate_.gap
            assert copy.geometry_.slack.shape == (len(X),)
            assert model.fit(X, y).n_iter_ < max(2, steps)

    def test_limits_warn(self):
        X, y = diabetes()
        for model in (SVR(C=1e3, max_iter=3), NuSVR(C=1e3, max_iter=3), OneClassSVM(max_iter=1)):
            with pytest.warns(ConvergenceWarning, match=f"{type(model).__name__} stopped before the tolerance"):
                model.fit(X, y)
            assert model.fit_status_ == 1
            assert np.isfinite(model.intercept_).all()

    def test_data_that_change_after_fit(self):
        X, y = diabetes()
        for model in (SVR(), OneClassSVM(), SVDD()):
            given = X.copy()
            model.fit(given, y)
            given[:] = 0.0
            assert np.isfinite(model.predict(X)).all()
            assert not hasattr(model, "score_samples") or np.isfinite(model.score_samples(X)).all()
            with pytest.raises(RuntimeError, match="training data were changed"):
                _ = model.certificate_

    def test_the_radius_of_a_ball(self):
        X, _ = diabetes()
        for given in (X, sparse.csr_matrix(X)):
            model = SVDD(nu=0.1, kernel="linear").fit(given)
            assert model.offset_ == pytest.approx(-(model.geometry_.radius**2), rel=1e-6)

    def test_interrupted_in_the_last_report(self):
        def interrupt(progress):
            raise KeyboardInterrupt

        X, y = diabetes()
        for solver in ("pairwise", "block"):
            model = SVR(solver=solver, callback=interrupt)
            with pytest.raises(KeyboardInterrupt):
                model.fit(X, y)
            assert model.status_ is Status.INTERRUPTED
            assert np.isfinite(model.predict(X)).all()
        for model in (OneClassSVM(solver="pairwise", callback=interrupt), SVDD(solver="pairwise", callback=interrupt)):
            with pytest.raises(KeyboardInterrupt):
                model.fit(X)
            assert model.status_ is Status.INTERRUPTED
            assert np.isfinite(model.score_samples(X)).all()
            assert set(model.predict(X)) <= {-1, 1}

    def test_a_stop_request_in_a_nested_start_is_obeyed(self):
        calls = []
        X = np.random.default_rng(3).normal(size=(6000, 10))
        model = OneClassSVM(callback=lambda progress: calls.append(progress) or len(calls) == 1, solver="block")
        with pytest.warns(ConvergenceWarning):
            model.fit(X)
        assert model.status_ is Status.STOPPED

    def test_callbacks_see_progress(self):
        X, y = waves(1500)
        seen = []
        with pytest.warns(ConvergenceWarning):
            SVR(C=1e4, callback=lambda progress: bool(seen.append(progress)) or len(seen) > 2).fit(X, y)
        assert len(seen) >= 3

    def test_pipelines_and_searches(self):
        X, y = diabetes()
        search = GridSearchCV(make_pipeline(StandardScaler(), SVR()), {"svr__C": [0.1, 1.0]}, cv=3).fit(X, y)
        assert search.best_score_ > 0.3


class TestErrors:
    @pytest.mark.parametrize(
        ("model", "message"),
        [
            (SVR(C=0.0), "C must be a number above 0"),
            (NuSVR(C=np.inf), "C must be a number above 0"),
            (SVR(epsilon=-1.0), "epsilon must be a number of at least 0"),
            (NuSVR(nu=0.0), "nu must be a number above 0"),
            (NuSVR(nu=1.5), "nu must be a number above 0 and at most 1"),
            (OneClassSVM(nu=2), "nu must be a number above 0 and at most 1"),
            (NuSVC(nu="half"), "nu must be a number above 0"),
            (SVR(kernel="rgb"), "rgb"),
            (SVR(warm_start=1), "warm_start must be True or False"),
        ],
    )
    def test_parameters(self, model, message):
        X, y = iris()
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)

    def test_infeasible_nu_is_found_before_any_kernel_value_is_computed(self):
        def never(A, B):
            raise AssertionError("no kernel value is needed")

        X = np.arange(10.0)[:, None]
        with pytest.raises(ValueError, match=r"specified nu is infeasible: nu=0.5.*at most 0.4 is possible"):
            NuSVC(nu=0.5, kernel=never).fit(X, [0, 0] + [1] * 8)

    @pytest.mark.parametrize("solver", ["pairwise", "block"])
    def test_kernels_that_are_not_finite(self, solver):
        X, y = iris()
        for model in (SVR(), NuSVR(), OneClassSVM(), QuantileSVR(), NuSVC()):
            model.set_params(kernel=lambda A, B: np.full((len(A), len(B)), np.nan), solver=solver)
            with pytest.raises(ValueError, match="finite"):
                model.fit(X, y)

    @pytest.mark.parametrize(
        "model", [SVR(C=1e308), NuSVR(C=1e308), QuantileSVR(C=1e308), OneClassSVM(), SVDD(), SVR(C=1e-320)]
    )
    def test_costs_beyond_numbers(self, model):
        X, y = iris()
        weights = np.full(len(y), 1e308 if not hasattr(model, "C") else 10.0 if model.C > 1 else 1e-10)
        with pytest.raises(ValueError, match="overflows or underflows float64"):
            model.fit(X, y, sample_weight=weights)
        with pytest.raises(ValueError, match="C overflows float64"):
            SVR(C=10**400).fit(X, y)

    def test_attributes_before_fit(self):
        for model in (SVR(), SVC()):
            with pytest.raises(AttributeError, match="before fit"):
                _ = model.coef_

    def test_all_weights_zero(self):
        X, y = iris()
        for model in (SVR(), NuSVR(), OneClassSVM(), NuSVC()):
            with pytest.raises(ValueError, match="all samples have zero or negative weights"):
                model.fit(X, y, sample_weight=np.zeros(len(y)))
