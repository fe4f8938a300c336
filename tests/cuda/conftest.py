"""Tests that need a GPU: marked `gpu`, and skipped where there is none."""

import pytest

from maxmargin.cuda.device import is_available


def pytest_collection_modifyitems(items):
    here = [item for item in items if "tests/cuda" in item.path.as_posix()]
    missing = None if not here or is_available() else pytest.mark.skip(reason="needs an NVIDIA GPU and CuPy")
    for item in here:
        if item.get_closest_marker("gpu") and missing:
            item.add_marker(missing)
