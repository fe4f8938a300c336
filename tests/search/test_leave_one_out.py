"""Leave-one-out scores from all held-out predictions: those of single samples, and scores that need several."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_diabetes, load_iris
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from maxmargin import SVC, SVCCV, SVR, SVRCV, LinearSVC, LinearSVCCV, OneClassSVM, OneClassSVMCV
from maxmargin.search.leave_one_out import follows_from_a_fit, held_out_outputs

ROWS = np.random.default_rng(0).permutation(150)[:40]
X, Y = (part[ROWS] for part in load_iris(return_X_y=True))
TARGETS = tuple(part[:40] for part in load_diabetes(return_X_y=True))
GRID = {"Cs": [0.1, 10], "gammas": [0.1, 1]}


@pytest.mark.parametrize("weights", [None, np.where(np.arange(40) % 7, 1.0 + np.arange(40) % 3, 0.0)])
def test_accuracy_is_the_mean_over_single_samples(weights):
    pooled = SVCCV(**GRID, cv="loo").fit(X, Y, sample_weight=weights)
    expected = SVCCV(**GRID, cv=LeaveOneOut(), scoring=right).fit(X, Y) if weights is None else None
    assert pooled.n_splits_ == 1
    if expected is not None:
        assert expected.n_splits_ == 40
        np.testing.assert_allclose(
            pooled.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], rtol=1e-12
        )
        assert pooled.best_params_ == expected.best_params_
    model = SVC(C=0.1, gamma=0.1)
    held_out = [
        clone(model)
        .fit(*(np.delete(part, row, axis=0) for part in (X, Y)),
             sample_weight=None if weights is None else np.delete(weights, row))
        .predict(X[row : row + 1])[0]
        for row in range(40)
    ]  # fmt: skip
    by_hand = np.average(np.array(held_out) == Y, weights=weights)
    assert pooled.cv_results_["mean_test_score"][0] == pytest.approx(by_hand, rel=1e-12)


def right(model, samples, labels):
    return float(model.predict(samples)[0] == labels[0])


def test_scores_that_need_several_samples():
    found = SVRCV(**GRID, epsilons=[0.1], cv="loo").fit(*TARGETS)
    for place, parameters in enumerate(found.cv_results_["params"]):
        held_out = cross_val_predict(SVR(**parameters), *TARGETS, cv=LeaveOneOut())
        assert found.cv_results_["mean_test_score"][place] == pytest.approx(r2_score(TARGETS[1], held_out), rel=1e-9)
    two = Y > 0
    ranked = SVCCV(**GRID, cv="loo", scoring="roc_auc").fit(X, two)
    values = cross_val_predict(
        SVC(**ranked.best_params_), X, two, cv=LeaveOneOut(), method="decision_function"
    )  # fmt: skip
    assert ranked.best_score_ == pytest.approx(roc_auc_score(two, values), rel=1e-12)


def test_probabilities():
    found = SVCCV(Cs=[1], gammas=[0.1], cv="loo", probability=True, scoring="neg_log_loss").fit(X, Y)
    assert -np.log(3) < found.best_score_ < 0


def test_precomputed_kernels_linear_machines_and_novelties():
    given = SVCCV(Cs=[0.1, 10], kernel="precomputed", cv="loo").fit(X @ X.T, Y)
    computed = SVCCV(Cs=[0.1, 10], kernel="linear", cv="loo").fit(X, Y)
    np.testing.assert_array_equal(given.cv_results_["mean_test_score"], computed.cv_results_["mean_test_score"])
    assert LinearSVCCV(Cs=[0.1, 10], cv="loo").fit(X, Y).best_score_ > 0.8
    labels = np.where(Y == 0, -1, 1)
    assert OneClassSVMCV(nus=[0.1, 0.3], gammas=[0.1], cv="loo").fit(X, labels).best_score_ > 0.4
    with pytest.raises(ValueError, match="cv='loo' has no models for background samples"):
        OneClassSVMCV(nus=[0.1], gammas=[0.1], cv="loo").fit(X)


def test_a_class_of_one_sample():
    labels = np.array(["a", "b", "c"])[Y]
    labels[5] = "rare"
    outputs = held_out_outputs(SVC(), X, labels, {})
    assert outputs.predict(X).shape == (40,)
    assert not hasattr(outputs, "decision_function")  # there is one column less without it
    found = SVCCV(**GRID, cv="loo").fit(X, labels)
    assert found.best_score_ < 1
    two = np.where(np.arange(40) == 5, "rare", "often")
    with pytest.raises(ValueError, match="only one class"):
        SVCCV(**GRID, cv="loo").fit(X, two)


def test_the_outputs_cannot_be_trained():
    outputs = held_out_outputs(SVC(), X, Y, {})
    with pytest.raises(TypeError, match="trained already"):
        outputs.fit(X, Y)


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (SVC(gamma=0.1), True),
        (SVC(kernel="linear", multi_class="ovr"), True),
        (SVR(gamma=1.0), True),
        (SVC(gamma="scale"), False),  # of the other samples
        (SVC(gamma=0.1, class_weight="balanced"), False),
        (SVC(gamma=0.1, probability=True), False),
        (SVC(gamma=0.1, multi_class="crammer_singer"), False),
        (OneClassSVM(gamma=0.1), False),  # ν counts the other samples
        (LinearSVC(), False),
    ],
)
def test_what_follows_from_a_fit(estimator, expected):
    labels = np.where(Y == 2, 1, Y)
    assert follows_from_a_fit(estimator, labels, {}) == expected
    assert not follows_from_a_fit(estimator, labels, {"sample_weight": np.arange(40.0)})
    if is_classifier(estimator):
        assert not follows_from_a_fit(estimator, np.arange(40) == 3, {})


@pytest.mark.parametrize("seed", range(5))
def test_what_follows_from_a_fit_is_what_fits_return(seed, monkeypatch):
    random = np.random.default_rng(seed)
    samples, labels = random.normal(size=(60, 3)), random.integers(0, 3, 60)
    targets = samples[:, 0] ** 2 + random.normal(scale=0.1, size=60)
    weights = random.uniform(0.5, 2.0, 60)
    searches = [
        lambda: SVCCV(Cs=3, gammas=3, cv="loo").fit(samples, labels, sample_weight=weights),
        lambda: SVRCV(Cs=2, gammas=2, epsilons=2, cv="loo", tol=1e-6).fit(samples, targets),
    ]
    found = [search().cv_results_["mean_test_score"] for search in searches]
    machines = [SVC(C=C, gamma=gamma) for C in (0.1, 10.0) for gamma in (0.01, 1.0)]
    values = [held_out_outputs(machine, samples, labels > 0, {}).decision_function(samples) for machine in machines]
    monkeypatch.setattr("maxmargin.search.leave_one_out.follows_from_a_fit", lambda *_: False)
    for quick, search in zip(found, searches, strict=True):
        np.testing.assert_allclose(quick, search().cv_results_["mean_test_score"], atol=1e-4)
    for quick, machine in zip(values, machines, strict=True):
        fitted = held_out_outputs(machine, samples, labels > 0, {}).decision_function(samples)
        np.testing.assert_allclose(quick, fitted, atol=2e-3)  # within the tolerance of both
