"""Kernel expansions on shared support vectors, f_c(x) = Σ_s coefficients_cs k(x_s, x) + offset_c, and their argmax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.models.device_blocks import DeviceKernelBlocks, array_module
from maxmargin.models.kernel_blocks import KernelBlocks, map_blocks
from maxmargin.models.overflow import check_finite, ignored_overflow


@dataclass(frozen=True)
class KernelExpansions:
    """Several kernel expansions; a kernel value is computed once for all of them.

    Parameters
    ----------
    coefficients : float array of shape (functions, support vectors)
    offsets : float array, one per function
    """

    coefficients: Floats
    offsets: Floats

    def decision_values(self, blocks: KernelBlocks | DeviceKernelBlocks, threads: int) -> Floats:
        """Return the value of every function for every sample, or raise if one is not finite.

        Those of a GPU are a device array.
        """
        count, width = self.coefficients.shape
        if isinstance(blocks, DeviceKernelBlocks):
            whole = slice(0, width), np.ascontiguousarray(self.coefficients.T), np.arange(count)
            values: Floats = blocks.decision_values([whole], self.offsets)
            return values
        if not width:
            return np.tile(self.offsets, (len(blocks), 1))
        if count == 1:
            with ignored_overflow():
                return check_finite(blocks.combine(self.coefficients[0], threads)[:, None] + self.offsets)
        columns = np.ascontiguousarray(self.coefficients.T)

        def combine(block: Floats) -> Floats:
            with ignored_overflow():
                return np.asarray(block @ columns + self.offsets)

        return check_finite(map_blocks(blocks, width, combine, count, threads))

    def weights(self, support_vectors: Any) -> Any:
        """Return the weight vector of each function, for a linear kernel."""
        return self.coefficients @ support_vectors


@dataclass(frozen=True)
class OneVsRestArgmax(KernelExpansions):
    """One-vs-rest prediction: one decision function per class, of which the largest wins.

    Two classes have a single decision function, positive for the second class.
    """

    def predicted_class(self, decisions: Floats) -> np.ndarray:
        """Return the index of the class with the largest decision value; ties go to the lowest index."""
        winners: np.ndarray = array_module(decisions).argmax(decisions, axis=1)
        return winners

    def scores(self, decisions: Floats) -> Floats:
        """Return one score per class: its decision value."""
        return decisions

    def classes_of(self, blocks: KernelBlocks | DeviceKernelBlocks, threads: int) -> np.ndarray:
        """Return `predicted_class` of samples."""
        if isinstance(blocks, DeviceKernelBlocks):
            winners: np.ndarray = blocks.map_parts(
                lambda part: self.predicted_class(self.decision_values(part, threads)), len(self.offsets)
            )
            return winners
        return self.predicted_class(self.decision_values(blocks, threads))

    def scores_of(self, blocks: KernelBlocks | DeviceKernelBlocks, threads: int) -> Floats:
        """Return `scores` of samples."""
        return self.decision_values(blocks, threads)
