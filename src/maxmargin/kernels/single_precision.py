"""How a kernel is computed in single precision without losing the digits that matter.

A float32 value has seven digits. Distances keep them if the samples are centred first; the quick form of the gaussian,
‖x‖² + ‖z‖² − 2 x·z, keeps them as long as γ‖x‖² is moderate, and beyond that the differences are summed. What single
precision gets wrong the certificate sees, which is computed in double precision.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from maxmargin.kernels.formula import Formula, FormulaKernel, Function, Term
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.points import Floats, Points

#: γ‖x‖² up to which the quick form of the gaussian is used: the error of its exponent is 1e-7 of that.
QUICK_UP_TO = 64.0

#: The largest entry, and the largest kernel value, that single precision is trusted with.
LARGEST_ENTRY, LARGEST_VALUE = 1e15, 1e30


def single_precision(kernel: Kernel, points: Points) -> tuple[Formula, Floats] | None:
    """Return the formula to use in single precision and what to take off the samples; None if it cannot serve.

    It is worked out from all the data behind `points`, once for all views of them.
    """
    key = ("single precision", kernel)
    if key not in points.memo:
        points.memo[key] = _work_out(kernel, Points(points.data)) if isinstance(kernel, FormulaKernel) else None
    answer: tuple[Formula, Floats] | None = points.memo[key]
    return answer


def _work_out(kernel: FormulaKernel, points: Points) -> tuple[Formula, Floats] | None:
    formula, nothing = kernel.formula, np.empty(0)
    stored = points.data.data if sparse.issparse(points.data) else points.data
    if stored.size and not max(stored.max(), -stored.min()) < LARGEST_ENTRY:
        return None
    if formula.function in (Function.IDENTITY, Function.POWER):
        diagonal = kernel.diagonal(points)
        if len(diagonal) and not np.abs(diagonal).max() < LARGEST_VALUE:
            return None
    if sparse.issparse(points.data) or formula.term not in (Term.SQUARED, Term.ABSOLUTE):
        return formula, nothing
    centre = points.data.mean(axis=0)
    if formula.term is Term.SQUARED and formula.gamma * _largest_square(points.data, centre) <= QUICK_UP_TO:
        return Formula(Term.PRODUCT, Function.GAUSSIAN_OF_PRODUCT, 2.0 * formula.gamma), centre
    return formula, centre


def _largest_square(data: Floats, centre: Floats) -> float:
    step = max(1, 2**18 // max(1, data.shape[1]))
    return max(
        float(np.square(data[start : start + step] - centre).sum(axis=1).max()) for start in range(0, len(data), step)
    )
