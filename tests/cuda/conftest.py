"""Tests that need a GPU: marked `gpu`, and skipped where there is none. Many run on a twin in NumPy as well."""

import pytest

from maxmargin.cuda.device import is_available
from reference import cuda_twin


def pytest_collection_modifyitems(items):
    here = [item for item in items if "tests/cuda" in item.path.as_posix()]
    missing = None if not here or is_available() else pytest.mark.skip(reason="needs an NVIDIA GPU and CuPy")
    for item in here:
        if item.get_closest_marker("gpu") and missing:
            item.add_marker(missing)


@pytest.fixture(params=["twin", pytest.param("card", marks=pytest.mark.gpu)])
def device(request, monkeypatch):
    """Return the module of arrays on the device: the twin, on which training runs as well, or the card."""
    if request.param == "twin":
        return cuda_twin.install_backend(monkeypatch)
    import cupy

    return cupy
