"""Conversion between scikit-learn's estimators and ours: equal decision values without training."""

import pickle

import numpy as np
import pytest
import sklearn.svm
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import MaxAbsScaler

import maxmargin
from maxmargin.interchange import ModelFileError, from_sklearn, to_sklearn
from maxmargin.kernels import Gaussian, Laplacian, Polynomial

KERNELS = ["linear", "poly", "rbf", "sigmoid", "precomputed"]
MACHINES = {"SVC": {}, "NuSVC": {"nu": 0.2}, "SVR": {}, "NuSVR": {}, "OneClassSVM": {"nu": 0.3}}
LINEAR = [
    ("LinearSVC", {}), ("LinearSVC", {"fit_intercept": False}), ("LinearSVC", {"penalty": "l1", "dual": False}),
    ("LinearSVC", {"multi_class": "crammer_singer"}), ("LinearSVC", {"loss": "hinge", "C": 0.1}),
    ("LinearSVR", {}), ("LinearSVR", {"fit_intercept": False}), ("LinearSVR", {"loss": "squared_epsilon_insensitive"}),
]  # fmt: skip


def samples(classes):
    X, y = (load_iris if classes == 3 else load_breast_cancer)(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))[:120]
    X = MaxAbsScaler().fit_transform(X[order])
    return X[:90], np.array(["c", "a", "b"])[y[order[:90]]], X[90:]


def data(classes, kernel, form, name):
    X, y, new = samples(classes)
    y = y if name.endswith("SVC") else np.sin(5.0 * X[:, 0])
    if kernel == "precomputed":
        return X @ X.T, y, new @ X.T
    return (sparse.csr_matrix(X), y, sparse.csr_matrix(new)) if form == "sparse" else (X, y, new)


def assert_same(found, expected, new):
    for method in ("decision_function", "predict", "predict_proba", "score_samples"):
        if method == "predict_proba" or not hasattr(expected, method) or not hasattr(found, method):
            continue
        ours, theirs = getattr(found, method)(new), getattr(expected, method)(new)
        assert ours.shape == theirs.shape
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
        else:
            assert (ours == theirs).mean() > 0.95  # values next to 0 are decided by rounding
    for attribute in ("classes_", "support_", "n_support_", "dual_coef_", "intercept_", "support_vectors_", "coef_"):
        # scikit-learn does not set n_support_ of estimators other than classifiers on sparse data
        if hasattr(expected, attribute) and (attribute != "n_support_" or hasattr(expected, "classes_")):
            ours, theirs = getattr(found, attribute), getattr(expected, attribute)
            assert sparse.issparse(ours) == sparse.issparse(theirs)
            ours, theirs = (value.toarray() if sparse.issparse(value) else value for value in (ours, theirs))
            if np.asarray(theirs).dtype.kind == "f":
                np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
            else:
                np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", MACHINES)
class TestKernels:
    def test_theirs(self, name, kernel, form, classes, tmp_path):
        X, y, new = data(classes, kernel, form, name)
        theirs = getattr(sklearn.svm, name)(kernel=kernel, coef0=0.2, **MACHINES[name]).fit(X, y)
        ours = from_sklearn(theirs)
        assert type(ours) is getattr(maxmargin, name)
        assert_same(ours, theirs, new)
        assert ours.shape_fit_ == theirs.shape_fit_
        with pytest.raises(AttributeError, match="certificate_.*not trained by fit"):
            _ = ours.certificate_
        maxmargin.save(ours, tmp_path / "model")
        assert_same(maxmargin.load(tmp_path / "model"), theirs, new)
        assert_same(pickle.loads(pickle.dumps(ours)), theirs, new)
        assert_same(to_sklearn(ours), theirs, new)
        assert clone(ours).fit(X, y).certificate_ is not None

    def test_ours(self, name, kernel, form, classes):
        X, y, new = data(classes, kernel, form, name)
        ours = getattr(maxmargin, name)(kernel=kernel, coef0=0.2, **MACHINES[name]).fit(X, y)
        theirs = to_sklearn(ours)
        assert type(theirs) is getattr(sklearn.svm, name)
        assert_same(theirs, ours, new)
        assert_same(from_sklearn(theirs), ours, new)
        clone(theirs).fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("name", "parameters"), LINEAR)
