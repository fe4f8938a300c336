"""The certificate of a linear model with many samples, in one native call after the products with the data.

`problems.certificate.certify` computes the same numbers with the same bounds on rounding errors, in some forty passes
of NumPy over all samples. They take a large part of the time of a fit of milliseconds, and on many cores, where the
products are fast, of any other.
"""

from __future__ import annotations

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats
from maxmargin.matrices.features import Features
from maxmargin.problems import Certificate, DualProblem
from maxmargin.problems.offsets import best_offsets

#: With fewer variables NumPy takes less than half a millisecond.
MIN_VARIABLES = 500

#: From so many variables on threads pay off for the offset.
MIN_VARIABLES_FOR_THREADS = 20_000


def certify_many(
    problem: DualProblem, rows: Features, dual: Floats, weights: Floats, dual_weights: Floats
) -> Certificate | None:
    """Return the certificate in float64 of weights and a dual vector, None for few samples and other kinds of problem.

    The kinds are those of linear estimators: a ridge everywhere or finite bounds without a ridge, and one group of all
    variables with the sum 0, or none.
    """
    if problem.size < MIN_VARIABLES or not _is_suitable(problem, dual):
        return None
    decisions = rows.decisions(weights)
    product = decisions if weights is dual_weights else rows.decisions(dual_weights)
    if not (np.isfinite(decisions.sum()) and np.isfinite(product.sum())):
        return None
    offset = np.empty(0)  # is computed in the native call
    if problem.size >= MIN_VARIABLES_FOR_THREADS:
        offset = best_offsets(problem, problem.linear - decisions, threads=rows.threads_for_samples)
    slack, residual = np.empty(problem.size), np.empty(problem.size)
    result = _native.certify_linear(
        problem.native,
        _native.CertificateArrays(
            dual=dual,
            weights=weights,
            dual_weights=dual_weights,
            decisions=decisions,
            product=product,
            squared_norms=rows.known_squared_norms(),
            offset=offset,
            slack=slack,
            residual=residual,
        ),
        rows.constant,
        rows.most_stored,
    )
    if not result.conclusive:
        return None
    found, low, high = result.offsets
    some = slice(problem.groups)
    return Certificate(*result.bounds, np.array([found])[some], np.array([[low, high]])[some], slack, residual)


def _is_suitable(problem: DualProblem, dual: Floats) -> bool:
    """Whether the problem is of a kind that the native certificate is for, and the point within its bounds."""
    one_group = problem.groups == 0 or (problem.groups == 1 and not problem.ungrouped and not problem.total.any())
    known_loss = problem.ridged or (problem.bounded and not problem.ridge.any())
    if not (one_group and known_loss) or problem.kinked or problem.linear_error is not None:
        return False
    return bool((dual >= problem.lower).all() and (dual <= problem.upper).all())
