"""What the rest of scikit-learn asks of an estimator: tags, metadata, names, pictures, callbacks, weights."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.callback import ProgressBar
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from maxmargin import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM, QuantileSVR, Status
from maxmargin.kernels import Gaussian
from maxmargin.problems import Progress
from reference.data import iris, waves, wine

CLASSIFIERS = [SVC(), NuSVC(nu=0.3)]
REGRESSORS = [SVR(), NuSVR(), QuantileSVR()]
DETECTORS = [OneClassSVM(), SVDD()]
MACHINES = [*CLASSIFIERS, *REGRESSORS, *DETECTORS]
EVERY = pytest.mark.parametrize("model", MACHINES, ids=lambda model: type(model).__name__)


def decide(model, X):
    return (model.decision_function if hasattr(model, "decision_function") else model.predict)(X)


@EVERY
def test_tags(model):
    assert is_classifier(model) == (type(model) in map(type, CLASSIFIERS))
    assert is_regressor(model) == (type(model) in map(type, REGRESSORS))
    assert is_outlier_detector(model) == (type(model) in map(type, DETECTORS))
    tags = get_tags(model)
    assert tags.input_tags.sparse
    assert not tags.input_tags.pairwise
    assert not tags.input_tags.allow_nan
    assert tags.target_tags.required == (type(model) not in map(type, DETECTORS))
    tags = get_tags(clone(model).set_params(kernel="precomputed"))
    assert tags.input_tags.pairwise
    assert not tags.input_tags.sparse


@EVERY
def test_weights_are_routed(model):
    X, y = wine()
    weights = np.random.default_rng(0).uniform(0.5, 1.5, len(y))
    weights[::7] = 0.0
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, clone(model).set_fit_request(sample_weight=True))
        pipeline.fit(X, y, sample_weight=weights)
        scaled = pipeline[0].transform(X)
        expected = clone(model).fit(scaled, y, sample_weight=weights)
        np.testing.assert_array_equal(decide(pipeline[-1], scaled), decide(expected, scaled))
        if type(model) in map(type, DETECTORS):
            return
        step = type(model).__name__.lower()
        asked = clone(model).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        grid = {f"{step}__gamma": [0.01, 0.1]}
        search = GridSearchCV(make_pipeline(scaler, asked), grid, cv=2)
        assert np.isfinite(search.fit(X, y, sample_weight=weights).cv_results_["mean_test_score"]).all()
        refused = GridSearchCV(make_pipeline(scaler, clone(model)), grid, cv=2)
        with pytest.raises(ValueError, match="sample_weight"):
            refused.fit(X, y, sample_weight=weights)


@EVERY
def test_names_pictures_and_counters(model):
    X, y = wine()
    frame = pd.DataFrame(X, columns=[f"acid {k}" for k in range(X.shape[1])])
    fitted = clone(model).fit(frame, y)
    assert fitted.feature_names_in_.tolist() == list(frame.columns)
    assert fitted.n_features_in_ == X.shape[1]
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(frame[frame.columns[::-1]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        fitted.predict(X)
    page = fitted._repr_html_()
    assert type(model).__name__ in page
    assert "gamma" in page
    assert repr(clone(model)).startswith(type(model).__name__)
    several = type(model) in map(type, CLASSIFIERS)
    assert np.shape(fitted.n_iter_) == ((3,) if several else ())
    assert fitted.fit_status_ == 0
    with pytest.warns(ConvergenceWarning, match=r"Solver terminated early \(max_iter=1\)"):
        hurried = clone(model).set_params(max_iter=1).fit(frame, y)
    assert hurried.fit_status_ == 1
    assert np.max(hurried.n_iter_) == 1


class Listener:
    """A callback in scikit-learn's sense that writes down what it receives."""

    def __init__(self, stop_after=None):
        self.received, self.reports, self.stop_after = [], [], stop_after

    def setup(self, estimator, context):
        self.received.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.received.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, metadata=None):
        self.received.append(f"end {context.task_name}")
        if context.task_name == "report":
            self.reports.append(metadata["progress"])
        return self.stop_after is not None and len(self.reports) >= self.stop_after

    def teardown(self, estimator, context):
        self.received.append("teardown")


class TestCallbacks:
    @EVERY
    def test_callbacks_receive_the_fit_and_its_reports(self, model):
        X, y = wine()
        listener = Listener()
        fitted = clone(model).set_callbacks(listener).fit(X, y)
        assert listener.received[:2] == ["setup", "begin fit"]
        assert listener.received[-2:] == ["end fit", "teardown"]
        assert listener.received[2:-2] == ["begin report", "end report"] * len(listener.reports)
        assert listener.reports
        assert all(isinstance(report, Progress) for report in listener.reports)
        np.testing.assert_allclose(decide(fitted, X), decide(clone(model).set_callbacks().fit(X, y), X), atol=1e-9)

    def test_stop_a_fit(self):
        X, y = waves(1500)
        listener = Listener(stop_after=2)
        with pytest.warns(ConvergenceWarning, match="callback asked to stop"):
            model = SVR(C=100.0, tol=1e-6, callback=lambda progress: None).set_callbacks(listener).fit(X, y)
        assert model.status_ is Status.STOPPED
        assert len(listener.reports) >= 2
        assert listener.received[-1] == "teardown"

    def test_are_taken_down_after_an_error(self):
        X, y = iris()
        listener = Listener()
        with pytest.raises(ValueError, match="not finite"):
            SVC(kernel=lambda A, B: np.full((len(A), len(B)), np.nan)).set_callbacks(listener).fit(X, y)
        assert listener.received[-1] == "teardown"

    def test_progress_bars_reach_a_machine_in_a_search(self, capsys):
        X, y = iris()
        search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 1.0]}, cv=2)
        search.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(X, y)  # a warning, were it not received
        assert "SVC" in capsys.readouterr().out


