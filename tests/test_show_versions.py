"""`maxmargin.show_versions`, whose output belongs to a bug report."""

import subprocess
import sys
from importlib import import_module, metadata
from types import SimpleNamespace

import pytest

import maxmargin
from maxmargin._native import level
from maxmargin.cuda.device import DeviceError
from maxmargin.resources import usable_cores

module = import_module("maxmargin.show_versions")  # the name of the function, too


def test_output_of_the_command():
    found = subprocess.run(
        [sys.executable, "-m", "maxmargin.show_versions"], capture_output=True, text=True, check=True
    )
    lines = [line.split() for line in found.stdout.splitlines()]
    assert ["maxmargin:", metadata.version("maxmargin")] in lines
    assert ["instruction", "set:", level] in lines
    assert ["usable", "cores:", str(usable_cores())] in lines
    assert "threads" in found.stdout  # of a BLAS library
    assert not found.stderr


def test_function(capsys):
    maxmargin.show_versions()
    assert capsys.readouterr().out.startswith("System\n  python: ")


def test_missing_packages(monkeypatch):
    def version(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)
    facts = module.version_facts()
    assert facts["Packages"]["numpy"] == "missing"
    assert not facts["Optional packages"]


class CudaError(Exception):
    pass


def fake_cupy(count):
    def count_devices():
        if count is None:
            raise CudaError("no driver")
        return count

    properties = {"name": b"NVIDIA H200", "major": 9, "minor": 0, "totalGlobalMem": 139 * 2**30}
    runtime = SimpleNamespace(
        CUDARuntimeError=CudaError,
        getDeviceCount=count_devices,
        getDeviceProperties=lambda number: properties,
        driverGetVersion=lambda: 13010,
    )
    return lambda: SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (None, {"cuda": "no driver"}),
        (1, {"cuda:0": "NVIDIA H200, capability 9.0, 139 GiB, driver for CUDA 13.1"}),
    ],
)
def test_gpus(monkeypatch, count, expected):
    monkeypatch.setattr(module, "cupy", fake_cupy(count))
    assert module.version_facts()["GPU"] == expected


def test_no_cupy(monkeypatch):
    def cupy():
        raise DeviceError

    monkeypatch.setattr(module, "cupy", cupy)
    assert module.version_facts()["GPU"] == {"cuda": "CuPy is not installed"}
