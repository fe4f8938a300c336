"""Choosing machines and their parameters by cross-validation."""

from maxmargin.search.cross_validated_search import grid_search
from maxmargin.search.grid import Point, powers
from maxmargin.search.grid_search_result import GridSearch, Score
from maxmargin.search.model_selection import Choice, choose_machine

__all__ = ["Choice", "GridSearch", "Point", "Score", "choose_machine", "grid_search", "powers"]
