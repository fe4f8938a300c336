"""`device="cuda"` of the estimators: the certificate, the optimum and the predictions of the CPU."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from maxmargin import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM, QuantileSVR

pytestmark = pytest.mark.gpu


def samples(n=3000, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 8))
    return X, X[:, 0] * X[:, 1] + 0.3 * random.normal(size=n)


REGRESSION = [SVR(C=2.0), NuSVR(C=2.0, nu=0.3), QuantileSVR(C=2.0), SVR(loss="squared_epsilon_insensitive")]
CLASSIFICATION = [SVC(C=3.0), NuSVC(nu=0.4), SVC(C=3.0, kernel="poly", coef0=1.0), SVC(C=3.0, class_weight="balanced")]
ONE_CLASS = [OneClassSVM(nu=0.2), SVDD(nu=0.2)]


@pytest.mark.parametrize("model", [*REGRESSION, *CLASSIFICATION, *ONE_CLASS], ids=repr)
@pytest.mark.parametrize("n", [60, 3000])
def test_same_optimum_as_on_the_cpu(model, n):
    X, y = samples(n)
    target = (y > 0).astype(int) if model in CLASSIFICATION else y
    on_cpu = type(model)(**model.get_params()).fit(X, target)
    on_gpu = type(model)(**{**model.get_params(), "device": "cuda"}).fit(X, target)
    assert on_gpu.device_ == "cuda"
    assert on_cpu.device_ == "cpu"
    assert on_gpu.certificate_.violation <= 1e-3
    assert on_gpu.certificate_.dual == pytest.approx(on_cpu.certificate_.dual, rel=1e-5, abs=1e-9)
    # The certificate of the GPU is that of the CPU: the same point, verified there.
    on_gpu.set_params(device="cpu")
    predicted = on_gpu.decision_function(X) if hasattr(on_gpu, "decision_function") else on_gpu.predict(X)
    on_gpu.set_params(device="cuda")
    again = on_gpu.decision_function(X) if hasattr(on_gpu, "decision_function") else on_gpu.predict(X)
    np.testing.assert_allclose(again, predicted, atol=1e-10 * np.abs(predicted).max())


def test_several_classes():
    X, y = samples(4000)
    labels = np.digitize(y, [-0.5, 0.0, 0.5])
    on_cpu, on_gpu = SVC().fit(X, labels), SVC(device="cuda").fit(X, labels)
    for cpu, gpu in zip(on_cpu.certificate_, on_gpu.certificate_, strict=True):
        assert gpu.violation <= 1e-3
        assert gpu.dual == pytest.approx(cpu.dual, rel=1e-5)
    assert (on_cpu.predict(X) == on_gpu.predict(X)).mean() > 0.999


def test_large_samples_and_limits():
    X, y = samples(30_000)
    labels = (y > 0).astype(int)
    model = SVC(device="cuda").fit(X, labels)
    assert model.certificate_.violation <= 1e-3
    again = SVC(device="cuda", callback=lambda progress: False, max_seconds=1e6).fit(X, labels)
    np.testing.assert_array_equal(again.dual_coef_, model.dual_coef_)
    with pytest.warns(match="max_iter"):
        limited = SVC(device="cuda", max_iter=100).fit(X, labels)
    assert limited.certificate_.gap > model.certificate_.gap
    assert SVC(device="auto").fit(X, labels).device_ == "cuda"
    assert SVC(device="auto").fit(X[:100], labels[:100]).device_ == "cpu"


def test_unsupported():
    X, y = samples(50)
    labels = (y > 0).astype(int)
    for model, data, match in [
        (SVC(device="cuda", kernel=lambda X, Z: X @ Z.T), X, "built-in kernels"),
        (SVC(device="cuda:77"), X, "does not exist"),
        (SVC(device="gpu"), X, "device must be"),
        (SVC(device="cuda", solver="platt"), X, "solver='auto' or 'block'"),
        (SVC(device="cuda", C=np.inf), X, "finite C"),
    ]:
        with pytest.raises((ValueError, RuntimeError), match=match):
            model.fit(data, labels)


def test_sparse_samples():
    from scipy import sparse

    X, y = samples(3000)
    X = np.where(np.abs(X) > 1, X, 0.0)
    labels = (y > 0).astype(int)
    dense, rows = SVC(device="cuda").fit(X, labels), SVC(device="cuda").fit(sparse.csr_matrix(X), labels)
    np.testing.assert_allclose(rows.decision_function(sparse.csr_matrix(X)), dense.decision_function(X), atol=1e-9)
    assert rows.certificate_.violation <= 1e-3


def test_fits_in_two_threads():
    X, y = samples(6000)
    labels = (y > 0).astype(int)
    expected = SVC(device="cuda").fit(X, labels)
    with ThreadPoolExecutor(2) as pool:
        fitted = list(pool.map(lambda _: SVC(device="cuda").fit(X, labels), range(4)))
    for model in fitted:
        np.testing.assert_array_equal(model.dual_coef_, expected.dual_coef_)


def hard_cases():
    random = np.random.default_rng(0)
    X = random.normal(size=(2500, 6))
    y = np.where(X[:, 0] + 0.5 * random.normal(size=2500) > 0, 1, -1)
    single = -np.ones(2500, dtype=int)
    single[7] = 1
    return {
        "unscaled": (X * [1e4, 1, 1e-3, 1, 100, 1], y),
        "far from the origin": (X + 1e4, y),
        "duplicates with other labels": (np.vstack([X[:1000], X[:1000]]), np.concatenate([y[:1000], -y[:1000]])),
        "one sample in a class": (X, single),
        "one value": (np.ones((50, 3)), y[:50]),
    }


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e4, 1e6])
@pytest.mark.parametrize("name", hard_cases())
def test_hard_cases(name, C):
    X, y = hard_cases()[name]
    on_cpu, on_gpu = SVC(C=C).fit(X, y), SVC(C=C, device="cuda").fit(X, y)
    assert on_gpu.status_.name == "CONVERGED" or on_cpu.status_.name != "CONVERGED"
    assert on_gpu.certificate_.violation <= max(1e-3, 2 * on_cpu.certificate_.violation)
    slack = on_cpu.certificate_.gap + on_gpu.certificate_.gap
    assert abs(on_gpu.certificate_.dual - on_cpu.certificate_.dual) <= slack + 1e-9 * abs(on_cpu.certificate_.dual)


def assert_same_optimum(found, expected):
    """Assert that both dual values are within the gaps of one optimum."""
    assert abs(found.dual - expected.dual) <= found.gap + expected.gap


@pytest.mark.parametrize("model", [SVR(C=2.0), NuSVR(C=2.0)], ids=repr)
def test_targets_far_from_zero(model):
    X, y = samples(6000)
    on_cpu = type(model)(**model.get_params()).fit(X, y + 2e5)
    on_gpu = type(model)(**{**model.get_params(), "device": "cuda"}).fit(X, y + 2e5)
    assert on_gpu.certificate_.violation <= 1e-3
    assert_same_optimum(on_gpu.certificate_, on_cpu.certificate_)


def test_no_support_vectors():
    X, y = samples(200)
    model = SVR(epsilon=1e3, device="cuda").fit(X, y)
    assert len(model.support_) == 0
    assert model.certificate_.gap <= 1e-9
    assert np.ptp(model.predict(X)) == 0


def test_probabilities():
    X, y = samples(3000)
    labels = (y > 0).astype(int)
    on_cpu = SVC(probability=True).fit(X, labels).predict_proba(X)
    on_gpu = SVC(probability=True, device="cuda").fit(X, labels).predict_proba(X)
    np.testing.assert_allclose(on_gpu, on_cpu, atol=0.02)


def test_integers_far_from_zero():
    random = np.random.default_rng(0)
    X = random.integers(1990, 2021, (3000, 5)).astype(float)
    labels = (X[:, 0] + X[:, 1] > 4010).astype(int)
    on_cpu, on_gpu = SVC().fit(X, labels), SVC(device="cuda").fit(X, labels)
    assert on_gpu.certificate_.violation <= 1e-3
    assert_same_optimum(on_gpu.certificate_, on_cpu.certificate_)
