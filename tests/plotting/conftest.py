"""No picture is left open: each test closes what it asked for."""

import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def closed_afterwards():
    yield
    plt.close("all")
