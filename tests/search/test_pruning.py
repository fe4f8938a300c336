"""Searches that drop points: the same choice as searches of all points, and fewer trials."""

import json

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    f1_score,
    get_scorer_names,
    make_scorer,
    roc_auc_score,
    top_k_accuracy_score,
)

from maxmargin import LSSVC, SVC, SVCCV, SVR, SVRCV, LinearSVC, LinearSVCCV, NuSVC, OneClassSVMCV, grid_search
from maxmargin.datasets import chessboard
from maxmargin.search import choose_estimator
from maxmargin.search.grid import Point
from maxmargin.search.journal import Trial
from maxmargin.search.pruning import AT_MOST_ONE, AT_MOST_ZERO, Pruning, central_first

COSTS, WIDTHS = (0.01, 1.0, 100.0), (0.001, 0.3, 100.0)


def classes(seed, size=120):
    """Return two classes, with some noise."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(size, 3))
    y = (X[:, 0] * X[:, 1] + 0.2 * random.normal(size=size) > 0).astype(int)
    return X, y


def targets(seed, size=80):
    """Return targets of a regression."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(size, 2))
    return X, np.sin(2 * X[:, 0]) + 0.1 * random.normal(size=size)


def check_same_choice(whole, pruned, folds):
    """Check that a search without some points found the best one, and the same scores of all that it finished."""
    assert pruned.status == "complete"
    assert pruned.best.point == whole.best.point
    assert pruned.best.mean == whole.best.mean
    means = {score.point: score.mean for score in whole.scores}
    assert all(score.mean == means[score.point] for score in pruned.scores)
    assert set(pruned.pruned) | {score.point for score in pruned.scores} == set(whole.points)
    assert not set(pruned.pruned) & {score.point for score in pruned.scores}
    assert all(means[point] < whole.best.mean for point in pruned.pruned)
    assert len(pruned.trials) <= folds * len(whole.points) - len(pruned.pruned)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_same_choice_on_random_classes(seed, n_jobs):
    X, y = classes(seed)
    options = {"Cs": COSTS, "gammas": WIDTHS, "folds": 4, "seed": seed, "n_jobs": n_jobs}
    whole, pruned = (grid_search(X, y, SVC(), prune=prune, **options) for prune in (False, True))
    assert whole.pruned is None
    check_same_choice(whole, pruned, 4)


@pytest.mark.parametrize(
    "estimator",
    [LSSVC(), SVC(probability=True), NuSVC(), LinearSVC(), SVC(kernel="linear"), SVC(multi_class="crammer_singer")],
    ids=["closed_form", "independent_fits", "nu", "linear", "no_gamma", "all_in_one"],
)
def test_same_choice_of_other_estimators(estimator):
    X, y = classes(3, 60)
    axes = {"nus": [0.01, 0.2, 0.4]} if isinstance(estimator, NuSVC) else {"Cs": [1e-4, 1, 100]}
    whole, pruned = (grid_search(X, y, estimator, prune=prune, folds=3, **axes) for prune in (False, True))
    check_same_choice(whole, pruned, 3)


@pytest.mark.parametrize("scoring", ["r2", "neg_mean_squared_error", "neg_mean_absolute_error", "explained_variance"])
@pytest.mark.parametrize("seed", range(5))
def test_same_choice_of_regressions(scoring, seed):
    X, y = targets(seed)
    options = {"Cs": COSTS, "gammas": WIDTHS, "epsilons": [0.01, 1.0], "folds": 4, "scoring": scoring}
    whole, pruned = (grid_search(X, y, SVR(), prune=prune, **options) for prune in (False, True))
    check_same_choice(whole, pruned, 4)


