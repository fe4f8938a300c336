"""Estimators that choose their parameters: scikit-learn's checks, limits, Ctrl-C, files, metadata, refinements."""

import io
import pickle
import signal
import threading
import time

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import maxmargin
from maxmargin import SVC, SVCCV, SVRCV, LinearSVCCV, LinearSVRCV, OneClassSVMCV
from maxmargin.datasets import chessboard
from maxmargin.interchange import to_onnx, to_sklearn, write_libsvm_model
from maxmargin.kernels import Gaussian
from maxmargin.search.search_progress import SearchProgress, format_search

X, Y = chessboard(120, noise=0.05, seed=1)
GRID = {"Cs": [1, 10, 100], "gammas": [0.1, 1]}
SMALL = [
    SVCCV(Cs=2, gammas=2),
    SVRCV(Cs=2, gammas=2, epsilons=1),
    OneClassSVMCV(nus=2, gammas=2),
    LinearSVCCV(Cs=2),
    LinearSVRCV(Cs=2, epsilons=1),
]
EVERY = pytest.mark.parametrize("model", SMALL, ids=lambda model: type(model).__name__)


@parametrize_with_checks(SMALL)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def data_for(model):
    return load_diabetes(return_X_y=True) if is_regressor(model) else load_iris(return_X_y=True)


class TestFinalModel:
    @EVERY
    def test_is_trained_with_the_best_parameters_on_all_samples(self, model):
        samples, labels = data_for(model)
        found = clone(model).fit(samples, labels)
        assert found.best_estimator_.get_params()["C" if "Cs" in found.get_params() else "nu"] in (
            found.best_params_.values()
        )
        expected = clone(found.best_estimator_).fit(samples, labels)
        np.testing.assert_array_equal(found.predict(samples), expected.predict(samples))
        assert (is_classifier(found), is_regressor(found), is_outlier_detector(found)) == (
            is_classifier(expected), is_regressor(expected), is_outlier_detector(expected),
        )  # fmt: skip
        assert found.certificate_ is not None
        assert found.n_features_in_ == samples.shape[1]
        assert not hasattr(found, "no_such_attribute_")
        assert not hasattr(clone(model), "certificate_")

    @EVERY
    def test_copies_pickles_and_files(self, model, tmp_path):
        samples, labels = data_for(model)
        found = clone(model).fit(samples, labels)
        copy = pickle.loads(pickle.dumps(found))
        maxmargin.save(found, tmp_path / "model")
        read = maxmargin.load(tmp_path / "model")
        for other in (copy, read):
            np.testing.assert_array_equal(other.predict(samples), found.predict(samples))
        assert type(read) is type(found.best_estimator_)
        assert copy.best_params_ == found.best_params_
        assert copy.search_.trials == found.search_.trials

    def test_other_formats(self):
        found = SVCCV(**GRID).fit(X, Y)
        session = onnxruntime.InferenceSession(to_onnx(found, dtype="float64").SerializeToString())
        np.testing.assert_array_equal(session.run(["label"], {"X": X})[0], found.predict(X))
        np.testing.assert_array_equal(to_sklearn(found).predict(X), found.predict(X))
        written = io.BytesIO()
        write_libsvm_model(found, written)
        assert written.getvalue().startswith(b"svm_type c_svc")

    def test_methods_depend_on_the_parameters(self):
        found = SVCCV(**GRID, probability=True).fit(X, Y)
        np.testing.assert_allclose(found.predict_proba(X).sum(axis=1), 1)
        assert found.predict_log_proba(X).shape == (120, 2)
        assert found.decision_function(X).shape == (120,)
        assert not hasattr(SVCCV(), "predict_proba")
        assert not hasattr(SVRCV(), "decision_function")
        intervals = SVRCV(Cs=[1], gammas=[1], epsilons=[0.1], noise=True).fit(X, X[:, 0])
        assert np.shape(intervals.predict_interval(X))[-1] in (2, 120)
        outliers = OneClassSVMCV(nus=[0.1], gammas=[1]).fit(X)
        np.testing.assert_allclose(outliers.score_samples(X), outliers.decision_function(X) + outliers.offset_)

    def test_without_a_final_model(self):
        found = SVCCV(**GRID, refit=False).fit(X, Y)
        assert found.best_params_ == SVCCV(**GRID).fit(X, Y).best_params_
        assert not hasattr(found, "predict")
        assert not hasattr(found, "best_estimator_")
        with pytest.raises(NotFittedError, match="SVCCV instance is not fitted"):
            SVCCV().predict(X)

    def test_names_of_features_and_tables(self):
        frame = pd.DataFrame(X, columns=["east", "north"])
        found = SVCCV(**GRID).fit(frame, Y)
        assert found.feature_names_in_.tolist() == ["east", "north"]
        with pytest.raises(ValueError, match="feature names"):
            found.predict(frame[["north", "east"]])
        table = pd.DataFrame(found.cv_results_)
        assert table.loc[found.best_index_, "param_C"] == found.best_params_["C"]
        assert (table["mean_fit_time"] > 0).all()

    def test_score_is_the_one_that_chose(self):
        found = SVCCV(**GRID, scoring="f1_macro").fit(X, Y)
        assert found.score(X, Y) == sklearn.metrics.f1_score(Y, found.predict(X), average="macro")
        named = SVCCV(**GRID, scoring="f1_macro", refit="f1_macro").fit(X, Y)  # as in GridSearchCV
        assert named.best_score_ == found.best_score_
        several = SVCCV(**GRID, scoring=["accuracy", "f1_macro"], refit="f1_macro").fit(X, Y)
        assert several.score(X, Y) == found.score(X, Y)
        assert SVCCV(**GRID).fit(X, Y).score(X, Y) == np.mean(found.predict(X) == Y)

    def test_in_pipelines_and_searches(self):
        pipeline = make_pipeline(StandardScaler(), SVCCV(**GRID))
        assert cross_val_score(pipeline, X, Y, cv=3).shape == (3,)
        outer = GridSearchCV(pipeline, {"svccv__kernel": ["rbf", "laplacian"]}, cv=2).fit(X, Y)
        assert outer.best_estimator_[-1].best_params_["C"] in GRID["Cs"]

    def test_kernel_objects_and_samples_that_are_no_table(self):
        found = SVCCV(Cs=[1, 10], kernel=Gaussian(1.0)).fit(X, Y)
        assert list(found.best_params_) == ["C"]
        words = ["aaa", "aab", "aba", "bbb", "bba", "bab"] * 5

        def common(A, B):
            return np.array([[float(sum(a == b for a, b in zip(x, z, strict=True))) for z in B] for x in A])

        labels = [word.count("a") > 1 for word in words]
        assert SVCCV(Cs=[1, 10], kernel=common).fit(words, labels).score(words, labels) == 1.0


