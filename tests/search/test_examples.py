"""The examples in docstrings run."""

import doctest

import matplotlib.pyplot as plt
import pytest

from maxmargin.plotting import score_grid
from maxmargin.search import choosing, grid, searching


@pytest.mark.parametrize("module", [choosing, grid, score_grid, searching], ids=lambda module: module.__name__)
def test_examples(module):
    found = doctest.testmod(module)
    plt.close("all")
    assert (found.failed, found.attempted > 0) == (0, True)
