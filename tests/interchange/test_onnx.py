"""ONNX graphs evaluated by onnxruntime agree with `predict` and `decision_function`."""

import io
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from scipy import sparse
from sklearn.base import clone

from maxmargin import (
    LSSVC,
    LSSVR,
    SVC,
    SVCCV,
    SVDD,
    SVR,
    KernelApproximationSVC,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    QuantileSVR,
    RankSVC,
    TransductiveSVC,
    kernels,
)
from maxmargin.interchange import to_onnx
from maxmargin.kernels import ChiSquared, Gaussian, Laplacian, Linear, Polynomial, Sigmoid

KERNELS = {
    **{name: name for name in kernels.KERNELS},
    "sum": 0.5 * Gaussian(2.0) + Linear() * Polynomial(2, 0.5, 1.0),
    "sum of distances": Laplacian(1) + 2.0 * ChiSquared(0.5),
    "multiple": 0.3 * (0.7 * Laplacian(1.1)),
    "multiple of products": 0.3 * Linear() + (0.7 * Linear()) * (1.3 * Polynomial(3, 0.11, 0.7)),
    "indefinite": Sigmoid(0.3, -1.0),
    "narrow": Gaussian(1e6),
    "by feature": Gaussian([0.3, 0.0, 7.0, 1.0]),
    "narrow by feature": Gaussian([1e7, 0.0, 1e7, 1e7]),
    "distances by feature": Laplacian([1.0, 0.0, 0.5, 2.0]) + 2.0 * ChiSquared([0.5, 0.1, 0.0, 3.0]),
}
MODELS = [
    SVC(C=3.0),
    SVC(multi_class="crammer_singer"),
    NuSVC(nu=0.2),
    LSSVC(),
    TransductiveSVC(C=2.0),
    SVR(C=3.0),
    NuSVR(),
    QuantileSVR(quantile=0.7),
    LSSVR(C=0.1),
    RankSVC(C=0.1),
    OneClassSVM(nu=0.3),
    SVDD(nu=0.3),
]


def samples(count=60, features=4, seed=0):
    return np.random.default_rng(seed).random((count, features))


def labels(X, classes):
    return np.digitize(X.sum(axis=1), np.quantile(X.sum(axis=1), np.arange(1, classes) / classes))


def run(graph, X):
    onnx.checker.check_model(graph, full_check=True)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, {"X": X}), strict=True))


def assert_agrees(model, X):
    """Compare all outputs, for samples in single and in double precision."""
    for dtype, precision in (("float32", 2e-6), ("float64", 1e-10)):
        given = X.astype(dtype)
        found = run(to_onnx(model, dtype=dtype), given)
        if hasattr(model, "decision_function") and not isinstance(model, RankSVC):
            expected = model.decision_function(given)
            assert found["scores"].dtype == dtype
            scale = np.abs(expected).max() + np.abs(model.intercept_).max()
            np.testing.assert_allclose(found["scores"], expected, rtol=precision, atol=precision * scale)
            clear = np.ones(len(given), dtype=bool)
            if isinstance(model, SVDD):  # a support vector lies on the surface up to rounding, which is not always seen
                clear = (expected == 0) | (np.abs(expected) > 1e-12 * scale)
            assert clear.mean() > 0.9
            if getattr(model, "multi_class", "ovo") != "ovo" and expected.ndim == 2:  # among equals either wins
                best = np.sort(expected, axis=1)
                clear = best[:, -1] - best[:, -2] > 1e-9 * scale
            assert found["label"][clear].tolist() == model.predict(given)[clear].tolist()
        else:
            assert found["prediction"].dtype == dtype
            expected = model.predict(given)
            np.testing.assert_allclose(found["prediction"], expected, rtol=precision, atol=precision)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("kernel", KERNELS)
def test_estimators_and_kernels(model, kernel):
    X = samples()
    model = clone(model).set_params(kernel=KERNELS[kernel], coef0=0.5)
    for classes in (2, 3) if hasattr(model, "break_ties") else (5,):
        model.fit(X, labels(X, classes))
        assert_agrees(model, samples(200, seed=1))
        assert_agrees(model, X)  # the support vectors among them


