"""The exact block solver from a landmark machine: it reaches the optimum of `SVC`, and never makes a model worse."""

import pickle
import sys
from io import BytesIO

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from maxmargin import SVC, KernelApproximationSVC, Status, blocks, load, save
from maxmargin.datasets import chessboard
from maxmargin.kernels import Gaussian
from reference.data import wine

BOARD = chessboard(900, noise=0.05)


def machine(**options):
    return KernelApproximationSVC(**{"gamma": 2.0, "n_components": 25, "polish": True, "random_state": 0, **options})


def assert_at_optimum(bounds, exact, gap):
    """The bounds enclose the optimum, as closely as the tolerance lets them."""
    assert bounds.dual <= exact.primal
    assert exact.dual <= bounds.primal
    assert bounds.relative_gap < gap
    assert bounds.model_primal == bounds.primal


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
def test_the_optimum_of_svc(loss, C):
    X, y = BOARD
    exact = SVC(C=C, gamma=2.0, loss=loss, tol=1e-6).fit(X, y)
    model = machine(C=C, loss=loss, tol=1e-4).fit(X, y)
    assert model.polish_status_ is Status.CONVERGED
    assert_at_optimum(model.exact_certificate_, exact.certificate_, 1e-4)
    before = model.landmark_certificate_
    assert before.relative_gap > 0.01 > model.exact_certificate_.relative_gap
    assert before.dual <= model.exact_certificate_.dual
    assert model.exact_certificate_.model_primal <= before.model_primal
    np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=2e-3)
    assert model.landmarks_.shape[0] < len(X)
    assert model.exact_primal_ == model.exact_certificate_.model_primal


def test_the_tolerance_is_that_of_svc():
    X, y = BOARD
    model = machine(C=10.0, tol=1e-3).fit(X, y)
    coefficients = np.zeros(len(X))
    rows = {tuple(point): number for number, point in enumerate(X)}
    coefficients[[rows[tuple(point)] for point in model.landmarks_]] = model.dual_coef_[0]
    signs = np.where(y == model.classes_[1], 1.0, -1.0)
    gradient = signs - Gaussian(2.0)(X) @ coefficients
    lower, upper = np.where(signs > 0, 0.0, -10.0), np.where(signs > 0, 10.0, 0.0)
    violation = gradient[coefficients < upper].max() - gradient[coefficients > lower].min()
    assert violation <= 1e-3 * (1 + 1e-6)
    assert abs(coefficients.sum()) < 1e-9


def test_several_classes_with_weights():
    X, y = wine()
    weights = np.random.default_rng(0).choice([0.0, 1.0, 2.0], len(y))
    factors = {0: 2.0, 1: 1.0, 2: 0.5}
    model = machine(gamma=0.05, n_components=10, class_weight=factors, tol=1e-5).fit(X, y, weights)
    assert model.polish_status_ == [Status.CONVERGED] * 3
    for number, bounds in enumerate(model.exact_certificate_):
        own = {0: 1.0, 1: factors[number]}
        exact = SVC(gamma=0.05, class_weight=own, tol=1e-6).fit(X, y == number, weights)
        assert_at_optimum(bounds, exact.certificate_, 1e-4)
        np.testing.assert_allclose(model.decision_function(X)[:, number], exact.decision_function(X), atol=1e-3)
    assert model.score(X, y) > 0.97


@pytest.mark.parametrize("kernel", ["laplacian", "poly", lambda X, Z: (X @ Z.T + 1.0) ** 2])
def test_other_kernels(kernel):
    X, y = wine()
    exact = SVC(kernel=kernel, gamma=0.1, coef0=1.0, degree=2, tol=1e-6).fit(X, y == 1)
    model = machine(kernel=kernel, gamma=0.1, coef0=1.0, degree=2, n_components=12, tol=1e-4).fit(X, y == 1)
    assert_at_optimum(model.exact_certificate_, exact.certificate_, 1e-3)


def test_sparse_samples():
    X, y = wine()
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    thin = sparse.csr_array(X)
    model, dense = (machine(gamma=0.1, tol=1e-4).fit(samples, y == 1) for samples in (thin, X))
    assert sparse.issparse(model.landmarks_)
    np.testing.assert_allclose(model.decision_function(thin), dense.decision_function(X), atol=1e-3)


def test_without_time_the_function_is_not_worse():
    X, y = BOARD
    plain = machine(C=10.0, polish=False, certify="exact").fit(X, y)
    model = machine(C=10.0, polish_seconds=0).fit(X, y)
    assert model.polish_status_ is Status.MAX_SECONDS
    assert model.landmark_certificate_ == plain.exact_certificate_
    assert model.exact_certificate_.model_primal <= plain.exact_certificate_.model_primal
    assert model.exact_certificate_.relative_gap <= plain.exact_certificate_.relative_gap
    assert not hasattr(plain, "landmark_certificate_")
    assert not hasattr(model.set_params(polish=False).fit(X, y), "polish_status_")


