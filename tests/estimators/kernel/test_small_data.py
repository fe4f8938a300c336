"""Small data: every kernel machine is trained in a batch, with the solution of the pipeline."""

import numpy as np
import pytest
import sklearn.svm
from scipy import sparse
from sklearn.datasets import load_diabetes, load_iris
from sklearn.metrics.pairwise import rbf_kernel

from maxmargin import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM, QuantileSVR, _native

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(120, 4))
TARGETS = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * RANDOM.normal(size=120)
LABELS = (TARGETS > 0).astype(int) + (TARGETS > 1)
WEIGHTS = RANDOM.uniform(0.0, 2.0, 120).round()

CASES = {
    "SVC": (SVC(), LABELS),
    "SVC squared hinge": (SVC(loss="squared_hinge"), LABELS),
    "SVC without bias": (SVC(fit_intercept=False), LABELS),
    "SVC one-vs-rest": (SVC(multi_class="ovr"), LABELS),
    "NuSVC": (NuSVC(nu=0.2), LABELS),
    "NuSVC two classes": (NuSVC(nu=0.2), LABELS > 0),
    "NuSVC without bias": (NuSVC(nu=0.2, fit_intercept=False), LABELS > 0),
    "OneClassSVM": (OneClassSVM(nu=0.2), None),
    "SVDD": (SVDD(nu=0.2), None),
    "SVR": (SVR(), TARGETS),
    "SVR without bias": (SVR(fit_intercept=False), TARGETS),
    "SVR squared": (SVR(loss="squared_epsilon_insensitive"), TARGETS),
    "SVR outputs": (SVR(), np.column_stack([TARGETS, X[:, 3]])),
    "NuSVR": (NuSVR(), TARGETS),
    "NuSVR without bias": (NuSVR(fit_intercept=False), TARGETS),
    "QuantileSVR": (QuantileSVR(quantile=0.2), TARGETS),
}


def parameters(**changed):
    return pytest.mark.parametrize(("model", "y"), CASES.values(), ids=CASES, **changed)


@pytest.fixture
def batches(monkeypatch):
    """The native calls that solve batches."""
    solve, calls = _native.solve_small_problems, []

    def counted(*arguments):
        calls.append(arguments)
        solve(*arguments)

    monkeypatch.setattr(_native, "solve_small_problems", counted)
    return calls


def fitted(model, y, rows=X, **changed):
    weight = changed.pop("sample_weight", None)
    return type(model)(**{**model.get_params(), **changed}).fit(rows, y, sample_weight=weight)


@parameters()
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])
def test_the_solution_is_that_of_the_pipeline(model, y, weights, batches):
    small = fitted(model, y, sample_weight=weights)
    assert len(batches) == 1
    steps = fitted(model, y, sample_weight=weights, solver="pairwise", tol=1e-9)
    assert len(batches) == 1
    decide = "predict" if hasattr(model, "fit_intercept") and y is TARGETS else "decision_function"
    values = [getattr(each, decide if hasattr(each, decide) else "predict")(X) for each in (small, steps)]
    np.testing.assert_allclose(*values, atol=1e-6)
    certificates = small.certificate_ if isinstance(small.certificate_, list) else [small.certificate_]
    assert all(certificate.violation <= 1e-9 for certificate in certificates)


@parameters()
def test_sparse_and_precomputed_are_the_same(model, y, batches):
    dense = fitted(model, y, gamma=0.3)
    rare = fitted(model, y, sparse.csr_matrix(X), gamma=0.3)
    np.testing.assert_allclose(rare.intercept_, dense.intercept_, atol=1e-9)
    if not isinstance(model, SVDD):  # which needs k(x, x)
        known = fitted(model, y, rbf_kernel(X, gamma=0.3), kernel="precomputed")
        np.testing.assert_array_equal(known.support_, dense.support_)
        np.testing.assert_allclose(known.intercept_, dense.intercept_, atol=1e-9)
    assert len(batches) == 2 + (not isinstance(model, SVDD))


@parameters()
def test_a_warm_start_takes_no_steps(model, y, batches):
    model = fitted(model, y, warm_start=True)
    first = np.copy(model.intercept_)
    again = model.fit(X, y)
    assert not np.any(again.n_iter_)
    np.testing.assert_allclose(again.intercept_, first, atol=1e-9)
    assert len(batches) == 2


@parameters()
def test_two_samples(model, y):
    y = None if y is None else np.array([0.0, 1.0]) if y is TARGETS or y.ndim == 2 else np.array([0, 1])
    nu = {"nu": 1.0} if "nu" in model.get_params() else {}
    assert fitted(model, y, np.array([[0.0], [1.0]]), **nu).status_.converged


@parameters()
def test_equal_rows(model, y):
    rows = np.zeros((120, 3))
    assert np.all([each.converged for each in np.atleast_1d(fitted(model, y, rows).status_)])


@pytest.mark.parametrize("kind", [SVR, NuSVR])
def test_a_fit_with_many_steps_continues_in_the_pipeline(kind, batches):
    data, targets = load_diabetes(return_X_y=True)
    model = kind(C=1e4, gamma=20.0, kernel="poly", coef0=1.0, degree=2).fit(data, targets)
    assert len(batches) == 1
    assert model.certificate_.violation <= 1e-3


def test_diabetes_is_that_of_scikit_learn():
    data, targets = load_diabetes(return_X_y=True)
    ours, theirs = SVR().fit(data, targets), sklearn.svm.SVR(tol=1e-9).fit(data, targets)
    np.testing.assert_allclose(ours.predict(data), theirs.predict(data), rtol=1e-6)


@pytest.mark.parametrize("model", [NuSVC(nu=0.2, probability=True), SVC(probability=True)], ids=repr)
def test_probabilities_are_cross_validated_in_batches(model, batches):
    data, labels = load_iris(return_X_y=True)
    assert model.fit(data, labels).score(data, labels) > 0.9
    assert len(batches) > 1
