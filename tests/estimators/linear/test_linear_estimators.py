"""What the linear machines share: scikit-learn's checks, data without copies, weights, limits, starts, hard cases."""

import io
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import sklearn.svm
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import LinearOneClassSVM, LinearSVC, LinearSVR, Status, linear_path
from maxmargin.solvers import PairwiseSolver, StoppingRule
from reference.data import diabetes, iris, wine

CHECKED = [
    LinearSVC(),
    LinearSVC(loss="hinge", intercept_scaling=1.0),
    LinearSVC(multi_class="crammer_singer"),
    LinearSVC(probability=True),
    LinearSVR(),
    LinearSVR(loss="squared_epsilon_insensitive", noise=True),
    LinearOneClassSVM(),
]
MACHINES = [
    LinearSVC(),
    LinearSVC(loss="hinge"),
    LinearSVC(intercept_scaling=1.0),
    LinearSVC(multi_class="crammer_singer"),
    LinearSVR(epsilon=0.1),
    LinearSVR(loss="squared_epsilon_insensitive"),
    LinearOneClassSVM(nu=0.3),
]
EXACT = "compares decision values to 1e-7, and a gap bounds the distance of weights only by its square root"
CALIBRATED = "the most probable class is not always the one that the decision function says"


def cannot_pass(estimator):
    excused = {}
    # Newton's last step on a squared loss is as good as exact, whatever the tolerance.
    exact = str(estimator) in ("LinearSVC()", "LinearSVR(loss='squared_epsilon_insensitive', noise=True)")
    if not exact:
        for form in ("dense", "sparse"):
            excused[f"check_sample_weight_equivalence_on_{form}_data"] = EXACT
    if getattr(estimator, "probability", False) is True:
        excused["check_classifiers_train"] = CALIBRATED
    return excused


@parametrize_with_checks(CHECKED, expected_failed_checks=cannot_pass)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def decide(model, X):
    return (model.decision_function if hasattr(model, "decision_function") else model.predict)(X)


def certificates(model):
    return model.certificate_ if isinstance(model.certificate_, list) else [model.certificate_]


def shifted_wine():
    """Features that are not centred, for the one-class machine."""
    X, y = wine()
    return X + 3.0, y


def names(model):
    return str(model)


class TestData:
    @pytest.mark.parametrize("model", MACHINES, ids=names)
    def test_the_form_of_the_data_does_not_matter(self, model):
        X, y = shifted_wine()
        X = np.where(X < 2.5, 0.0, X).astype(np.float32)
        rows = sparse.csr_array(X)
        long = sparse.csr_array((rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64)), rows.shape)
        unsorted = sparse.csr_matrix(rows)
        unsorted.indices, unsorted.data = unsorted.indices.copy(), unsorted.data.copy()
        for a, b in zip(unsorted.indptr[:-1], unsorted.indptr[1:], strict=True):
            unsorted.indices[a:b], unsorted.data[a:b] = unsorted.indices[a:b][::-1], unsorted.data[a:b][::-1]
        unsorted.has_sorted_indices = False
        model = clone(model).set_params(tol=1e-9).fit(X.astype(np.float64), y)
        expected = decide(model, X)
        forms = [X, np.asfortranarray(X), rows, long, unsorted, sparse.csc_matrix(X), pd.DataFrame(X), X.tolist()]
        for form in forms:
            same = clone(model).fit(form, y)
            assert all(c.relative_gap <= 1e-9 for c in certificates(same))
            np.testing.assert_allclose(decide(same, form), expected, atol=2e-3)
            assert decide(same, form).dtype == np.float64

    @pytest.mark.parametrize("model", [model for model in MACHINES if "crammer" not in str(model)], ids=names)
    @pytest.mark.parametrize("form", ["dense", "int32", "int64"])
    def test_nothing_is_copied(self, model, form):
        random = np.random.default_rng(0)
        X = (random.random((400, 3000)) * (random.random((400, 3000)) < 0.3)).astype(np.float32)
        y = np.arange(400) % 2
        size = X.nbytes
        if form != "dense":
            X = sparse.csr_array(X)
            X.indices, X.indptr = X.indices.astype(form), X.indptr.astype(form)
            X.sort_indices()
            size = X.data.nbytes + X.indices.nbytes
        model = clone(model).set_params(max_iter=3, solver="dual_coordinate_ascent")
        before = [X.copy()] if form == "dense" else [X.data.copy(), X.indices.copy()]
        tracemalloc.start()
        with pytest.warns(ConvergenceWarning):
            model.fit(X, y)
        decide(model, X)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 0.5 * size
        for one, other in zip(before, [X] if form == "dense" else [X.data, X.indices], strict=True):
            np.testing.assert_array_equal(one, other)

    def test_columns_of_frames_have_names(self):
        X, y = iris()
        frame = pd.DataFrame(X, columns=list("abcd"))
        model = LinearSVC().fit(frame, y)
        assert model.feature_names_in_.tolist() == list("abcd")
        assert model.n_features_in_ == 4

    def test_coefficients_may_be_sparse(self):
        X, y = wine()
        for model in (LinearSVC().fit(X, y), LinearSVR().fit(X, y), LinearOneClassSVM().fit(X + 3)):
            expected = decide(model, X)
            assert sparse.issparse(model.sparsify().coef_)
            np.testing.assert_array_equal(decide(model, X), expected)
            assert not sparse.issparse(model.densify().coef_)
            np.testing.assert_array_equal(decide(model, X), expected)


