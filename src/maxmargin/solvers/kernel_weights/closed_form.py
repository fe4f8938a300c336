"""The step on weights of ℓp norm 1, p > 1, with the norms of the parts of the solution fixed.

The primal ½ Σ_m ‖w_m‖²/d_m subject to ‖d‖_p ≤ 1 has its minimum at d_m ∝ ‖w_m‖^(2/(p+1)), where ‖w_m‖ = d_m √q_m
(Kloft, Brefeld, Sonnenburg & Zien 2011, equation 19).
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats


def closed_form_step(weights: Floats, squared: Floats, p: float) -> Floats:
    """Return the weights for fixed ‖w_m‖ = d_m √q_m, given d and q; the old ones if all norms are 0."""
    lengths = weights * np.sqrt(np.maximum(squared, 0.0))
    largest = lengths.max(initial=0.0)
    if largest == 0:
        return weights
    wanted = (lengths / largest) ** (2.0 / (p + 1.0))
    step: Floats = wanted / (wanted**p).sum() ** (1.0 / p)
    return step
