"""Multi-class strategies: one-vs-rest and all-in-one, compared with other libraries and generic solvers."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import SVC, NuSVC, Status
from maxmargin.formulations import crammer_singer, weston_watkins
from maxmargin.kernels import Gaussian, make_kernel
from maxmargin.matrices import PrecomputedMatrix
from maxmargin.solvers import BlockSolver, PairwiseSolver
from maxmargin.testing.quadratic_program import solve_quadratic_program
from reference.data import iris, wine

ALL_IN_ONE = {"crammer_singer": crammer_singer, "weston_watkins": weston_watkins}
NOT_PAIRS = ["ovr", *ALL_IN_ONE]
STRATEGIES = ["ovo", *NOT_PAIRS]


def listed(values):
    return values if isinstance(values, list) else [values]


@parametrize_with_checks([SVC(multi_class=name) for name in NOT_PAIRS])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def random_case(seed):
    random = np.random.default_rng(seed)
    n, features, classes = random.integers(8, 22), random.integers(1, 5), random.integers(3, 5)
    y = np.arange(n) % classes
    X = np.abs(random.normal(size=(n, features)) + 0.7 * y[:, None])  # at least 0, for the chi-squared kernel
    return X, y, 10.0 ** random.uniform(-2, 2), random.uniform(0.2, 3, n)


class TestAgainstQuadraticPrograms:
    @pytest.mark.parametrize("name", ALL_IN_ONE)
    @pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "laplacian", "chi_squared"])
    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_objective_of_all_in_one_machines(self, name, kernel, fit_intercept):
        for seed in range(6):
            X, y, cost, weights = random_case(seed)
            weights[seed] *= seed > 2  # a row without weight in some cases
            factors = {0: 2.5} if seed % 2 else None
            model = SVC(C=cost, kernel=kernel, gamma=0.3, coef0=0.5, fit_intercept=fit_intercept, multi_class=name,
                        class_weight=factors).fit(X, y, sample_weight=weights)  # fmt: skip
            rows = np.flatnonzero(weights)
            K = make_kernel(kernel, gamma=0.3, coef0=0.5, degree=3)(X)
            costs = cost * weights * np.where(y == 0, 2.5 if factors else 1.0, 1.0)
            problem = ALL_IN_ONE[name].pose(
                PrecomputedMatrix(K[np.ix_(rows, rows)]), y[rows], y.max() + 1, costs[rows], fit_intercept
            )
            value, _ = solve_quadratic_program(problem)
            certificate = model.certificate_
            assert certificate.violation <= 1e-3
            assert certificate.dual == pytest.approx(value, rel=1e-6, abs=1e-9)
            assert certificate.primal == pytest.approx(value, rel=1e-6, abs=1e-9)

            # The same from what a user sees: coefficients, offsets and decision values.
            decision = model.decision_function(X)
            short = 1.0 - decision[np.arange(len(y)), y][:, None] + decision
            short[np.arange(len(y)), y] = 0.0
            loss = np.maximum(0.0, short)
            loss = loss.sum(axis=1) if name == "weston_watkins" else loss.max(axis=1)
            norm = (model.dual_coef_ @ K[np.ix_(model.support_, model.support_)] * model.dual_coef_).sum()
            norm += (model.intercept_**2).sum()
            assert 0.5 * norm + costs @ loss == pytest.approx(value, rel=1e-6, abs=1e-9)


class TestAgainstScikitLearn:
    @pytest.mark.filterwarnings("ignore::FutureWarning")
    @pytest.mark.parametrize("load", [iris, wine])
    @pytest.mark.parametrize("cost", [0.01, 1.0])
    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_crammer_singer_is_liblinears(self, load, cost, fit_intercept):
        X, y = load()
        for labels in (y, y > 0):  # two classes have one decision function
            theirs = svm.LinearSVC(multi_class="crammer_singer", C=cost, fit_intercept=fit_intercept, tol=1e-9,
                                   max_iter=10**6).fit(X, labels)  # fmt: skip
            for given in (X, sparse.csr_matrix(X)):
                ours = SVC(kernel="linear", multi_class="crammer_singer", C=cost, fit_intercept=fit_intercept,
                           tol=1e-8).fit(given, labels)  # fmt: skip
                weights = ours.coef_.toarray() if sparse.issparse(ours.coef_) else ours.coef_
                np.testing.assert_allclose(weights, theirs.coef_, atol=1e-5)
                np.testing.assert_allclose(ours.intercept_, theirs.intercept_ if fit_intercept else 0.0, atol=1e-5)
                np.testing.assert_allclose(ours.decision_function(given), theirs.decision_function(X), atol=1e-5)
                np.testing.assert_array_equal(ours.predict(given), theirs.predict(X))

    @pytest.mark.parametrize("load", [iris, wine])
    @pytest.mark.parametrize("parameters", [{"gamma": 0.1}, {"kernel": "linear", "C": 0.1}])
    def test_one_versus_rest_is_scikit_learns(self, load, parameters):
        X, y = load()
        y = np.array(["first", "second", "third"])[y]
        theirs = OneVsRestClassifier(svm.SVC(tol=1e-7, **parameters)).fit(X, y)
        ours = SVC(multi_class="ovr", tol=1e-7, **parameters).fit(X, y)
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
        np.testing.assert_allclose(ours.intercept_, np.ravel([one.intercept_ for one in theirs.estimators_]), atol=1e-4)

    def test_squared_hinge_of_one_versus_rest_is_liblinears(self):
        X, y = wine()
        theirs = svm.LinearSVC(C=0.1, fit_intercept=False, tol=1e-10, max_iter=10**6).fit(X, y)
        ours = SVC(multi_class="ovr", kernel="linear", loss="squared_hinge", C=0.1, fit_intercept=False, tol=1e-8)
        np.testing.assert_allclose(ours.fit(X, y).coef_, theirs.coef_, atol=1e-5)

    def test_two_classes_against_the_rest_are_a_pair(self):
        X, y = iris()
        pair, rest = (SVC(multi_class=name).fit(X, y > 0) for name in ("ovo", "ovr"))
        np.testing.assert_array_equal(rest.dual_coef_, pair.dual_coef_)
        np.testing.assert_array_equal(rest.decision_function(X), pair.decision_function(X))
        assert rest.certificate_.gap == pair.certificate_.gap


@pytest.mark.parametrize("name", NOT_PAIRS)
class TestFittedAttributes:
    def test_shapes(self, name):
        X, y = wine()
        model = SVC(kernel="linear", multi_class=name, C=0.1).fit(X, y)
        support = len(model.support_)
        assert model.dual_coef_.shape == (3, support)
        assert model.intercept_.shape == (3,)
        assert model.coef_.shape == (3, X.shape[1])
        assert model.n_support_.sum() == support
        assert model.decision_function(X).shape == (len(X), 3)
        np.testing.assert_allclose(X @ model.coef_.T + model.intercept_, model.decision_function(X), atol=1e-10)
        np.testing.assert_array_equal(model.predict(X), np.argmax(model.decision_function(X), axis=1))
        np.testing.assert_array_equal(np.sort(y[model.support_]), y[model.support_])
        machines = 3 if name == "ovr" else 1
        assert model.n_iter_.shape == (machines,)
        for values in (model.certificate_, model.geometry_, model.status_):
            assert len(listed(values)) == machines
        assert all(status is Status.CONVERGED for status in listed(model.status_))

    def test_two_classes_have_one_decision_function(self, name):
        X, y = wine()
        model = SVC(multi_class=name).fit(X, np.where(y > 1, "yes", "no"))
        assert model.decision_function(X).shape == (len(X),)
        assert model.dual_coef_.shape == (1, len(model.support_))
        assert model.intercept_.shape == (1,)
        np.testing.assert_array_equal(model.predict(X), np.where(model.decision_function(X) >= 0, "yes", "no"))
        assert not isinstance(model.certificate_, list)

    def test_pickles(self, name):
        X, y = wine()
        model = SVC(multi_class=name).fit(X, y)
        _ = model.certificate_  # computed before it is stored
        copy = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
        assert [c.gap for c in listed(copy.certificate_)] == [c.gap for c in listed(model.certificate_)]

    def test_kernels_of_all_kinds_agree(self, name):
        X, y = iris()
        expected = SVC(multi_class=name, gamma=0.1).fit(X, y).decision_function(X)
        K = Gaussian(0.1)(X)
        precomputed = SVC(multi_class=name, kernel="precomputed").fit(K, y)
        own = SVC(multi_class=name, kernel=lambda A, B: Gaussian(0.1)(A, B)).fit(X, y)
        sparse_rows = SVC(multi_class=name, gamma=0.1).fit(sparse.csr_matrix(X), y)
        for model, given in ((precomputed, K), (own, X), (sparse_rows, sparse.csr_matrix(X))):
            np.testing.assert_allclose(model.decision_function(given), expected, atol=1e-6)

    def test_weights_are_repetitions(self, name):
        X, y = iris()
        counts = np.random.default_rng(0).integers(0, 4, len(y))
        model = SVC(multi_class=name, gamma=0.3, class_weight={0: 0.5, 2: 3.0}, tol=1e-6)
        weighted = clone(model).fit(X, y, sample_weight=counts)
        repeated = clone(model).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
        np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-5)

    def test_solvers_agree(self, name):
        X, y = wine()
        values = [
            sum(c.dual for c in listed(SVC(multi_class=name, C=3.0, solver=solver).fit(X, y).certificate_))
            for solver in ("pairwise", "block", BlockSolver(working_set=60), PairwiseSolver(finish_below=0))
        ]
        np.testing.assert_allclose(values, values[0], rtol=1e-5)


@pytest.mark.parametrize("name", STRATEGIES)
class TestLimits:
    def test_warm_start(self, name):
        X, y = wine()
        model = SVC(multi_class=name, warm_start=True).fit(X, y)
        steps = model.n_iter_.sum()
        first = model.decision_function(X)
        assert model.fit(X, y).n_iter_.sum() < 0.1 * steps
        np.testing.assert_allclose(model.decision_function(X), first, atol=1e-6)
        model.set_params(C=1.1).fit(X, y, sample_weight=np.where(np.arange(len(y)) == 5, 0.0, 1.0))
        assert all(c.violation <= 1e-3 for c in listed(model.certificate_))

    def test_other_strategies_do_not_start_from_it(self, name):
        X, y = wine()
        model = SVC(multi_class=name, warm_start=True).fit(X, y)
        for other in STRATEGIES:
            model.set_params(multi_class=other).fit(X, y)
            expected = SVC(multi_class=other).fit(X, y)
            if other != name:
                np.testing.assert_array_equal(model.dual_coef_, expected.dual_coef_)
            model.set_params(multi_class=name).fit(X, y)

    def test_limits_warn(self, name):
        X, y = wine()
        for limit in ({"max_iter": 1}, {"max_seconds": 0.0}):
            with pytest.warns(ConvergenceWarning, match="SVC stopped before the tolerance"):
                model = SVC(multi_class=name, C=1e3, **limit).fit(X, y)
            assert model.fit_status_ == 1
            assert np.isfinite(model.decision_function(X)).all()
            assert all(c.gap >= 0 for c in listed(model.certificate_))

    def test_callbacks_stop_it(self, name):
        X, y = wine()
        seen = []
        with pytest.warns(ConvergenceWarning):
            model = SVC(multi_class=name, C=1e4, tol=1e-9, callback=lambda p: bool(seen.append(p)) or True).fit(X, y)
        assert seen[0].primal >= seen[0].dual
        assert Status.STOPPED in listed(model.status_)

    def test_interrupted(self, name):
        def interrupt(progress):
            raise KeyboardInterrupt

        X, y = wine()
        for solver in ("pairwise", "block"):
            model = SVC(multi_class=name, solver=solver, callback=interrupt)
            with pytest.raises(KeyboardInterrupt, match="usable"):
                model.fit(X, y)
            assert Status.INTERRUPTED in listed(model.status_)
            assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("name", NOT_PAIRS)
@pytest.mark.parametrize("cost", [1e-6, 1.0, 1e5])
class TestHardCases:
    def certify(self, model):
        certificates = listed(model.certificate_)
        assert all(c.violation <= 1e-3 for c in certificates)
        assert all(c.gap <= 1e-2 * max(1.0, abs(c.dual)) for c in certificates)
        return model

    def test_a_class_with_one_sample(self, name, cost):
        X, y = iris()
        y = np.where(np.arange(len(y)) == 30, 7, y)
        self.certify(SVC(multi_class=name, C=cost).fit(X, y))

    def test_duplicates_with_different_labels(self, name, cost):
        X, y = iris()
        X, y = np.vstack([X[::3], X[::3]]), np.concatenate([y[::3], (y[::3] + 1) % 3])
        self.certify(SVC(multi_class=name, C=cost).fit(X, y))

    def test_one_sample_of_each_class(self, name, cost):
        model = self.certify(SVC(multi_class=name, C=cost, gamma=1.0).fit([[0.0], [1.0], [3.0]], ["a", "b", "c"]))
        if cost >= 1:
            np.testing.assert_array_equal(model.predict([[-0.1], [1.1], [3.2]]), ["a", "b", "c"])

    def test_unscaled_columns(self, name, cost):
        X, y = iris()
        self.certify(SVC(multi_class=name, C=cost, kernel="linear").fit(X * [1, 30, 0.01, 1] + 50, y))


def five_classes():
    return make_classification(2300, 90, n_informative=12, n_classes=5, class_sep=1.5, random_state=0)


class TestLarge:
    """Large enough for the block solver and, with one class against the rest, for shared rows."""

    @pytest.mark.parametrize("name", ALL_IN_ONE)
    def test_all_in_one(self, name):
        X, y = five_classes()
        model = SVC(multi_class=name).fit(X, y)
        assert model.status_ is Status.CONVERGED
        assert model.certificate_.violation <= 1e-3
        assert model.certificate_.relative_gap < 1e-2
        assert model.score(X, y) > 0.95

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_models_against_the_rest_share_their_rows(self, jobs):
        X, y = five_classes()
        together = SVC(multi_class="ovr", n_jobs=jobs).fit(X, y)
        evaluations = sum(machine.counters.kernel_evaluations for machine in together._models_)
        alone = [SVC().fit(X, y == c) for c in range(5)]
        for c, model in enumerate(alone):
            np.testing.assert_allclose(together.decision_function(X)[:, c], model.decision_function(X), atol=3e-3)
        assert evaluations < 0.6 * sum(model._models_[0].counters.kernel_evaluations for model in alone)
        little = SVC(multi_class="ovr", cache_size=1, n_jobs=jobs).fit(X, y)
        np.testing.assert_allclose(little.decision_function(X), together.decision_function(X), atol=3e-3)

    def test_functions_of_the_user_are_asked_once(self):
        X, y = iris()
        asked = []

        def kernel(A, B):
            asked.append(len(A) * len(B))
            return Gaussian(0.3)(A, B)

        for name in NOT_PAIRS:
            asked.clear()
            SVC(multi_class=name, kernel=kernel, solver="pairwise").fit(X, y)
            assert sum(asked) < 3 * len(X) ** 2  # the matrix once, and a product for each verification


class TestErrors:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"multi_class": "all"}, "multi_class must be one of 'ovo', 'ovr', 'crammer_singer', 'weston_watkins'"),
            ({"multi_class": "ovr", "decision_function_shape": "ovo"}, "needs a model for each pair of classes"),
            ({"multi_class": "crammer_singer", "decision_function_shape": "ovo"}, "use decision_function_shape='ovr'"),
            ({"multi_class": "crammer_singer", "loss": "squared_hinge"}, "has loss='hinge' only"),
            ({"multi_class": "weston_watkins", "C": np.inf}, "needs a finite C"),
            ({"multi_class": "weston_watkins", "C": -1.0}, "C must be a number above 0"),
            ({"multi_class": "weston_watkins", "fit_intercept": 1}, "fit_intercept must be True or False"),
        ],
    )
    def test_parameters(self, parameters, message):
        X, y = iris()
        with pytest.raises(ValueError, match=message):
            SVC(**parameters).fit(X, y)

    def test_pairs_asked_for_after_fit(self):
        X, y = iris()
        model = SVC(multi_class="ovr").fit(X, y).set_params(decision_function_shape="ovo")
        with pytest.raises(ValueError, match="needs a model for each pair"):
            model.decision_function(X)

    def test_inseparable_classes_have_no_hard_margin(self):
        X, y = iris()
        with pytest.raises(ValueError, match="cannot be separated"):
            SVC(multi_class="ovr", kernel="linear", C=np.inf).fit(X, y)
        model = SVC(multi_class="ovr", gamma=1.0, C=np.inf).fit(X[::5], y[::5])
        assert model.score(X[::5], y[::5]) == 1.0

    def test_other_classifiers_are_pairs(self):
        X, y = iris()
        assert len(NuSVC(nu=0.3).fit(X, y).certificate_) == 3
        assert "multi_class" not in NuSVC().get_params()

    @pytest.mark.parametrize("name", NOT_PAIRS)
    @pytest.mark.parametrize("solver", ["pairwise", "block"])
    def test_kernels_that_are_not_finite(self, name, solver):
        X, y = iris()
        model = SVC(multi_class=name, kernel=lambda A, B: np.full((len(A), len(B)), np.nan), solver=solver)
        with pytest.raises(ValueError, match="finite"):
            model.fit(X, y)

    @pytest.mark.parametrize("name", ALL_IN_ONE)
    def test_data_that_change_after_fit(self, name):
        X, y = iris()
        given = X.copy()
        model = SVC(multi_class=name).fit(given, y)
        given[:] = 0.0
        with pytest.raises(RuntimeError, match="training data were changed"):
            _ = model.certificate_