class TestWeights:
    @pytest.mark.parametrize("model", MACHINES, ids=names)
    def test_weights_count_samples(self, model):
        X, y = shifted_wine()
        counts = np.random.default_rng(0).integers(0, 4, len(y))
        weighted = clone(model).set_params(tol=1e-9).fit(X, y, sample_weight=counts)
        repeated = clone(model).set_params(tol=1e-9).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
        np.testing.assert_allclose(decide(weighted, X), decide(repeated, X), atol=2e-3)
        for one, other in zip(certificates(weighted), certificates(repeated), strict=True):
            assert one.primal == pytest.approx(other.primal, rel=1e-8)

    def test_weights_of_classes_are_liblinears(self):
        X, y = iris()
        model = LinearSVC(class_weight={0: 5.0, 1: 1.0, 2: 1.0}, tol=1e-9).fit(X, y)
        weights = np.where(y == 0, 5.0, 1.0)
        first = LinearSVC(tol=1e-9).fit(X, y == 0, sample_weight=weights)
        second = LinearSVC(tol=1e-9).fit(X, y == 1)  # where the first class is among the rest, it counts once
        np.testing.assert_allclose(model.coef_[0], first.coef_[0], atol=1e-3)
        np.testing.assert_allclose(model.coef_[1], second.coef_[0], atol=1e-3)

    def test_a_class_without_weight_is_left_out(self):
        X, y = iris()
        model = LinearSVC().fit(X, y, sample_weight=(y != 1).astype(float))
        assert model.classes_.tolist() == [0, 2]
        assert model.coef_.shape == (1, 4)


