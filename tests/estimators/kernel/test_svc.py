"""`SVC` as a user and as scikit-learn see it."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import SVC, Certificate, Status
from maxmargin.datasets import chessboard
from maxmargin.kernels import Gaussian, Laplacian, Linear

SKLEARN_SETS = {
    "iris": load_iris,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
}


@parametrize_with_checks([SVC(), SVC(kernel="linear", C=3), SVC(selection="maximum_gain", shrinking=False)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def primal_of_pair(model, X, y, a, b, f, squared_norm):
    """The textbook objective of one pair of classes, with all costs equal to C."""
    rows = np.isin(y, [a, b])
    signs = np.where(y[rows] == a, 1.0, -1.0)
    return 0.5 * squared_norm + model.C * np.maximum(0, 1 - signs * f[rows]).sum()


@pytest.mark.parametrize("name", SKLEARN_SETS)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid"])
def test_agrees_with_scikit_learn(name, kernel):
    X, y = SKLEARN_SETS[name](return_X_y=True)
    X = StandardScaler().fit_transform(X)
    if name == "digits":
        X, y = X[::3], y[::3]
    theirs = svm.SVC(kernel=kernel, tol=1e-5, decision_function_shape="ovo").fit(X, y)
    ours = SVC(kernel=kernel, decision_function_shape="ovo").fit(X, y)
    if kernel == "sigmoid":  # indefinite: stationary points differ, but ours must be one
        assert max(c.violation for c in np.atleast_1d(ours.certificate_)) <= 1e-3
        return
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=2e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-3)
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.995
    assert ours.dual_coef_.shape[0] == theirs.dual_coef_.shape[0]
    assert ours.n_support_.dtype == theirs.n_support_.dtype
    assert ours.support_.dtype == theirs.support_.dtype
    assert ours.n_iter_.shape == theirs.n_iter_.shape
    for certificate in np.atleast_1d(ours.certificate_):
        assert certificate.violation <= 1e-3
        assert certificate.relative_gap < 1e-3


@pytest.mark.parametrize("name", ["iris", "breast_cancer"])
def test_objective_is_not_above_scikit_learns(name):
    X, y = SKLEARN_SETS[name](return_X_y=True)
    X = StandardScaler().fit_transform(X)
    theirs = svm.SVC(decision_function_shape="ovo", gamma=0.1).fit(X, y)
    ours = SVC(decision_function_shape="ovo", gamma=0.1).fit(X, y)
    K = rbf_kernel(X, gamma=0.1)

    def primals(model):
        decisions = model.decision_function(X).reshape(len(X), -1)
        values, pair = [], 0
        edges = np.concatenate([[0], np.cumsum(model.n_support_)])
        for a in range(len(model.classes_)):
            for b in range(a + 1, len(model.classes_)):
                dual = np.zeros(len(X))
                of_a, of_b = slice(edges[a], edges[a + 1]), slice(edges[b], edges[b + 1])
                dual[model.support_[of_a]] = model.dual_coef_[b - 1, of_a]
                dual[model.support_[of_b]] = model.dual_coef_[a, of_b]
                sign = 1 if len(model.classes_) > 2 else -1
                values.append(primal_of_pair(model, X, y, a, b, sign * decisions[:, pair], dual @ K @ dual))
                pair += 1
        return np.array(values)

    assert (primals(ours) <= primals(theirs) * (1 + 1e-9)).all()
    np.testing.assert_allclose(primals(ours), [c.primal for c in np.atleast_1d(ours.certificate_)], rtol=1e-8)


def test_attributes_have_scikit_learns_signs_and_shapes():
    X, y = load_iris(return_X_y=True)
    for rows, classes in ((slice(0, 100), 2), (slice(0, 150), 3)):
        theirs = svm.SVC(kernel="linear", tol=1e-6).fit(X[rows], y[rows])
        ours = SVC(kernel="linear").fit(X[rows], y[rows])
        np.testing.assert_array_equal(ours.classes_, theirs.classes_)
        np.testing.assert_array_equal(ours.support_, theirs.support_)
        np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
        np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-3)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)
        np.testing.assert_array_equal(ours.support_vectors_, theirs.support_vectors_)
        assert ours.coef_.shape == (classes * (classes - 1) // 2, 4)
        assert ours.shape_fit_ == theirs.shape_fit_
        assert ours.fit_status_ == theirs.fit_status_ == 0
        assert ours.n_features_in_ == 4
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=5e-3)
        with pytest.raises(ValueError, match="read-only"):
            ours.coef_[0, 0] = 1.0
    with pytest.raises(AttributeError, match="linear kernel"):
        _ = SVC().fit(X, y).coef_


def test_multi_class_shapes_and_ties():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = SVC().fit(X, y)
    assert model.decision_function(X).shape == (178, 3)
    assert model.set_params(decision_function_shape="ovo").decision_function(X).shape == (178, 3)
    with pytest.raises(ValueError, match="break_ties"):
        SVC(break_ties=True, decision_function_shape="ovo").fit(X, y).predict(X)
    tied = SVC(break_ties=True).fit(X, y)
    np.testing.assert_array_equal(tied.predict(X), tied.classes_[tied.decision_function(X).argmax(axis=1)])
    theirs = svm.SVC(tol=1e-6).fit(X, y)
    np.testing.assert_allclose(tied.decision_function(X), theirs.decision_function(X), atol=1e-3)
    assert len(model.certificate_) == len(model.geometry_) == len(model.status_) == 3


def test_certificate_and_geometry_are_readable():
    X, y = chessboard(300)
    model = SVC(C=10, gamma=1.0).fit(X, y)
    certificate, geometry = model.certificate_, model.geometry_
    assert isinstance(certificate, Certificate)
    assert model.status_ is Status.CONVERGED
    assert certificate.gap == pytest.approx(certificate.primal - certificate.dual, abs=1e-6)
    assert 0 <= certificate.violation <= 1e-3
    assert sorted([*geometry.free, *geometry.bounded]) == sorted(model.support_)
    assert len(geometry.non_support) + len(model.support_) == 300
    reach = np.where(y == 1, 1, -1) * model.decision_function(X)
    np.testing.assert_allclose(geometry.slack, np.maximum(0, 1 - reach), atol=1e-9)
    assert geometry.offset == pytest.approx(model.intercept_[0], rel=1e-9)
    assert certificate.primal == pytest.approx(0.5 * geometry.squared_norm + 10 * geometry.slack.sum())


def test_hard_margin():
    X, y = load_iris(return_X_y=True)
    model = SVC(C=np.inf, kernel="linear").fit(X[:100], y[:100])
    signs = np.where(y[:100] == 1, 1, -1)
    assert (signs * model.decision_function(X[:100])).min() == pytest.approx(1.0)
    assert len(model.geometry_.bounded) == 0
    assert model.certificate_.gap < 1e-9
    with pytest.raises(ValueError, match=r"cannot be separated.*finite C"):
        SVC(C=np.inf, kernel="linear").fit(X[50:], y[50:])
    with pytest.raises(ValueError, match="cannot be separated"):
        SVC(C=np.inf, kernel="linear").fit([[0.0], [1.0], [1.0], [2.0]], [0, 0, 1, 1])  # the classes touch
    with pytest.raises(ValueError, match="cannot be separated"):
        SVC(C=np.inf, kernel="linear", fit_intercept=False).fit([[1.0], [2.0]], [0, 1])
    random = np.random.default_rng(0)
    clouds, labels = random.normal(size=(1000, 2)), random.integers(0, 2, 1000)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        SVC(C=np.inf, gamma=1.0, max_seconds=0.05).fit(clouds, labels)


def test_without_intercept():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = SVC(fit_intercept=False).fit(X, y)
    assert model.intercept_.tolist() == [0.0]
    assert model.certificate_.violation <= 1e-3
    assert model.geometry_.offset_interval == (0.0, 0.0)
    assert model.score(X, y) > 0.95


def test_weights_remove_and_repeat():
    X, y = load_iris(return_X_y=True)
    weights = np.random.default_rng(0).integers(0, 4, 150)
    weighted = SVC(gamma=0.3).fit(X, y, sample_weight=weights)
    repeated = SVC(gamma=0.3).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-8)
    assert (weights[weighted.support_] > 0).all()


def test_class_weights():
    X, y = make_classification(300, weights=[0.9], random_state=0)
    assert SVC(class_weight={0: 1, 1: 2, 2: 3}).fit(X, y).class_weight_.tolist() == [1, 2]  # a class that is not there
    balanced = SVC(class_weight="balanced").fit(X, y)
    theirs = svm.SVC(class_weight="balanced", tol=1e-6).fit(X, y)
    np.testing.assert_allclose(balanced.class_weight_, theirs.class_weight_)
    np.testing.assert_allclose(balanced.decision_function(X), theirs.decision_function(X), atol=1e-3)
    by_name = SVC(class_weight=dict(zip([0, 1], balanced.class_weight_, strict=True))).fit(X, y)
    np.testing.assert_allclose(by_name.decision_function(X), balanced.decision_function(X), atol=1e-9)


def test_offset_when_every_sample_is_bounded():
    # Both classes weigh the same, up to rounding: every α is at C, and the offset has an interval, not one of its ends.
    random = np.random.default_rng(18)
    X, y = random.normal(size=(60, 2)), np.arange(60) % 2
    X[:, 0] += 3 * y
    weights = random.uniform(0.5, 2, 60)
    weights[y == 1] *= weights[y == 0].sum() / weights[y == 1].sum()
    model = SVC(C=1e-3).fit(X, y, weights)
    assert len(model.geometry_.free) == 0
    low, high = model.geometry_.offset_interval
    assert low < -0.9
    assert high > 0.9
    assert abs(model.intercept_[0]) < 0.1
    assert model.score(X, y) > 0.9
    for seed in range(20):
        X = np.random.default_rng(seed).normal(size=(40, 2))
        y = (np.arange(40) % 3 == 0).astype(int)
        X[:, 0] += 3 * y
        balanced = SVC(C=1e-3, class_weight="balanced").fit(X, y)
        assert balanced.score(X, y) > 0.7


def test_indefinite_kernels_are_not_called_optimal():
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.random.default_rng(0).integers(0, 2, 60)
    certificate = SVC(kernel="sigmoid", gamma=1.0, coef0=-1.0, C=10.0).fit(X, y).certificate_
    assert certificate.indefinite
    assert "not proved optimal" in str(certificate)
    assert not SVC().fit(X, y).certificate_.indefinite


def test_kernels_by_name_object_and_function():
    X, y = load_wine(return_X_y=True)
    X = X / X.max(axis=0)

    def decisions(kernel, data=X, **options):
        return SVC(kernel=kernel, decision_function_shape="ovo", **options).fit(data, y).decision_function(data)

    for name, function in (
        ("laplacian", laplacian_kernel),
        ("rbf", rbf_kernel),
        ("chi_squared", chi2_kernel),
    ):
        named = decisions(name, gamma=0.5)
        np.testing.assert_allclose(named, decisions(lambda A, B, k=function: k(A, B, gamma=0.5)), atol=1e-8)
        np.testing.assert_allclose(named, decisions("precomputed", function(X, gamma=0.5)), atol=1e-8)
    np.testing.assert_array_equal(decisions(Gaussian(0.5)), decisions("gaussian", gamma=0.5))
    mixed = decisions(0.5 * Gaussian(0.5) + Linear() * Laplacian(0.1))
    K = 0.5 * rbf_kernel(X, gamma=0.5) + X @ X.T * laplacian_kernel(X, gamma=0.1)
    np.testing.assert_allclose(mixed, decisions("precomputed", K), atol=1e-8)


def test_a_function_never_sees_the_whole_matrix():
    X, y = chessboard(400)
    largest = 0

    def kernel(A, B):
        nonlocal largest
        largest = max(largest, len(A) * len(B))
        return rbf_kernel(A, B, gamma=1.0)

    assert len(SVC(kernel=kernel, C=1e-3).fit(X, y).support_) > 380
    model = SVC(kernel=kernel, C=10).fit(X, y)
    assert largest <= 400 * 400 / 4
    np.testing.assert_allclose(
        model.decision_function(X), SVC(gamma=1.0, C=10).fit(X, y).decision_function(X), atol=1e-8
    )


def test_precomputed_works_in_cross_validation():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    K = rbf_kernel(X, gamma=0.1)
    np.testing.assert_allclose(cross_val_score(SVC(kernel="precomputed"), K, y), cross_val_score(SVC(gamma=0.1), X, y))
    model = SVC(kernel="precomputed").fit(K, y)
    assert model.support_vectors_.size == 0
    assert model.predict(K[:5]).shape == (5,)


@pytest.mark.parametrize(
    "kind", [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix, sparse.lil_matrix]
)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian"])
def test_sparse_equals_dense(kind, kernel):
    X, y = load_digits(n_class=3, return_X_y=True)
    X, y = X[:150] / 16, y[:150]
    dense = SVC(kernel=kernel).fit(X, y)
    model = SVC(kernel=kernel).fit(kind(X), y)
    np.testing.assert_allclose(model.decision_function(kind(X)), dense.decision_function(X), atol=1e-7)
    np.testing.assert_allclose(model.decision_function(X), dense.decision_function(kind(X)), atol=1e-7)
    assert sparse.issparse(model.support_vectors_)
    assert sparse.issparse(model.dual_coef_)
    if kernel == "linear":
        np.testing.assert_allclose(model.coef_.toarray(), dense.coef_, atol=1e-7)


def test_frames_memory_maps_and_layouts(tmp_path):
    X, y = load_iris(return_X_y=True)
    expected = SVC().fit(X, y).decision_function(X)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for same in (np.asfortranarray(X), mapped, X.tolist(), X.astype(object), X[::-1][::-1]):
        np.testing.assert_array_equal(SVC().fit(same, y).decision_function(same), expected)
    np.testing.assert_allclose(SVC().fit(X.astype(np.float32), y).decision_function(X), expected, atol=1e-4)
    names = ["a", "b", "c", "d"]
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = SVC().fit(frame, y)
        assert model.feature_names_in_.tolist() == names
        np.testing.assert_array_equal(model.decision_function(frame), expected)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes", "perhaps"]),
        np.array([True, False]),
        np.array([-1, 1]),
        np.array([2.0, 7.0, 11.0]),
    ],
)
def test_labels_of_any_type(labels):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < len(labels)], labels[y[y < len(labels)]]
    model = SVC().fit(X, y)
    np.testing.assert_array_equal(model.classes_, np.unique(labels))
    assert model.predict(X).dtype == labels.dtype
    assert model.score(X, y) > 0.9


def test_works_with_the_rest_of_scikit_learn():
    X, y = load_breast_cancer(return_X_y=True)
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 1.0]}, cv=3, n_jobs=2).fit(X, y)
    assert search.best_score_ > 0.9
    probabilities = CalibratedClassifierCV(search.best_estimator_, ensemble=False).fit(X, y).predict_proba(X)
    assert probabilities.shape == (569, 2)


def test_pickles_and_clones():
    X, y = load_wine(return_X_y=True)
    model = SVC(kernel=Gaussian(0.1) + Linear(), C=2).fit(X, y)
    _ = model.certificate_  # computed before it is stored
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.certificate_[0].gap == model.certificate_[0].gap
    assert clone(model).get_params()["C"] == 2
    with pytest.raises(NotFittedError):
        clone(model).predict(X)
    with pytest.raises(AttributeError, match="certificate_"):
        _ = clone(model).certificate_


def test_prediction_of_a_row_does_not_depend_on_its_batch():
    X, y = load_digits(return_X_y=True)
    model = SVC().fit(X[:600], y[:600])
    whole = model.decision_function(X)
    one_by_one = np.vstack([model.decision_function(X[k : k + 1]) for k in range(0, 1797, 50)])
    np.testing.assert_allclose(one_by_one, whole[::50], rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(model.set_params(n_jobs=1).predict(X), model.set_params(n_jobs=3).predict(X))


def test_prediction_stays_within_its_budget(monkeypatch):
    from maxmargin.models import kernel_blocks

    X, y = chessboard(1000)
    y = y + (X[:, 0] > 2)  # three classes: two need no blocks at all
    model = SVC(gamma=1.0).fit(X, y)
    expected = model.decision_function(X)
    monkeypatch.setattr(kernel_blocks, "BLOCK_BYTES", 8 * 5000)
    largest = 0
    original = kernel_blocks.ComputedKernelBlocks.block

    def watched(self, rows):
        nonlocal largest
        block = original(self, rows)
        largest = max(largest, block.nbytes)
        return block

    monkeypatch.setattr(kernel_blocks.ComputedKernelBlocks, "block", watched)
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-12)
    assert 0 < largest <= 8 * 5000
