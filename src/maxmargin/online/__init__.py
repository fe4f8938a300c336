"""Learning from a stream: LASVM on the signed dual, first and second order, with a memory of support vectors."""

from maxmargin.online.learner import OnlineLearner
from maxmargin.online.roles import Contrast, Novelty, Role

__all__ = ["Contrast", "Novelty", "OnlineLearner", "Role"]