class TestSearch:
    def test_refinements_are_further_points(self):
        found = SVCCV(Cs=[1, 16, 256], gammas=[0.01, 1, 100], refine=2, cv=3).fit(X, Y)
        coarse = SVCCV(Cs=[1, 16, 256], gammas=[0.01, 1, 100], cv=3).fit(X, Y)
        assert found.cv_results_["params"][:9] == coarse.cv_results_["params"]
        assert 9 + 8 < len(found.cv_results_["params"]) <= 9 + 8 + 8
        assert found.best_score_ >= coarse.best_score_
        assert len(found.search_.rounds) == 3
        assert found.search_.path()[0] == coarse.search_.best.point

    def test_ranges_do_not_depend_on_units(self):
        samples, targets = load_diabetes(return_X_y=True)
        scores = []
        for unit in (1.0, 1e3):
            model = SVRCV(Cs=3, gammas=3, epsilons=2, cv=3, tol=1e-3 * unit)
            scores.append(model.fit(unit * samples[:100], unit * targets[:100]).cv_results_["mean_test_score"])
        np.testing.assert_allclose(*scores, atol=1e-4)
        squared = SVRCV(Cs=2, gammas=1, epsilons=1, loss="squared_epsilon_insensitive").fit(samples, 1e3 * targets)
        assert set(squared.cv_results_["param_C"]) == {2.0**-5, 2.0**11}
        constant = SVRCV(Cs=2, gammas=1, epsilons=1).fit(samples, np.full(len(samples), 0.1))
        assert set(constant.cv_results_["param_C"]) == {2.0**-5, 2.0**11}

    def test_one_value_is_the_middle_of_the_range(self):
        found = SVCCV(Cs=1, gammas=1).fit(X, Y)
        assert found.best_params_["C"] == 8.0
        scale = 1 / (X.shape[1] * X.var())
        assert found.best_params_["gamma"] == pytest.approx(0.25 * scale)

    def test_results_do_not_depend_on_threads_and_observers(self):
        samples, labels = chessboard(600, noise=0.1, seed=2)
        seen = []
        models = [
            SVCCV(**GRID, n_jobs=1).fit(samples, labels),
            SVCCV(**GRID, n_jobs=3, verbose=True, callback=seen.append, max_seconds=1000).fit(samples, labels),
        ]
        assert [len(result.trials) for result in seen] == sorted(len(result.trials) for result in seen)
        assert len(seen[-1].trials) == 30
        for name in ("split0_test_score", "mean_test_score"):
            np.testing.assert_array_equal(*(model.cv_results_[name] for model in models))
        np.testing.assert_array_equal(*(model.decision_function(samples) for model in models))

    @EVERY
    def test_constant_features_and_few_samples(self, model):
        samples, labels = np.zeros((20, 2)), np.arange(20) % 2
        found = clone(model).fit(samples, labels)
        assert np.isfinite(found.best_score_)
        if is_classifier(model):
            clone(model).set_params(cv=2).fit(np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1])