class TestWeights:
    @EVERY
    def test_rows_of_weight_0_and_below_are_left_out(self, model):
        X, y = wine()
        weights = np.random.default_rng(0).choice([-2.0, 0.0, 1.0, 2.5], len(y))
        used = weights > 0
        model = clone(model).set_params(gamma=0.1)
        fitted = clone(model).fit(X, y, sample_weight=weights)
        expected = clone(model).fit(X[used], y[used], sample_weight=weights[used])
        np.testing.assert_allclose(decide(fitted, X), decide(expected, X), atol=1e-8)
        assert used[fitted.support_].all()

    @EVERY
    def test_one_number_for_all(self, model):
        X, y = wine()
        fitted, expected = clone(model).fit(X, y, sample_weight=2), clone(model).fit(X, y, np.full(len(y), 2.0))
        np.testing.assert_array_equal(decide(fitted, X), decide(expected, X))

    @EVERY
    def test_bad_weights_are_one_clear_error(self, model):
        X, y = wine()
        for weights, message in (
            (np.zeros(len(y)), "all samples have zero or negative weights"),
            (np.full(len(y), -1.0), "all samples have zero or negative weights"),
            (np.full(len(y), np.nan), "NaN"),
            (np.full(len(y), np.inf), "infinity"),
            (np.ones(3), "sample_weight.shape"),
            (np.ones((len(y), 1)), "sample_weight.shape"),
        ):
            with pytest.raises(ValueError, match=message):
                clone(model).fit(X, y, sample_weight=weights)

    @pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
    def test_class_weights(self, model):
        X, y = iris()
        y = np.where(y == 2, 1, y)  # 50 and 100 samples
        balanced = clone(model).set_params(class_weight="balanced").fit(X, y)
        np.testing.assert_allclose(balanced.class_weight_, [1.5, 0.75])
        by_name = clone(model).set_params(class_weight={0: 1.5, 1: 0.75}).fit(X, y)
        by_sample = clone(model).fit(X, y, sample_weight=np.where(y == 0, 1.5, 0.75))
        np.testing.assert_array_equal(decide(by_name, X), decide(balanced, X))
        if isinstance(model, SVC):  # gamma="scale" counts weights of samples, not of classes
            by_sample = clone(model).set_params(gamma=0.5).fit(X, y, sample_weight=np.where(y == 0, 1.5, 0.75))
            by_name = by_name.set_params(gamma=0.5).fit(X, y)
            np.testing.assert_allclose(decide(by_name, X), decide(by_sample, X), atol=1e-9)

    @EVERY
    def test_data_that_are_not_finite(self, model):
        X, y = wine()
        for bad, message in ((np.nan, "NaN"), (np.inf, "infinity")):
            broken = X.copy()
            broken[3, 2] = bad
            with pytest.raises(ValueError, match=message):
                clone(model).fit(broken, y)
            with pytest.raises(ValueError, match=message):
                clone(model).fit(X, y).predict(broken)

    def test_a_class_of_one_sample(self):
        X, y = iris()
        X, y = X[49:], y[49:]  # one of the first class
        for model in (SVC(C=10.0), NuSVC(nu=0.01)):
            fitted = clone(model).fit(X, y)
            assert fitted.predict(X[:1]) == 0
            assert fitted.n_support_[0] == 1

    def test_constant_targets(self):
        X, _ = iris()
        for model in REGRESSORS:
            fitted = clone(model).fit(X, np.full(len(X), -3.0))
            np.testing.assert_allclose(fitted.predict(X), -3.0, atol=0.11)
            assert fitted.certificate_.violation <= 1e-3


class TestHardTubes:
    def test_hold_every_target(self):
        X, y = waves(200)
        model = SVR(C=np.inf, epsilon=0.05, kernel=Gaussian(2.0)).fit(X, y)
        assert np.abs(model.predict(X) - y).max() <= 0.05 * (1 + 1e-6)
        soft = SVR(C=1e9, epsilon=0.05, kernel=Gaussian(2.0), tol=1e-8).fit(X, y)
        np.testing.assert_allclose(model.predict(X), soft.predict(X), atol=1e-6)
        weighted = SVR(C=np.inf, epsilon=0.05, kernel=Gaussian(2.0)).fit(X, y, sample_weight=np.arange(len(y)) % 3)
        used = np.arange(len(y)) % 3 > 0
        assert np.abs(weighted.predict(X) - y)[used].max() <= 0.05 * (1 + 1e-6)

    @pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
    def test_that_do_not_exist(self, loss):
        X, y = waves(60)
        model = SVR(C=np.inf, kernel="linear", loss=loss)
        for given, targets in ((X, y), ([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0]), ([[1.0], [1.0]], [0.0, 1.0])):
            with pytest.raises(ValueError, match=r"no hard tube \(C=inf\).*finite C, a larger epsilon"):
                model.fit(given, targets)
        with pytest.raises(ValueError, match="no hard tube"):
            clone(model).set_params(fit_intercept=False).fit(X, y)
