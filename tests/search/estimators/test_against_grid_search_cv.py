"""Splits, scores, ranks and choices are those of scikit-learn's `GridSearchCV` over independent fits."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes, load_iris
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, LeaveOneOut, ShuffleSplit, StratifiedKFold

from maxmargin import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    LinearSVRCV,
    OneClassSVM,
    OneClassSVMCV,
)

RANDOM = np.random.default_rng(0)
ORDER = RANDOM.permutation(150)
X, Y = (part[ORDER] for part in load_iris(return_X_y=True))
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
TARGETS = tuple(part[:120] for part in load_diabetes(return_X_y=True))
WEIGHTS = np.where(np.arange(150) % 9, RANDOM.uniform(0, 2, 150), 0.0)
SORTED = np.argsort(Y, kind="stable")
ONE_CLASS_FIRST = [(np.arange(50), np.arange(50, 150)), (np.arange(0, 150, 2), np.arange(1, 150, 2))]

SVC_GRID = {"Cs": [0.1, 1, 10], "gammas": [0.01, 0.1, 1]}
SVR_GRID = {"Cs": [1, 100], "gammas": [0.1, 1], "epsilons": [0.1, 10]}
NAMES_OF = {"Cs": "C", "gammas": "gamma", "epsilons": "epsilon", "nus": "nu"}


def reference(model, grid, **options):
    """Return scikit-learn's search over the same machine with the same parameters."""
    given = {NAMES_OF[name]: list(values) for name, values in grid.items()}
    return GridSearchCV(model, given, **options)


def assert_same(found, expected, samples, tolerance=1e-12):
    """Compare all results but times."""
    assert list(found.cv_results_) == list(expected.cv_results_)
    for name, values in expected.cv_results_.items():
        if name == "params":
            assert found.cv_results_[name] == values
        elif "time" not in name:
            ours = np.asarray(found.cv_results_[name], dtype=float)
            np.testing.assert_allclose(ours, np.asarray(values, dtype=float), rtol=tolerance, atol=tolerance)
    for name in ("n_splits_", "multimetric_", "best_index_", "best_params_"):
        assert getattr(found, name, None) == getattr(expected, name, None)
    if hasattr(expected, "best_score_"):
        np.testing.assert_allclose(found.best_score_, expected.best_score_, rtol=tolerance)
    if found.refit:
        np.testing.assert_array_equal(found.predict(samples), expected.predict(samples))
        assert found.certificate_ is not None


def macro(model, samples, labels):
    return {"first": model.score(samples, labels), "second": f1_score(labels, model.predict(samples), average="macro")}


CLASSIFICATION = {
    "labels": ({}, X, Y),
    "strings": ({}, X, NAMES),
    "lists": ({}, X.tolist(), NAMES.tolist()),
    "frame": ({}, pd.DataFrame(X, columns=list("abcd")), pd.Series(NAMES)),
    "csr": ({}, sparse.csr_matrix(X), Y),
    "csc": ({}, sparse.csc_array(X), Y),
    "two classes": ({"scoring": "roc_auc"}, X, Y > 0),
    "several metrics": (
        {"scoring": ["accuracy", "f1_macro"], "refit": "f1_macro", "return_train_score": True}, X, Y
    ),
    "metrics by name": (
        {"scoring": {"a": "accuracy", "f": make_scorer(f1_score, average="macro")}, "refit": False}, X, Y
    ),
    "function": ({"scoring": lambda model, samples, labels: -model.C}, X, Y),
    "function of several metrics": ({"scoring": macro, "refit": "second"}, X, Y),
    "choice by a function": ({"refit": lambda results: 4}, X, Y),
    "shuffled": ({"cv": ShuffleSplit(4, random_state=1)}, X, Y),
    "folds": ({"cv": StratifiedKFold(3, shuffle=True, random_state=2)}, X, Y),
    "splits": ({"cv": list(KFold(3).split(X))}, X, Y),
    "masks": ({"cv": [(np.arange(150) % 3 > 0, np.arange(150) % 3 == 0)]}, X, Y),
    "repeated rows": ({"cv": [(np.arange(100).repeat(2), np.arange(100, 150))]}, X, Y),
    "leave one out": ({"cv": LeaveOneOut()}, X[:30], Y[:30]),
    "classes missing in folds": ({"cv": KFold(3)}, X[SORTED], Y[SORTED]),
    "rare class": ({"cv": KFold(3)}, X, (np.arange(150) % 50 == 0).astype(int)),
}  # fmt: skip


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_classification(name):
    options, samples, labels = CLASSIFICATION[name]
    found = SVCCV(**SVC_GRID, **options).fit(samples, labels)
    assert_same(found, reference(SVC(), SVC_GRID, **options).fit(samples, labels), samples)