class TestHardCases:
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    @pytest.mark.parametrize("cost", [1e-8, 1e-3, 1e3, 1e8])
    @pytest.mark.parametrize("scaling", [None, 1.0])
    def test_tiny_and_huge_costs(self, loss, cost, scaling):
        X, y = wine()
        for labels in (y, y == 1):
            model = LinearSVC(loss=loss, C=cost, intercept_scaling=scaling).fit(X, labels)
            assert all(c.relative_gap <= 1e-4 for c in certificates(model))

    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    @pytest.mark.parametrize("cost", [0.01, 1.0, 100.0])
    def test_inseparable_data_with_large_costs(self, loss, cost):
        random = np.random.default_rng(3)
        X = random.normal(size=(300, 10))
        model = LinearSVC(loss=loss, C=cost).fit(X, X[:, 0] + random.normal(size=300) > 0)
        assert model.certificate_.relative_gap <= 1e-4

    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_unscaled_columns(self, loss):
        X, y = wine()
        X = X * 10.0 ** np.linspace(-4, 4, X.shape[1]) + 100.0
        model = LinearSVC(loss=loss).fit(X, y)
        assert all(c.relative_gap <= 1e-4 for c in certificates(model))
        assert model.score(X, y) > 0.9

    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_duplicates_with_equal_and_opposite_labels(self, loss):
        X = np.repeat([[1.0, 2.0], [3.0, 1.0], [0.0, 0.0]], 10, axis=0)
        y = np.tile([0, 1], 15)
        model = LinearSVC(loss=loss).fit(X, y)
        np.testing.assert_allclose(model.coef_, 0.0, atol=1e-2)
        assert model.certificate_.relative_gap <= 1e-4

    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    @pytest.mark.parametrize("scaling", [None, 1.0])
    def test_two_samples(self, loss, scaling):
        model = LinearSVC(loss=loss, C=1e6, intercept_scaling=scaling, tol=1e-8).fit([[-1.0], [1.0]], ["a", "b"])
        np.testing.assert_allclose(model.coef_, 1.0, atol=1e-3)
        np.testing.assert_allclose(model.intercept_, 0.0, atol=1e-3)
        assert model.predict([[-0.1], [0.1]]).tolist() == ["a", "b"]
        regression = LinearSVR(C=1e6, intercept_scaling=scaling).fit([[-1.0], [1.0]], [0.0, 4.0])
        np.testing.assert_allclose(regression.predict([[-1.0], [1.0]]), [0.0, 4.0], atol=1e-3)

    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_one_class_almost_empty(self, loss):
        X, _ = wine()
        y = np.zeros(len(X), dtype=int)
        y[7] = 1
        model = LinearSVC(loss=loss, probability=True).fit(X, y)
        assert model.certificate_.relative_gap <= 1e-4
        probabilities = model.predict_proba(X)
        assert np.isfinite(probabilities).all()
        assert probabilities[:, 0].mean() > 0.9

    def test_features_without_a_value(self):
        X, y = wine()
        X = np.hstack([np.zeros((len(X), 3)), X, np.ones((len(X), 1))])
        model = LinearSVC(tol=1e-8).fit(X, y)
        np.testing.assert_allclose(model.coef_[:, :3], 0.0)
        np.testing.assert_allclose(model.coef_[:, -1], 0.0, atol=1e-3)  # the intercept is free, this weight is not
        assert LinearSVC().fit(np.zeros((4, 2)), [0, 1, 0, 1]).predict(np.zeros((1, 2))).shape == (1,)

    def test_more_features_than_samples(self):
        random = np.random.default_rng(0)
        X = sparse.random(60, 5000, density=0.01, random_state=0, format="csr")
        for model in (LinearSVC(), LinearSVC(loss="hinge", C=100.0), LinearSVC(dual=True), LinearSVC(dual=False)):
            assert clone(model).fit(X, random.integers(0, 2, 60)).certificate_.relative_gap <= 1e-4

    @pytest.mark.parametrize("epsilon", [0.0, 0.5])
    @pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
    def test_targets_in_a_flat_tube(self, epsilon, loss):
        X, _ = diabetes()
        targets = np.full(len(X), 3.3)
        targets[::2] += 2 * epsilon
        model = LinearSVR(epsilon=epsilon, loss=loss).fit(X, targets)
        np.testing.assert_allclose(model.coef_, 0.0, atol=1e-9)
        np.testing.assert_allclose(model.predict(X), 3.3 + epsilon, atol=1e-9)
        assert model.status_ is Status.CONVERGED

    def test_targets_far_from_zero(self):
        X, y = diabetes()
        model = LinearSVR(C=0.1, tol=1e-7).fit(X, y)
        far = LinearSVR(C=0.1, tol=1e-7).fit(X, y + 1e6)
        np.testing.assert_allclose(far.coef_, model.coef_, atol=1e-3)
        np.testing.assert_allclose(far.intercept_ - 1e6, model.intercept_, atol=1e-3)

    def test_numbers_that_overflow(self):
        X, y = wine()
        for model in (LinearSVC(), LinearSVR(), LinearOneClassSVM()):
            with pytest.raises(ValueError, match="finite|overflow|too large"):
                model.fit(X * 1e200, y)


class TestLimits:
    @pytest.mark.parametrize("model", MACHINES, ids=names)
    def test_no_seconds(self, model):
        X, y = shifted_wine()
        with pytest.warns(ConvergenceWarning, match="raise max_seconds"):
            model = clone(model).set_params(max_seconds=0).fit(X, y)
        assert np.isfinite(decide(model, X)).all()
        assert all(c.gap >= 0 for c in certificates(model))
        assert model.fit_status_ == 1

    @pytest.mark.parametrize("model", MACHINES, ids=names)
    def test_a_callback_stops_the_fit(self, model):
        X, y = shifted_wine()
        received = []

        def stop(progress):
            received.append(progress)
            return True

        model = clone(model).set_params(callback=stop, tol=1e-11)
        with pytest.warns(ConvergenceWarning, match="callback asked to stop"):
            model.fit(X, y)
        assert received
        assert received[0].gap >= 0
        assert decide(model, X).shape[0] == len(X)

    def test_the_warning_says_what_scaling_would_do(self):
        X, y = wine()
        with pytest.warns(ConvergenceWarning, match="StandardScaler"):
            LinearSVC(max_iter=1).fit(X * 10.0 ** np.arange(X.shape[1]), y)

    def test_a_tolerance_beyond_double_precision_ends(self):
        X, y = wine()
        with pytest.warns(ConvergenceWarning, match="finer than double precision"):
            model = LinearSVC(loss="hinge", tol=1e-17).fit(X, y == 1)
        assert model.status_ is Status.PRECISION
        assert model.certificate_.relative_gap < 1e-6


