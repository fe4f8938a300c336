"""Calibration: Platt sigmoids, pairwise coupling, noise scale, density marks."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit

from maxmargin import _native
from maxmargin.models import calibration
from maxmargin.models.calibration import (
    PlattSigmoid,
    couple_pairwise,
    density_marks,
    fit_sigmoid,
    noise_scale,
    one_class_probabilities,
)
from reference import libsvm
from reference.coupling import coupled
from reference.data import diabetes, iris
from reference.platt_sigmoid import sigmoid_loss


def some_values(n=80, separation=1.0, seed=0):
    random = np.random.default_rng(seed)
    first = random.random(n) < 0.4
    return random.normal(size=n) + separation * np.where(first, 1.0, -1.0), first


class TestSigmoid:
    @pytest.mark.parametrize("parameters", [(0.0, 0.0), (-1.5, 0.3), (2.0, -1.0), (-800.0, 50.0)])
    def test_native_sums_are_those_of_numpy(self, parameters):
        values, first = some_values()
        weights = np.random.default_rng(1).uniform(0.5, 3.0, len(values))
        targets = np.where(first, 0.9, 0.2)
        found = _native.sigmoid_loss(values, targets, weights, *parameters)
        np.testing.assert_allclose(found, sigmoid_loss(values, targets, weights, *parameters), rtol=1e-12, atol=1e-300)

    def test_tiny_weights(self):
        values, first = some_values()
        sigmoid = fit_sigmoid(values, first, np.full(len(values), 1e-200))
        assert np.isfinite(sigmoid).all()

    @pytest.mark.parametrize("separation", [0.3, 1.0, 5.0])
    @pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
    def test_minimises_the_cross_entropy(self, separation, scale):
        values, first = some_values(separation=separation)
        weights = np.random.default_rng(1).uniform(0.5, 3.0, len(values))
        n_first, n_second = weights[first].sum(), weights[~first].sum()
        target = np.where(first, (n_first + 1) / (n_first + 2), 1 / (n_second + 2))

        def loss(x):
            p = expit(-(x[0] * values + x[1]))
            return -float(weights @ (target * np.log(p) + (1 - target) * np.log(1 - p)))

        best = minimize(loss, [-1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
        found = fit_sigmoid(values * scale, first, weights)
        assert found.slope * scale == pytest.approx(best.x[0], rel=1e-5)
        assert found.shift == pytest.approx(best.x[1], rel=1e-5, abs=1e-6)

    def test_weights_are_counts(self):
        values, first = some_values()
        counts = np.random.default_rng(2).integers(1, 4, len(values))
        weighted = fit_sigmoid(values, first, counts.astype(float))
        repeated = fit_sigmoid(np.repeat(values, counts), np.repeat(first, counts), np.ones(counts.sum()))
        assert weighted == pytest.approx(repeated, rel=1e-9)

    @settings(max_examples=200, deadline=None)
    @given(
        st.lists(
            st.tuples(
                st.floats(-1e9, 1e9) | st.sampled_from([0.0, 1.0, -1.0, 1e-300]),
                st.booleans(),
                st.sampled_from([1e-9, 0.5, 1.0, 1e6]),
            ),
            min_size=1,
            max_size=30,
        )
    )
    def test_probabilities_increase_with_decision_values(self, rows):
        values, first, weights = (np.array(column) for column in zip(*rows, strict=True))
        sigmoid = fit_sigmoid(values, first, weights)
        assert sigmoid.slope < 0
        assert np.isfinite(sigmoid).all()
        probabilities = calibration.binary_probabilities(np.sort(values), sigmoid)
        assert (np.diff(probabilities[:, 0]) >= 0).all()
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-14)

    def test_reversed_decision_values_have_hardly_any_effect(self):
        values, first = some_values(200)
        sigmoid = fit_sigmoid(-values, first, np.ones(200))
        probabilities = calibration.binary_probabilities(-values, sigmoid)[:, 0]
        assert np.ptp(probabilities) < 1e-3
        assert probabilities.mean() == pytest.approx(first.mean(), abs=0.01)

    def test_separable_values_keep_uncertainty(self):
        values, first = np.r_[np.full(50, -1.0), np.full(50, 1.0)], np.repeat([False, True], 50)
        assert calibration.binary_probabilities(np.array([1.0]), fit_sigmoid(values, first, np.ones(100)))[
            0, 0
        ] == pytest.approx(51 / 52, abs=1e-3)


class TestCoupling:
    @pytest.mark.parametrize("classes", [3, 4, 7])
    def test_equals_the_limit_of_the_iteration(self, classes):
        pairwise = np.random.default_rng(classes).uniform(0.02, 0.98, (20, classes * (classes - 1) // 2))
        expected = [coupled(row, classes) for row in pairwise]
        np.testing.assert_allclose(couple_pairwise(pairwise, classes), expected, atol=1e-9)

    def test_consistent_pairs_recover_their_probabilities(self):
        p = np.random.default_rng(0).dirichlet(np.ones(5), size=30)
        pairwise = np.column_stack([p[:, a] / (p[:, a] + p[:, b]) for a, b in combinations(range(5), 2)])
        np.testing.assert_allclose(couple_pairwise(pairwise, 5), p, atol=1e-7)

    def test_certain_pairs_and_ties(self):
        certain = np.array([[1.0, 1.0, 0.5], [0.0, 1.0, 1.0], [0.5, 0.5, 0.5], [1.0, 0.0, 1.0]])
        found = couple_pairwise(certain, 3)
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        assert (found > 0).all()
        assert found[0, 0] == pytest.approx(1.0, abs=1e-6)
        assert found[1].argmax() == 1
        np.testing.assert_allclose(found[2:], 1 / 3, atol=1e-12)  # all equal, and a cycle

    @pytest.mark.parametrize("seed", range(3))
    def test_equals_libsvm(self, seed):
        X, y = iris()
        random = np.random.default_rng(seed)
        X = X + random.normal(scale=0.5, size=X.shape)
        model = libsvm.train(X, y, "-b 1")
        values, expected = libsvm.predict(model, X), libsvm.predict(model, X, "-b 1")
        sigmoids = [PlattSigmoid(model.probA[k], model.probB[k]) for k in range(3)]
        pairwise = np.column_stack(
            [calibration.binary_probabilities(values[:, k], sigmoids[k])[:, 0] for k in range(3)]
        )
        np.testing.assert_allclose(couple_pairwise(pairwise, 3), expected, atol=5e-3)  # LIBSVM stops at 0.005 / 3


class TestNoise:
    def test_outliers_are_excluded(self):
        errors = np.r_[np.tile([0.5, -1.5], 50), 100.0]
        assert noise_scale(errors, np.ones(101)) == pytest.approx(1.0)

    def test_weights_are_counts(self):
        errors, counts = np.random.default_rng(0).laplace(size=30), np.arange(30) % 3
        repeated = noise_scale(np.repeat(errors, counts), np.ones(counts.sum()))
        assert noise_scale(errors, counts.astype(float)) == pytest.approx(repeated)

    @pytest.mark.parametrize("scale", [1e-310, 1e-300, 1e300])
    def test_weights_have_no_unit(self, scale):
        errors = 1e-300 * np.random.default_rng(0).laplace(size=30)
        assert noise_scale(errors, np.full(30, scale)) == pytest.approx(noise_scale(errors, np.ones(30)), rel=1e-12)

    def test_intervals_have_their_coverage(self):
        sample = np.random.default_rng(0).laplace(scale=2.0, size=100_000)
        for coverage in (0.5, 0.9, 0.99):
            half = calibration.interval_half_width(2.0, coverage)
            assert np.mean(np.abs(sample) <= half) == pytest.approx(coverage, abs=0.005)


class TestDensityMarks:
    @pytest.mark.parametrize(("nu", "n"), [(0.5, 400), (0.3, 405), (0.7, 431)])
    def test_marks_equal_libsvm_up_to_one_sample(self, nu, n):
        X = diabetes()[0][:n]
        model = libsvm.train(X, np.ones(n), f"-s 2 -n {nu} -g 0.1 -b 1")
        values = libsvm.predict(model, X)[:, 0]
        marks = density_marks(values, np.ones(n))
        between = 0.5 * (marks[1:] + marks[:-1])
        expected = np.array(model.prob_density_marks[:10])
        # LIBSVM's marks are midpoints; where five bins do not divide the samples evenly, ours are a neighbour.
        ordered = np.r_[np.sort(values), 0.0]
        step = np.diff(np.sort(ordered)).max()
        exact = (values < 0).sum() % 5 == 0 and (values >= 0).sum() % 5 == 0
        assert exact == (nu == 0.5)
        np.testing.assert_allclose(between, expected, atol=1e-12 if exact else step)
        steps = libsvm.predict(model, X, "-b 1")
        found = one_class_probabilities(values, marks)
        assert np.abs(found - steps).max() <= (0.05 if exact else 0.1) + 1e-9

    def test_weights_are_counts(self):
        random = np.random.default_rng(0)
        values, counts = random.normal(size=60), random.integers(1, 4, 60)
        repeated = density_marks(np.repeat(values, counts), np.ones(counts.sum()))
        np.testing.assert_array_equal(density_marks(values, counts.astype(float)), repeated)

    @settings(max_examples=100, deadline=None)
    @given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40))
    def test_probability_at_the_boundary_is_one_half(self, values):
        values = np.array(values)
        marks = density_marks(values, np.ones(len(values)))
        assert (np.diff(marks) >= 0).all()
        inside = one_class_probabilities(np.sort(values), marks)[:, 0]
        assert (np.diff(inside) >= 0).all()
        np.testing.assert_array_equal(inside >= 0.5, np.sort(values) >= 0)