@pytest.mark.parametrize(
    "parameters",
    [
        {"class_weight": "balanced"},
        {"multi_class": "ovr", "decision_function_shape": "ovr"},
        {"kernel": "poly", "degree": 2, "coef0": 1.0},
        {"loss": "squared_hinge"},
        {"probability": True, "random_state": 3},
    ],
)
def test_parameters_of_the_machine_are_passed_through(parameters):
    scoring = "neg_log_loss" if "probability" in parameters else None
    found = SVCCV(**SVC_GRID, scoring=scoring, **parameters).fit(X, NAMES)
    assert_same(found, reference(SVC(**parameters), SVC_GRID, scoring=scoring).fit(X, NAMES), X)
    assert all(getattr(found.best_estimator_, name) == value for name, value in parameters.items())


@pytest.mark.parametrize(
    ("kernel", "samples"), [("linear", X), ("precomputed", X @ X.T), (lambda A, B: A @ B.T, X)]
)  # fmt: skip
def test_kernels_without_gamma(kernel, samples):
    found = SVCCV(Cs=[0.1, 1, 10], kernel=kernel).fit(samples, Y)
    assert_same(found, reference(SVC(kernel=kernel), {"Cs": [0.1, 1, 10]}).fit(samples, Y), samples)


def test_ties_go_to_the_first_point_in_the_order_of_the_grid():
    grid = {"Cs": [100, 1, 10], "gammas": [1, 0.01]}
    found = SVCCV(**grid, scoring=lambda model, samples, labels: float(model.C < 100)).fit(X, Y)
    assert found.best_params_ == {"C": 1.0, "gamma": 1.0}
    assert found.cv_results_["rank_test_score"].tolist() == [5, 5, 1, 1, 1, 1]
    assert_same(SVCCV(**grid).fit(X, Y), reference(SVC(), grid).fit(X, Y), X)


def test_groups():
    groups = np.arange(150) % 7
    found = SVCCV(**SVC_GRID, cv=GroupKFold(3)).fit(X, Y, groups=groups)
    assert_same(found, reference(SVC(), SVC_GRID, cv=GroupKFold(3)).fit(X, Y, groups=groups), X)
    with pytest.raises(ValueError, match="groups"):
        SVCCV(**SVC_GRID, cv=GroupKFold(3)).fit(X, Y)


@pytest.mark.parametrize("scoring", [None, "f1_macro", ["accuracy", "f1_macro"]])
def test_weights_count_in_training_and_in_scores(scoring):
    options = {"scoring": scoring, "refit": "accuracy" if isinstance(scoring, list) else True}
    found = SVCCV(**SVC_GRID, **options).fit(X, Y, sample_weight=WEIGHTS)
    expected = reference(SVC(), SVC_GRID, **options).fit(X, Y, sample_weight=WEIGHTS)
    assert_same(found, expected, X)
    unweighted = SVCCV(**SVC_GRID, **options).fit(X, Y)
    key = "mean_test_accuracy" if isinstance(scoring, list) else "mean_test_score"
    assert not np.allclose(found.cv_results_[key], unweighted.cv_results_[key])


def test_a_score_without_weights_is_a_warning():
    with pytest.warns(UserWarning, match="does not support sample_weight"):
        SVCCV(**SVC_GRID, scoring=lambda model, samples, labels: 0.5).fit(X, Y, sample_weight=WEIGHTS)


def compare_with_warnings(ours, expected, samples, labels):
    """Compare results, and the kinds of warnings."""
    kinds = []
    for model in (ours, expected):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(samples, labels)
        kinds.append({warning.category.__name__ for warning in caught})
    assert kinds[0] == kinds[1]
    assert_same(ours, expected, samples)