class TestLimits:
    def test_time_limit(self):
        random = np.random.default_rng(0)
        samples, labels = random.normal(size=(3000, 4)), random.integers(0, 2, 3000)
        model = SVCCV(Cs=[1e-3, 1e7], gammas=[1e-3], tol=1e-12, cv=2, max_seconds=3.0)
        with pytest.warns(ConvergenceWarning, match="max_seconds was reached: 1 of 2 points"):
            model.fit(samples, labels)
        assert model.best_params_ == {"C": 1e-3, "gamma": 1e-3}
        assert np.isnan(model.cv_results_["mean_test_score"][1])
        assert model.cv_results_["rank_test_score"].tolist() == [1, 2]
        assert model.search_.status == "time limit"
        assert model.max_seconds == 3.0

    def test_nothing_is_known_in_time(self):
        model = SVCCV(max_seconds=0.0)
        with pytest.raises(ValueError, match=r"time limit before all splits .* \(0 of 175 trials\); give it more time"):
            model.fit(X, Y)
        assert np.isnan(model.cv_results_["mean_test_score"]).all()

    def test_callback_stops_the_search(self):
        model = SVCCV(**GRID, callback=lambda result: len(result.trials) >= 16)
        with pytest.warns(ConvergenceWarning, match="the callback asked to stop"):
            model.fit(X, Y)
        assert 16 <= len(model.search_.trials) <= 30
        assert model.predict(X).shape == (120,)

    @pytest.mark.parametrize("known", [0, 16])
    def test_ctrl_c_keeps_what_is_known(self, known):
        def interrupt(result):
            if len(result.trials) >= known:
                raise KeyboardInterrupt

        model = SVCCV(**GRID, callback=interrupt)
        with pytest.raises(KeyboardInterrupt, match=r"SVCCV was interrupted: \d+ of 6 points are scored"):
            model.fit(X, Y)
        assert hasattr(model, "best_params_") == bool(model.search_.scores)
        assert np.isfinite(model.cv_results_["split0_test_score"]).any()
        with pytest.raises(NotFittedError):
            model.predict(X)

    def test_a_signal_ends_long_fits_at_once(self):
        random = np.random.default_rng(0)
        samples, labels = random.normal(size=(3000, 4)), random.integers(0, 2, 3000)
        model = SVCCV(Cs=[1e7], gammas=[1e-3], tol=1e-12)
        thread = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
        thread.start()
        began = time.process_time()
        with pytest.raises(KeyboardInterrupt, match="SVCCV was interrupted"):
            model.fit(samples, labels)
        thread.join()
        assert time.process_time() - began < 20  # a trial takes minutes

    def test_an_interrupted_leave_one_out_ends_between_fits(self):
        def interrupt(result):
            raise KeyboardInterrupt

        model = SVCCV(**GRID, cv="loo", callback=interrupt)
        with pytest.raises(KeyboardInterrupt, match="interrupted"):
            model.fit(X, Y)


