"""Kernels of the inner product alone: k(x, z) = h(x·z)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.points import Floats, Points, as_points, pair_sums, squares


class DotProduct(Kernel):
    """What linear, polynomial and sigmoid kernels share; they differ in the function of the inner product."""

    def evaluate(self, left: Points, right: Points) -> Floats:
        return self.of(pair_sums("product", left, right))

    def diagonal(self, points: Any) -> Floats:
        return self.of(squares(as_points(points)))

    @abstractmethod
    def of(self, products: Floats) -> Floats:
        """Return the kernel values of inner products, which may be overwritten."""