def test_points_are_dropped_and_trials_saved():
    X, y = chessboard(300, noise=0.0)
    options = {"Cs": COSTS, "gammas": (0.001, 0.1, 1.0, 10.0), "n_jobs": 1}
    whole, pruned = (grid_search(X, y, prune=prune, **options) for prune in (False, True))
    check_same_choice(whole, pruned, 5)
    assert pruned.pruned
    assert len(pruned.trials) < len(whole.trials) - 5
    assert pruned.record()["pruned"] == len(pruned.pruned)
    assert pruned.record()["unfinished"] == 0


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_callbacks_get_the_points_that_are_dropped_so_far(n_jobs):
    X, y = chessboard(300, noise=0.0)
    results = []
    options = {"Cs": COSTS, "gammas": (0.001, 0.1, 1.0, 10.0), "refine": 1, "n_jobs": n_jobs}
    last = grid_search(X, y, prune=True, callback=results.append, **options)
    assert all(result.pruned is not None for result in results)
    last_of_grid = [result for result in results if len(result.rounds) == 1][-1]
    for result in (last_of_grid, results[-1]):
        assert len(result.pruned) + len(result.scores) == len(result.points)
        assert result.record()["unfinished"] == 0
    assert results[-1].pruned == last.pruned
    for result in results:
        assert not set(result.pruned) & {score.point for score in result.scores}


def test_refinements_are_the_same():
    X, y = chessboard(200, noise=0.05)
    options = {"Cs": COSTS, "gammas": WIDTHS, "refine": 2}
    whole, pruned = (grid_search(X, y, prune=prune, **options) for prune in (False, True))
    assert pruned.rounds == whole.rounds
    assert pruned.path() == whole.path()
    check_same_choice(whole, pruned, 5)


@pytest.mark.parametrize("scoring", [None, "roc_auc", "f1", "balanced_accuracy", "neg_brier_score"])
def test_svccv(scoring):
    X, y = classes(1)
    probability = scoring == "neg_brier_score"
    models = [
        SVCCV(Cs=COSTS, gammas=WIDTHS, scoring=scoring, probability=probability, prune=prune).fit(X, y)
        for prune in (False, True)
    ]
    check_same_tables(*models)


def check_same_tables(whole, pruned):
    """Check the choice of an estimator and its table."""
    assert pruned.best_params_ == whole.best_params_
    assert pruned.best_index_ == whole.best_index_
    assert pruned.best_score_ == whole.best_score_
    assert "pruned" not in whole.cv_results_
    dropped = pruned.cv_results_["pruned"]
    means = pruned.cv_results_["mean_test_score"]
    np.testing.assert_array_equal(np.isnan(means), dropped)
    np.testing.assert_array_equal(means[~dropped], whole.cv_results_["mean_test_score"][~dropped])
    assert pruned.cv_results_["params"] == whole.cv_results_["params"]
    assert pruned.cv_results_["rank_test_score"][whole.best_index_] == 1
    assert (pruned.cv_results_["rank_test_score"][dropped] > 1).all()


def test_other_estimators_that_search():
    X, y = targets(0)
    check_same_tables(
        *(SVRCV(Cs=COSTS, gammas=WIDTHS, epsilons=[0.1], prune=prune).fit(X, y) for prune in (False, True))
    )
    samples, labels = classes(2)
    check_same_tables(*(LinearSVCCV(prune=prune).fit(samples, labels) for prune in (False, True)))
    signs = np.where(samples[:, 0] > -1.5, 1, -1)
    check_same_tables(*(OneClassSVMCV(prune=prune).fit(samples, signs) for prune in (False, True)))
    check_same_tables(*(OneClassSVMCV(prune=prune).fit(samples) for prune in (False, True)))


def test_several_metrics_drop_by_the_one_that_chooses():
    X, y = classes(4)
    options = {"Cs": COSTS, "gammas": WIDTHS, "scoring": ["accuracy", "recall"], "refit": "recall"}
    whole, pruned = (SVCCV(prune=prune, **options).fit(X, y) for prune in (False, True))
    assert pruned.best_params_ == whole.best_params_
    assert np.isnan(pruned.cv_results_["mean_test_accuracy"][pruned.cv_results_["pruned"]]).all()


