"""Describe the hardware, the package versions and the command of a benchmark."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = (
    "maxmargin",
    "numpy",
    "scipy",
    "scikit-learn",
    "scikit-learn-intelex",
    "libsvm-official",
    "thundersvm",
    "liblinear-official",
    "skglm",
    "snapml",
)


def describe_environment(threads: int) -> dict[str, Any]:
    """Return processor, cores, memory and versions."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "threads_used": threads,
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := version(name))},
    }


def command() -> str:
    """Return the command line of this run, without the output folder."""
    words = sys.argv[1:]
    if "--output" in words:
        at = words.index("--output")
        words = words[:at] + words[at + 2 :]
    return " ".join(["python -m benchmarks.peers", *words])


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def version(name: str) -> str | None:
    """Return the version of an installed distribution, None if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