class TestCheckpoint:
    def test_a_search_continues(self, tmp_path):
        path, seen = tmp_path / "trials", []
        with pytest.raises(KeyboardInterrupt):
            SVCCV(**GRID, checkpoint=path, callback=self.interrupt).fit(X, Y)
        assert path.exists()
        found = SVCCV(**GRID, checkpoint=path, callback=lambda result: seen.append(len(result.trials))).fit(X, Y)
        assert seen[0] > 10
        assert not path.exists()
        expected = SVCCV(**GRID).fit(X, Y)
        np.testing.assert_array_equal(found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])

    @pytest.mark.parametrize(
        "changed",
        [{"cv": 4}, {"cv": [(np.arange(60), np.arange(60, 120))] * 5}, {"scoring": "f1"}, {"kernel": "laplacian"},
         {"return_train_score": True}],
    )  # fmt: skip
    def test_the_file_of_another_search_is_an_error(self, changed, tmp_path):
        path = tmp_path / "trials"
        with pytest.raises(KeyboardInterrupt):
            SVCCV(**GRID, checkpoint=path, callback=self.interrupt).fit(X, Y)
        with pytest.raises(ValueError, match="is the journal of a different search"):
            SVCCV(**GRID, checkpoint=path).set_params(**changed).fit(X, Y)
        with pytest.raises(ValueError, match="is the journal of a different search"):
            SVCCV(**GRID, checkpoint=path).fit(X, Y, sample_weight=np.arange(120))

    @staticmethod
    def interrupt(result):
        if len(result.trials) >= 10:
            raise KeyboardInterrupt


class TestMetadata:
    def test_weights_and_groups_are_routed(self):
        weights, groups = np.random.default_rng(0).uniform(0.5, 2, 120), np.arange(120) % 5
        with sklearn.config_context(enable_metadata_routing=True):
            scorer = sklearn.metrics.get_scorer("accuracy").set_score_request(sample_weight=False)
            model = SVCCV(**GRID, cv=GroupKFold(3), scoring=scorer).set_fit_request(sample_weight=True)
            scaler = StandardScaler().set_fit_request(sample_weight=False)
            pipeline = make_pipeline(scaler, model).fit(X, Y, sample_weight=weights, groups=groups)
        expected = SVCCV(**GRID, cv=GroupKFold(3), scoring=unweighted)
        with pytest.warns(UserWarning, match="does not support sample_weight"):
            expected.fit(scaler.fit_transform(X), Y, sample_weight=weights, groups=groups)
        scores = [found.cv_results_["mean_test_score"] for found in (pipeline[-1], expected)]
        np.testing.assert_allclose(*scores)

    def test_weights_of_scores_are_routed(self):
        weights = np.random.default_rng(0).uniform(0.5, 2, 120)
        expected = SVCCV(**GRID).fit(X, Y, sample_weight=weights)
        score = expected.score(X, Y, sample_weight=weights)
        with sklearn.config_context(enable_metadata_routing=True):
            scorer = sklearn.metrics.get_scorer("accuracy").set_score_request(sample_weight=True)
            found = SVCCV(**GRID, scoring=scorer).set_fit_request(sample_weight=True)
            found.fit(X, Y, sample_weight=weights)
            assert found.score(X, Y, sample_weight=weights) == pytest.approx(score)
        np.testing.assert_allclose(found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])

    def test_unknown_metadata(self):
        with pytest.raises(TypeError, match=r"unexpected arguments \['colour'\].*enable_metadata_routing"):
            SVCCV().fit(X, Y, colour=1)


