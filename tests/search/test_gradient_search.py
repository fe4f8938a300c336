"""Search for C, γ and ε by gradients."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import GroupKFold

from maxmargin import LSSVC, LSSVR, SVC, SVR, NuSVC, gradient_search
from maxmargin.search.feature_spread import feature_spread
from maxmargin.search.gradient_search import _posed, _Search
from maxmargin.search.held_out_loss import HeldOutLoss


def with_noise(samples=240, features=8, seed=0):
    """Return samples of two classes that depend on features 1 and 4 alone."""
    X = np.random.default_rng(seed).normal(size=(samples, features))
    return X, X[:, 1] * X[:, 4] > 0


def regression(samples=200, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(samples, 6))
    return X, 50 + 10 * (np.sin(2 * X[:, 0]) + X[:, 3] ** 2 + 0.1 * random.normal(size=samples))


@pytest.mark.parametrize("estimator", [SVC(), SVC(loss="squared_hinge"), LSSVC(), SVC(kernel="laplacian")])
def test_noise_features_are_less_relevant(estimator):
    X, y = with_noise(600)
    result = gradient_search(X[:240], y[:240], estimator)
    assert result.status == "complete"
    assert set(result.relevant[:2]) == {1, 4}
    assert result.relevance[[1, 4]].sum() > 0.8
    np.testing.assert_allclose(result.relevance.sum(), 1.0)
    common = gradient_search(X[:240], y[:240], estimator, gammas="common")
    scores = [found.best_estimator.fit(X[:240], y[:240]).score(X[240:], y[240:]) for found in (result, common)]
    assert scores[0] > scores[1]


@pytest.mark.parametrize("estimator", [SVR(), SVR(loss="squared_epsilon_insensitive"), LSSVR()])
def test_regressions(estimator):
    X, _ = regression(500)
    noise = np.random.default_rng(1).normal(size=500)
    # Both features need a γ that is not small: a square would do with any, at a large C.
    y = 50 + 10 * (np.sin(2 * X[:, 0]) + np.cos(2 * X[:, 3]) + 0.1 * noise)
    result = gradient_search(X[:200], y[:200], estimator)
    assert set(result.relevant[:2]) == {0, 3}
    assert result.best_estimator.fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.9
    assert ("epsilon" in result.best_params) == isinstance(estimator, SVR)


def test_sparsity_sets_features_to_zero():
    X, y = with_noise(200, 16)
    y = y ^ (np.random.default_rng(1).random(200) < 0.1)  # wrong labels
    kept = [gradient_search(X, y, sparsity=sparsity).relevant for sparsity in (0.0, 0.1)]
    assert len(kept[1]) < len(kept[0])
    assert set(kept[1][:2]) == {1, 4}


def test_units_of_features_change_nothing():
    X, y = regression()
    units = 2.0 ** np.array([3, -10, 0, 7, -2, 20])
    expected, found = (gradient_search(samples, y, SVR(), max_iter=5) for samples in (X, X * units))
    np.testing.assert_allclose(found.relevance, expected.relevance, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.best.gamma * units**2, expected.best.gamma, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(found.best.loss, expected.best.loss, rtol=1e-6)


def test_units_of_targets_change_c_and_epsilon():
    X, y = regression()
    expected = gradient_search(X, y, SVR(tol=1e-6), max_iter=3)
    found = gradient_search(X, 8 * y, SVR(epsilon=0.8, tol=8e-6), max_iter=3)
    for name, ratio in (("C", 8.0), ("epsilon", 8.0), ("gamma", 1.0)):
        np.testing.assert_allclose(found.best_params[name], ratio * expected.best_params[name], rtol=1e-2, atol=1e-6)


def test_a_search_is_repeatable_on_any_number_of_threads():
    X, y = with_noise(120)
    results = [gradient_search(X, y, max_iter=4, starts=2, n_jobs=jobs) for jobs in (1, 1, 3)]
    for other in results[1:]:
        assert other.best.C == results[0].best.C
        np.testing.assert_array_equal(other.best.gamma, results[0].best.gamma)
        assert [evaluation.loss for evaluation in other.by_feature] == [e.loss for e in results[0].by_feature]
    other = gradient_search(X, y, max_iter=4, random_state=1)
    assert other.best.loss != results[0].best.loss


def test_more_starts_are_not_worse():
    X, y = with_noise(120)
    one, three = (gradient_search(X, y, max_iter=5, starts=starts) for starts in (1, 3))
    assert three.best.objective <= one.best.objective
    assert len(three.by_feature) > len(one.by_feature)


@pytest.mark.parametrize("estimator", [SVC(C=2.0), SVR(epsilon=0.5)])
def test_the_objective_has_the_derivatives_that_the_optimiser_gets(estimator):
    X, y = regression(80)
    y = y if isinstance(estimator, SVR) else y > np.median(y)
    names, loss = _posed(X, y, estimator, 4, None, None, None, 0)
    search = _Search.of(loss, names, 0.02, 0.0, None)
    random = np.random.default_rng(0)
    point = np.concatenate([[1.0], [-2.0] if isinstance(estimator, SVR) else [], random.uniform(0.2, 0.6, 6)])
    common = np.array([1.0, -1.5, -2.0][: 3 if isinstance(estimator, SVR) else 2])
    estimator.tol = 1e-10
    loss.estimator.tol = 1e-10
    for function, at in ((search._by_feature, point), (search._common, common)):
        slopes = function(at)[1]
        for k in range(len(at)):
            step = np.zeros(len(at))
            step[k] = 1e-5
            difference = (function(at + step)[0] - function(at - step)[0]) / 2e-5
            np.testing.assert_allclose(slopes[k], difference, rtol=1e-3, atol=1e-5)


def test_several_classes_and_weights():
    X = np.random.default_rng(0).normal(size=(240, 6))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 2] * X[:, 4], [-0.3, 0.3])]
    result = gradient_search(X, y, SVC(class_weight={"a": 1.0, "b": 2.0, "c": 1.0}), max_iter=10)
    assert set(result.relevant[:2]) == {2, 4}
    assert result.fits == 3 * 5 * (len(result.common) + len(result.by_feature))
    for estimator in (SVC(multi_class="ovr"), LSSVC()):
        assert set(gradient_search(X, y, estimator, max_iter=10).relevant[:2]) == {2, 4}


def test_weights_of_zero_leave_samples_out():
    X, y = with_noise(120)
    weights = np.ones(160)
    weights[120:] = 0.0
    folds = [(np.flatnonzero(np.arange(120) % 4 != k), np.flatnonzero(np.arange(120) % 4 == k)) for k in range(4)]
    more = [(np.concatenate([training, np.arange(120, 160)]), held_out) for training, held_out in folds]
    expected = gradient_search(X, y, folds=folds, max_iter=3)
    both, labels = np.concatenate([X, X[:40] + 5]), np.concatenate([y, ~y[:40]])
    found = gradient_search(both, labels, folds=more, max_iter=3, sample_weight=weights, sparsity=0.01)
    expected = gradient_search(X, y, folds=folds, max_iter=3, sparsity=0.01)
    np.testing.assert_allclose(found.best.loss, expected.best.loss, rtol=1e-6)


def test_validation_samples_groups_and_sparse_data():
    X, y = with_noise(300)
    result = gradient_search(X[:200], y[:200], validation=(X[200:], y[200:]), max_iter=10)
    assert set(result.relevant[:2]) == {1, 4}
    assert result.fits == len(result.common) + len(result.by_feature)
    groups = np.arange(300) // 10
    assert gradient_search(X, y, folds=GroupKFold(3), groups=groups, max_iter=2).status == "complete"
    table = X * (np.abs(X) > 0.3)
    dense, found = (gradient_search(form, y, max_iter=3) for form in (table, sparse.csr_array(table)))
    np.testing.assert_allclose(found.relevance, dense.relevance, rtol=1e-4, atol=1e-6)


def test_constant_features_have_no_relevance():
    X, y = with_noise(100, 6)
    X[:, 2], X[:, 5] = 7.0, 0.0
    result = gradient_search(X, y, max_iter=3)
    assert not result.best.gamma[[2, 5]].any()


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "chi_squared"])
def test_spread_is_the_mean_distance_of_two_samples(kernel):
    X = np.random.default_rng(0).random((3000, 3)) * [1.0, 10.0, 0.0]
    # Of two uniform numbers
    distance = {"rbf": 1 / 6, "laplacian": 1 / 3, "chi_squared": 1 - 8 / 3 * (1 - np.log(2))}[kernel]
    for form in (X, sparse.csr_array(X)):
        spread = feature_spread(kernel, form, np.ones(3000))
        scale = 100.0 if kernel == "rbf" else 10.0
        np.testing.assert_allclose(spread, distance * np.array([1.0, scale, 0.0]), rtol=0.1)


def test_limits_callbacks_and_interruptions():
    X, y = with_noise(120)
    seen = []
    stopped = gradient_search(X, y, callback=lambda result: seen.append(result) or len(seen) >= 5)
    assert stopped.status == "stopped"
    assert len(stopped.common) == 5
    assert stopped.best.loss == min(evaluation.loss for evaluation in stopped.common)
    assert np.ndim(stopped.best_params["gamma"]) == 1

    def interrupt(result):
        if len(result.by_feature) == 2:
            raise KeyboardInterrupt

    interrupted = gradient_search(X, y, callback=interrupt)
    assert interrupted.status == "interrupted"
    assert len(interrupted.by_feature) == 2
    limited = gradient_search(X, y, max_seconds=0.0)
    assert limited.status == "time limit"
    with pytest.raises(ValueError, match="more time"):
        limited.best_params  # noqa: B018
    observed, silent = (gradient_search(X, y, max_iter=2, **some) for some in ({"callback": lambda _: False}, {}))
    assert observed.best.objective == silent.best.objective


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"estimator": NuSVC()}, "use SVC, LSSVC, SVR or LSSVR"),
        ({"estimator": SVC(kernel="poly")}, "kernels rbf"),
        ({"estimator": SVC(multi_class="crammer_singer")}, "use 'ovo' or 'ovr'"),
        ({"gammas": "each"}, "must be one of 'ard', 'common'"),
        ({"sparsity": -1}, "sparsity must be a number of at least 0"),
        ({"sparsity": "some"}, "'auto'"),
        ({"folds": 1}, "folds"),
        ({"starts": 0}, "starts"),
        ({"validation": np.zeros(3)}, "validation must be"),
        ({"validation": (np.zeros((3, 2)), [0, 1, 0])}, "features"),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    X, y = with_noise(40)
    with pytest.raises(ValueError, match=message):
        gradient_search(X, y, **arguments)


def test_a_single_class_raises():
    X, _ = with_noise(40)
    with pytest.raises(ValueError, match="two classes"):
        gradient_search(X, np.zeros(40))


def test_held_out_samples_of_one_class_raise():
    X, y = with_noise(40)
    order = np.argsort(y)
    with pytest.raises(ValueError, match="two among all held-out samples"):
        HeldOutLoss(SVC(), X, y, np.ones(40), [(order, order[:5])])


@pytest.mark.parametrize(
    ("X", "y", "estimator"),
    [
        (np.ones((20, 3)), np.arange(20) % 2, SVC()),  # nothing to learn from
        (with_noise(4)[0], np.arange(4) % 2, SVC()),
        (with_noise(60)[0], np.arange(60) < 3, SVC()),  # an almost empty class
        (with_noise(60)[0] * 1e12, with_noise(60)[1], SVC()),
        (np.repeat(with_noise(30)[0], 3, axis=0), np.repeat(with_noise(30)[1], 3), SVC()),
        (with_noise(60)[0], np.ones(60), SVR()),  # equal targets
        (regression(60)[0], regression(60)[1] * 1e8, SVR()),
        (regression(60)[0], regression(60)[1] * 1e-8, SVR()),
        (regression(60)[0], regression(60)[1], SVR(epsilon=0.0)),
        (sparse.random_array((80, 3000), density=0.01, random_state=0, format="csr"), np.arange(80) % 2, LSSVC()),
    ],
)
def test_extremes(X, y, estimator):
    result = gradient_search(X, y, estimator, folds=2, max_iter=2, starts=1)
    assert result.status == "complete"
    assert np.isfinite(result.best.objective)
    assert np.isfinite(result.best.gamma).all()
    assert (np.asarray(result.best.gamma) >= 0).all()
    assert ("epsilon" in result.best_params) == bool(getattr(estimator, "epsilon", 0))
