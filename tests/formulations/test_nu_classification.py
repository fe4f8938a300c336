from dataclasses import replace

import numpy as np
import pytest

from contracts.formulation_contract import FormulationContract
from maxmargin.formulations import c_classification
from maxmargin.formulations.nu_classification import expand, largest_nu, pose, read
from maxmargin.kernels import Gaussian, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import certify
from maxmargin.solvers import PairwiseSolver
from maxmargin.testing.named_problems import two_clouds

X, SIGNS = two_clouds(50, 2, 1.2)
WEIGHTS = np.random.default_rng(0).uniform(0.5, 2.0, 50)
NU = 0.4


class TestNuClassification(FormulationContract):
    def pose(self):
        return pose(KernelMatrix(Gaussian(0.5), Points(X)), SIGNS, WEIGHTS, NU)

    def textbook_primal(self, product, offset, squared_norm):
        decision, margin = product + offset.mean(), 0.5 * (offset[0] - offset[1])
        loss = (WEIGHTS * np.maximum(0.0, margin - SIGNS * decision)).sum()
        return 0.5 * squared_norm - NU * WEIGHTS.sum() * margin + loss


class TestWithoutIntercept(FormulationContract):
    def pose(self):
        return pose(KernelMatrix(Gaussian(0.5), Points(X)), SIGNS, WEIGHTS, NU, fit_intercept=False)

    def textbook_primal(self, product, offset, squared_norm):
        margin, scores = -offset[0], product  # y f of every sample
        loss = (WEIGHTS * np.maximum(0.0, margin - scores)).sum()
        return 0.5 * squared_norm - NU * WEIGHTS.sum() * margin + loss


def test_without_intercept_equals_c_classification_of_the_resulting_cost():
    problem = pose(KernelMatrix(Gaussian(0.5), Points(X)), SIGNS, WEIGHTS, 0.9, fit_intercept=False)
    dual = PairwiseSolver().solve(problem).dual
    certificate = certify(problem, dual)
    geometry = read(problem, dual, certificate, np.arange(50))
    same = c_classification.pose(problem.matrix.base, SIGNS, geometry.cost * WEIGHTS, fit_intercept=False)
    theirs = PairwiseSolver().solve(same).dual
    mine = expand(problem, dual, certificate.offset)
    assert mine.offset == geometry.offset == 0.0
    np.testing.assert_allclose(mine.coefficients, theirs, atol=1e-6 * geometry.cost)
    twin = c_classification.read(same, theirs, certify(same, theirs), np.arange(50))
    np.testing.assert_allclose(geometry.slack, twin.slack, atol=1e-6)
    assert geometry.margin == pytest.approx(twin.margin, rel=1e-6)


def solved():
    problem = pose(KernelMatrix(Gaussian(0.5), Points(X)), SIGNS, WEIGHTS, NU)
    dual = PairwiseSolver().solve(problem).dual
    return problem, dual, certify(problem, dual)


def test_equals_c_classification_of_the_resulting_cost():
    problem, dual, certificate = solved()
    geometry = read(problem, dual, certificate, np.arange(50))
    mine = expand(problem, dual, certificate.offset)
    same = c_classification.pose(problem.matrix, SIGNS, geometry.cost * WEIGHTS)
    theirs = PairwiseSolver().solve(same).dual
    np.testing.assert_allclose(mine.coefficients, theirs, atol=1e-6 * geometry.cost)
    assert mine.offset == pytest.approx(certify(same, theirs).offset[0], abs=1e-7)
    twin = c_classification.read(same, theirs, certify(same, theirs), np.arange(50))
    np.testing.assert_allclose(geometry.slack, twin.slack, atol=1e-6)
    assert geometry.margin == pytest.approx(twin.margin, rel=1e-6)
    np.testing.assert_array_equal(geometry.bounded, twin.bounded)


def test_nu_bounds_fractions_of_errors_and_support_vectors():
    problem, dual, certificate = solved()
    geometry = read(problem, dual, certificate, np.arange(50))
    total = WEIGHTS.sum()
    assert WEIGHTS[geometry.slack > 1e-9].sum() <= NU * total * (1 + 1e-9)
    assert WEIGHTS[dual != 0].sum() >= NU * total * (1 - 1e-9)


def test_the_largest_nu():
    signs = np.array([1.0, 1.0, 1.0, -1.0])
    assert largest_nu(signs, np.ones(4)) == pytest.approx(0.5)
    assert largest_nu(signs, np.array([1.0, 1.0, 1.0, 3.0])) == pytest.approx(1.0)


def test_a_norm_that_overflows_is_infinite():
    problem = pose(KernelMatrix(Gaussian(0.5), Points(X)), SIGNS, WEIGHTS, NU)
    dual = PairwiseSolver().solve(problem).dual
    certificate = replace(certify(problem, dual), offset=np.array([1e-200, -1e-200]), slack=np.zeros(50))
    geometry = read(problem, dual, certificate, np.arange(50))
    assert geometry.squared_norm == np.inf
    assert geometry.margin > 0
