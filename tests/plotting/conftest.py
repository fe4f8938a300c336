"""Pictures are drawn off screen, and none is left open: each test closes what it asked for."""

import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def off_screen(monkeypatch):
    before = plt.get_backend()
    plt.switch_backend("Agg")
    yield
    plt.close("all")
    plt.switch_backend(before)
