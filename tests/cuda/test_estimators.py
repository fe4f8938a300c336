"""`device="cuda"` of the estimators: the certificate, the optimum and the predictions of the CPU."""

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
    from scipy import sparse

    X, y = samples(50)
    labels = (y > 0).astype(int)
    for model, data, match in [
        (SVC(device="cuda"), sparse.csr_matrix(X), "dense"),
        (SVC(device="cuda", kernel=lambda X, Z: X @ Z.T), X, "built-in kernels"),
        (SVC(device="cuda:77"), X, "does not exist"),
        (SVC(device="gpu"), X, "device must be"),
        (SVC(device="cuda", solver="platt"), X, "solver='auto' or 'block'"),
        (SVC(device="cuda", C=np.inf), X, "finite C"),
    ]:
        with pytest.raises((ValueError, RuntimeError), match=match):
            model.fit(data, labels)