def test_the_score_of_failed_trials_counts_as_possible():
    high = Pruning(2, "score", 1.0, error_score=5.0)
    for fold in (0, 1):
        high.add(Trial(Point(1.0), fold, {"test_score": 0.9}, 0.0))
    high.add(Trial(Point(2.0), 0, {"test_score": 0.0}, 0.0))
    assert not high.loses(Point(2.0))  # the other fold may fail, with a score of 5


def test_bounds():
    pruning = Pruning(4, "score", 1.0)
    points = [Point(C) for C in (1.0, 2.0, 3.0)]
    for fold in range(4):
        pruning.add(Trial(points[0], fold, {"test_score": 0.9}, 0.0))
    assert not pruning.loses(points[0])
    assert not pruning.loses(points[1])
    pruning.add(Trial(points[1], 2, {"test_score": 0.6}, 0.0))  # at most 0.9: it may be as good
    assert not pruning.loses(points[1])
    pruning.add(Trial(points[2], 0, {"test_score": 0.59}, 0.0))
    assert pruning.loses(points[2])
    assert not pruning.lose([(points[2], 1), (points[1], 1)])
    pruning.add(Trial(points[1], 3, {"test_score": np.nan}, 0.0))
    assert not pruning.loses(points[1])


def test_as_many_of_the_best_as_wanted_are_kept():
    pruning = Pruning(2, "score", 1.0, keep=2)
    scores = {1.0: 0.95, 2.0: 0.8}
    for C, score in scores.items():
        assert not pruning.loses(Point(7.0))
        for fold in (0, 1):
            pruning.add(Trial(Point(C), fold, {"test_score": score}, 0.0))
    pruning.add(Trial(Point(7.0), 0, {"test_score": 0.65}, 0.0))  # at most 0.825
    assert not pruning.loses(Point(7.0))
    pruning.add(Trial(Point(8.0), 0, {"test_score": 0.55}, 0.0))
    assert pruning.loses(Point(8.0))


def test_points_are_visited_from_the_middle():
    grid = [Point(C, gamma) for C in (1.0, 2.0, 3.0) for gamma in (1.0, 2.0, 3.0)]
    ordered = central_first(grid)
    assert sorted(ordered) == grid
    assert ordered[0] == Point(2.0, 2.0)
    assert set(ordered[-4:]) == {Point(C, gamma) for C in (1.0, 3.0) for gamma in (1.0, 3.0)}
    assert central_first([Point(1.0, (0.1, 0.2)), Point(1.0, (0.3, 0.1))])


def test_journal_of_a_search_that_drops_points(tmp_path):
    X, y = chessboard(200, noise=0.0)
    options = {"Cs": COSTS, "gammas": WIDTHS, "prune": True, "n_jobs": 1}
    seen = []

    def stop(result):
        seen.append(result)
        return len(result.trials) >= 12

    first = grid_search(X, y, journal=tmp_path / "j", callback=stop, **options)
    assert first.status == "stopped"
    again = grid_search(X, y, journal=tmp_path / "j", resume=True, **options)
    check_same_choice(grid_search(X, y, **{**options, "prune": False}), again, 5)
    assert again.pruned is not None  # which points these are depends on the order in which trials end
    lines = (tmp_path / "j").read_text().splitlines()
    assert len(lines) == 1 + len(again.trials)
    assert json.loads(lines[0])["folds"] == 5
    # Without pruning the same journal is completed.
    whole = grid_search(X, y, journal=tmp_path / "j", resume=True, **{**options, "prune": False})
    assert len(whole.scores) == 9


def test_points_of_the_journal_that_are_not_searched_drop_none(tmp_path):
    X, y = chessboard(200, noise=0.0)
    grid_search(X, y, Cs=[100], gammas=[1.0], journal=tmp_path / "j")  # better than what follows
    options = {"Cs": [0.01, 1], "gammas": [0.001, 100], "n_jobs": 1}
    found = grid_search(X, y, journal=tmp_path / "j", resume=True, prune=True, **options)
    whole = grid_search(X, y, **options)
    assert found.best.point == whole.best.point
    assert found.best.mean == whole.best.mean
    assert Point(100.0, 1.0) not in found.points


