"""Choosing machines and their parameters by cross-validation."""

from maxmargin.search.choosing import Choice, choose_machine
from maxmargin.search.grid import Point, powers
from maxmargin.search.grid_search import GridSearch, Score
from maxmargin.search.searching import grid_search

__all__ = ["Choice", "GridSearch", "Point", "Score", "choose_machine", "grid_search", "powers"]
