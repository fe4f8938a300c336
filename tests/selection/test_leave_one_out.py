"""Leave-one-out equals refitting without each sample, on ordinary and on hard data."""

import copy
import pickle
import threading

import numpy as np
import pytest
from sklearn.datasets import make_classification
from tests.selection.brute_force import refit_without_each

import maxmargin
from maxmargin import (
    LSSVC,
    LSSVR,
    SVC,
    SVR,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Status,
    leave_one_out,
)
from maxmargin.kernels import Gaussian, Linear


def overlapping(seed, count=60, features=4):
    return make_classification(
        count, features, n_informative=3, n_redundant=0, flip_y=0.2, class_sep=0.6, random_state=seed
    )


def check_classifier(model, X, y, **fitted):
    model.fit(X, y, **fitted)
    reference = refit_without_each(model, X, y, **fitted)
    expected = model.classes_[(reference >= 0).astype(int)]
    decided = np.abs(reference) > 1e-6
    signs, values = leave_one_out(model), leave_one_out(model, values=True)
    np.testing.assert_array_equal(signs.predictions[decided], expected[decided])
    np.testing.assert_array_equal(values.predictions[decided], expected[decided])
    np.testing.assert_allclose(values.decision_function, reference, atol=2e-3)
    assert signs.known.all()
    assert signs.error == signs.error_interval[0] == signs.error_interval[1]
    return signs


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "model",
    [
        SVC(C=1.0),
        SVC(C=100.0, gamma=0.5),
        SVC(C=0.01),
        SVC(kernel="linear", C=10.0),
        SVC(kernel=Gaussian(0.3) + Linear()),
        SVC(loss="squared_hinge", C=3.0),
        SVC(fit_intercept=False, C=5.0),
        SVC(class_weight="balanced"),
        SVC(class_weight={0: 3.0, 1: 0.5}),
        SVC(C=np.inf, gamma=2.0),
        NuSVC(nu=0.4),
        NuSVC(nu=0.3, class_weight="balanced"),
        NuSVC(nu=0.3, fit_intercept=False),
        LSSVC(C=4.0),
        LSSVC(fit_intercept=False, class_weight="balanced"),
    ],
    ids=str,
)
def test_two_classes(model, seed):
    X, y = overlapping(seed)
    found = check_classifier(copy.deepcopy(model), X, y)
    assert 0 < found.error < 1


@pytest.mark.parametrize("seed", range(20))
def test_random_problems_are_proved(seed):
    random = np.random.default_rng(seed)
    X, y = overlapping(100 + seed, count=int(random.integers(10, 80)))
    model = SVC(C=10 ** random.uniform(0, 3), gamma=10 ** random.uniform(-2, 1))
    found = check_classifier(model, X, y)
    assert found.proved.all()


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.repeat(np.random.default_rng(0).normal(size=(15, 3)), 3, axis=0), np.arange(45) % 2),
        (np.repeat(np.random.default_rng(1).normal(size=(20, 3)), 2, axis=0), np.tile([0, 1], 20)),
        (np.random.default_rng(2).normal(size=(30, 4)) * [1e3, 1.0, 1e-3, 1.0], np.arange(30) % 2),
        (np.ones((10, 2)), np.tile([0, 1], 5)),
        (np.ones((11, 2)), np.append(np.tile([0, 1], 5), 0)),
    ],
    ids=["duplicates", "opposite duplicates", "unscaled", "constant", "constant, odd"],
)
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_hard_data(X, y, C, kernel):
    check_classifier(SVC(C=C, kernel=kernel), X, y)


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_a_small_margin_does_not_magnify_the_errors_of_paths(tol):
    random = np.random.default_rng(130)
    X = random.normal(size=(40, 2)).round(1)
    y = np.sign(X[:, 0] + 0.7 * random.normal(size=40))
    model = NuSVC(nu=0.2, gamma=0.1, tol=tol).fit(X, y)
    value = leave_one_out(model, values=True).decision_function[27]
    others = np.arange(40) != 27
    refit = NuSVC(nu=0.2, gamma=0.1, tol=1e-13).fit(X[others], y[others])
    assert refit.certificate_.violation < 1e-13
    assert value == pytest.approx(refit.decision_function(X[27:28])[0], abs=2e-7)


