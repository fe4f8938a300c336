"""Probabilities of `SVC` and `NuSVC`: they agree with `predict`, repeat, and come from samples held out."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.datasets import chessboard
from maxmargin.deadline import Deadline
from maxmargin.kernels import Gaussian
from maxmargin.machines.calibration import cross_validation, probabilities
from maxmargin.machines.calibration.cross_validation import stratified_folds
from maxmargin.machines.calibration.probabilities import PairwiseProbabilities
from reference import libsvm
from reference.data import iris, wine

CHECKED = [
    SVC(probability=True),
    NuSVC(nu=0.3, probability=True),
    SVR(noise=True),
    NuSVR(noise=True),
    OneClassSVM(probability=True),
]


def cannot_pass(estimator):
    """scikit-learn excuses its own classifiers too: copies of a sample are held out one by one, a weight at once."""
    if isinstance(estimator, OneClassSVM):
        return dict.fromkeys(
            ("check_estimator_sparse_array", "check_estimator_sparse_matrix"),
            "the checks take any estimator with predict_proba for a classifier with several classes",
        )
    if not isinstance(estimator, SVC | NuSVC):
        return {}
    excused = dict.fromkeys(
        ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"),
        "a sample of weight 2 is held out at once, two samples need not be",
    )
    if isinstance(estimator, NuSVC):
        excused["check_class_weight_classifiers"] = "no nu is feasible for classes whose weights differ 10⁷ times"
    return excused


@parametrize_with_checks(CHECKED, expected_failed_checks=cannot_pass)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def overlapping(n=1500, classes=2, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(0, classes, n)
    return random.normal(size=(n, 3)) + y[:, None], y


def brier_score(y, probabilities):
    return np.mean(((probabilities - np.eye(probabilities.shape[1])[y]) ** 2).sum(axis=1))


class Captured:
    """Stands in for the fit of a sigmoid and keeps what it was given."""

    def __init__(self, monkeypatch):
        self.values, self.weights = [], []
        monkeypatch.setattr(probabilities, "fit_sigmoid", self.fit_sigmoid)

    def fit_sigmoid(self, values, first, weights, fit=probabilities.fit_sigmoid):
        self.values.append(values)
        self.weights.append(weights)
        return fit(values, first, weights)


def by_models_of_their_own(model, X, y, weights=None):
    """The decision values of samples held out, by machines trained from scratch without them."""
    classes = np.unique(y)
    folds = stratified_folds([np.flatnonzero(y == c) for c in classes], len(y), 0)
    values = np.empty(len(y))
    for fold in np.unique(folds):
        held, kept = folds == fold, folds != fold
        alone = clone(model).set_params(probability=False)
        alone.fit(X[kept], y[kept], None if weights is None else weights[kept])
        values[held] = alone.decision_function(X[held])
    return -values


class TestHeldOutValues:
    """Folds around a solution find what machines of their own find."""

    @pytest.mark.parametrize(
        "model",
        [
            SVC(C=0.1, gamma=0.1),
            SVC(C=10.0, gamma=0.1),
            SVC(C=10.0, gamma=0.1, fit_intercept=False),
            SVC(C=1.0, gamma=0.1, loss="squared_hinge"),
            SVC(C=1.0, gamma=0.1, solver="block"),
            SVC(C=np.inf, gamma=0.1),
            SVC(kernel="linear", class_weight={0: 3.0}),
            NuSVC(nu=0.1, gamma=0.1),
        ],
        ids=str,
    )
    def test_few_samples(self, model, monkeypatch):
        X, y = breast_cancer()
        X, y = X[:300], y[:300]
        captured = Captured(monkeypatch)
        clone(model).set_params(probability=True, tol=1e-4).fit(X, y)
        expected = by_models_of_their_own(model.set_params(tol=1e-4), X, y)
        np.testing.assert_allclose(captured.values[0], expected, atol=0.01 * max(1.0, np.abs(expected).max()))

    @pytest.mark.parametrize(
        "model",
        [
            SVC(gamma=0.5),
            SVC(C=10.0, gamma=0.5, solver="block"),
            SVC(gamma=0.5, loss="squared_hinge", solver="block"),
            SVC(gamma=0.5, solver="block", cache_size=0.5),
            NuSVC(nu=0.5, gamma=0.5),
            NuSVC(nu=0.6, gamma=0.5, solver="block"),
        ],
        ids=str,
    )
    def test_many_samples(self, model, monkeypatch):
        X, y = overlapping(2500)
        captured = Captured(monkeypatch)
        clone(model).set_params(probability=True).fit(X, y)
        expected = by_models_of_their_own(model, X, y)
        found = captured.values[0]
        scale = np.sqrt(np.mean(expected**2))
        assert np.sqrt(np.mean((found - expected) ** 2)) < 0.02 * scale
        np.testing.assert_allclose(found, expected, atol=0.2 * scale)

    @pytest.mark.parametrize("least", [2, 30])
    def test_too_few_variables_to_begin_with(self, least, monkeypatch):
        for name, value in (("MIN_SUBSET", least), ("SUBSET_PER_FREE", 0.0), ("SUBSET_PER_SUPPORT_VECTOR", 0.0)):
            monkeypatch.setattr(cross_validation, name, value)
        X, y = overlapping(300)
        captured = Captured(monkeypatch)
        model = SVC(gamma=0.5, C=0.1)
        clone(model).set_params(probability=True).fit(X, y)
        expected = by_models_of_their_own(model, X, y)
        np.testing.assert_allclose(captured.values[0], expected, atol=0.1)

    def test_weights_and_rows_left_out(self, monkeypatch):
        X, y = overlapping(200)
        weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
        left_out = np.arange(len(y)) % 7 == 0
        captured = Captured(monkeypatch)
        model = SVC(gamma=0.5, tol=1e-4, probability=True)
        weighted = clone(model).fit(X, y, np.where(left_out, 0.0, weights))
        shorter = clone(model).fit(X[~left_out], y[~left_out], weights[~left_out])
        np.testing.assert_allclose(captured.weights[0], weights[~left_out])
        np.testing.assert_allclose(weighted.predict_proba(X), shorter.predict_proba(X), atol=1e-6)
        expected = by_models_of_their_own(model, X[~left_out], y[~left_out], weights[~left_out])
        np.testing.assert_allclose(captured.values[1], expected, atol=0.01)

    @pytest.mark.parametrize("n", [200, 1300])
    def test_kernels_and_data_of_all_kinds(self, n):
        X, y = overlapping(n, classes=3)
        K = Gaussian(0.5)(X)
        model = SVC(kernel=Gaussian(0.5), probability=True, tol=1e-4).fit(X, y)
        expected = model.predict_proba(X)
        for other, given in (
            (SVC(gamma=0.5), sparse.csr_matrix(X)),
            (SVC(kernel="precomputed"), K),
            (SVC(kernel=lambda A, B: Gaussian(0.5)(A, B)), X),
        ):
            other.set_params(probability=True, tol=1e-4).fit(given, y)
            np.testing.assert_allclose(other.predict_proba(given), expected, atol=2e-3)

    def test_the_largest_feasible_part(self):
        X, y = overlapping(101)
        y = (np.arange(101) < 21).astype(int)  # folds cannot keep the ratio, so ν is not feasible in all of them
        model = NuSVC(nu=2 * 21 / 101, probability=True).fit(X, y)
        assert np.isfinite(model.predict_proba(X)).all()


class TestAgreement:
    @pytest.mark.parametrize("seed", range(40))
    def test_predict_is_the_most_probable_class(self, seed):
        random = np.random.default_rng(seed)
        classes, n = int(random.integers(2, 6)), int(random.integers(2, 60))
        y = np.concatenate([np.arange(classes), random.integers(0, classes, n)])
        X = random.integers(0, 3, (len(y), 2)).astype(float)  # many duplicates, many ties
        if seed % 2:
            X = X + 0.5 * y[:, None] + random.normal(size=X.shape)
        new = np.vstack([X, random.normal(scale=3.0, size=(50, 2))])
        for model in (
            SVC(C=10.0 ** random.integers(-2, 4), kernel=["rbf", "linear", "poly"][seed % 3]),
            NuSVC(nu=0.01, gamma=1.0),
        ):
            model.set_params(probability=True, random_state=seed).fit(X, y)
            found = model.predict_proba(new)
            np.testing.assert_array_equal(model.predict(new), model.classes_[np.argmax(found, axis=1)])
            np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
            assert (found >= 0).all()
            assert np.isfinite(model.predict_log_proba(new)).all()
            if classes == 2:
                order = np.argsort(model.decision_function(new))
                assert (np.diff(found[order, 1]) >= 0).all()

    def test_labels_of_any_kind(self):
        X, y = iris()
        names = np.array(["setosa", "versicolor", "virginica"])
        model = SVC(probability=True).fit(X, names[y])
        np.testing.assert_array_equal(model.predict(X), names[np.argmax(model.predict_proba(X), axis=1)])
        assert model.score(X, names[y]) > 0.94

    def test_labels_hardly_differ_from_those_without(self):
        X, y = breast_cancer()
        plain, probable = SVC().fit(X, y), SVC(probability=True).fit(X, y)
        np.testing.assert_array_equal(plain.decision_function(X), probable.decision_function(X))
        differ = plain.predict(X) != probable.predict(X)
        assert differ.mean() < 0.02
        assert np.abs(plain.decision_function(X)[differ]).max(initial=0.0) < 0.5

    def test_weights_of_classes_move_the_labels(self):
        X, y = overlapping(400)
        shares = [np.mean(SVC(probability=True, class_weight={0: w}).fit(X, y).predict(X) == 0) for w in (0.1, 1, 10)]
        assert shares[0] < shares[1] - 0.1 < shares[2] - 0.2

    @pytest.mark.parametrize("y", [[0, 1], [0, 1, 2], [0, 0, 0, 1], [0, 1, 1, 0]])
    def test_hardly_any_samples(self, y):
        X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])[: len(y)]
        model = SVC(probability=True, gamma=1.0, C=10.0).fit(X, y)
        assert np.isfinite(model.predict_proba(X)).all()
        if len(set(y)) == 2 and sum(y) * 2 == len(y):  # as many of each: cross-validation only knows the contrary
            np.testing.assert_array_equal(model.predict(X), y)

    def test_random_labels(self):
        X = np.random.default_rng(0).normal(size=(60, 2))
        model = SVC(probability=True, C=100.0, gamma=10.0).fit(X, np.arange(60) % 2)
        assert (model.probA_ < 0).all()
        assert np.abs(model.predict_proba(X) - 0.5).mean() < 0.2


class TestQuality:
    @pytest.mark.parametrize("load", [iris, wine, breast_cancer, lambda: load_digits(return_X_y=True)])
    def test_as_good_as_others(self, load):
        X, y = load()
        train, test, of_train, of_test = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)
        ours = SVC(probability=True).fit(train, of_train).predict_proba(test)
        calibrated = CalibratedClassifierCV(SVC(), ensemble=False).fit(train, of_train).predict_proba(test)
        gamma = 1 / (train.shape[1] * train.var())
        other = libsvm.train(train, of_train, f"-b 1 -g {gamma}")
        theirs = libsvm.predict(other, test, "-b 1")[:, np.argsort(other.get_labels())]
        for score in (log_loss, brier_score):
            assert score(of_test, ours) < 1.1 * score(of_test, calibrated) + 0.03
            assert score(of_test, ours) < 1.1 * score(of_test, theirs) + 0.03

    def test_noisy_labels_are_doubted(self):
        X, y = chessboard(3000, noise=0.2)
        model = SVC(C=10.0, gamma=4.0, probability=True).fit(X, y)
        fresh, truth = chessboard(3000, noise=0.2, seed=1)
        found = model.predict_proba(fresh)[:, 1]
        for low in (0.2, 0.8):  # what is called so probable is so frequent
            near = np.abs(found - low) < 0.1
            assert near.sum() > 200
            assert np.mean(truth[near] == model.classes_[1]) == pytest.approx(found[near].mean(), abs=0.08)


class TestRepeatability:
    def test_same_bits_again_and_on_any_number_of_threads(self):
        X, y = overlapping(2600, classes=3)
        model = SVC(probability=True)
        first = clone(model).fit(X, y).predict_proba(X)
        with ThreadPoolExecutor(3) as pool:
            others = list(pool.map(lambda jobs: clone(model).set_params(n_jobs=jobs).fit(X, y), [1, 2, None]))
        for other in others:
            np.testing.assert_array_equal(other.predict_proba(X), first)

    def test_the_random_state_decides(self):
        X, y = iris()
        found = [SVC(probability=True, random_state=s).fit(X, y).probA_ for s in (0, 0, 1, np.random.RandomState(0))]
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0], found[3])
        assert not np.array_equal(found[0], found[2])
        default = SVC(probability=True)
        np.testing.assert_array_equal(default.fit(X, y).probA_, clone(default).fit(X, y).probA_)

    def test_permuted_samples(self):
        X, y = breast_cancer()
        order = np.random.default_rng(0).permutation(len(y))
        first, second = (SVC(probability=True).fit(X[rows], y[rows]) for rows in (np.arange(len(y)), order))
        assert np.abs(first.predict_proba(X) - second.predict_proba(X)).mean() < 0.01

    def test_copies(self):
        X, y = iris()
        model = SVC(probability=True).fit(X, y)
        copy = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(clone(model).fit(X, y).probB_, model.probB_)

    def test_warm_starts(self):
        X, y = iris()
        model = SVC(probability=True, warm_start=True, tol=1e-5).fit(X, y)
        expected = model.predict_proba(X)
        np.testing.assert_allclose(model.fit(X, y).predict_proba(X), expected, atol=1e-4)


class TestInterface:
    def test_scikit_learns_sigmoids(self):
        X, y = breast_cancer()
        model = SVC(probability=True).fit(X, y)
        f = -model.decision_function(X)
        np.testing.assert_allclose(model.predict_proba(X)[:, 0], 1 / (1 + np.exp(model.probA_ * f + model.probB_)))
        X, y = iris()
        model = NuSVC(nu=0.2, probability=True).fit(X, y)
        assert model.probA_.shape == model.probB_.shape == (3,)

    @pytest.mark.parametrize("probability", [False, "deprecated"])
    def test_only_when_asked_for(self, probability):
        X, y = iris()
        for model in (SVC(probability=probability), NuSVC(nu=0.2, probability=probability)):
            assert not hasattr(model, "predict_proba")
            with pytest.raises(AttributeError, match="has no attribute 'predict_log_proba'") as error:
                model.fit(X, y).predict_log_proba(X)
            assert str(error.value.__cause__) == "predict_proba is not available when probability=False"
            for parameters in (model.probA_, model.probB_, clone(model).fit(X, y == 1).probA_):
                assert parameters.shape == (0,)  # as in scikit-learn
                assert parameters.dtype == np.float64
            with pytest.raises(AttributeError, match="no attribute 'probA_' before fit"):
                _ = clone(model).probA_
            with pytest.raises(NotFittedError, match="not available when fitted with probability=False"):
                model.set_params(probability=True).predict_proba(X)
            model.predict(X)

    def test_changes_of_mind(self):
        X, y = iris()
        model = SVC(probability=True).fit(X, y)
        votes = SVC().fit(X, y).predict(X)
        np.testing.assert_array_equal(model.set_params(probability=False).predict(X), votes)
        assert model.fit(X, y).probB_.shape == (0,)

    @pytest.mark.parametrize("probability", [1, "yes", None])
    def test_only_yes_or_no(self, probability):
        with pytest.raises(ValueError, match="probability must be True or False"):
            SVC(probability=probability).fit(*iris())


class TestLimits:
    def test_of_steps(self):
        X, y = chessboard(300)
        with pytest.warns(ConvergenceWarning, match="limit on iterations") as caught:
            model = SVC(C=100.0, gamma=1.0, max_iter=20, probability=True).fit(X, y)
        assert len(caught) == 1  # it is said once
        assert np.isfinite(model.predict_proba(X)).all()

    @pytest.mark.parametrize("n", [300, 2500])
    def test_of_time_in_cross_validation(self, n, monkeypatch):
        original = PairwiseProbabilities._fit_sigmoids

        def too_late(self, context, trained, data, weights):
            context = replace(context, session=replace(context.session, deadline=Deadline(0.0)))
            return original(self, context, trained._replace(held_out_values=None), data, weights)

        monkeypatch.setattr(PairwiseProbabilities, "_fit_sigmoids", too_late)
        X, y = overlapping(n)
        with pytest.warns(ConvergenceWarning, match="in cross-validation, so its estimates .* time limit"):
            model = SVC(probability=True, max_seconds=600).fit(X, y)
        assert model.fit_status_ == 0
        assert np.isfinite(model.predict_proba(X)).all()
        assert model.score(X, y) > 0.7

    @pytest.mark.parametrize("classes", [2, 3])
    def test_interruptions(self, classes):
        reports = []

        def interrupt_later(progress):
            reports.append(progress)
            if len(reports) > classes * (classes - 1) // 2:  # every machine reports its end; then the folds begin
                raise KeyboardInterrupt

        X, y = overlapping(300, classes=classes)
        model = SVC(probability=True, callback=interrupt_later, n_jobs=1)
        with pytest.raises(KeyboardInterrupt, match="interrupted during cross-validation; the model is usable"):
            model.fit(X, y)
        np.testing.assert_array_equal(model.predict(X), SVC().fit(X, y).predict(X))
        with pytest.raises(NotFittedError, match="or when fit was interrupted"):
            model.predict_proba(X)

    def test_callbacks_may_stop_it(self):
        X, y = overlapping(300)
        with pytest.warns(ConvergenceWarning, match="callback asked to stop"):
            model = SVC(probability=True, C=1e4, gamma=10.0, callback=lambda progress: True).fit(X, y)
        assert np.isfinite(model.predict_proba(X)).all()
