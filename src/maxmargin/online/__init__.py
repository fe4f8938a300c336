"""Learning from a stream (LASVM, first and second order), and choosing the samples that are worth a label."""

from maxmargin.online.auto_stop import STOP_RULES, OutsideMargin, SeldomWrong
from maxmargin.online.learner import OnlineLearner
from maxmargin.online.sample_constraints import Contrast, Novelty, Role
from maxmargin.online.selection import STRATEGIES, AutoActive, Gradient, Margin, Random

__all__ = [
    "STOP_RULES",
    "STRATEGIES",
    "AutoActive",
    "Contrast",
    "Gradient",
    "Margin",
    "Novelty",
    "OnlineLearner",
    "OutsideMargin",
    "Random",
    "Role",
    "SeldomWrong",
]