def test_an_interval_of_offsets_at_the_end_of_a_path_is_found():
    random = np.random.default_rng(86)
    count, features = int(random.integers(8, 60)), int(random.integers(1, 4))
    X = random.normal(size=(count, features)).round(8)
    y = np.sign(X[:, 0] / X[:, 0].std() + 0.8 * random.normal(size=count))
    C = 10 ** random.uniform(-6, 6)
    others = np.arange(count) != 9  # without this sample all support vectors are at their bounds
    refit = SVC(C=C, kernel="linear", tol=1e-9).fit(X[others], y[others])
    assert (np.abs(refit.dual_coef_) == C).all()
    check_classifier(SVC(C=C, kernel="linear"), X, y)


def test_sample_weights():
    X, y = overlapping(5)
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    check_classifier(SVC(C=2.0), X, y, sample_weight=weights)
    check_classifier(NuSVC(nu=0.3), X, y, sample_weight=weights)
    check_classifier(LSSVC(), X, y, sample_weight=weights)


def test_rows_without_weight_do_not_count():
    X, y = overlapping(6)
    weights = np.ones(len(y))
    weights[::5] = 0.0
    taking_part = weights > 0
    with_all = SVC(gamma=0.3).fit(X, y, sample_weight=weights)
    alone = SVC(gamma=0.3).fit(X[taking_part], y[taking_part])
    found = leave_one_out(with_all)
    np.testing.assert_array_equal(found.known, taking_part)
    assert found.error == leave_one_out(alone).error


def test_precomputed_kernel_and_sparse_data_are_the_same():
    from scipy.sparse import csr_array

    X, y = overlapping(7)
    dense = leave_one_out(SVC(kernel="linear").fit(X, y)).predictions
    np.testing.assert_array_equal(leave_one_out(SVC(kernel="precomputed").fit(X @ X.T, y)).predictions, dense)
    np.testing.assert_array_equal(leave_one_out(SVC(kernel="linear").fit(csr_array(X), y)).predictions, dense)


@pytest.mark.parametrize("only", [1, 2])
def test_a_class_of_one_sample_leaves_the_other_class(only):
    X = np.random.default_rng(0).normal(size=(12, 2))
    y = np.zeros(12, dtype=int)
    y[:only] = 1
    model = SVC().fit(X, y)
    found = leave_one_out(model)
    assert found.known.all()
    if only == 1:
        assert found.predictions[0] == 0
        assert leave_one_out(model, values=True).decision_function[0] == pytest.approx(-1.0)


def test_two_samples():
    found = leave_one_out(SVC().fit([[0.0], [1.0]], ["a", "b"]))
    assert found.predictions.tolist() == ["b", "a"]
    assert found.error == 1.0


@pytest.mark.parametrize(
    "model",
    [SVC(C=3.0), SVC(multi_class="ovr"), NuSVC(nu=0.3), LSSVC(), SVC(kernel="precomputed"), SVC(gamma=1.0, C=30.0)],
    ids=str,
)
def test_several_classes(model):
    random = np.random.default_rng(3)
    y = np.arange(60) % 3
    X = random.normal(size=(60, 3)) + 1.2 * np.eye(3)[y]
    data = X @ X.T if model.kernel == "precomputed" else X
    model = copy.deepcopy(model).fit(data, y)
    expected = refit_without_each(model, data, y, method="predict")
    found = leave_one_out(model)
    np.testing.assert_array_equal(found.predictions, expected)
    assert found.error == np.mean(expected != y)
    if model.kernel != "precomputed":
        values = leave_one_out(model, values=True).decision_function
        np.testing.assert_allclose(values, refit_without_each(model, data, y), atol=2e-3)


