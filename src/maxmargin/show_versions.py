"""Versions and hardware, for bug reports: ``python -m maxmargin.show_versions``.

Prints what decides how a fit runs: versions of Python and libraries, the instruction set in use, cores and memory that
the process may use, BLAS libraries and their threads, and GPUs.
"""

from __future__ import annotations

import platform
import sys
from importlib import metadata
from typing import Any

import scipy.linalg  # noqa: F401  # loads its BLAS, and NumPy's
import threadpoolctl

from maxmargin import _native
from maxmargin.cuda.device import DeviceError, cupy
from maxmargin.resources import usable_cores, usable_memory

#: Packages that are needed, and those that extras install.
REQUIRED = ("maxmargin", "numpy", "scipy", "scikit-learn", "threadpoolctl", "rich", "lazy-loader", "shtab")
OPTIONAL = ("matplotlib", "pandas", "pyarrow", "polars", "dask", "distributed", "clarabel", "osqp", "highspy", "piqp",
            "proxsuite", "onnx", "onnxruntime", "cupy-cuda13x", "cupy-cuda12x", "torch", "pip")  # fmt: skip


def version_facts() -> dict[str, dict[str, str]]:
    """Return what `show_versions` prints: a dict of titles, each with names and values."""
    return {
        "System": {
            "python": " ".join(sys.version.split()),
            "executable": sys.executable,
            "machine": platform.platform(),
            "processor": _processor(),
            "instruction set": _native.level,
            "usable cores": str(usable_cores()),
            "usable memory": f"{usable_memory() / 2**30:.1f} GiB",
        },
        "Packages": {name: _version(name) or "missing" for name in REQUIRED},
        "Optional packages": {name: version for name in OPTIONAL if (version := _version(name))},
        "BLAS and OpenMP": {
            f"{number}: {library.get('internal_api', '')}": _describe(library)
            for number, library in enumerate(threadpoolctl.threadpool_info(), 1)
        },
        "GPU": _gpus(),
    }


def show_versions() -> None:
    """Print versions and hardware, for bug reports.

    Examples
    --------
    >>> import maxmargin
    >>> maxmargin.show_versions()  # doctest: +ELLIPSIS
    System
      python: ...
    """
    for number, (title, facts) in enumerate(version_facts().items()):
        print(("\n" if number else "") + title)
        width = max(map(len, facts), default=0) + 1
        for name, value in facts.items():
            print(f"  {name + ':':{width}} {value}")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    """Return the name of the processor; Python knows only its architecture on Linux."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith(("model name", "Model")))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _describe(library: dict[str, Any]) -> str:
    """Return version, architecture and number of threads of a library that threadpoolctl found."""
    facts = (library.get("version"), library.get("architecture"), f"{library['num_threads']} threads")
    return ", ".join(fact for fact in facts if fact)


def _gpus() -> dict[str, str]:
    """Return the names of the GPUs, or why there is none."""
    try:
        runtime = cupy().cuda.runtime
    except DeviceError:
        return {"cuda": "CuPy is not installed"}
    try:
        return {f"cuda:{number}": _describe_gpu(runtime, number) for number in range(runtime.getDeviceCount())}
    except runtime.CUDARuntimeError as error:
        return {"cuda": str(error)}


def _describe_gpu(runtime: Any, number: int) -> str:
    """Return name, compute capability, memory and driver of a GPU."""
    facts = runtime.getDeviceProperties(number)
    name, driver = facts["name"].decode(), runtime.driverGetVersion()
    capability, memory = f"{facts['major']}.{facts['minor']}", facts["totalGlobalMem"] / 2**30
    return f"{name}, capability {capability}, {memory:.0f} GiB, driver for CUDA {driver // 1000}.{driver % 1000 // 10}"


if __name__ == "__main__":
    show_versions()
