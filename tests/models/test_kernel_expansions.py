"""Kernel expansions on shared support vectors, and the one-vs-rest decision."""

import numpy as np
import pytest

from maxmargin import SVC
from maxmargin.kernels import Gaussian, Linear, Points
from maxmargin.models import ComputedKernelBlocks, KernelExpansions, OneVsRestArgmax, PrecomputedKernelBlocks

RANDOM = np.random.default_rng(0)
X, SUPPORT = RANDOM.normal(size=(23, 4)), RANDOM.normal(size=(9, 4))


@pytest.mark.parametrize("functions", [1, 2, 5])
@pytest.mark.parametrize("threads", [1, 3])
def test_decision_values(functions, threads):
    model = KernelExpansions(RANDOM.normal(size=(functions, 9)), RANDOM.normal(size=functions))
    expected = Gaussian(0.4)(X, SUPPORT) @ model.coefficients.T + model.offsets
    blocks = ComputedKernelBlocks(Gaussian(0.4), Points(X), Points(SUPPORT))
    np.testing.assert_allclose(model.decision_values(blocks, threads), expected, atol=1e-12)
    given = PrecomputedKernelBlocks(Gaussian(0.4)(X, np.vstack([X, SUPPORT])), np.arange(23, 32))
    np.testing.assert_allclose(model.decision_values(given, threads), expected, atol=1e-12)


def test_without_support_vectors_the_values_are_the_offsets():
    model = KernelExpansions(np.empty((2, 0)), np.array([0.5, -1.0]))
    blocks = ComputedKernelBlocks(Linear(), Points(X), Points(np.empty((0, 4))))
    np.testing.assert_array_equal(model.decision_values(blocks, 2), np.tile([0.5, -1.0], (23, 1)))


def test_weights_of_a_linear_kernel():
    model = KernelExpansions(RANDOM.normal(size=(3, 9)), RANDOM.normal(size=3))
    blocks = ComputedKernelBlocks(Linear(), Points(X), Points(SUPPORT))
    np.testing.assert_allclose(
        X @ model.weights(SUPPORT).T + model.offsets, model.decision_values(blocks, 1), atol=1e-12
    )


class TestOneVsRest:
    model = OneVsRestArgmax(np.empty((3, 0)), np.zeros(3))

    def test_the_largest_decision_value_wins_also_among_negative_ones(self):
        decisions = np.array([[-3.0, -1.0, -2.0], [0.1, 0.2, 0.3], [5.0, -5.0, 0.0]])
        assert self.model.predicted_class(decisions).tolist() == [1, 2, 0]

    def test_ties_go_to_the_lowest_class(self):
        decisions = np.array([[1.0, 1.0, 1.0], [0.0, 2.0, 2.0], [2.0, 0.0, 2.0]])
        assert self.model.predicted_class(decisions).tolist() == [0, 1, 0]

    def test_scores_are_the_decision_values(self):
        decisions = RANDOM.normal(size=(4, 3))
        np.testing.assert_array_equal(self.model.scores(decisions), decisions)

    def test_predictions_of_a_fitted_model(self):
        y = np.arange(23) % 3
        fitted = SVC(C=5.0, gamma=0.5, multi_class="ovr").fit(X, y)
        np.testing.assert_array_equal(fitted.predict(X), np.argmax(fitted.decision_function(X), axis=1))
