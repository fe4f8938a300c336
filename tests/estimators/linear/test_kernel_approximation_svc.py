"""A kernel machine on landmarks: near the exact one, honest about how near, and within bounds of memory."""

import pickle
import tracemalloc
from io import BytesIO

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import SVC, KernelApproximationSVC, LinearSVC, load, save
from maxmargin.datasets import chessboard
from maxmargin.feature_maps import NystroemMap
from maxmargin.kernels import Gaussian, Linear
from maxmargin.machines.linear import linear_svc
from maxmargin.problems import Status
from reference.data import iris, wine

RANDOM = "landmarks are drawn from the rows, and repeated rows are drawn more often: other landmarks, another machine"


@parametrize_with_checks(
    [KernelApproximationSVC(n_components=50, random_state=0)],
    expected_failed_checks=lambda model: {
        "check_sample_weight_equivalence_on_dense_data": RANDOM,
        "check_sample_weight_equivalence_on_sparse_data": RANDOM,
    },
)
def test_sklearn_checks(estimator, check):
    check(estimator)


def textbook_primal(model, X, signs, costs, function=0):
    """½‖w‖² + Σ costs loss, from kernel values alone."""
    coefficients = model.dual_coef_[function]
    decisions = Gaussian(model.gamma)(X, model.landmarks_) @ coefficients + model.intercept_[function]
    slack = np.maximum(0.0, 1.0 - signs * decisions)
    loss = slack if model.loss == "hinge" else slack**2
    return 0.5 * coefficients @ Gaussian(model.gamma)(model.landmarks_) @ coefficients + costs @ loss


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_all_samples_as_landmarks_make_the_exact_machine(loss):
    X, y = wine()
    X, y = X[:130], y[:130]
    model = KernelApproximationSVC(10.0, gamma=0.05, n_components=130, loss=loss, tol=1e-6).fit(X, y)
    exact = SVC(C=10.0, gamma=0.05, loss=loss, tol=1e-6).fit(X, y)
    assert model.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-4)
    assert model.exact_primal_ == pytest.approx(exact.certificate_.primal, rel=1e-4)
    np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=5e-3)
    assert model.approximation_error_ == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_exact_primal_is_that_of_the_function_and_bounds_the_optimum(loss):
    X, y = chessboard(1500, noise=0.05)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    exact = SVC(C=5.0, gamma=2.0, loss=loss, class_weight={1: 2.0}).fit(X, y, weights)
    primal = []
    for landmarks in (20, 60, 180):
        model = KernelApproximationSVC(
            5.0, gamma=2.0, n_components=landmarks, loss=loss, class_weight={1: 2.0}, random_state=0
        ).fit(X, y, weights)
        signs, costs = np.where(y == 1, 1.0, -1.0), 5.0 * weights * np.where(y == 1, 2.0, 1.0)
        assert model.exact_primal_ == pytest.approx(textbook_primal(model, X, signs, costs), rel=1e-9)
        assert model.exact_primal_ == pytest.approx(model.certificate_.primal, rel=5e-4)
        assert model.certificate_.relative_gap <= 1e-3
        primal.append(model.exact_primal_)
    assert primal == sorted(primal, reverse=True)
    assert exact.certificate_.dual <= primal[-1] < 1.03 * exact.certificate_.dual


def test_the_exact_primal_of_many_samples_is_an_estimate(monkeypatch):
    X, y = chessboard(4000, noise=0.05)
    model = KernelApproximationSVC(gamma=2.0, n_components=100, random_state=0)
    whole = clone(model).fit(X, y).exact_primal_
    monkeypatch.setattr("maxmargin.machines.linear.landmark_samples.MAX_LOSS_SAMPLES", 1000)
    part = clone(model).fit(X, y).exact_primal_
    assert part != whole
    assert part == pytest.approx(whole, rel=1e-4)


def test_one_class_against_the_rest():
    X, y = wine()
    factors = {0: 2.0, 1: 1.0, 2: 0.5}
    model = KernelApproximationSVC(gamma=0.05, n_components=60, class_weight=factors, random_state=0).fit(X, y)
    assert model.decision_function(X).shape == (178, 3)
    assert len(model.certificate_) == len(model.status_) == len(model.exact_primal_) == 3
    for number in range(3):
        signs = np.where(y == number, 1.0, -1.0)
        costs = np.where(y == number, factors[number], 1.0)
        assert model.exact_primal_[number] == pytest.approx(textbook_primal(model, X, signs, costs, number), rel=1e-9)
        assert model.exact_primal_[number] == pytest.approx(model.certificate_[number].primal, rel=1e-3)
    assert model.score(X, y) > 0.97


