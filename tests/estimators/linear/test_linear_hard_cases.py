"""Linear machines where numbers are far apart or there is hardly anything to learn: they end, and say what is true."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from maxmargin import LinearOneClassSVM, LinearSVC, LinearSVR
from maxmargin.problems import Status


def noisy(n: int, d: int, seed: int = 1):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    return X, X[:, 1 % d] + random.normal(size=n) > 0


def objective(model, X, y, C=1.0, sample_weight=None):
    """The primal by the textbook."""
    slack = np.maximum(0.0, 1.0 - np.where(y, 1.0, -1.0) * model.decision_function(X))
    loss = slack**2 if model.loss == "squared_hinge" else slack
    weights = np.ones(len(y)) if sample_weight is None else sample_weight
    return 0.5 * np.sum(model.coef_**2) + C * weights @ loss


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [1e-10, 1.0, 100.0, 1e10])
@pytest.mark.parametrize(
    "change", ["none", "shift 1e5", "scale 1e5", "scale 1e-8", "constant column", "few distinct rows"]
)
def test_certified_and_true(loss, C, change):
    X, y = noisy(300, 6)
    if change == "shift 1e5":
        X = X + 1e5
    elif change.startswith("scale"):
        X[:, 0] *= float(change.split()[1])
    elif change == "constant column":
        X[:, 2] = 7.0
    elif change == "few distinct rows":
        X = np.repeat(X[:10], 30, axis=0)
    beyond = C == 1e10 and change in ("shift 1e5", "scale 1e5")  # C x² is 1e20 there: it may end, if it says so
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if beyond else "error", ConvergenceWarning)
        model = LinearSVC(loss=loss, C=C).fit(X, y)
    proof = model.certificate_
    assert (model.status_ is Status.CONVERGED) == (proof.relative_gap <= 1e-4)
    assert beyond or model.status_ is Status.CONVERGED
    assert proof.primal == pytest.approx(objective(model, X, y, C), rel=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("light", [1e-3, 1e-6, 1e-8])
def test_uneven_weights(loss, light):
    X, y = noisy(500, 30)
    weights = np.where(np.random.default_rng(2).random(500) < 0.6, light, 1.0)
    model = LinearSVC(loss=loss, C=100.0).fit(X, y, sample_weight=weights)
    assert model.certificate_.relative_gap <= 1e-4
    assert model.certificate_.primal == pytest.approx(objective(model, X, y, 100.0, weights), rel=1e-6)


def test_beyond_double_precision_is_said():
    X, y = noisy(300, 3)
    X[:, 0] *= 1e8
    with pytest.warns(ConvergenceWarning, match="double precision"):
        model = LinearSVR(loss="squared_epsilon_insensitive").fit(X, X[:, 0] + X[:, 1] + 0.1 * y)
    assert model.status_ is Status.PRECISION
    with pytest.warns(ConvergenceWarning, match="double precision"):
        LinearSVC(C=1e160).fit(*noisy(50, 3))


def test_nothing_to_learn():
    for X in (np.zeros((4, 2)), sparse.csr_array((4, 2))):
        model = LinearSVC().fit(X, [0, 1, 0, 1])
        np.testing.assert_array_equal(model.coef_, 0.0)
        assert model.certificate_.gap <= 1e-12
    assert LinearSVC(loss="hinge").fit([[1e8], [1e8]], [0, 1]).certificate_.primal == pytest.approx(2.0)
    outliers = LinearOneClassSVM().fit(np.zeros((4, 2)))
    assert outliers.certificate_.primal == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_one_class_with_weights_at_the_largest_nu(seed):
    random = np.random.default_rng(seed)
    X, weights = random.normal(size=(20, 3)) + 2, random.choice([0.1, 0.2, 0.3, 0.7], 20)
    model = LinearOneClassSVM(nu=1.0).fit(X, sample_weight=weights)
    values = X @ model.coef_.ravel()
    assert values.min() - 1 <= model.offset_[0] <= values.max() + 1
    assert model.certificate_.gap <= 1e-4 * abs(model.certificate_.dual)


def test_one_class_with_one_long_column():
    random = np.random.default_rng(0)
    X = np.c_[1e7 * random.normal(size=200), 3 + 0.1 * random.normal(size=200)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearOneClassSVM().fit(X)
    assert model.status_ is Status.PRECISION or model.certificate_.relative_gap <= 1e-4
    assert model.certificate_.primal < -40000


def test_a_limit_during_the_first_samples_leaves_their_weights():
    X, y = noisy(50000, 5)
    with pytest.warns(ConvergenceWarning, match="limit on iterations"):
        model = LinearSVC(loss="hinge", max_iter=5).fit(X, y)
    assert model.score(X, y) > 0.7


def test_the_proof_of_a_model_is_about_its_intercept():
    X, y = noisy(200, 3)
    model = LinearSVC().fit(X, y)
    before = model.certify(X, y).primal
    model.intercept_ = model.intercept_ + 1.0
    assert model.certify(X, y).primal == pytest.approx(objective(model, X, y))
    assert model.certify(X, y).primal > before
    assert model.sparsify().certify(X, y).primal > before
    with pytest.raises(ValueError, match="inconsistent"):
        model.certify(X, y[:-1])
    with pytest.raises(ValueError, match="ovr"):
        LinearSVC(multi_class="crammer_singer").fit(X, y).certify(X, y)
