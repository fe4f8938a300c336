"""Solvers side by side: the same problem, the same judge, and a picture of the way that each of them took."""

from maxmargin.comparison.comparing import Watch, compare
from maxmargin.comparison.comparison import Comparison
from maxmargin.comparison.run import Run

__all__ = ["Comparison", "Run", "Watch", "compare"]