def test_it_is_a_linear_machine_on_nystroems_features():
    X, y = wine()
    model = KernelApproximationSVC(3.0, n_components=40, random_state=0).fit(X, y)
    nystroem = NystroemMap(n_components=40, random_state=0).fit(X)
    np.testing.assert_array_equal(model.landmarks_, nystroem.landmarks_)
    assert model.approximation_error_ == nystroem.approximation_error_
    assert model.rank_ == nystroem.rank_
    linear = LinearSVC(loss="hinge", C=3.0, tol=1e-3).fit(nystroem.transform(X), y)
    np.testing.assert_allclose(model.decision_function(X), linear.decision_function(nystroem.transform(X)), atol=1e-3)


def test_landmarks_that_repeat_themselves_and_one_almost_empty_class():
    X, y = wine()
    y = (np.arange(len(y)) == 5).astype(int)
    model = KernelApproximationSVC(100.0, gamma=0.05, landmarks=np.tile(X[:50], (3, 1))).fit(X, y)
    assert model.rank_ == 50
    assert model.exact_primal_ == pytest.approx(model.certificate_.primal, rel=1e-3)
    assert model.score(X, y) == 1.0


def test_two_samples():
    model = KernelApproximationSVC(gamma=1.0, tol=1e-6).fit([[0.0], [1.0]], ["no", "yes"])
    exact = SVC(gamma=1.0, tol=1e-6).fit([[0.0], [1.0]], ["no", "yes"])
    assert model.predict([[0.2], [0.9]]).tolist() == ["no", "yes"]
    np.testing.assert_allclose(model.decision_function([[0.2]]), exact.decision_function([[0.2]]), atol=1e-3)


@pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian", 0.5 * Gaussian(0.1) + Linear()], ids=str)
def test_kernels(kernel):
    X, y = wine()
    model = KernelApproximationSVC(kernel=kernel, coef0=1.0, n_components=80, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert np.allclose(model.exact_primal_, [certificate.primal for certificate in model.certificate_], rtol=1e-3)


def test_rows_without_weight_are_left_out():
    X, y = wine()
    weights = np.where(np.arange(len(y)) % 3 == 0, 0.0, 1.0)
    model = KernelApproximationSVC(n_components=40, random_state=0)
    left, right = clone(model).fit(X, y, weights), clone(model).fit(X[weights > 0], y[weights > 0])
    np.testing.assert_array_equal(left.landmarks_, right.landmarks_)
    np.testing.assert_allclose(left.decision_function(X), right.decision_function(X), atol=1e-6)


def test_sparse_single_and_stored():
    X, y = iris()
    X[np.abs(X) < 0.3] = 0.0
    model = KernelApproximationSVC(n_components=50, random_state=0, tol=1e-6)
    fitted = clone(model).fit(X, y)
    expected = fitted.decision_function(X)
    for other in (sparse.csr_array(X), X.astype(np.float32)):
        np.testing.assert_allclose(clone(model).fit(other, y).decision_function(other), expected, atol=2e-2)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).decision_function(X), expected)


def test_prediction_holds_no_features():
    X, y = chessboard(1000)
    model = KernelApproximationSVC(gamma=2.0, n_components=500, random_state=0, n_jobs=1).fit(X, y)
    many = np.tile(X, (60, 1))
    tracemalloc.start()
    model.predict(many)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.3 * many.shape[0] * model.rank_ * 4


def test_limits_and_callbacks():
    X, y = chessboard(3000, noise=0.1)
    with pytest.warns(ConvergenceWarning, match=r"KernelApproximationSVC computed .* [0-9]+ landmarks") as told:
        model = KernelApproximationSVC(1e4, gamma=2.0, n_components=200, max_seconds=0, random_state=0).fit(X, y)
    assert told[0].filename == __file__
    assert "Scaler" not in str(told[0].message)
    assert not hasattr(model, "exact_primal_")  # there was no time for it
    assert model.predict(X).shape == y.shape
    told = []
    model = KernelApproximationSVC(1e4, gamma=2.0, n_components=200, tol=1e-9)
    model.set_params(callback=lambda progress: told.append(progress) or True)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert told