@pytest.mark.parametrize("strategy", ["ovr", "crammer_singer", "weston_watkins"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_strategies(strategy, kernel):
    X = samples()
    for classes in (2, 3, 5):
        assert_agrees(SVC(multi_class=strategy, kernel=kernel).fit(X, labels(X, classes)), samples(200, seed=1))


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_several_outputs(kernel):
    X = samples()
    assert_agrees(SVR(kernel=kernel).fit(X, X[:, :3] ** 2), samples(200, seed=1))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_linear_estimators(form):
    X = samples()
    rows = form(X)
    for classes in (2, 3):
        for strategy in ("ovr", "crammer_singer"):
            model = LinearSVC(multi_class=strategy).fit(rows, labels(X, classes))
            assert_agrees(model, samples(200, seed=1))
            assert_agrees(model.sparsify(), samples(200, seed=1))
        assert_agrees(LinearSVC(penalty="l1").fit(rows, labels(X, classes)), samples(200, seed=1))
    assert_agrees(LinearSVR().fit(rows, X[:, 0] ** 2), samples(200, seed=1))
    assert_agrees(LinearSVR(intercept_scaling=1).fit(rows, X[:, :3] ** 2), samples(200, seed=1))
    assert_agrees(LinearOneClassSVM(nu=0.3).fit(rows), samples(200, seed=1))


@pytest.mark.parametrize("classes", [2, 3, 4, 7])
@pytest.mark.parametrize("options", [{}, {"break_ties": True}, {"decision_function_shape": "ovo"}], ids=str)
def test_voting(classes, options):
    X = samples(300, 2)
    y = np.random.default_rng(1).integers(0, classes, len(X))  # noise: many samples without a clear winner
    model = SVC(gamma=5.0, C=10.0, **options).fit(X, y)
    assert_agrees(model, samples(3000, 2, seed=2))


def test_ties_of_votes():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    model = SVC(kernel="linear").fit(X, [10, 20, 30])
    model.dual_coef_, model.intercept_ = np.zeros_like(model.dual_coef_), np.array([1.0, -1.0, 1.0])
    assert model.predict([[0.0, 0.0]]).tolist() == [10]  # one vote for each
    assert_agrees(model, samples(5, 2))
    model.intercept_ = np.zeros(3)  # on the boundary of every pair
    assert_agrees(model, samples(5, 2))
    two = SVC(kernel="linear").fit(X[:2], ["a", "b"])
    two.dual_coef_, two.intercept_ = np.zeros_like(two.dual_coef_), np.zeros(1)
    assert two.predict([[0.0, 0.0]]).tolist() == ["b"]
    assert_agrees(two, samples(5, 2))


@pytest.mark.parametrize(
    "names",
    [["no", "yes"], ["früh", "spät", "nie"], [3, -7, 2**40], np.array([1, 2, 3], dtype=np.int8), [1.0, 2.0, 5.0],
     [False, True], np.array(["a", "bc"], dtype=object)],
    ids=str,
)  # fmt: skip
def test_labels(names):
    X = samples()
    y = np.asarray(names)[labels(X, len(names))]
    assert_agrees(SVC().fit(X, y), X)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian"])
def test_sparse_models_take_dense_samples(kernel):
    X = samples() * (samples(seed=3) < 0.4)
    for model in MODELS:
        model = clone(model).set_params(kernel=kernel).fit(sparse.csr_matrix(X), labels(X, 3))
        assert_agrees(model, samples(20, seed=1))


def test_models_in_single_precision():
    X = samples().astype(np.float32)
    for model in (*MODELS, KernelApproximationSVC(n_components=9), LinearSVC()):
        assert_agrees(clone(model).fit(X, labels(X, 3)), samples(20, seed=1))


def test_precomputed():
    X = samples()
    for model in MODELS[:-1]:
        model = clone(model).set_params(kernel="precomputed").fit(Gaussian(2.0)(X), labels(X, 3))
        assert_agrees(model, Gaussian(2.0)(samples(30, seed=1), X))


def test_hard_cases():
    X = samples()
    far = X + np.array([2000.0, -1e5, 0.0, 3.0])  # years, metres: digits that must not be lost
    assert_agrees(SVC(gamma=3.0).fit(far, labels(X, 3)), far.astype(np.float32).astype(np.float64))
    unscaled = X * np.array([1e4, 1.0, 1e-3, 1.0])
    for kernel in ("rbf", "laplacian"):
        assert_agrees(SVR(kernel=kernel, gamma=0.5, C=100.0).fit(unscaled, X[:, 1]), unscaled)
    flat = SVR(epsilon=10.0).fit(X, X[:, 0])
    assert len(flat.support_) == 0
    assert_agrees(flat, X)
    assert_agrees(SVR(epsilon=10.0, kernel="laplacian").fit(X, X[:, 0]), X)
    assert_agrees(NuSVC(nu=1.0).fit([[0.0], [1.0]], [0, 1]), np.array([[0.2], [0.9]]))
    assert_agrees(SVC(kernel="poly", degree=0).fit(X, labels(X, 2)), X)
    assert_agrees(SVC(C=np.inf, gamma=300.0).fit(X, labels(X, 2)), X)


def test_files(tmp_path):
    X = samples()
    model = SVC().fit(X, labels(X, 3))
    stream = io.BytesIO()
    graph = to_onnx(model, stream)
    to_onnx(model, tmp_path / "model.onnx")
    assert stream.getvalue() == graph.SerializeToString() == (tmp_path / "model.onnx").read_bytes()
    assert graph.producer_name == "maxmargin"
    assert onnx.load(tmp_path / "model.onnx").graph.name == "SVC"


class Own(Gaussian):
    """A kernel of a user's own that only looks like a gaussian."""


class TestErrors:
    @pytest.mark.parametrize("kernel", [lambda A, B: A @ B.T, Own(1.0), Linear() + Own(1.0)])
    def test_kernels_without_operators(self, kernel):
        X = samples()
        with pytest.raises(ValueError, match="cannot be exported to ONNX; use a kernel of maxmargin.kernels"):
            to_onnx(SVR(kernel=kernel).fit(X, X[:, 0]))

    def test_what_is_no_fitted_estimator(self):
        with pytest.raises(ValueError, match="SVC is not fitted"):
            to_onnx(SVC())
        with pytest.raises(ValueError, match="Gaussian cannot be exported to ONNX"):
            to_onnx(Gaussian(1.0))

    def test_other_types(self):
        X = samples()
        with pytest.raises(ValueError, match="'float32' or 'float64', not 'float16'"):
            to_onnx(SVR().fit(X, X[:, 0]), dtype="float16")

    def test_without_the_package(self, monkeypatch):
        X = samples()
        model = SVR().fit(X, X[:, 0])
        monkeypatch.setitem(sys.modules, "onnx", None)
        with pytest.raises(ImportError, match=r"maxmargin\[onnx\]"):
            to_onnx(model)


PROBABLE = [
    SVC(probability=True, random_state=0),
    NuSVC(nu=0.1, probability=True, kernel="linear"),
    SVC(probability=True, C=1e6, gamma=100.0),  # probabilities of pairs that are 0 or 1
    LinearSVC(probability=True),
    KernelApproximationSVC(n_components=20, probability=True, random_state=0),
]


@pytest.mark.parametrize("model", PROBABLE, ids=str)
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_probabilities(model, classes):
    X = samples(120)
    model = clone(model).fit(X, labels(X, classes))
    for dtype, precision in (("float32", 1e-5), ("float64", 1e-9)):
        given = samples(100, seed=1).astype(dtype)
        found, expected = run(to_onnx(model, dtype=dtype), given), model.predict_proba(given)
        np.testing.assert_allclose(found["probabilities"], expected, atol=precision)
        best = np.sort(expected, axis=1)
        clear = best[:, -1] - best[:, -2] > 1e-9
        assert found["label"][clear].tolist() == model.predict(given)[clear].tolist()
    assert_agrees(model.set_params(probability=False), given)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian", 0.5 * Gaussian(1.0)], ids=str)
def test_landmarks(kernel):
    X = samples()
    for classes in (2, 3):
        model = KernelApproximationSVC(kernel=kernel, n_components=20, random_state=0).fit(X, labels(X, classes))
        assert_agrees(model, samples(200, seed=1))


def test_searches():
    X = samples()
    search = SVCCV(Cs=2, gammas=2, cv=3).fit(X, labels(X, 3))
    np.testing.assert_array_equal(run(to_onnx(search), X.astype(np.float32))["label"], search.predict(X))
