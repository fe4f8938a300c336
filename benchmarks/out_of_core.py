"""Linear models on a file that is larger than the memory they may use, compared with plain reading.

    python -m benchmarks.out_of_core --folder FOLDER                    10⁷ x 100 in float32: 4 GB, in 1 GB of memory
    python -m benchmarks.out_of_core --folder FOLDER --rows 50000000    20 GB
    python -m benchmarks.out_of_core --folder FOLDER --rows 1000000 --peers

The data are generated once, in two .npy files. Every fit runs in a process whose private memory is limited
(`RLIMIT_DATA`; pages of files do not count). The last column is the speed of the passes relative to that of reading the
file from the first to the last byte. With ``--peers``, `SGDClassifier.partial_fit` of scikit-learn runs on the same
blocks for as long as the fit took, and LinearSVC in memory; objective values are those of all rows.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

GENERATED_ROWS = 2**17


def generate(folder: Path, rows: int, features: int) -> tuple[Path, Path]:
    """Return the paths of samples and labels, which are generated if they do not exist."""
    samples, labels = (folder / f"{name}_{rows}x{features}.npy" for name in ("samples", "labels"))
    if not labels.exists():
        random = np.random.default_rng(0)
        weights = random.normal(size=features).astype(np.float32) / np.float32(np.sqrt(features))
        X = np.lib.format.open_memmap(samples, "w+", np.float32, (rows, features))
        y = np.empty(rows, dtype=np.int8)
        for first in range(0, rows, GENERATED_ROWS):
            part = slice(first, min(first + GENERATED_ROWS, rows))
            block = random.standard_normal((part.stop - part.start, features), dtype=np.float32)
            X[part] = block
            y[part] = block @ weights + 0.7 * random.standard_normal(len(block), dtype=np.float32) > 0.2
        X.flush()
        np.save(labels, y)
    return samples, labels


def read(path: Path, size: int = 2**25) -> float:
    """Return the seconds it takes to read a file."""
    started = perf_counter()
    with path.open("rb", buffering=0) as file:
        buffer = bytearray(size)
        while file.readinto(buffer):
            pass
    return perf_counter() - started


def fit(options: argparse.Namespace) -> dict[str, Any]:
    """Fit on blocks; return the results."""
    from maxmargin import LinearSVC, blocks

    limit = int(options.memory * 1e9)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    samples, labels = generate(options.folder, options.rows, options.features)
    data = blocks.open(samples, labels)
    passes: list[float] = []
    model = LinearSVC(loss=options.loss, tol=options.tol, callback=lambda progress: passes.append(progress.seconds))
    started = perf_counter()
    model.fit(data)
    seconds = perf_counter() - started
    certificate = model.certificate_
    return {
        "loss": options.loss,
        "status": model.status_.name,
        "passes": model.n_passes_,
        "seconds": seconds,
        "seconds_of_a_pass": float(np.median(np.diff([0.0, *passes]))),
        "relative_gap": certificate.relative_gap,
        "primal": certificate.primal,
        "dual": certificate.dual,
    }


def peers(options: argparse.Namespace, seconds: float) -> None:
    """Print the objective that other methods reach on the same problem."""
    from sklearn.linear_model import SGDClassifier

    from maxmargin import LinearSVC, blocks

    samples, labels = generate(options.folder, options.rows, options.features)
    X, y = np.load(samples, mmap_mode="r"), np.load(labels)
    signs = np.where(y > 0, 1.0, -1.0)

    def objective(weights: Any, offset: float) -> float:
        slack = np.maximum(0.0, 1.0 - signs * (X @ weights.astype(np.float32) + offset))
        return float(0.5 * weights @ weights + (slack @ slack if options.loss == "squared_hinge" else slack.sum()))

    sgd = SGDClassifier(loss=options.loss, alpha=(0.5 if options.loss == "squared_hinge" else 1.0) / options.rows)
    started, epochs = perf_counter(), 0
    while perf_counter() - started < seconds:
        for block in blocks.open(X, y):
            sgd.partial_fit(block.X, block.y, classes=[0, 1])
        epochs += 1
    seconds = perf_counter() - started
    print(f"SGDClassifier, {epochs} epochs: {seconds:.1f} s, primal {objective(sgd.coef_[0], sgd.intercept_[0]):.8g}")
    started = perf_counter()
    model = LinearSVC(loss=options.loss, tol=options.tol).fit(np.asarray(X), y)
    print(f"LinearSVC in memory: {perf_counter() - started:.1f} s, primal {model.certificate_.primal:.8g}")


def main() -> None:
    """Print a line for each loss."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where the generated files are or will be")
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--memory", type=float, default=1.0, help="limit of private memory in GB")
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--loss", choices=["squared_hinge", "hinge"])
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)  # print the results of one fit as JSON
    options = parser.parse_args()
    if options.one:
        print(json.dumps(fit(options)))
        return
    samples, _ = generate(options.folder, options.rows, options.features)
    size = samples.stat().st_size
    reading = min(read(samples) for _ in range(2))
    speed = f"plain reading {reading:.2f} s, {size / reading / 1e9:.2f} GB/s"
    print(f"{options.rows:,} x {options.features}, {size / 1e9:.1f} GB; {speed}")
    print("| loss | status | passes | seconds | s / pass | relative gap | primal | reading / pass |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for loss in [options.loss] if options.loss else ["squared_hinge", "hinge"]:
        command = [sys.executable, "-m", "benchmarks.out_of_core", *sys.argv[1:], "--loss", loss, "--one"]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        each = found["seconds_of_a_pass"]
        print(
            f"| {loss} | {found['status']} | {found['passes']} | {found['seconds']:.1f} | {each:.2f} | "
            f"{found['relative_gap']:.1e} | {found['primal']:.8g} | {reading / each:.0%} |",
            flush=True,
        )
        if options.peers:
            options.loss = loss
            peers(options, found["seconds"])
            options.loss = None


if __name__ == "__main__":
    main()
