"""The examples in docstrings run."""

import doctest

import matplotlib.pyplot as plt
import pytest

from maxmargin.plotting import score_grid
from maxmargin.search import cross_validated_search, grid, model_selection

MODULES = [model_selection, grid, score_grid, cross_validated_search]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples(module):
    found = doctest.testmod(module)
    plt.close("all")
    assert (found.failed, found.attempted > 0) == (0, True)
