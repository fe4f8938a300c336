"""Learning from a stream, and choosing the samples worth a label."""

from maxmargin.online.auto_stop import STOP_RULES, OutsideMargin, SeldomWrong
from maxmargin.online.selection import STRATEGIES, AutoActive, Gradient, Margin, Random

__all__ = [
    "STOP_RULES",
    "STRATEGIES",
    "AutoActive",
    "Gradient",
    "Margin",
    "OutsideMargin",
    "Random",
    "SeldomWrong",
]