def test_choice_of_an_estimator_confirms_the_same_points():
    X, y = chessboard(300, noise=0.05)
    whole, pruned = (choose_estimator(X, y, classification=True, prune=prune) for prune in (False, True))
    assert repr(pruned.estimator) == repr(whole.estimator)
    assert pruned.searches.keys() == whole.searches.keys()
    for name, search in pruned.searches.items():
        assert search.scores[:3] == tuple(
            score._replace(seconds=own.seconds)
            for score, own in zip(whole.searches[name].scores, search.scores[:3], strict=False)
        )


@pytest.mark.parametrize(
    ("scoring", "named"),
    [
        (make_scorer(lambda y, z: accuracy_score(y, z)), "make_scorer(<lambda>"),
        ("positive_likelihood_ratio", "make_scorer(positive_likelihood_ratio"),
        ("mutual_info_score", "make_scorer(mutual_info_score"),
        (make_scorer(accuracy_score, normalize=False), "make_scorer(accuracy_score, "),
        (make_scorer(accuracy_score, greater_is_better=False), "make_scorer(accuracy_score, greater_is_better=False"),
        (
            make_scorer(top_k_accuracy_score, response_method="decision_function", k=1, normalize=False),
            "make_scorer(top_k_accuracy_score, ",
        ),
        (lambda model, X, y: 2.0, "<lambda>"),
    ],
    ids=str,
)
def test_scores_without_a_known_maximum(scoring, named):
    X, y = classes(0, 30)
    with pytest.raises(ValueError, match="prune=True needs a score whose maximum is known") as raised:
        grid_search(X, y, scoring=scoring, prune=True)
    assert f"not {named}" in str(raised.value)
    with pytest.raises(ValueError, match="prune=True needs a score whose maximum is known") as raised:
        SVCCV(scoring=scoring, prune=True).fit(X, y)
    assert f"not {named}" in str(raised.value)


def test_every_named_score_is_one_of_scikit_learn():
    newer = {"d2_brier_score"}  # of scikit-learn 1.8
    assert {*AT_MOST_ONE, *AT_MOST_ZERO} - newer <= set(get_scorer_names())


@pytest.mark.parametrize(
    "scoring",
    [
        make_scorer(f1_score, average="macro", zero_division=0),
        make_scorer(f1_score, pos_label=0),
        make_scorer(accuracy_score),
        make_scorer(balanced_accuracy_score, adjusted=True),
        make_scorer(roc_auc_score, response_method="decision_function", max_fpr=0.5),
    ],
    ids=str,
)
def test_arguments_that_leave_the_maximum(scoring):
    X, y = classes(5)
    options = {"Cs": COSTS, "gammas": WIDTHS, "scoring": scoring}
    check_same_tables(*(SVCCV(prune=prune, **options).fit(X, y) for prune in (False, True)))


def test_scores_above_the_maximum_are_errors():
    pruning = Pruning(2, "score", 1.0)
    pruning.add(Trial(Point(1.0), 0, {"test_score": 1.0 + 1e-15}, 0.0))  # rounding
    with pytest.raises(ValueError, match="needs a score of at most 1, but that of C = 1 is 1.5; use prune=False"):
        pruning.add(Trial(Point(1.0), 1, {"test_score": 1.5}, 0.0))


def test_wrong_arguments():
    X, y = classes(0, 30)
    with pytest.raises(ValueError, match="prune must be True or False, not 'yes'"):
        SVCCV(prune="yes").fit(X, y)
    with pytest.raises(ValueError, match="a function refit needs all of them"):
        SVCCV(prune=True, refit=lambda results: 0).fit(X, y)
    with pytest.raises(ValueError, match="a function refit needs all of them"):
        SVCCV(prune=np.True_, refit=lambda results: 0).fit(X, y)
    with pytest.raises(ValueError, match="prune must be True or False, not 1"):
        SVCCV(prune=1, refit=lambda results: 0).fit(X, y)
    assert SVCCV(Cs=[1], gammas=[1], prune=np.False_, refit=lambda results: 0).fit(X, y).best_index_ == 0