def test_the_function_of_the_landmarks_is_kept_where_it_is_better(monkeypatch):
    """Of one class, whose certificate there is no time for: points are landmarks and support vectors."""
    from maxmargin.machines.linear import exact_polish

    X, y = wine()
    polish = exact_polish._polish

    def without_the_first(machine, exact, number, start, *rest):
        done = polish(machine, exact, number, start, *rest)
        return exact_polish.Polished(start.certificate, Status.MAX_SECONDS, None) if number == 0 else done

    plain = machine(gamma=0.05, n_components=10, polish=False).fit(X, y)
    whole = machine(gamma=0.05, n_components=10).fit(X, y)
    monkeypatch.setattr(exact_polish, "_polish", without_the_first)
    for samples in (X, sparse.csr_array(X)):
        model = machine(gamma=0.05, n_components=10).fit(samples, y)
        values = model.decision_function(samples)
        np.testing.assert_allclose(values[:, 0], plain.decision_function(X)[:, 0], atol=1e-5)
        np.testing.assert_allclose(values[:, 1:], whole.decision_function(X)[:, 1:], atol=1e-5)
    assert model.exact_certificate_[0] == model.landmark_certificate_[0]


def test_a_limit_that_is_not_reached_and_threads_change_nothing():
    X, y = chessboard(1500, noise=0.1)
    plain, limited, threads, watched = (
        machine(**options).fit(X, y)
        for options in ({}, {"max_seconds": 1000, "polish_seconds": 1000}, {"n_jobs": 2}, {"callback": lambda _: None})
    )
    for other in (limited, watched):
        np.testing.assert_array_equal(other.dual_coef_, plain.dual_coef_)
        assert other.exact_certificate_ == plain.exact_certificate_
    np.testing.assert_allclose(threads.decision_function(X), plain.decision_function(X), atol=5e-3)


class Interrupter:
    """A callback that interrupts or stops a fit once it is called by the solver of the polish."""

    def __init__(self, module, stop=False):
        self.module, self.stop = module, stop

    def __call__(self, progress):
        frame = sys._getframe()
        while frame is not None:
            if frame.f_code.co_filename.endswith(f"/{self.module}.py"):
                if self.stop:
                    return True
                raise KeyboardInterrupt
            frame = frame.f_back
        return None


def test_interruption_leaves_a_model():
    X, y = wine()
    model = machine(gamma=0.05, n_components=10, callback=Interrupter("exact_polish"))
    with pytest.raises(KeyboardInterrupt, match="during the polish; the model is usable"):
        model.fit(X, y)
    assert Status.INTERRUPTED in model.polish_status_
    assert np.isfinite(model.decision_function(X)).all()
    for after, before in zip(model.exact_certificate_, model.landmark_certificate_, strict=True):
        assert after.model_primal <= before.model_primal


def test_the_callback_can_stop_the_polish():
    X, y = wine()
    model = machine(gamma=0.05, n_components=10, callback=Interrupter("exact_polish", stop=True)).fit(X, y)
    assert model.polish_status_ == [Status.STOPPED] * 3
    assert model.predict(X).shape == y.shape


def test_a_fit_that_was_stopped_is_not_polished():
    X, y = BOARD
    with pytest.warns(ConvergenceWarning):
        model = machine(callback=lambda progress: True).fit(X, y)
    assert not hasattr(model, "polish_status_")
    assert model.predict(X).shape == y.shape


def test_no_time_at_all():
    X, y = BOARD
    with pytest.warns(ConvergenceWarning):
        model = machine(max_seconds=1e-9).fit(X, y)
    assert model.polish_status_ is Status.MAX_SECONDS
    assert model.exact_certificate_ == model.landmark_certificate_
    assert model.predict(X).shape == y.shape


def test_files_copies_and_later_bounds():
    X, y = BOARD
    model = machine(C=10.0).fit(X, y)
    file = BytesIO()
    save(model, file)
    for other in (load(BytesIO(file.getvalue())), pickle.loads(pickle.dumps(model))):
        assert other.exact_certificate_ == model.exact_certificate_
        assert other.landmark_certificate_ == model.landmark_certificate_
        assert other.polish_status_ is model.polish_status_
        np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))
    assert clone(model).polish is True
    later = model.certify_exact(X, y)  # of the function that predicts
    assert later.model_primal == pytest.approx(model.exact_certificate_.model_primal, rel=1e-9)


def test_an_indefinite_kernel_keeps_the_landmarks():
    random = np.random.default_rng(0)
    X = random.standard_normal((100, 3))
    y = (random.random(100) < 0.5).astype(int)
    options = {"kernel": lambda X, Z: -Gaussian(1.0)(X, Z) + 0.5 * X @ Z.T, "n_components": 30}
    model, plain = machine(**options).fit(X, y), machine(polish=False, **options).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
    assert model.exact_certificate_.relative_gap == np.inf


def test_errors():
    X, y = wine()
    with pytest.raises(ValueError, match="polish must be True or False, not 'exact'"):
        machine(polish="exact").fit(X, y)
    with pytest.raises(ValueError, match="polish_seconds must be"):
        machine(polish_seconds=-1).fit(X, y)
    with pytest.raises(ValueError, match="polish=True needs probability=False"):
        machine(probability=True).fit(X, y)
    with pytest.raises(ValueError, match="polish=True needs the data in memory"):
        machine().fit(blocks.open(X, y))
