"""Bounds on the rounding errors of kernel values that the native loops compute in float64.

With u = 2⁻⁵³, a sum of q products is off by at most about q u Σ |terms| in any order (Higham 2002, §4.2). What that
means for a kernel value depends on the formula:

    dense distances     all terms are positive, so the sum is off by a relative (q + 6) u; as s e^(−γ s) ≤ 1/(e γ), the
                        value is off by (q + 6) u / e, and by the error of the exponential function
    sparse distances    computed as Σ a(x) + Σ a(z) + Σ cross(x, z), with cancellation: off by (q + 8) u times
                        4 (a(x) + a(z)), where a is Σ x², Σ |x| or Σ x; the value is off by γ times that. A GPU computes
                        squared distances of dense samples in this way, too, unless they are far from the origin
    products            off by q u ‖x‖ ‖z‖; for a power or tanh, propagated by the derivative
    a γ for each feature  the samples a, b that are compared are rounded products of features and factors. As
                        exp(−r²) has a slope of at most √(2/e), they add √(2/e) u (‖a‖ + ‖b‖) for squared differences;
                        u, or 3 u for the chi-squared term, times the sums of magnitudes for the others. The root of γ
                        is rounded, too, as in a relative error of r: by 2/e u

All bounds are sums of separable terms, so that Σ_j weight_j |error_ij| costs one number for each sample.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin import _native
from maxmargin import _sparse as sparse
from maxmargin._typing import Floats
from maxmargin.kernels.device_rows import DeviceRows
from maxmargin.kernels.formula import FeatureGammas, KernelFormula, OuterFunction, Term
from maxmargin.kernels.points import Points, float64_batches, scaled
from maxmargin.kernels.split_sums import PAIR_ERROR, FeatureSums, SplitSums
from maxmargin.precision import SMALLEST_DOUBLE, UNIT_ROUNDOFF

#: Bound on the relative error of the native exponential function, in units of 2⁻⁵³; measured: below 3.
EXPONENTIAL_ERROR = 8

#: Additional roundings of a sum: those of a term, of the kernel's parameters and of the function's argument.
EXTRA_ROUNDINGS = 8

#: A GPU takes squared distances from norms if the mean of γ ‖x‖² is at most this: cancellation then costs two digits.
MAX_MEAN_EXPONENT = 16.0


def takes_norms(formula: KernelFormula, points: Points) -> bool:
    """Whether a GPU computes squared distances in float64 from norms and inner products, which takes less time.

    This is decided by the data behind the points, for all views of them.
    """
    if formula.function is not OuterFunction.EXPONENTIAL or formula.term is not Term.SQUARED:
        return False
    if sparse.issparse(points.table):
        return True
    key = ("takes norms", formula)
    if key not in points.memo:
        everything = points.pick(np.arange(points.count))
        norms = _separate_sums(everything, formula.term, formula.gammas)
        points.memo[key] = bool(formula.gamma * norms.mean() <= MAX_MEAN_EXPONENT)
    known: bool = points.memo[key]
    return known


def magnitudes(formula: KernelFormula, points: Points) -> Floats:
    """Return numbers m with |k(x_i, x_j)| ≤ m_i m_j."""
    if formula.function in (OuterFunction.EXPONENTIAL, OuterFunction.TANGENT):
        return np.ones(len(points))
    norms = _separate_sums(points, Term.PRODUCT)
    return _product_magnitudes(formula, norms) if formula.function is OuterFunction.POWER else np.sqrt(norms)


def error_bound(
    formula: KernelFormula, rows: Points, columns: Points, weights: Floats, sums: FeatureSums = FeatureSums.DOUBLE
) -> Floats:
    """Return Σ_j weights_j |error of k(row, column_j)| for every row, at most; the weights are at least 0.

    Where `sums` are not those of float64, rows and columns are samples of the same data.
    """
    total = float(weights.sum())
    split = SplitSums.of(formula, rows) if sums is FeatureSums.SPLIT else None
    terms = max(_terms(rows), _terms(columns)) + EXTRA_ROUNDINGS + (0 if split is None else split.roundings)
    # The error of the argument of the function that is due to underflow.
    lost = 0.0 if split is None else abs(formula.gamma) * split.underflow
    if formula.function is OuterFunction.EXPONENTIAL:
        factors = _error_of_factors(formula, rows, columns, weights, total)
        factors = factors + (0.0 if split is None else _error_of_pairs(formula, rows, columns, weights, total))
        of_values = _exponential_error(formula, terms) * total + factors + lost * total
        from_norms = sums is FeatureSums.PRODUCTS and takes_norms(formula, rows)
        if not (from_norms or sparse.issparse(rows.table)):
            return np.asarray(np.broadcast_to(of_values, len(rows)))
        left, right = (_separate_sums(points, formula.term, formula.gammas) for points in (rows, columns))
        relative = 4 * formula.gamma * terms * UNIT_ROUNDOFF
        # Both exponents are at most 0, where the slope of the exponential function is at most 1, and so is its value.
        with np.errstate(over="ignore", invalid="ignore"):
            errors = np.fmin(relative * (left * total + float(right @ weights)), total)
        return np.asarray(errors + of_values)
    underflow = _underflow(formula, terms) * total
    left, right = _separate_sums(rows, Term.PRODUCT), _separate_sums(columns, Term.PRODUCT)
    if formula.function is OuterFunction.IDENTITY:
        underflow += 0.0 if split is None else split.underflow * total
        return np.asarray(np.sqrt(left) * float(np.sqrt(right) @ weights) * terms * UNIT_ROUNDOFF + underflow)
    if formula.function is OuterFunction.POWER:
        growth = formula.degree * (terms + 2) * UNIT_ROUNDOFF
        left, right = _product_magnitudes(formula, left), _product_magnitudes(formula, right)
        product = left * float(right @ weights)
        # The slope is at most degree · γ · (1 + the bound on the value).
        return np.asarray(product * growth + underflow + formula.degree * lost * (product + total))
    # tanh has a slope of at most 1.
    argument = KernelFormula(formula.term, OuterFunction.POWER, formula.gamma, formula.coef0, 1)
    left, right = _product_magnitudes(argument, left), _product_magnitudes(argument, right)
    with np.errstate(over="ignore", invalid="ignore"):  # an infinite bound is a valid one
        errors = (left * float(right @ weights) * terms + 2 * EXPONENTIAL_ERROR * total) * UNIT_ROUNDOFF + lost * total
    return np.where(np.isnan(errors), np.inf, errors)


def _error_of_pairs(
    formula: KernelFormula, rows: Points, columns: Points, weights: Floats, total: float
) -> Floats | float:
    """Return what the rounding of features to pairs of float32 adds to the bound of a distance for every row."""
    left, right = (_separate_sums(points, formula.term, formula.gammas) for points in (rows, columns))
    squared = formula.term is Term.SQUARED
    if squared:
        left, right = np.sqrt(left), np.sqrt(right)
    slope = 0.86 * np.sqrt(formula.gamma) if squared else formula.gamma
    with np.errstate(over="ignore", invalid="ignore"):
        errors = 1.01 * slope * PAIR_ERROR * (left * total + float(right @ weights))
    return np.fmin(errors, total)


def uniform_error(formula: KernelFormula, data: Any) -> float | None:
    """Return a bound on the error of every kernel value of dense distances, which depends on no sample; else None."""
    if formula.function is not OuterFunction.EXPONENTIAL or formula.gammas is not None or sparse.issparse(data):
        return None
    return _exponential_error(formula, data.shape[1] + EXTRA_ROUNDINGS)


def _exponential_error(formula: KernelFormula, terms: int) -> float:
    return (0.37 * terms + EXPONENTIAL_ERROR) * UNIT_ROUNDOFF + _underflow(formula, terms)


def _underflow(formula: KernelFormula, terms: int) -> float:
    return (terms * abs(formula.gamma) + 1.0) * SMALLEST_DOUBLE


def diagonal_error(formula: KernelFormula, points: Points) -> Floats:
    """Return bounds on the errors of k(x, x), which is exactly 1 for distances."""
    if formula.function is OuterFunction.EXPONENTIAL:
        return np.zeros(len(points))
    terms = _terms(points) + EXTRA_ROUNDINGS
    squares = _separate_sums(points, Term.PRODUCT)
    if formula.function is OuterFunction.TANGENT:
        with np.errstate(over="ignore"):
            argument = formula.gamma * squares + abs(formula.coef0)
            return np.minimum((argument * terms + 2 * EXPONENTIAL_ERROR) * UNIT_ROUNDOFF, 2.0)
    degree = formula.degree if formula.function is OuterFunction.POWER else 1
    with np.errstate(over="ignore"):  # an infinite bound is a valid one
        return np.asarray(degree * (terms + 2) * UNIT_ROUNDOFF * magnitudes(formula, points) ** 2)


def diagonal_from_norms(formula: KernelFormula, points: Points) -> Floats:
    """Return k(x, x) of functions of an inner product, within `diagonal_error`, from ‖x‖² alone."""
    squares = _separate_sums(points, Term.PRODUCT)
    if formula.function is OuterFunction.IDENTITY:
        return squares
    with np.errstate(over="ignore"):  # values that are not finite are refused where they are used
        argument = formula.gamma * squares + formula.coef0
        return np.tanh(argument) if formula.function is OuterFunction.TANGENT else argument**formula.degree


def _product_magnitudes(formula: KernelFormula, squared_norms: Floats) -> Floats:
    """Return m with (γ |x·z| + |coef0|)^degree ≤ m(x) m(z), by the Cauchy-Schwarz inequality."""
    with np.errstate(over="ignore"):  # an infinite bound is a valid one
        return np.asarray((formula.gamma * squared_norms + abs(formula.coef0)) ** (0.5 * formula.degree))


def _terms(points: Points) -> int:
    """Return the largest number of terms of a sum over features."""
    if not sparse.issparse(points.table):
        return int(points.table.shape[1])
    if "most stored" not in points.memo:
        points.memo["most stored"] = int(np.diff(points.data.indptr).max(initial=0))
    most: int = points.memo["most stored"]
    return most


def _error_of_factors(
    formula: KernelFormula, rows: Points, columns: Points, weights: Floats, total: float
) -> Floats | float:
    """Return what the rounding of features times factors adds to the bound for every row."""
    if formula.gammas is None:
        return 0.0
    left, right = (_separate_sums(points, formula.term, formula.gammas) for points in (rows, columns))
    if formula.term is Term.SQUARED:
        left, right, slope = np.sqrt(left), np.sqrt(right), 0.86
    else:
        slope = 3.0 if formula.term is Term.CHI_SQUARED else 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        errors = slope * UNIT_ROUNDOFF * (left * total + float(right @ weights))
    return np.fmin(errors, total) + UNIT_ROUNDOFF * total


def _separate_sums(points: Points, term: Term, gammas: FeatureGammas | None = None) -> Floats:
    """Return Σ x² (for products and squared differences), Σ |x| or Σ x of each sample, once for all views of the data.

    They may be off by a small relative error, which the safety factor of the certificate covers.
    """
    squares = term in (Term.PRODUCT, Term.SQUARED)
    name = "sums of squares" if squares else "sums of magnitudes"
    key = name if gammas is None else (name, gammas)
    if key not in points.memo:
        sums_of = _sums_of_squares if squares else _sums_of_magnitudes
        if isinstance(points.table, DeviceRows):
            points.memo[key] = points.table.row_sums(squares, None if gammas is None else gammas.factors)
        elif gammas is None or sparse.issparse(points.data):
            points.memo[key] = sums_of(scaled(points, gammas).data)
        else:
            parts = [sums_of(batch * gammas.factors) for _, batch in float64_batches(points.data)]
            points.memo[key] = np.concatenate([np.empty(0), *parts])
    sums: Floats = points.memo[key]
    return sums[points.index]


def _sums_of_squares(data: Any) -> Floats:
    out = np.empty(data.shape[0])
    if sparse.issparse(data):
        starts = data.indptr.astype(data.indices.dtype, copy=False)
        rows = _native.DataRows(
            values=data.data, starts=starts, features=data.indices, width=data.shape[1], indices=None
        )
    else:
        rows = _native.DataRows(values=data, starts=None, features=None, width=data.shape[1], indices=None)
    _native.row_squared_norms(rows, out, 1)
    return out


def _sums_of_magnitudes(data: Any) -> Floats:
    return np.concatenate([np.asarray(abs(batch).sum(axis=1)).ravel() for _, batch in float64_batches(data)])
