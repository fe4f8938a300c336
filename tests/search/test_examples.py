"""Docstring examples of the search functions."""

import doctest

import matplotlib.pyplot as plt
import pytest

from maxmargin.plotting import score_grid
from maxmargin.search import cross_validated_search, grid, model_selection

MODULES = [model_selection, grid, score_grid, cross_validated_search]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples(module):
    result = doctest.testmod(module)
    plt.close("all")
    assert (result.failed, result.attempted > 0) == (0, True)
