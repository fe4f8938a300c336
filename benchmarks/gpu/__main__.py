"""Fits on a GPU, from NumPy arrays in host memory, transfers included, and their certificates.

    python -m benchmarks.gpu --data FOLDER
    python -m benchmarks.gpu --data FOLDER --cases a9a covtype_100k --output results.md
    benchmarks/gpu/run FOLDER OUTPUT        # builds the package, runs the tests marked gpu, measures

Each case runs in a process of its own: the first fit, with the start of the GPU and compiled kernels from the cache on
disk if they are there, and the median of three more. The limit is the time for the kernel values of all samples with
all support vectors, once, measured on the same card.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.peers import loading

Fit = tuple[str, dict[str, Any], Any, Any]


@dataclass(frozen=True)
class Case:
    """An estimator of a name, its parameters, and a function from the folder with the data to samples and targets."""

    estimator: str
    parameters: dict[str, Any]
    load: Any


def covtype(folder: Path, count: int) -> loading.Data:
    """Return standardised rows of the forest cover types."""
    return loading.standardised(loading.covtype(folder, count))


def parity(folder: Path) -> loading.Data:
    """Return 60,000 digits, even or odd."""
    X, y = loading.mnist(folder, 60_000)
    return X, y % 2


def first_column(folder: Path) -> loading.Data:
    """Return the first feature of the forest cover types as the target of the others."""
    X, _ = covtype(folder, 100_000)
    return np.ascontiguousarray(X[:, 1:]), X[:, 0].copy()


CASES = {
    "a9a": Case("SVC", {}, lambda folder: loading.libsvm_text(folder, "a9a.libsvm")),
    "covtype_100k": Case("SVC", {}, lambda folder: covtype(folder, 100_000)),
    "mnist_even_odd": Case("SVC", {}, parity),
    "mnist_ten_classes": Case("SVC", {}, lambda folder: loading.mnist(folder, 60_000)),
    "covtype_581k": Case("SVC", {}, lambda folder: covtype(folder, 581_012)),
    "svr_100k": Case("SVR", {}, first_column),
}


def measure(case: Case, folder: Path, device: str) -> dict[str, Any]:
    """Return the times of one case."""
    import maxmargin

    X, y = case.load(folder)
    times = []
    for _ in range(4):
        model = getattr(maxmargin, case.estimator)(**case.parameters, device=device)
        began = perf_counter()
        model.fit(X, y)
        times.append(perf_counter() - began)
    began = perf_counter()
    certificates = model.certificate_
    certifying = perf_counter() - began
    certificates = certificates if isinstance(certificates, list) else [certificates]
    began = perf_counter()
    (model.decision_function if hasattr(model, "decision_function") else model.predict)(X[:10_000])
    return {
        "shape": list(X.shape), "first": times[0], "fit": median(times[1:]), "certificate": certifying,
        "violation": max(one.violation for one in certificates), "gap": sum(one.gap for one in certificates),
        "support": len(model.support_), "predict": perf_counter() - began,
        "limit": limit(X, len(model.support_), model) if device != "cpu" and len(certificates) == 1 else None,
    }  # fmt: skip


def limit(X: Any, support: int, model: Any) -> float:
    """Return the seconds for the kernel values of all samples with so many others."""
    import cupy

    from maxmargin.cuda.products import product_parts
    from maxmargin.cuda.samples import DeviceSamples
    from maxmargin.kernels import Points

    samples = DeviceSamples.of(model._kernel_.formula, Points(X), 0)
    rows = cupy.arange(len(X), dtype=cupy.int32)
    columns, weights, times = rows[:support].copy(), cupy.ones(support), []
    for _ in range(4):
        cupy.cuda.Device().synchronize()
        began = perf_counter()
        product_parts(samples, rows, columns, weights)
        cupy.cuda.Device().synchronize()
        times.append(perf_counter() - began)
    return median(times[1:])


def computer() -> str:
    """Return the card, its driver and the versions."""
    import cupy

    import maxmargin

    card = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    driver, runtime = cupy.cuda.runtime.driverGetVersion(), cupy.cuda.runtime.runtimeGetVersion()
    return (
        f"{card}, CUDA driver {driver}, runtime {runtime}, CuPy {cupy.__version__}, NumPy {np.__version__}, "
        f"Python {platform.python_version()}, maxmargin {maxmargin.__version__}"
    )


def table(results: dict[str, dict[str, Any]]) -> str:
    """Return the results as a table in Markdown."""
    lines = [
        "| case | rows x features | support vectors | first fit | fit | certificate | violation | limit | ratio |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, one in results.items():
        shape = " x ".join(f"{size:,}" for size in one["shape"])
        bound, ratio = one["limit"], ""
        if bound is not None:
            bound, ratio = f"{bound:.4f}", f"{one['fit'] / bound:.0f}"
        lines.append(
            f"| {name} | {shape} | {one['support']:,} | {one['first']:.2f} | {one['fit']:.3f} | "
            f"{one['certificate']:.3f} | {one['violation']:.1e} | {bound or ''} | {ratio} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES), help="cases [all]")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1, or cpu to compare [cuda]")
    parser.add_argument("--output", type=Path, help="file for the table")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(CASES[options.cases[0]], options.data, options.device)))
        return
    results = {}
    for name in options.cases:
        command = [sys.executable, "-m", "benchmarks.gpu", "--data", str(options.data), "--device", options.device]
        done = subprocess.run([*command, "--one", "--cases", name], check=True, capture_output=True, text=True)
        results[name] = json.loads(done.stdout.splitlines()[-1])
        print(table({name: results[name]}).splitlines()[-1], file=sys.stderr)
    where = platform.processor() if options.device == "cpu" else computer()
    text = f"{where}\n\n{table(results)}\n"
    print(text)
    if options.output is not None:
        options.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
