"""`RankSVC`: compared with a generic quadratic program, a classifier of differences and double loops."""

import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import kendalltau
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import SVC, RankSVC, Status, load, save
from maxmargin.formulations import pairwise_ranking
from maxmargin.kernels import Gaussian, Linear
from maxmargin.matrices import PrecomputedMatrix
from maxmargin.models.concordance import concordance
from maxmargin.testing.quadratic_program import solve_quadratic_program
from reference.data import diabetes, iris


@parametrize_with_checks([RankSVC()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def queries(n=90, count=6, seed=0):
    """Three grades, given by a linear score within each query, and an offset of each query that must not matter."""
    random = np.random.default_rng(seed)
    X, qid = random.normal(size=(n, 4)), np.arange(n) % count
    score = X @ [2.0, -1.0, 0.5, 0.0] + random.normal(scale=0.3, size=n)
    return X, np.digitize(score, [-1.0, 1.0]) + 10.0 * qid, qid


class TestAgainstJudges:
    @pytest.mark.parametrize("kernel", [Linear(), Gaussian(0.2)], ids=lambda kernel: type(kernel).__name__)
    @pytest.mark.parametrize("weighted", [False, True])
    def test_objective_is_that_of_a_generic_solver(self, kernel, weighted):
        X, y, qid = queries(48)
        weights = np.random.default_rng(1).integers(0, 3, 48) * 1.0 if weighted else np.ones(48)
        model = RankSVC(C=0.7, kernel=kernel).fit(X, y, qid, sample_weight=weights)
        used = np.flatnonzero(weights)
        first, second = pairwise_ranking.list_pairs(y[used], qid[used])
        costs = 0.7 * weights[used[first]] * weights[used[second]]
        value, _ = solve_quadratic_program(
            pairwise_ranking.pose(PrecomputedMatrix(kernel(X[used])), first, second, costs)
        )
        assert model.n_pairs_ == len(first)
        assert model.certificate_.violation <= 1e-3
        assert model.certificate_.dual == pytest.approx(value, rel=1e-6)
        assert model.certificate_.primal == pytest.approx(value, rel=1e-6)
        # The same from what a user sees.
        scores = model.predict(X)
        norm = model.dual_coef_[0] @ scores[model.support_]
        slack = np.maximum(0.0, 1.0 - scores[used[first]] + scores[used[second]])
        assert 0.5 * norm + costs @ slack == pytest.approx(value, rel=1e-6)

    def test_it_is_the_classifier_of_differences_without_offset(self):
        X, y, qid = queries()
        model = RankSVC(kernel="linear", C=0.1, tol=1e-8).fit(X, y, qid)
        first, second = pairwise_ranking.list_pairs(y, qid)
        D = X[first] - X[second]
        both, labels = np.vstack([D, -D]), np.repeat([1, 0], len(D))
        classifier = SVC(kernel="linear", C=0.05, fit_intercept=False, tol=1e-8).fit(both, labels)
        np.testing.assert_allclose(model.coef_, classifier.coef_, atol=1e-6)
        np.testing.assert_allclose(X @ model.coef_[0], model.predict(X), atol=1e-9)
        np.testing.assert_array_equal(model.intercept_, [0.0])

    @pytest.mark.parametrize("solver", ["pairwise", "block"])
    def test_large(self, solver):
        X, y = diabetes()
        model = RankSVC(C=0.01, gamma=0.05, solver=solver).fit(X[:110], y[:110])
        assert model.n_pairs_ > 5000
        assert model.status_ is Status.CONVERGED
        assert model.certificate_.relative_gap < 1e-4
        assert model.score(X[110:], y[110:]) > 0.7


def unordered(n, seed=0, features=5):
    """Samples of one query with different targets: as many pairs as possible, most of them with errors."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, features))
    return X, X @ np.arange(1.0, features + 1) + 3.0 * random.normal(size=n)


class TestManyPairs:
    """Pairs are not variables one by one: steps by pair leave a gap of 77 % after 40 s on the first of these."""

    def test_kernel(self):
        X, y = unordered(400)
        model = RankSVC().fit(X, y)
        assert model.n_pairs_ == 79800
        assert model.status_ is Status.CONVERGED
        assert model.certificate_.violation <= 1e-3
        assert model.certificate_.relative_gap <= 1e-6
        assert model.n_iter_ < 400

    def test_fifty_million_pairs_of_the_linear_kernel(self):
        X, y = unordered(10_000)
        model = RankSVC(kernel="linear", cache_size=50).fit(X, y)
        assert model.n_pairs_ == 49_995_000
        assert model.certificate_.violation <= 1e-3
        assert model.certificate_.relative_gap <= 1e-6
        # The primal value from scores, by differences in blocks.
        order = np.argsort(y)
        scores, loss = model.predict(X)[order], 0.0
        for start in range(0, len(y), 500):
            slack = 1.0 - (scores[start : start + 500, None] - scores)
            loss += np.tril(np.maximum(slack, 0.0), start - 1).sum()
        assert 0.5 * (model.coef_**2).sum() + loss == pytest.approx(model.certificate_.primal, rel=1e-9)

    def test_without_a_list_of_pairs_the_model_is_the_same(self, monkeypatch):
        X, y, qid = queries(150)
        weights = np.random.default_rng(0).uniform(0.0, 2.0, 150)
        weights[::10] = 0.0
        listed = RankSVC(kernel="linear", C=0.3).fit(X, y, qid, weights)
        monkeypatch.setattr("maxmargin.machines.kernel.rank_svc.MAX_LISTED_PAIRS", 10)
        for data in (X, sparse.csr_matrix(X), X.astype(np.float32)):
            model = RankSVC(kernel="linear", C=0.3).fit(data, y, qid, weights)
            assert model.status_ is Status.CONVERGED
            assert model.certificate_.violation <= 1e-3
            assert model.certificate_.dual == pytest.approx(listed.certificate_.dual, rel=1e-5)
            np.testing.assert_allclose(model.predict(X), listed.predict(X), atol=2e-3)
        geometry = model.geometry_
        assert geometry.pairs == model.n_pairs_ == listed.n_pairs_
        assert geometry.free + geometry.bounded + geometry.non_support == geometry.pairs
        assert geometry.slack.sum() == pytest.approx(model.certificate_.primal - 0.5 * geometry.squared_norm)

    def test_without_a_list_of_pairs_models_are_stored_and_resumed(self, monkeypatch, tmp_path):
        monkeypatch.setattr("maxmargin.machines.kernel.rank_svc.MAX_LISTED_PAIRS", 10)
        X, y = unordered(200)
        model = RankSVC(kernel="linear", warm_start=True).fit(X, y)
        save(model, tmp_path / "model")
        for copy in (pickle.loads(pickle.dumps(model)), load(tmp_path / "model")):
            np.testing.assert_array_equal(copy.predict(X), model.predict(X))
            assert copy.certificate_.gap == model.certificate_.gap
            assert copy.geometry_.pairs == model.n_pairs_
        steps = model.n_iter_
        assert model.fit(X, y).n_iter_ < steps
        for limits in ({"max_iter": 2}, {"max_seconds": 0.0}, {"callback": lambda progress: True}):
            with pytest.warns(ConvergenceWarning, match="RankSVC stopped before the tolerance"):
                limited = RankSVC(kernel="linear", **limits).fit(X, y)
            assert np.isfinite(limited.predict(X)).all()
            assert limited.certificate_.gap >= 0
        file = tmp_path / "checkpoint"
        with pytest.warns(ConvergenceWarning):
            RankSVC(kernel="linear", max_iter=12, checkpoint=file).fit(X, y)
        resumed = RankSVC(kernel="linear", checkpoint=file).fit(X, y)
        assert resumed.status_ is Status.CONVERGED
        assert not file.exists()
        assert resumed.certificate_.dual == pytest.approx(model.certificate_.dual, rel=1e-5)


class TestQueries:
    def test_only_samples_of_one_query_are_compared(self):
        X, y, qid = queries()
        by_query = RankSVC(kernel="linear").fit(X, y, qid)
        assert by_query.score(X, y, qid) > 0.9
        assert abs(by_query.score(X, 10.0 * qid) - 0.5) < 0.1  # offsets of queries were not learned
        shifted = RankSVC(kernel="linear").fit(X, y + 1000.0 * qid, qid)
        np.testing.assert_array_equal(shifted.coef_, by_query.coef_)
        named = RankSVC(kernel="linear").fit(X, y, [f"query {q}" for q in qid])
        np.testing.assert_array_equal(named.coef_, by_query.coef_)

    def test_the_order_of_rows_does_not_matter(self):
        X, y, qid = queries()
        order = np.random.default_rng(2).permutation(len(y))
        first = RankSVC(tol=1e-8, gamma=0.2).fit(X, y, qid)
        second = RankSVC(tol=1e-8, gamma=0.2).fit(X[order], y[order], qid[order])
        np.testing.assert_allclose(first.predict(X), second.predict(X), atol=1e-6)

    def test_weights_are_repetitions(self):
        X, y, qid = queries(60)
        counts = np.random.default_rng(0).integers(0, 4, 60)
        weighted = RankSVC(tol=1e-8).fit(X, y, qid, sample_weight=counts)
        repeated = RankSVC(tol=1e-8).fit(*(np.repeat(part, counts, axis=0) for part in (X, y, qid)))
        np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-6)
        scores = (
            weighted.score(X, y, qid, counts),
            repeated.score(*(np.repeat(a, counts, axis=0) for a in (X, y, qid))),
        )
        assert scores[0] == pytest.approx(scores[1])

    def test_queries_are_routed(self):
        X, y, qid = queries()
        with config_context(enable_metadata_routing=True):
            model = RankSVC(kernel="linear").set_fit_request(qid=True).set_score_request(qid=True)
            found = cross_validate(model, X, y, cv=GroupKFold(3), params={"qid": qid, "groups": qid})
        expected = [
            RankSVC(kernel="linear").fit(X[train], y[train], qid[train]).score(X[test], y[test], qid[test])
            for train, test in GroupKFold(3).split(X, y, qid)
        ]
        np.testing.assert_allclose(found["test_score"], expected)


class TestScores:
    @given(st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=1, max_size=14))
    def test_pairs_are_counted_as_by_a_double_loop(self, samples):
        scores, targets, qid, weights = (np.array(values, dtype=float) for values in zip(*samples, strict=True))
        right = total = 0.0
        for i, j in product(range(len(samples)), repeat=2):
            if qid[i] == qid[j] and targets[i] > targets[j]:
                weight = weights[i] * weights[j]
                total += weight
                right += weight * (float(scores[i] > scores[j]) + 0.5 * float(scores[i] == scores[j]))
        assert concordance(scores, targets, qid.astype(int), weights) == pytest.approx((right, total))

    def test_known_measures(self):
        X, y = diabetes()
        model = RankSVC(kernel="linear", C=0.01).fit(X[:60], y[:60])
        scores = model.predict(X)
        assert model.score(X, y > 0) == pytest.approx(roc_auc_score(y > 0, scores))
        distinct = np.random.default_rng(0).permutation(len(y)).astype(float)
        assert model.score(X, distinct) == pytest.approx(0.5 * (1 + kendalltau(scores, distinct).statistic))

    def test_nothing_to_score(self):
        model = RankSVC().fit([[0.0], [1.0]], [0, 1])
        with pytest.raises(ValueError, match="no two samples of one query differ in y"):
            model.score([[0.0], [1.0]], [3, 3])


class TestAnyData:
    def test_kernels_of_all_kinds_agree(self):
        X, y, qid = queries()
        expected = RankSVC(kernel=Gaussian(0.2)).fit(X, y, qid).predict(X)
        K = Gaussian(0.2)(X)
        np.testing.assert_allclose(RankSVC(kernel="precomputed").fit(K, y, qid).predict(K), expected, atol=1e-6)
        own = RankSVC(kernel=lambda A, B: Gaussian(0.2)(A, B)).fit(X, y, qid)
        np.testing.assert_allclose(own.predict(X), expected, atol=1e-6)
        as_sparse = RankSVC(kernel=Gaussian(0.2)).fit(sparse.csr_matrix(X), y, qid)
        np.testing.assert_allclose(as_sparse.predict(X), expected, atol=1e-6)

    def test_hard_cases(self):
        X, y, qid = queries()
        for data, parameters in (
            (np.repeat(X[::3], 3, axis=0), {"kernel": "linear", "C": 10.0}),  # duplicates, also of different grades
            (X * [1.0, 1e3, 1e-3, 1.0], {"kernel": "linear", "C": 1e-3}),
            (X, {"C": 1e6, "gamma": 1.0}),
            (X, {"C": 1e-8}),
        ):
            model = RankSVC(**parameters).fit(data, y, qid)
            assert model.certificate_.violation <= 1e-3
            assert model.certificate_.relative_gap < 1e-3
        two = RankSVC(kernel="linear", C=10.0).fit([[0.0], [4.0]], [0, 1])
        np.testing.assert_allclose(two.coef_, [[0.25]])  # the smallest slope with a difference of 1

    def test_pickles_and_warm_starts(self):
        X, y, qid = queries()
        model = RankSVC(warm_start=True).fit(X, y, qid)
        _ = model.certificate_  # computed before it is stored
        copy = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))
        assert copy.certificate_.gap == model.certificate_.gap
        assert copy.geometry_.pairs.shape == (model.n_pairs_, 2)
        steps = model.n_iter_
        assert model.fit(X, y, qid).n_iter_ < steps
        model.fit(X, np.minimum(y % 10, 1), qid)  # fewer pairs: a new start
        assert model.status_ is Status.CONVERGED

    def test_limits_warn(self):
        X, y, qid = queries()
        for limits in ({"max_iter": 3}, {"max_seconds": 0.0}, {"callback": lambda progress: True, "solver": "block"}):
            with pytest.warns(ConvergenceWarning, match="RankSVC stopped before the tolerance"):
                model = RankSVC(C=1e3, tol=1e-9, **limits).fit(X, y, qid)
            assert model.fit_status_ == 1
            assert np.isfinite(model.predict(X)).all()


class TestErrors:
    @pytest.mark.parametrize(
        ("y", "fit", "message"),
        [
            ([1.0, 1.0, 1.0], {}, "two samples of one query that differ in y"),
            ([1.0, 2.0, 3.0], {"qid": [1, 2, 3]}, "two samples of one query that differ in y"),
            ([1.0, 1.0, 2.0], {"sample_weight": [1.0, 1.0, 0.0]}, "two samples of one query that differ in y"),
            ([1.0, 2.0, 3.0], {"qid": [1.0, np.nan, 1.0]}, "qid must name a query for each sample"),
            ([1.0, 2.0, 3.0], {"qid": [1, 2]}, "inconsistent numbers of samples"),
        ],
    )
    def test_data(self, y, fit, message):
        with pytest.raises(ValueError, match=message):
            RankSVC().fit([[0.0], [1.0], [2.0]], y, **fit)

    def test_more_pairs_than_memory_are_an_error_before_any_kernel_value_is_computed(self):
        def never(A, B):
            raise AssertionError("no kernel value is needed")

        X = np.arange(3000.0)[:, None]
        with pytest.raises(ValueError, match=r"4,498,500 pairs take about 1,373 MB.*cache_size=100 allows; divide"):
            RankSVC(cache_size=100, kernel=never).fit(X, X[:, 0])

    def test_parameters(self):
        X, y = iris()
        with pytest.raises(ValueError, match="C must be a number above 0"):
            RankSVC(C=-1).fit(X, y)
        with pytest.raises(ValueError, match="cache_size must be a number"):
            RankSVC(cache_size="big").fit(X, y)
        with pytest.raises(AttributeError, match="linear kernel"):
            _ = RankSVC().fit(X, y).coef_