@pytest.mark.parametrize(
    "model",
    [
        SVR(C=2.0),
        SVR(C=50.0, epsilon=0.5),
        SVR(epsilon=0.0),
        SVR(loss="squared_epsilon_insensitive"),
        SVR(kernel="linear", fit_intercept=False),
        NuSVR(nu=0.4, C=2.0),
        NuSVR(nu=0.9, C=50.0),
        NuSVR(nu=1.0),
        NuSVR(nu=0.05, C=1e-3),
        NuSVR(nu=0.3, kernel="linear", fit_intercept=False),
        LSSVR(C=2.0),
        LSSVR(fit_intercept=False),
    ],
    ids=str,
)
def test_regression(model):
    random = np.random.default_rng(4)
    X = random.normal(size=(60, 3))
    y = np.sin(X).sum(axis=1) + 0.3 * random.normal(size=60)
    model = copy.deepcopy(model).fit(X, y)
    expected = refit_without_each(model, X, y, method="predict")
    found = leave_one_out(model)
    np.testing.assert_allclose(found.predictions, expected, atol=2e-3)
    assert found.error == pytest.approx(np.mean((y - expected) ** 2), abs=1e-3)


@pytest.mark.parametrize("model", [SVR(), NuSVR(), LSSVR()], ids=str)
def test_several_outputs(model):
    random = np.random.default_rng(5)
    X, Y = random.normal(size=(40, 3)), random.normal(size=(40, 2))
    weights = random.uniform(0.5, 2.0, 40)
    model = copy.deepcopy(model).fit(X, Y, sample_weight=weights)
    found = leave_one_out(model)
    np.testing.assert_allclose(found.predictions, refit_without_each(model, X, Y, weights, "predict"), atol=2e-3)


def test_nu_regression_with_weights_and_duplicates():
    random = np.random.default_rng(8)
    X = np.repeat(random.normal(size=(20, 2)), 2, axis=0)
    y, weights = X[:, 0] + 0.3 * random.normal(size=40), random.uniform(0.3, 2.0, 40)
    model = NuSVR(nu=0.4, C=3.0).fit(X, y, sample_weight=weights)
    expected = refit_without_each(model, X, y, weights, "predict")
    np.testing.assert_allclose(leave_one_out(model).predictions, expected, atol=2e-3)


