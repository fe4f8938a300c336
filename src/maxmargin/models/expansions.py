"""Several functions on shared support vectors: f_c(x) = Σ_s coefficients_cs k(x_s, x) + offset_c."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.models.kernel_blocks import KernelBlocks, map_blocks


@dataclass(frozen=True)
class Expansions:
    """Values of several functions; a kernel value is computed once for all of them.

    Parameters
    ----------
    coefficients : float array of shape (functions, support vectors)
    offsets : float array, one per function
    """

    coefficients: Floats
    offsets: Floats

    def decide(self, blocks: KernelBlocks, threads: int) -> Floats:
        """Return the value of every function for every sample."""
        count, width = self.coefficients.shape
        if not width:
            return np.tile(self.offsets, (len(blocks), 1))
        if count == 1:
            return blocks.combine(self.coefficients[0], threads)[:, None] + self.offsets
        shares = np.ascontiguousarray(self.coefficients.T)
        return map_blocks(blocks, width, lambda block: block @ shares + self.offsets, count, threads)

    def weights(self, support_vectors: Any) -> Any:
        """Return the weight vector of each function of a linear kernel."""
        return self.coefficients @ support_vectors
