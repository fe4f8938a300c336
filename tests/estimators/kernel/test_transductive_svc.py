"""`TransductiveSVC`: compared with all labellings of small problems, the textbook's objective, and `SVC`."""

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import SVC, Status, TransductiveSVC, compare

METHODS = ("label_switching", "concave_convex")


@parametrize_with_checks(
    [TransductiveSVC(), TransductiveSVC(method="concave_convex")],
    expected_failed_checks=lambda estimator: {
        "check_classifiers_classes": "has labels -1 and 1, where -1 means unlabelled, as in sklearn.semi_supervised"
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def partly_labelled(X, y, each, seed=0):
    """Labels of `each` samples of a class, −1 for all others."""
    rng = np.random.default_rng(seed)
    known = np.concatenate([rng.choice(np.flatnonzero(y == c), each, replace=False) for c in np.unique(y)])
    labels = np.full(len(y), -1)
    labels[known] = y[known]
    return labels


def objective(X, signs, C):
    """The optimum of a problem with these labels."""
    return SVC(kernel="linear", C=C, tol=1e-8).fit(X, signs).certificate_.dual


class TestLabelSwitching:
    @pytest.mark.parametrize("seed", range(8))
    def test_no_pair_of_labels_improves_the_objective(self, seed):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(12, 2)) + np.repeat([[0.7, 0.0], [-0.7, 0.0]], 6, axis=0)
        labels = np.full(12, -1)
        labels[[0, 6]] = 1, 0
        model = TransductiveSVC(kernel="linear", C=2.0, positive_fraction=0.5, tol=1e-7).fit(X, labels)
        found = model.transduction_
        assert (found[labels == -1] == 1).sum() == 5
        ours = objective(X, found, 2.0)
        assert model.certificate_.dual == pytest.approx(ours, rel=1e-6)
        best = np.inf
        for positive in combinations(np.flatnonzero(labels == -1), 5):  # the 252 labellings with this fraction
            signs = np.where(labels == 1, 1, 0)
            signs[list(positive)] = 1
            best = min(best, objective(X, signs, 2.0))
        assert ours >= best * (1 - 1e-6)
        decision = model.decision_function(X)
        signs = 2.0 * found - 1.0
        slack = np.flatnonzero((labels == -1) & (signs * decision < 1))
        for a in slack[signs[slack] > 0]:
            for b in slack[signs[slack] < 0]:
                assert decision[b] <= decision[a] + 1e-5  # Joachims' condition for a switch does not hold

    def test_the_fraction_is_that_of_the_labelled_samples_or_as_given(self):
        X, y = make_moons(200, noise=0.1, random_state=0)
        labels = partly_labelled(X, y, 6)
        labels[np.flatnonzero(labels == 0)[:3]] = -1
        unlabelled = labels == -1
        model = TransductiveSVC().fit(X, labels)
        np.testing.assert_allclose(model.class_fractions_, [1 / 3, 2 / 3])
        assert (model.transduction_[unlabelled] == 1).sum() == round(2 / 3 * unlabelled.sum())
        given = TransductiveSVC(positive_fraction=0.25).fit(X, labels)
        assert (given.transduction_[unlabelled] == 1).sum() == round(0.25 * unlabelled.sum())


class TestConcaveConvex:
    @pytest.mark.parametrize("size", [60, 900])  # a batch, and larger problems with a solver each
    @pytest.mark.parametrize("kernel", ["linear", "rbf"])
    def test_mean_and_objective(self, size, kernel):
        X, y = make_moons(size, noise=0.2, random_state=1)
        labels = partly_labelled(X, y, 8)
        unlabelled = labels == -1
        solver = "auto" if size == 60 else "block"
        model = TransductiveSVC(
            kernel=kernel, C=2.0, C_unlabeled=0.5, method="concave_convex", positive_fraction=0.4, ramp=-0.2, tol=1e-5,
            solver=solver,
        ).fit(X, labels)  # fmt: skip
        values = model.decision_function(X)
        assert values[unlabelled].mean() == pytest.approx(-0.2, abs=1e-6)
        # The linearised problem at the solution: its optimum is the solution.
        signs = np.where(unlabelled, 0.0, 2.0 * labels - 1.0)
        slope = np.where(unlabelled, 0.5 * ((-values < -0.2).astype(float) - (values < -0.2)), 0.0)
        coefficients = np.zeros(size)
        coefficients[model.support_] = model.dual_coef_[0]
        K = model._kernel_(X)
        norm = coefficients @ K @ coefficients
        assert model.geometry_.squared_norm == pytest.approx(norm, rel=1e-4)

        def linearised(c, f):
            hinges = np.where(
                unlabelled, 0.5 * (np.maximum(0, 1 - f) + np.maximum(0, 1 + f)), 2.0 * np.maximum(0, 1 - signs * f)
            )
            return 0.5 * c @ K @ c + hinges.sum() - slope @ f

        ours, rng = linearised(coefficients, values), np.random.default_rng(0)
        for scale in (1e-3, 1e-2, 0.1):  # other functions with the same mean over the unlabelled samples
            for _ in range(20):
                step = scale * rng.normal(size=size)
                moved = K @ step
                moved -= moved[unlabelled].mean()
                assert linearised(coefficients + step, values + moved) > ours - 1e-3

    def test_the_certificate_is_that_of_the_last_problem(self):
        X, y = make_moons(80, noise=0.1, random_state=0)
        model = TransductiveSVC(method="concave_convex", C=3.0).fit(X, partly_labelled(X, y, 4))
        assert model.status_ is Status.STATIONARY
        assert model.certificate_.violation < 1e-3
        assert model.certificate_.relative_gap < 1e-2
        assert model.n_problems_[0] > 1


@pytest.mark.parametrize("method", METHODS)
class TestBoth:
    def test_few_labels_are_enough_where_classes_are_clusters(self, method):
        X, y = make_blobs(300, centers=2, cluster_std=1.6, random_state=3)
        labels = partly_labelled(X, y, 1, seed=2)
        inductive = SVC(kernel="linear").fit(X[labels >= 0], y[labels >= 0]).score(X, y)
        model = TransductiveSVC(kernel="linear", method=method).fit(X, labels)
        assert (model.transduction_ == y).mean() >= max(0.97, inductive)
        np.testing.assert_array_equal(model.transduction_[labels >= 0], labels[labels >= 0])
        assert model.label_distributions_.shape == (300, 2)
        np.testing.assert_array_equal(model.label_distributions_.argmax(axis=1), model.transduction_)
        np.testing.assert_allclose(X @ model.coef_[0] + model.intercept_, model.decision_function(X), atol=1e-9)

    def test_without_unlabelled_samples_it_is_the_inductive_machine(self, method):
        X, y = make_moons(100, noise=0.2, random_state=0)
        model = TransductiveSVC(C=2.0, method=method, tol=1e-6).fit(X, y)
        np.testing.assert_allclose(
            model.decision_function(X), SVC(C=2.0, tol=1e-6).fit(X, y).decision_function(X), atol=1e-4
        )
        assert model.status_ is Status.STATIONARY

    def test_several_classes(self, method):
        X, y = make_blobs(300, centers=3, cluster_std=1.0, random_state=1)
        names = np.array(["a", "b", "c"])[y]
        labels = np.where(partly_labelled(X, y, 2) == -1, "-1", names)
        fractions = {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}
        model = TransductiveSVC(method=method, positive_fraction=fractions).fit(X, labels)
        assert (model.transduction_ == names).mean() > 0.97
        assert model.decision_function(X).shape == (300, 3)
        assert [one.name for one in model.status_] == ["STATIONARY"] * 3
        assert len(model.certificate_) == len(model.n_problems_) == 3

    def test_sparse_precomputed_large_and_dense_samples_agree(self, method):
        X, y = make_moons(120, noise=0.1, random_state=0)
        labels = partly_labelled(X, y, 4)
        base = TransductiveSVC(kernel="linear", method=method, tol=1e-6, C=3.0).fit(X, labels)
        expected = base.decision_function(X)
        others = {
            "sparse": (TransductiveSVC(kernel="linear"), sparse.csr_matrix(X)),
            "precomputed": (TransductiveSVC(kernel="precomputed"), X @ X.T),
            "block": (TransductiveSVC(kernel="linear", solver="block", cache_size=0.5), X),
        }
        for name, (model, samples) in others.items():
            model.set_params(method=method, tol=1e-6, C=3.0).fit(samples, labels)
            np.testing.assert_allclose(model.decision_function(samples), expected, atol=2e-3, err_msg=name)

    def test_weights_of_zero_leave_samples_out(self, method):
        X, y = make_moons(90, noise=0.1, random_state=0)
        labels, keep = partly_labelled(X, y, 10), np.arange(90) % 3 > 0
        part = TransductiveSVC(method=method, gamma=1.0).fit(X[keep], labels[keep])
        whole = TransductiveSVC(method=method, gamma=1.0).fit(X, labels, sample_weight=keep.astype(float))
        np.testing.assert_allclose(whole.decision_function(X), part.decision_function(X), atol=1e-2)
        np.testing.assert_array_equal(whole.transduction_[keep], part.transduction_)
        assert len(whole.transduction_) == 90

    def test_limits_and_callbacks_end_the_fit_with_a_valid_model(self, method):
        X, y = make_moons(400, noise=0.2, random_state=0)
        labels = partly_labelled(X, y, 5)
        with pytest.warns(ConvergenceWarning, match="the callback asked to stop"):
            model = TransductiveSVC(method=method, callback=lambda progress: True).fit(X, labels)
        assert model.status_ is Status.STOPPED
        assert model.n_problems_[0] <= 2
        assert model.score(X, y) > 0.7
        with pytest.warns(ConvergenceWarning, match="the time limit was reached"):
            model = TransductiveSVC(method=method, max_seconds=0).fit(X, labels)
        assert model.status_ is Status.MAX_SECONDS
        assert len(model.transduction_) == 400


def test_labels_of_plus_and_minus_one():
    X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, 0, 0, 1]
    model = TransductiveSVC(kernel="linear", unlabeled_label=0, C=10.0).fit(X, y)
    assert model.transduction_.tolist() == [-1, -1, 1, 1]
    with pytest.raises(ValueError, match="there is only one class, 1. The label -1 means that a sample has none"):
        TransductiveSVC().fit(X, [-1, -1, 1, 1])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "guess"}, "method must be one of 'label_switching', 'concave_convex', not 'guess'"),
        ({"C": np.inf}, "C must be a number above 0"),
        ({"C_unlabeled": 0}, "C_unlabeled must be a number above 0"),
        ({"positive_fraction": 1.0}, "positive_fraction must be a number above 0 and below 1"),
        ({"positive_fraction": "half"}, "positive_fraction must be a number above 0"),
        ({"positive_fraction": {0: 0.5}}, "one number for each of the classes"),
        ({"positive_fraction": {0: 0.5, 1: 0.6}}, "must have the sum 1, not 1.1"),
        ({"ramp": -1.0}, "ramp must be a number above -1 and below 1"),
    ],
)
def test_wrong_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        TransductiveSVC(**parameters).fit([[0.0], [1.0], [2.0]], [0, -1, 1])


def test_there_is_no_single_problem_to_compare_solvers_on():
    with pytest.raises(ValueError, match="a sequence of problems"):
        compare(([[0.0], [1.0]], [0, 1]), estimator=TransductiveSVC())


def test_no_labels():
    with pytest.raises(
        ValueError, match=r"no sample with a positive weight has a label: all are -1 \(unlabeled_label\)"
    ):
        TransductiveSVC().fit([[0.0], [1.0]], [-1, -1])


def test_fractions_of_several_classes_are_a_dict():
    with pytest.raises(ValueError, match="must be a dict of their fractions"):
        TransductiveSVC(positive_fraction=0.5).fit([[0.0], [1.0], [2.0], [3.0]], [0, -1, 1, 2])