@pytest.mark.parametrize("nu", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_class(nu, weighted):
    random = np.random.default_rng(6)
    X = random.normal(size=(50, 2))
    weights = random.uniform(0.5, 2.0, 50) if weighted else None
    model = OneClassSVM(nu=nu).fit(X, sample_weight=weights)
    expected = refit_without_each(model, X, sample_weight=weights)
    decided = np.abs(expected) > 1e-6
    found, values = leave_one_out(model), leave_one_out(model, values=True)
    np.testing.assert_array_equal(found.predictions[decided], np.where(expected >= 0, 1, -1)[decided])
    np.testing.assert_allclose(values.decision_function, expected, atol=5e-3)
    assert found.error == np.mean(found.predictions < 0)


def test_many_samples_over_a_part_of_the_variables():
    random = np.random.default_rng(7)
    X = random.normal(size=(900, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * random.normal(size=900) > 0, 1, 0)
    model = SVC(C=10.0).fit(X, y)
    found = leave_one_out(model)
    chosen = model.support_[::9]
    for i in chosen:
        others = np.arange(900) != i
        alone = SVC(C=10.0, gamma=model._gamma, tol=1e-6).fit(X[others], y[others])
        assert alone.predict(X[i : i + 1])[0] == found.predictions[i]
    assert found.proved.all()


def test_threads_do_not_change_the_answer():
    X, y = overlapping(8, count=300)
    model = SVC(C=10.0).fit(X, y)
    one, two = (leave_one_out(model, n_jobs=jobs) for jobs in (1, 2))
    np.testing.assert_array_equal(one.predictions, two.predictions)
    np.testing.assert_array_equal(one.proved, two.proved)


def test_attributes_are_computed_when_read_and_follow_the_fit():
    X, y = overlapping(9)
    model = SVC().fit(X, y)
    assert "_leave_one_out_" not in vars(model)
    assert model.certificate_.gap >= 0  # the training problem remains
    assert model.loo_error_ == np.mean(model.loo_predictions_ != y)
    assert model.loo_decision_function_.shape == (60,)
    first = model.loo_error_
    stored = pickle.loads(pickle.dumps(model))
    assert stored.loo_error_ == first
    model.fit(X, np.random.default_rng(0).permutation(y))
    assert model.loo_error_ != first
    for one in (
        NuSVC(nu=0.3).fit(X, y),
        OneClassSVM().fit(X),
        SVR().fit(X, y),
        NuSVR().fit(X, y),
        LSSVC().fit(X, y),
        LSSVR().fit(X, y),
    ):
        assert one.loo_error_ >= 0


def test_stored_models_say_that_data_are_missing(tmp_path):
    X, y = overlapping(10)
    model = SVC().fit(X, y)
    assert model.loo_error_ > 0
    maxmargin.save(model, tmp_path / "model")
    for stored in (maxmargin.load(tmp_path / "model"), pickle.loads(pickle.dumps(SVC().fit(X, y)))):
        with pytest.raises(AttributeError, match="fit again"):
            leave_one_out(stored)


def test_changed_data_are_an_error():
    X, y = overlapping(11)
    model = SVC().fit(X, y)
    X += 1.0
    with pytest.raises(RuntimeError, match="changed after fit"):
        leave_one_out(model)


def test_errors_say_what_to_do():
    X, y = overlapping(12)
    with pytest.raises(ValueError, match="not fitted"):
        leave_one_out(SVC())
    with pytest.raises(ValueError, match="cross_val_predict"):
        leave_one_out(LinearSVC().fit(X, y))
    with pytest.raises(ValueError, match="not LinearSVR"):
        leave_one_out(LinearSVR().fit(X, y))
    with pytest.raises(ValueError, match="multi_class='ovo'"):
        leave_one_out(SVC(multi_class="crammer_singer").fit(X, y))
    with pytest.raises(ValueError, match="max_seconds"):
        leave_one_out(SVC().fit(X, y), max_seconds=-1)
    with pytest.raises(ValueError, match="callback"):
        leave_one_out(SVC().fit(X, y), callback=3)


def test_a_limit_keeps_what_is_known():
    X, y = overlapping(13)
    found = leave_one_out(SVC().fit(X, y), max_seconds=0)
    assert found.status is Status.MAX_SECONDS
    assert not found.known.all()
    assert (
        found.error_interval[0]
        <= found.error_interval[1]
        == pytest.approx(found.error_interval[0] + np.mean(~found.known))
    )
    assert all(prediction is None for prediction in found.predictions[~found.known])


def test_a_callback_sees_progress_and_stops():
    X, y = overlapping(14)
    model, seen = SVC().fit(X, y), []
    whole = leave_one_out(model, callback=seen.append)
    assert seen[-1].finished == seen[-1].problems == 60
    stopped = leave_one_out(model, callback=lambda progress: True)
    assert stopped.status is Status.STOPPED
    known = stopped.known
    assert 0 < known.sum() < 60
    np.testing.assert_array_equal(stopped.predictions[known], whole.predictions[known])


def test_ctrl_c_keeps_what_is_known():
    X, y = overlapping(15)
    model = SVC().fit(X, y)

    def interrupt(progress):
        raise KeyboardInterrupt

    found = leave_one_out(model, callback=interrupt)
    assert found.status is Status.INTERRUPTED
    assert 0 < found.known.sum() < 60
    assert leave_one_out(model).known.all()


def test_several_threads_at_the_same_time():
    X, y = overlapping(16)
    model, found = SVC().fit(X, y), []
    threads = [threading.Thread(target=lambda: found.append(leave_one_out(model).error)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1