class TestFailures:
    @pytest.mark.parametrize("error_score", [np.nan, 0.0])
    def test_a_training_set_of_one_class(self, error_score):
        options = {"cv": ONE_CLASS_FIRST, "error_score": error_score}
        ours, expected = SVCCV(**SVC_GRID, **options), reference(SVC(), SVC_GRID, **options)
        compare_with_warnings(ours, expected, X[SORTED], Y[SORTED])

    def test_the_warning_says_why(self):
        with pytest.warns(
            match="9 of 18 trials of SVCCV failed; their score is 0.0(.|\n)*9 times: ValueError: .*class"
        ):
            SVCCV(**SVC_GRID, cv=ONE_CLASS_FIRST, error_score=0.0).fit(X[SORTED], Y[SORTED])

    def test_errors_are_raised_if_asked_for_or_if_all_trials_fail(self):
        with pytest.raises(ValueError, match="there is only one class, 0"):
            SVCCV(**SVC_GRID, cv=ONE_CLASS_FIRST, error_score="raise").fit(X[SORTED], Y[SORTED])
        with pytest.raises(ValueError, match="there is only one class, 1"):
            SVCCV(**SVC_GRID, cv=KFold(2)).fit(X[SORTED[:100]], Y[SORTED[:100]])

    def test_scores_that_are_not_numbers(self):
        def score(model, samples, labels):
            return np.nan if model.C == 1 else model.score(samples, labels)

        compare_with_warnings(SVCCV(**SVC_GRID, scoring=score), reference(SVC(), SVC_GRID, scoring=score), X, Y)

    def test_no_score_is_a_number(self):
        def score(model, samples, labels):
            return np.nan

        compare_with_warnings(SVCCV(**SVC_GRID, scoring=score), reference(SVC(), SVC_GRID, scoring=score), X, Y)

    def test_a_scorer_that_fails(self):
        def score(model, samples, labels):
            if model.gamma == 1:
                raise RuntimeError("no score")
            return model.score(samples, labels)

        with pytest.warns(match="15 of 45 trials of SVCCV failed(.|\n)*RuntimeError: no score|non-finite"):
            found = SVCCV(**SVC_GRID, scoring=score).fit(X, Y)
        with pytest.warns(UserWarning, match="Scoring failed|non-finite"):
            expected = reference(SVC(), SVC_GRID, scoring=score).fit(X, Y)
        assert_same(found, expected, X)


@pytest.mark.parametrize(
    ("options", "targets", "weights"),
    [
        ({}, TARGETS[1], None),
        ({"scoring": "neg_mean_squared_error"}, TARGETS[1], WEIGHTS[:120]),
        ({}, np.column_stack([TARGETS[1], -TARGETS[1]]), None),
        ({"cv": KFold(3, shuffle=True, random_state=0)}, TARGETS[1].astype(str), None),
    ],
)
def test_regression(options, targets, weights):
    found = SVRCV(**SVR_GRID, **options).fit(TARGETS[0], targets, sample_weight=weights)
    expected = reference(SVR(), SVR_GRID, **options).fit(TARGETS[0], targets, sample_weight=weights)
    assert_same(found, expected, TARGETS[0], tolerance=1e-9)  # other starts, other rounding errors


def test_novelty_detection_with_labels():
    grid, labels = {"nus": [0.1, 0.3], "gammas": [0.1, 1]}, np.where(Y == 0, -1, 1)
    expected = reference(OneClassSVM(), grid, scoring="balanced_accuracy", cv=StratifiedKFold(5)).fit(X, labels)
    assert_same(OneClassSVMCV(**grid).fit(X, labels), expected, X)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_linear_classification(penalty):
    grid = {"Cs": [0.01, 1, 100]}
    expected = reference(LinearSVC(tol=1e-8, penalty=penalty), grid).fit(X, NAMES)
    assert_same(LinearSVCCV(**grid, tol=1e-8, penalty=penalty).fit(X, NAMES), expected, X)


def test_linear_regression():
    grid, options = {"Cs": [0.01, 1, 100], "epsilons": [0, 5]}, {"tol": 1e-12, "loss": "squared_epsilon_insensitive"}
    expected = reference(LinearSVR(**options), grid).fit(*TARGETS)
    found = LinearSVRCV(**grid, **options).fit(*TARGETS)
    for name in ("split0_test_score", "mean_test_score"):  # solutions from different starts differ by rounding
        np.testing.assert_allclose(found.cv_results_[name], expected.cv_results_[name], atol=1e-5)
    assert found.best_params_ == expected.best_params_


@pytest.mark.parametrize("seed", range(12))
def test_random_problems(seed):
    random = np.random.default_rng(seed)
    samples = random.normal(size=(random.integers(20, 90), random.integers(1, 6))) * 10 ** random.uniform(-3, 3)
    samples = np.round(samples, random.integers(0, 3))  # with duplicates
    labels = random.integers(0, random.integers(2, 5), len(samples))
    labels[:6] = [0, 0, 0, 1, 1, 1]
    grid = {"Cs": 10 ** random.uniform(-4, 5, 3), "gammas": 10 ** random.uniform(-5, 3, 3)}
    options = {"cv": ShuffleSplit(3, random_state=seed), "class_weight": random.choice(["balanced", None])}
    found = SVCCV(**grid, **options).fit(samples, labels)
    weight = {"class_weight": options.pop("class_weight")}
    assert_same(found, reference(SVC(**weight), grid, **options).fit(samples, labels), samples)