class TestStarts:
    @pytest.mark.parametrize("model", MACHINES, ids=names)
    def test_a_second_fit_starts_at_the_end_of_the_first(self, model):
        X, y = shifted_wine()
        model = clone(model).set_params(warm_start=True, tol=1e-6).fit(X, y)
        first, values = model.n_iter_, decide(model, X)
        again = model.fit(X, y)
        assert again.n_iter_ < max(2, first)
        np.testing.assert_allclose(decide(again, X), values, atol=0.05)
        assert all(c.relative_gap <= 1e-6 for c in certificates(again))

    def test_other_data_start_afresh(self):
        X, y = wine()
        model = LinearSVC(warm_start=True).fit(X, y)
        assert model.fit(X[::2], y[::2]).certificate_[0].slack.shape == (len(X[::2]),)
        assert model.fit(X, y == 1).coef_.shape == (1, X.shape[1])
        assert model.set_params(multi_class="crammer_singer").fit(X, y).coef_.shape == (3, X.shape[1])

    @pytest.mark.parametrize("estimator", [LinearSVC(loss="hinge"), LinearSVC(), LinearSVR(epsilon=0.1)], ids=names)
    def test_path(self, estimator):
        X, y = wine()
        costs = [1.0, 0.25, 0.5, 0.125, 2.0]
        path = linear_path(X, y, costs, estimator=estimator)
        assert path.Cs.tolist() == [model.C for model in path.models] == costs
        assert (path.seconds > 0).all()
        alone = [clone(estimator).set_params(C=cost).fit(X, y) for cost in costs]
        for one, other, proofs in zip(path.models, alone, path.certificates, strict=True):
            assert one.warm_start is False
            for c, d in zip(proofs if isinstance(proofs, list) else [proofs], certificates(other), strict=True):
                assert c.relative_gap <= 1e-4
                assert c.primal == pytest.approx(d.primal, rel=2e-4)
        assert path.coefs.shape == (5, *alone[0].coef_.shape)
        assert path.intercepts.shape == (5, *alone[0].intercept_.shape)
        assert sum(model.n_iter_ for model in path.models) < sum(model.n_iter_ for model in alone)

    def test_path_of_what_has_none(self):
        X, y = wine()
        with pytest.raises(ValueError, match="must be a LinearSVC or a LinearSVR"):
            linear_path(X, y, [1.0], estimator=LinearOneClassSVM())
        with pytest.raises(ValueError, match="at least one"):
            linear_path(X, y, [])


class TestAmongScikitLearn:
    @pytest.mark.parametrize("model", CHECKED, ids=names)
    def test_pickle_and_clone(self, model):
        X, y = shifted_wine()
        model = clone(model).fit(X, y)
        file = io.BytesIO()
        pickle.dump(model, file)
        again = pickle.loads(file.getvalue())
        np.testing.assert_array_equal(decide(again, X), decide(model, X))
        assert str(again.certificate_) == str(model.certificate_)
        assert not hasattr(clone(model), "coef_")

    def test_pipelines_and_searches(self):
        X, y = sklearn.datasets.load_breast_cancer(return_X_y=True)
        search = GridSearchCV(make_pipeline(StandardScaler(), LinearSVC()), {"linearsvc__C": [0.001, 0.01, 0.1]}, cv=3)
        assert search.fit(X, y).best_score_ > 0.96

    @pytest.mark.parametrize("attribute", ["certificate_", "status_"])
    def test_before_fit(self, attribute):
        with pytest.raises(AttributeError, match=f"{attribute}.*before fit"):
            getattr(LinearSVC(), attribute)
        with pytest.raises(NotFittedError):
            LinearSVC().predict([[0.0]])

    def test_threads_do_not_change_the_answer(self):
        random = np.random.default_rng(0)
        X = random.normal(size=(3000, 100))
        y = np.argmax(X[:, :4] + random.normal(size=(3000, 4)), axis=1)
        one, two = (LinearSVC(n_jobs=jobs, tol=1e-7).fit(X, y) for jobs in (1, 2))
        np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-3)
        np.testing.assert_array_equal(two.coef_, LinearSVC(n_jobs=2, tol=1e-7).fit(X, y).coef_)