def unweighted(model, samples, labels):
    return float(np.mean(model.predict(samples) == labels))


class TestProgress:
    def test_line(self):
        found = SVCCV(**GRID).fit(X, Y)
        text = format_search(found.search_)
        assert "30 of 30 trials" in text
        assert f"best so far: {found.search_.best.point}" in text

    def test_is_silent_without_a_terminal_and_soon(self):
        from rich.console import Console

        result = SVCCV(**GRID).fit(X, Y).search_
        for terminal, delay, shown in ((False, 0.0, False), (True, 1e9, False), (True, 0.0, True)):
            console = Console(file=io.StringIO(), force_terminal=terminal, width=100)
            line = SearchProgress(console, delay)
            line(result)
            line.close()
            assert ("30 of 30 trials" in console.file.getvalue()) == shown


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"Cs": []}, "Cs must be numbers above 0"),
        ({"Cs": [0.0, 1.0]}, "Cs must be numbers above 0"),
        ({"Cs": 1.5}, "Cs must be a number of values, or a list of values, not 1.5"),
        ({"Cs": "many"}, "Cs must be a number of values, or a list of values, not 'many'"),
        ({"Cs": ["a"]}, r"Cs must be numbers, at least one, not \['a'\]"),
        ({"gammas": 0}, "gammas must be at least 1"),
        ({"gammas": [np.nan]}, "gammas must be numbers above 0"),
        ({"kernel": "linear", "gammas": [1]}, "gammas are for kernels that have a gamma"),
        ({"cv": "five"}, "cv must be a number of folds, a splitter, splits, or 'loo', not 'five'"),
        ({"cv": []}, "yields no splits"),
        ({"cv": "loo", "return_train_score": True}, "cv='loo' has no train scores"),
        ({"scoring": "goodness"}, "goodness"),
        ({"scoring": 3}, "scoring must be the name of a scorer"),
        ({"scoring": ["accuracy", "f1_macro"]}, "with several metrics, refit must name the one that chooses"),
        ({"refit": 3}, "refit must be True, False"),
        ({"refit": lambda results: 99}, "the function refit returned 99"),
        ({"refine": -1}, "refine"),
        ({"error_score": "zero"}, "error_score must be 'raise' or a number"),
        ({"callback": 1}, "callback must be a function of one argument, the result so far"),
        ({"max_seconds": -1}, "max_seconds"),
        ({"degree": "high"}, "degree must be a whole number"),
        ({"cv": 121}, "121"),
    ],
)
def test_invalid_parameters(parameters, message):
    with pytest.raises((ValueError, IndexError), match=message):
        SVCCV(**{**GRID, **parameters}).fit(X, Y)


@pytest.mark.parametrize(
    ("samples", "labels", "message"),
    [
        (np.where(X > 3, np.nan, X), Y, "NaN"),
        (X, np.zeros(120), "only one class"),
        (X, X[:, 0], "Unknown label type"),
        (X, Y[:-1], "inconsistent numbers of samples"),
        (X[:0], Y[:0], "0 sample"),
        (X, None, "requires y"),
        (
            maxmargin.blocks.open(X, Y),
            Y,
            "on samples in memory, not on blocks of rows: .* then fit SVC with best_params_",
        ),
    ],
)
def test_invalid_data(samples, labels, message):
    with pytest.raises(ValueError, match=message):
        SVCCV(**GRID).fit(samples, labels)


def test_a_hard_grid_is_certified():
    """Huge and tiny C, unscaled columns, duplicates and an almost empty class."""
    samples = np.vstack([X * [1.0, 1e6], X[:5] * [1.0, 1e6]])
    labels = np.append(np.arange(120) < 6, [True] * 5)
    found = SVCCV(Cs=[1e-8, 1, 1e8], gammas=5, cv=3).fit(samples, labels)
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()
    assert found.certificate_.violation < 1e-3
    assert isinstance(found.best_estimator_, SVC)


def test_a_column_of_labels_is_one_warning():
    with pytest.warns(DataConversionWarning) as caught:
        SVCCV(**GRID).fit(X, Y[:, np.newaxis])
    assert len(caught) == 1