def test_linear_estimators(name, parameters, classes):
    X, y, new = data(classes, "linear", "dense", name)
    theirs = getattr(sklearn.svm, name)(**parameters).fit(X, y)
    ours = from_sklearn(theirs)
    assert type(ours) is getattr(maxmargin, name)
    assert_same(ours, theirs, new)
    assert_same(to_sklearn(ours), theirs, new)
    own = getattr(maxmargin, name)(**parameters).fit(X, y)
    assert_same(to_sklearn(own), own, new)
    assert to_sklearn(own).max_iter == 1000


@pytest.mark.filterwarnings("ignore:.*probability:FutureWarning", "ignore:.*prob._:FutureWarning")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", ["SVC", "NuSVC"])
def test_probabilities(name, classes):
    X, y, new = samples(classes)
    theirs = getattr(sklearn.svm, name)(probability=True, **MACHINES[name]).fit(X, y)
    ours = from_sklearn(theirs)
    np.testing.assert_allclose(ours.predict_proba(new), theirs.predict_proba(new), atol=0.01)
    own = getattr(maxmargin, name)(probability=True, **MACHINES[name]).fit(X, y)
    np.testing.assert_allclose(to_sklearn(own).predict_proba(new), own.predict_proba(new), atol=0.01)


def test_kernel_objects_and_losses_that_sklearn_cannot_train():
    X, y, new = samples(3)
    targets = np.sin(5.0 * X[:, 0])
    for made in (
        maxmargin.SVC(kernel=Gaussian(0.7)),
        maxmargin.SVC(kernel=Polynomial(2, 0.5, 1.0), loss="squared_hinge"),
        maxmargin.LSSVC(),
        maxmargin.SVC(fit_intercept=False),
    ):
        assert_same(to_sklearn(made.fit(X, y)), made, new)
    for made in (maxmargin.QuantileSVR(), maxmargin.LSSVR()):
        assert_same(to_sklearn(made.fit(X, targets)), made, new)


def test_feature_names():
    pandas = pytest.importorskip("pandas")
    X, y, new = samples(2)
    frame = pandas.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    ours = from_sklearn(sklearn.svm.SVC().fit(frame, y))
    assert ours.feature_names_in_.tolist() == list(frame.columns)
    assert to_sklearn(ours).feature_names_in_.tolist() == list(frame.columns)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        ours.predict(new)


def test_arrays_are_copied():
    X, y, new = samples(3)
    theirs = sklearn.svm.SVC().fit(X, y)
    ours = from_sklearn(theirs)
    expected = ours.predict(new)
    theirs.dual_coef_ *= 0.0
    theirs.support_vectors_ *= 0.0
    np.testing.assert_array_equal(ours.predict(new), expected)


def test_unsupported_models():
    X, y, _ = samples(3)
    for model, message in (
        (sklearn.svm.SVC(), "not fitted"),
        (sklearn.svm.LinearSVC(), "not fitted"),
        (LogisticRegression().fit(X, y), "LogisticRegression cannot be converted"),
        (maxmargin.SVC().fit(X, y), "SVC cannot be converted"),
        (sklearn.svm.SVC(kernel=lambda A, B: A @ B.T).fit(X, y), "for a kernel function"),
    ):
        with pytest.raises(ValueError, match=message):
            from_sklearn(model)
    for model, message in (
        (maxmargin.SVC(), "not fitted"),
        (maxmargin.SVDD().fit(X), "no counterpart of SVDD"),
        (maxmargin.SVR().fit(X, X[:, :2]), "one output"),
        (maxmargin.LinearSVC(probability=True).fit(X, y), "probability=False"),
    ):
        with pytest.raises(ValueError, match=message):
            to_sklearn(model)
    for model, message in (
        (maxmargin.SVC(multi_class="ovr").fit(X, y), "scikit-learn uses one-vs-one"),
        (maxmargin.SVC(kernel=Laplacian(1.0)).fit(X, y), "no kernel Laplacian"),
    ):
        with pytest.raises(ModelFileError, match=message):
            to_sklearn(model)
