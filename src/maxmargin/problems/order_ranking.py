"""Pairwise ranking without a list of its pairs: their sums follow from the order of the scores.

A pair of samples i, j of one query with levels l_i > l_j costs C w_i w_j times its slack z = 1 − (s_i − s_j). With
a width δ, scores s determine a dual vector of the pairs, and the coefficients β of the samples:

    α_ij(s) = C w_i w_j clip((1 − (s_i − s_j))/δ, 0, 1)        β_i = Σ_j α_ij − Σ_j α_ji

Sums over the partners j of each sample, of one or more numbers of j, take O(n log n) (Joachims 2006; Lee & Lin 2014),
so everything here, the certificate included, takes O(n) memory for O(n²) pairs. The window are the pairs with
0 < z < δ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.double_double import DoubleDouble, exact_sum
from maxmargin.matrices.numerics import inner
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.precision import UNIT_ROUNDOFF
from maxmargin.problems.certificate import Certificate
from maxmargin.problems.objective_bounds import SAFETY

#: Roundings of a response: of its slack, the sums it is computed from, and the factors.
ROUNDINGS = 16


@dataclass(frozen=True)
class OrderRanking:
    """A ranking problem by sample.

    Parameters
    ----------
    matrix : SymmetricMatrix
        The kernel matrix of the samples.
    targets : float array
        Only their order within a query counts.
    queries : int array
        The query of each sample.
    weights : float array
        The cost of a pair is `cost` times the product of the weights of its samples.
    cost : float
    """

    matrix: SymmetricMatrix
    targets: Floats
    queries: Indices
    weights: Floats
    cost: float

    @property
    def size(self) -> int:
        """The number of samples."""
        return len(self.targets)

    @cached_property
    def levels(self) -> np.ndarray:
        """The position of each target among the different targets of its query."""
        order = np.lexsort((self.targets, self.queries))
        query, target = self.queries[order], self.targets[order]
        new_query = np.append(True, query[1:] != query[:-1])
        new_level = new_query | np.append(True, target[1:] != target[:-1])
        count = np.cumsum(new_level)
        first = np.maximum.accumulate(np.where(new_query, count, 0))
        levels = np.empty(self.size, dtype=np.int32)
        levels[order] = count - first
        return levels

    @cached_property
    def starts(self) -> Indices:
        """The first place of each query among the samples sorted by query, and the end."""
        ordered = np.sort(self.queries)
        return np.append(np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])), self.size).astype(np.int64)

    def at(self, scores: Floats, width: float) -> PairWindow:
        """Return the pairs at given scores."""
        return PairWindow(self, np.ascontiguousarray(scores), width)

    def loss(self, scores: Floats) -> Floats:
        """Return Σ C w_i w_j max(0, z) over the pairs in which each sample is the first."""
        unsmoothed = self.at(scores, 0.0)
        count, sums = unsmoothed.inner_sums(np.column_stack([self.weights, self.weights * scores])).T
        losses: Floats = np.maximum(self.cost * self.weights * ((1.0 - scores) * count + sums), 0.0)
        return losses


@dataclass(frozen=True)
class PairWindow:
    """The pairs of a ranking at given scores, with the width of the window in which responses change."""

    problem: OrderRanking
    scores: Floats
    width: float

    @cached_property
    def _samples(self) -> _native.OrderArrays:
        order = np.lexsort((self.scores, self.problem.queries)).astype(np.int64)
        return _native.OrderArrays(
            order=order, starts=self.problem.starts, level=self.problem.levels, scores=self.scores
        )

    def _sums(
        self, values: Floats, as_first: bool, compensated: bool = True, margin: float = 1.0
    ) -> tuple[Floats, Floats]:
        """Return the sums of the values of the partners of each sample: of pairs beyond the window, and within it."""
        values = np.ascontiguousarray(values)
        inside, window = np.empty_like(values), np.empty_like(values)
        low, within = margin - self.width, inside if compensated else None
        _native.partner_sums(self._samples, values, low, margin, as_first, compensated, within, window)
        return inside, window

    def inner_sums(self, values: Floats) -> Floats:
        """Return the sums of the values of the partners of each sample as the first of pairs with z ≥ width."""
        return self._sums(values, True)[0]

    @cached_property
    def _responses(self) -> tuple[Floats, Floats]:
        """Σ_j α_ij and Σ_j α_ji of each sample."""
        weights, cost = self.problem.weights, self.problem.cost
        values = np.column_stack([weights, weights * self.scores])
        out = []
        for as_first, sign in ((True, -1.0), (False, 1.0)):
            beyond, window = self._sums(values, as_first)
            within = ((1.0 + sign * self.scores) * window[:, 0] - sign * window[:, 1]) / self.width
            out.append(cost * weights * (beyond[:, 0] + np.maximum(within, 0.0)))
        return out[0], out[1]

    @property
    def coefficients(self) -> Floats:
        """The coefficient β of each sample."""
        as_first, as_second = self._responses
        return as_first - as_second

    @property
    def total(self) -> float:
        """The sum of the dual variables of all pairs."""
        return float(self._responses[0].sum())

    def laplacian_product(self, values: Floats) -> Floats:
        """Return the product of the derivative −dβ/ds, the Laplacian of the window, with the columns of `values`."""
        weights = self.problem.weights[:, None]
        columns = np.hstack([weights, weights * values])
        sums = self._sums(columns, True, False)[1] + self._sums(columns, False, False)[1]
        return np.asarray(self.problem.cost / self.width * weights * (sums[:, :1] * values - sums[:, 1:]))

    def window_counts(self) -> tuple[int, int]:
        """Return the number of pairs within the window and beyond it."""
        beyond, window = self._sums(np.ones((self.problem.size, 1)), True)
        return int(window.sum()), int(beyond.sum())

    def violation(self, scores: Floats) -> float:
        """Return the largest violation of the optimality of the dual vector of this window by the given scores."""
        least, most = _native.pair_extremes(self._samples, np.ascontiguousarray(scores), 1.0 - self.width, 1.0)
        return max(0.0, 1.0 - least, most - 1.0)

    def certify(self) -> Certificate:
        """Return the certificate of the dual vector of this window; slack and residual are sums by first sample.

        The violation is that of the dual variables and the scores of the model, whose coefficients are rounded.
        Products with the matrix are in double-double arithmetic, and bounds on all rounding errors are added.
        """
        problem, coefficients = self.problem, self.coefficients
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows makes the bounds infinite
            product = problem.matrix.extended_product(DoubleDouble.of(coefficients))
            scores = product.high
            error = problem.matrix.product_error(coefficients).extended + UNIT_ROUNDOFF * np.abs(scores)
            terms = product.scaled(coefficients)
            norm, loss = exact_sum(terms), problem.loss(scores)
            bounds = _Rounding.of(self, scores, error)
            norm_error = inner(np.abs(coefficients), error) + 4 * UNIT_ROUNDOFF * float(np.abs(terms.high).sum())
            primal_error = SAFETY * (0.5 * norm_error + bounds.loss)
            dual_error = SAFETY * (0.5 * norm_error + bounds.dual)
            primal = 0.5 * norm + float(loss.sum()) + primal_error
            dual = self.total - 0.5 * norm - dual_error
            residual = np.maximum(0.0, loss - self._slack_products(scores))
        return Certificate(
            primal=primal,
            dual=dual,
            gap=max(primal - dual, primal_error + dual_error) if np.isfinite(primal - dual) else np.inf,
            rounding=primal_error + dual_error,
            violation=self.violation(scores) + SAFETY * bounds.violation,
            infeasibility=0.0,
            squared_norm=norm,
            offset=np.zeros(0),
            offset_interval=np.zeros((0, 2)),
            slack=loss,
            residual=residual,
        )

    def _slack_products(self, scores: Floats) -> Floats:
        """Return Σ_j α_ij (1 − (s_i − s_j)) of each sample, with other scores than those of the window."""
        weights = self.problem.weights
        columns = np.column_stack([weights, weights * self.scores, weights * scores, weights * self.scores * scores])
        beyond, window = self._sums(columns, True)
        own = 1.0 - self.scores
        count = beyond[:, 0] + (own * window[:, 0] + window[:, 1]) / self.width if self.width else beyond[:, 0]
        others = beyond[:, 2] + (own * window[:, 2] + window[:, 3]) / self.width if self.width else beyond[:, 2]
        return np.asarray(self.problem.cost * weights * ((1.0 - scores) * count + others))


@dataclass(frozen=True)
class _Rounding:
    """Bounds on rounding errors: of the loss, of the dual value besides ‖w‖², and of the violation."""

    loss: float
    dual: float
    violation: float

    @classmethod
    def of(cls, window: PairWindow, scores: Floats, error: Floats) -> _Rounding:
        """Return the bounds for scores K β with errors of at most `error`.

        The dual vector is α of the exact formula. The sums over partners are compensated, so that what they sum up
        dominates: a slack with an error of a few units of the largest score, divided by the width. The coefficients
        in use differ from those of α by e, and the dual value by at most Σ e_i |s_i| + ½ (Σ e_i √K_ii)².
        """
        problem, width = window.problem, window.width
        weights, cost = problem.weights, problem.cost
        size = 1.0 + 2.0 * max(float(np.abs(window.scores).max()), float(np.abs(scores).max()))
        unit = (ROUNDINGS + problem.size * UNIT_ROUNDOFF * problem.size) * UNIT_ROUNDOFF
        of_responses, total = np.zeros(problem.size), 0.0
        for as_first, response in zip((True, False), window._responses, strict=True):
            within = window._sums(weights[:, None], as_first)[1][:, 0]
            part = unit * (response + cost * weights * within * size / width)
            of_responses += part
            total += float(part.sum()) + problem.size * UNIT_ROUNDOFF * float(response.sum()) if as_first else 0.0
        norms = np.sqrt(np.maximum(problem.matrix.diagonal(), 0.0))
        off = inner(of_responses, norms)
        largest = float(error.max())
        counted = problem.at(scores, 0.0)._sums(weights[:, None], True, margin=1.0 + 4.0 * largest)[0][:, 0]
        pairs = cost * inner(weights, counted)
        return cls(
            loss=pairs * (2.0 * largest + (unit + problem.size * UNIT_ROUNDOFF) * size),
            dual=total + inner(of_responses, np.abs(scores) + error) + 0.5 * off**2,
            violation=2.0 * largest + 8.0 * UNIT_ROUNDOFF * size,
        )
