"""The products with the matrix that a certificate is computed from, each with a bound on its rounding error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin._typing import Floats
from maxmargin.deadline import check_deadline
from maxmargin.double_double import EXTENDED_EPSILON, DoubleDouble, exact_sum, two_product
from maxmargin.matrices.features import Features
from maxmargin.matrices.numerics import inner
from maxmargin.precision import UNIT_ROUNDOFF
from maxmargin.problems.dual_problem import DualProblem


@dataclass(frozen=True)
class Products:
    """Products with the matrix at a dual vector b and, for a linear model, at other weights w.

    Attributes
    ----------
    product, product_error : DoubleDouble and float array
        M b, for the gradient.
    decision, decision_error : DoubleDouble and float array
        The decision values without offset: M b again, or F w.
    dual_norm, dual_norm_error : floats
        bᵀMb.
    weights_norm, weights_norm_error : floats
        ‖w‖², the same number unless there are other weights.
    distance, distance_error : floats
        ½‖w − Fᵀ b‖².
    extended : bool
        Whether the numbers are double-double; otherwise their low parts are 0.
    """

    product: DoubleDouble
    product_error: Floats
    decision: DoubleDouble
    decision_error: Floats
    dual_norm: float
    dual_norm_error: float
    weights_norm: float
    weights_norm_error: float
    distance: float = 0.0
    distance_error: float = 0.0
    weights: Floats | None = None
    rows: Features | None = None
    extended: bool = False

    def threads(self, count: int) -> int:
        """Return the number of threads for a pass over the samples."""
        return 1 if self.rows is None else self.rows.threads_for(count)

    def gradient(self, problem: DualProblem, dual: Floats) -> tuple[Floats, Floats]:
        """Return linear − M b − ridge∘b and a bound on its error."""
        if not self.extended:
            gradient = problem.linear - self.product.high - problem.ridge * dual
            size = np.abs(problem.linear) + np.abs(self.product.high) + np.abs(problem.ridge * dual)
            return gradient, self._linear_error(problem, self.product_error) + 4 * UNIT_ROUNDOFF * size
        difference = DoubleDouble.of(problem.linear).minus(self.product).minus(two_product(problem.ridge, dual))
        size = np.abs(problem.linear) + np.abs(self.product.high) + np.abs(problem.ridge * dual)
        error = EXTENDED_EPSILON * size + UNIT_ROUNDOFF * np.abs(difference.high)
        return difference.high, self._linear_error(problem, self.product_error) + error

    def slack(self, problem: DualProblem, offset: Floats, scale: float) -> tuple[Floats, Floats, Floats]:
        """Return linear − scale (decision + offset), its low part and a bound on its error."""
        size = np.abs(problem.linear) + scale * (np.abs(self.decision.high) + np.abs(offset))
        error = self._linear_error(problem, scale * self.decision_error)
        if not self.extended:
            decision = self.decision.high + offset
            slack = problem.linear - (decision if scale == 1.0 else scale * decision)
            return slack, np.zeros(problem.size), error + 4 * UNIT_ROUNDOFF * size
        shifted = self.decision.plus(DoubleDouble.of(offset))
        if scale != 1.0:
            shifted, error = shifted.scaled(scale), error + EXTENDED_EPSILON * size
        high, low = DoubleDouble.of(problem.linear).minus(shifted)
        # A sum is rounded in its low part, so numbers of few digits have exact slacks, which may be 0.
        lows = np.abs(self.decision.low) + np.abs(shifted.low) + np.abs(low)
        return high, low, error + 4 * UNIT_ROUNDOFF * lows

    @staticmethod
    def _linear_error(problem: DualProblem, error: Floats) -> Floats:
        return error if problem.linear_error is None else error + problem.linear_error


def evaluate_gradient(problem: DualProblem, dual: Floats, extended: bool = False) -> tuple[Floats, Floats]:
    """Return linear − M b − ridge∘b and a bound on its error, in float64 or rounded from double-double arithmetic."""
    with np.errstate(over="ignore", invalid="ignore"):
        evaluate = evaluate_products_extended if extended else evaluate_products
        return evaluate(problem, dual, None).gradient(problem, dual)


@np.errstate(over="ignore", invalid="ignore")  # what overflows makes the bounds infinite
def evaluate_products(
    problem: DualProblem, dual: Floats, weights: Floats | None, dual_weights: Floats | None = None
) -> Products:
    """Return the products in float64."""
    if weights is None:
        product, error = problem.matrix.matvec(dual), problem.matrix.product_error(dual).double
        norm, norm_error = norm_of_expansion(dual, product, error)
        values = DoubleDouble(product, np.zeros(0))
        return Products(values, error, values, error, norm, norm_error, norm, norm_error)
    rows = features_of(problem)
    own = rows.weights(dual) if dual_weights is None else dual_weights
    of_weights = float(rows.weights_error(dual).double[0])
    product, error = rows.decisions(own), rows.decisions_error(own).double + rows.norms * of_weights
    decision, decision_error = product, error
    if weights is not own:
        decision, decision_error = rows.decisions(weights), rows.decisions_error(weights).double
    dual_norm, weights_norm = inner(own, own), inner(weights, weights)
    size = (len(own) + 8) * UNIT_ROUNDOFF
    difference = weights - own
    distance = 0.5 * inner(difference, difference)
    return Products(
        product=DoubleDouble(product, np.zeros(0)),
        product_error=error,
        decision=DoubleDouble(decision, np.zeros(0)),
        decision_error=decision_error,
        dual_norm=dual_norm,
        dual_norm_error=_norm_error(dual_norm, of_weights, size),
        weights_norm=weights_norm,
        weights_norm_error=size * weights_norm,
        distance=distance,
        distance_error=_norm_error(distance, of_weights, size),
        weights=weights,
        rows=rows,
    )


@np.errstate(over="ignore", invalid="ignore")  # what overflows makes the bounds infinite
def evaluate_products_extended(problem: DualProblem, dual: Floats, weights: Floats | None) -> Products:
    """Return the products in double-double arithmetic."""
    vector = DoubleDouble.of(dual)
    if weights is None:
        product, error = problem.matrix.extended_product(vector), problem.matrix.product_error(dual).extended
        terms = product.scaled(dual)
        norm = exact_sum(terms)
        norm_error = float(np.abs(dual) @ error) + EXTENDED_EPSILON * float(np.abs(terms.high).sum())
        norm_error += UNIT_ROUNDOFF * abs(norm)
        return Products(product, error, product, error, norm, norm_error, norm, norm_error, extended=True)
    rows = features_of(problem)
    own = rows.extended_weights(vector)
    of_weights = float(rows.weights_error(dual).extended[0])
    product, error = rows.extended_decisions(own), rows.decisions_error(own.high).extended + rows.norms * of_weights
    decision, decision_error = rows.extended_decisions(DoubleDouble.of(weights)), rows.decisions_error(weights).extended
    difference = DoubleDouble.of(weights).minus(own)
    dual_norm, weights_norm = exact_sum(own.times(own)), exact_sum(two_product(weights, weights))
    distance = 0.5 * exact_sum(difference.times(difference))
    return Products(
        product=product,
        product_error=error,
        decision=decision,
        decision_error=decision_error,
        dual_norm=dual_norm,
        dual_norm_error=_norm_error(dual_norm, of_weights, 2 * UNIT_ROUNDOFF),
        weights_norm=weights_norm,
        weights_norm_error=2 * UNIT_ROUNDOFF * weights_norm,
        distance=distance,
        distance_error=_norm_error(distance, of_weights, 2 * UNIT_ROUNDOFF),
        weights=weights,
        rows=rows,
        extended=True,
    )


def check_time(products: Products) -> None:
    """Raise `TimeLimitReachedError` if there is no time for double-double arithmetic."""
    if products.extended:
        check_deadline()


def features_of(problem: DualProblem) -> Features:
    """Return the features of a problem; raise if there are none."""
    rows = problem.matrix.features()
    if rows is None:
        raise ValueError("only a matrix that is a product of features has weights")
    return rows


def norm_of_expansion(dual: Floats, product: Floats, error: Floats) -> tuple[float, float]:
    """Return bᵀ(M b) and a bound on its error."""
    magnitude = np.abs(dual)
    rounding = (len(dual) + 8) * UNIT_ROUNDOFF * inner(magnitude, np.abs(product))
    return inner(dual, product), inner(magnitude, error) + rounding


def _norm_error(squared: float, error: float, relative: float) -> float:
    """Return a bound on the error of a squared norm whose vector is off by `error` in norm."""
    return 2.0 * float(np.sqrt(squared)) * error + error * error + relative * squared