@pytest.mark.parametrize("classes", [2, 3])
def test_samples_whose_features_take_too_long_are_left_out(monkeypatch, classes):
    monkeypatch.setattr("maxmargin.models.landmark_features.BLOCK_BYTES", 2**18)
    X, y = chessboard(20_000, noise=0.05)
    y = np.where(np.arange(len(y)) == 7, classes - 1, y)  # the only one of a third class
    model = KernelApproximationSVC(gamma=2.0, n_components=100, max_seconds=1e-9, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"features .*of [\d,]+ of 20,000 samples") as told:
        model.fit(X, y)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert len(model.classes_) == classes
    machines = model._models_
    assert all(machine.status is Status.MAX_SECONDS for machine in machines)
    assert all(len(machine.dual) < 2000 for machine in machines)
    primal = np.array([machine.certificate.primal for machine in machines])
    at_zero = 20_000 * 1.0
    assert (primal[:2] > 0.1 * at_zero).all()  # that of all samples: those that are there count for the others
    whole = KernelApproximationSVC(gamma=2.0, n_components=100, max_seconds=1000, random_state=0).fit(X, y)
    assert whole.fit_status_ == 0
    assert whole.score(X, y) > 0.9


@pytest.mark.parametrize("data", [iris, lambda: chessboard(600, noise=0.1)])
def test_probabilities(data):
    X, y = data()
    model = KernelApproximationSVC(gamma=1.0, n_components=60, probability=True, random_state=0).fit(X, y)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), probabilities)
    nystroem = NystroemMap(gamma=1.0, n_components=60, random_state=0).fit(X)
    linear = LinearSVC(loss="hinge", tol=1e-3, probability=True, random_state=0).fit(nystroem.transform(X), y)
    np.testing.assert_allclose(probabilities, linear.predict_proba(nystroem.transform(X)), atol=0.02)
    assert model.probA_.shape == linear.probA_.shape
    assert not hasattr(KernelApproximationSVC(), "predict_proba")
    file = BytesIO()
    save(model, file)
    np.testing.assert_array_equal(load(BytesIO(file.getvalue())).predict_proba(X), probabilities)


def test_an_interrupted_machine_is_usable(monkeypatch):
    def interrupted_at_the_end(self, *data, fit=linear_svc.LinearSVC._fit):
        fit(self, *data)
        raise KeyboardInterrupt

    X, y = wine()
    monkeypatch.setattr(linear_svc.LinearSVC, "_fit", interrupted_at_the_end)
    model = KernelApproximationSVC(n_components=50, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.score(X, y) > 0.9
    assert len(model.certificate_) == 3
    file = BytesIO()
    save(model, file)
    np.testing.assert_array_equal(load(BytesIO(file.getvalue())).predict(X), model.predict(X))


def test_errors(monkeypatch):
    X, y = wine()
    for parameters, words in [
        ({"C": 0.0}, "C must be"),
        ({"loss": "logistic"}, "loss must be"),
        ({"kernel": "precomputed"}, "KernelApproximationSVC takes no precomputed kernel"),
        ({"n_components": 0}, "n_components must be"),
        ({"landmarks": "none"}, "landmarks must be"),
        ({"max_seconds": -1.0}, "max_seconds must be"),
        ({"probability": 1}, "probability must be True or False"),
        ({"class_weight": "even"}, "class_weight must be"),
    ]:
        with pytest.raises(ValueError, match=words):
            KernelApproximationSVC(**parameters).fit(X, y)
    with pytest.raises(ValueError, match="only one class"):
        KernelApproximationSVC().fit(X, np.zeros(len(y)))
    with pytest.raises(AttributeError, match="before fit"):
        _ = KernelApproximationSVC().certificate_
    monkeypatch.setattr("maxmargin.machines.linear.landmark_samples.usable_memory", lambda: 2**16)
    with pytest.raises(ValueError, match="178 features of 178 samples take .* GiB.*smaller n_components"):
        KernelApproximationSVC().fit(X, y)