@pytest.mark.parametrize("name", ["dual_coordinate_ascent", "semismooth_newton", "pairwise"])
@pytest.mark.parametrize("model", [LinearSVC(), LinearSVC(loss="hinge"), LinearSVR(), LinearOneClassSVM()], ids=names)
def test_every_solver_proves_the_same(name, model):
    X, y = shifted_wine() if isinstance(model, LinearOneClassSVM) else wine()
    auto = clone(model).fit(X, y)
    chosen = clone(model).set_params(solver=name).fit(X, y)
    for one, other in zip(certificates(chosen), certificates(auto), strict=True):
        assert one.relative_gap <= 1e-4
        assert one.primal == pytest.approx(other.primal, rel=2e-4)


def test_a_solver_object_brings_its_own_rule():
    X, y = wine()
    model = LinearSVC(solver=PairwiseSolver(stopping=StoppingRule(violation=1e-6)), tol=1.0).fit(X, y == 1)
    assert model.certificate_.violation <= 1e-6


BAD = [
    (LinearSVC(penalty="l3"), "penalty must be one of 'l1', 'l2'"),
    (LinearSVC(loss="logistic"), "loss must be one of 'hinge', 'squared_hinge'"),
    (LinearSVC(multi_class="ovo"), "multi_class must be one of 'ovr', 'crammer_singer'"),
    (LinearSVC(multi_class="crammer_singer", probability=True), "use multi_class='ovr'"),
    (LinearSVC(multi_class="crammer_singer", solver="semismooth_newton"), "solver must be one of"),
    (LinearSVC(dual="sometimes"), "dual must be 'auto', True or False"),
    (LinearSVC(C=0), "C must be a number above 0"),
    (LinearSVC(C=np.inf), "for a hard margin use C=inf in SVC"),
    (LinearSVC(intercept_scaling=0), "intercept_scaling must be a number above 0"),
    (LinearSVC(fit_intercept="yes"), "fit_intercept must be True or False"),
    (LinearSVC(tol=0), "tol must be a number above 0"),
    (LinearSVC(max_iter=-1), "max_iter must be a whole number of at least 0"),
    (LinearSVC(max_seconds=-1), "max_seconds must be a number of at least 0"),
    (LinearSVC(solver="newton"), "solver must be one of 'auto'"),
    (LinearSVC(solver=type("Own", (), {"solve": None})()), "must be a dataclass"),
    (LinearSVC(callback=3), "callback must be a function"),
    (LinearSVC(probability=1), "probability must be True or False"),
    (LinearSVC(warm_start=None), "warm_start must be True or False"),
    (LinearSVR(epsilon=-1), "epsilon must be a number of at least 0"),
    (LinearSVR(loss="hinge"), "loss must be one of 'epsilon_insensitive'"),
    (LinearSVR(noise=None), "noise must be True or False"),
    (LinearSVR(C=np.inf), "C must be finite"),
    (LinearOneClassSVM(nu=0), "nu must be a number above 0"),
    (LinearOneClassSVM(nu=1.5), "nu must be a number above 0 and at most 1"),
]


@pytest.mark.parametrize(("model", "sentence"), BAD, ids=[sentence for _, sentence in BAD])
def test_bad_parameters(model, sentence):
    X, y = iris()
    with pytest.raises(ValueError, match=sentence):
        model.fit(X, y)


def test_bad_data():
    X, y = iris()
    with pytest.raises(ValueError, match="only one class"):
        LinearSVC().fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="NaN"):
        LinearSVC().fit(np.where(X > 1, np.nan, X), y)
    with pytest.raises(ValueError, match="one weight for each row"):
        LinearSVC().fit(X, y, sample_weight=[1.0])
    with pytest.raises(TypeError, match="targets must be dense"):
        LinearSVR().fit(X, sparse.csr_array(X))
    model = LinearSVC().fit(X, y)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :2])
    model.coef_ = model.coef_[:, :2]
    with pytest.raises(ValueError, match="coef_ has 2 weights, but there are 4 features"):
        model.predict(X)
