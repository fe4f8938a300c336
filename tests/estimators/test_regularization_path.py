"""The regularisation path equals independent fits, everywhere between its break points."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

from maxmargin import SVC, SVR, LinearSVC, Status, regularization_path


def data(seed=0, count=80):
    return make_classification(count, 5, flip_y=0.1, random_state=seed)


def check(path, model, X, y, weights=None, gap=1e-6):
    assert (np.diff(path.Cs) > 0).all()
    for C in np.geomspace(path.Cs[0], path.Cs[-1], 23).clip(path.Cs[0], path.Cs[-1]):
        certificate = path.certificate(C)
        assert certificate.relative_gap < gap
        assert certificate.infeasibility < 1e-9 * C * len(y)
    for C in np.geomspace(path.Cs[0], path.Cs[-1], 4).clip(path.Cs[0], path.Cs[-1]):
        alone = type(model)(**{**model.get_params(), "C": C, "tol": 1e-9}).fit(X, y, sample_weight=weights)
        dual = alone.certificate_.dual
        assert path.certificate(C).dual == pytest.approx(dual, rel=gap)
        assert path.at(C).certificate_.dual == pytest.approx(dual, rel=1e-3)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "model",
    [
        SVC(gamma=0.05),
        SVC(gamma=1.0, C=30.0),
        SVC(kernel="linear"),
        SVC(gamma=0.3, fit_intercept=False),
        SVC(gamma=0.3, class_weight={0: 2.0, 1: 0.3}),
        SVC(kernel="poly", degree=2),
    ],
    ids=str,
)
def test_equals_independent_fits(model, seed):
    X, y = data(seed)
    path = regularization_path(X, y, estimator=model)
    assert path.exact
    assert path.status is Status.CONVERGED
    assert path.Cs[0] == 1e-2
    assert path.Cs[-1] == 1e3
    check(path, model, X, y)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.repeat(data()[0][:25], 3, axis=0), np.repeat(data()[1][:25], 3)),
        (np.repeat(data()[0][:25], 2, axis=0), np.tile([0, 1], 25)),
        (np.ones((10, 2)), np.tile([0, 1], 5)),
        (np.ones((11, 2)), np.append(np.tile([0, 1], 5), 1)),
        (np.array([[0.0], [1.0]]), np.array([0, 1])),
        (data()[0] * [1e3, 1.0, 1e-3, 1.0, 1.0], data()[1]),
        (data()[0], np.arange(80) == 3),
        (np.round(data()[0]), data()[1]),
    ],
    ids=["duplicates", "opposite duplicates", "constant", "constant, odd", "two samples", "unscaled", "one of a class",
         "integers"],
)  # fmt: skip
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.filterwarnings("ignore:SVC stopped before the tolerance")
def test_hard_data(X, y, kernel):
    model = SVC(kernel=kernel)
    C_max = 10.0 if kernel == "linear" else 1e3
    check(regularization_path(X, y, estimator=model, C_max=C_max), model, X, y, gap=1e-4)


def test_sample_weights():
    X, y = data(4)
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    weights[:7] = 0.0
    path = regularization_path(X, y, sample_weight=weights)
    check(path, SVC(), X, y, weights)
    assert not path.dual_coefs[:, :7].any()


@pytest.mark.parametrize(
    "model", [SVR(gamma=0.2), SVR(epsilon=0.0), SVR(kernel="linear", fit_intercept=False)], ids=str
)
def test_regression(model):
    X, _ = data(5)
    y = X[:, 0] + 0.1 * np.random.default_rng(0).normal(size=len(X))
    path = regularization_path(X, y, estimator=model, C_max=100.0)
    check(path, model, X, y)
    edges, errors = path.errors(X, y)
    assert path.best(X, y) == edges[errors.argmin()]


def test_error_curve_of_validation_data_is_exact():
    X, y = data(6, 160)
    X, y, other, labels = X[:80], y[:80], X[80:], y[80:]
    path = regularization_path(X, y, estimator=SVC(gamma=0.2))
    edges, errors = path.errors(other, labels)
    for C in np.random.default_rng(0).uniform(np.log(0.011), np.log(990.0), 20):
        alone = SVC(C=np.exp(C), gamma=0.2, tol=1e-9).fit(X, y)
        expected = np.mean(alone.predict(other) != labels)
        assert errors[np.searchsorted(edges, np.exp(C), side="right") - 1] == pytest.approx(expected)
    best = path.best(other, labels)
    assert np.mean(path.at(best).predict(other) != labels) == pytest.approx(errors.min())


def test_best_by_leave_one_out():
    X, y = data(7, 50)
    path = regularization_path(X, y, estimator=SVC(gamma=0.2))
    found = path.leave_one_out([0.1, 1.0, 10.0])
    np.testing.assert_array_equal(
        found.values("leave_one_out"), [SVC(C=C, gamma=0.2).fit(X, y).loo_error_ for C in (0.1, 1.0, 10.0)]
    )
    best = path.best(Cs=[0.1, 1.0, 10.0])
    assert path.at(best).loo_error_ == found.values("leave_one_out").min()


def test_more_samples_take_a_grid():
    X, y = data(8)
    path = regularization_path(X, y, max_exact=50)
    assert not path.exact
    assert len(path.Cs) == 41
    for C in (0.0234, 1.1, 777.0):
        alone = SVC(C=C).fit(X, y)
        assert path.certificate(C).gap >= 0
        assert path.at(C).certificate_.dual == pytest.approx(alone.certificate_.dual, rel=1e-3)
        assert path.certificate(C).dual == pytest.approx(alone.certificate_.dual, rel=0.02)


def test_limits_keep_what_was_reached():
    X, y = data(9)
    whole = regularization_path(X, y)

    def interrupt(progress):
        if progress.iteration > 5:
            raise KeyboardInterrupt

    for found, status in (
        (regularization_path(X, y, max_seconds=0), Status.MAX_SECONDS),
        (regularization_path(X, y, callback=lambda progress: progress.iteration > 5), Status.STOPPED),
        (regularization_path(X, y, callback=interrupt), Status.INTERRUPTED),
    ):
        assert found.status is status
        assert len(found.Cs) < len(whole.Cs)
        assert found.certificate(found.Cs[0]).relative_gap < 1e-3
    np.testing.assert_array_equal(
        regularization_path(X, y, callback=lambda progress: None).dual_coefs, whole.dual_coefs
    )


def test_the_estimator_is_not_changed():
    X, y = data(10)
    model = SVC(C=5.0)
    path = regularization_path(X, y, estimator=model)
    assert not hasattr(model, "support_")
    assert path.at(3.0).get_params()["warm_start"] is False
    assert "break points" in str(path)


def test_errors_say_what_to_do():
    X, y = data(11)
    with pytest.raises(ValueError, match="linear_path"):
        regularization_path(X, y, estimator=LinearSVC())
    with pytest.raises(ValueError, match="piecewise linear"):
        regularization_path(X, y, estimator=SVC(loss="squared_hinge"))
    with pytest.raises(ValueError, match="C_min must be below"):
        regularization_path(X, y, C_min=10, C_max=1)
    with pytest.raises(ValueError, match="3 classes"):
        regularization_path(X, np.arange(80) % 3)
    with pytest.raises(ValueError, match="does not include 1e\\+06"):
        regularization_path(X, y).at(1e6)
    with pytest.raises(ValueError, match="labels or targets"):
        regularization_path(X, y).best(X)
