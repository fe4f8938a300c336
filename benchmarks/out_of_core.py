"""Linear models on a file that is larger than the memory they may use, compared with plain reading.

    python -m benchmarks.out_of_core --folder FOLDER                    10⁷ x 100 in float32: 4 GB, in 1 GB of memory
    python -m benchmarks.out_of_core --folder FOLDER --rows 50000000    20 GB
    python -m benchmarks.out_of_core --folder FOLDER --evict            from the disk, not from the page cache
    python -m benchmarks.out_of_core --folder FOLDER --rows 1000000 --peers
    python -m benchmarks.out_of_core --folder FOLDER --rows 1000000 --parquet

The data are generated once, in two .npy files. Every fit runs in a process whose private memory is limited
(`RLIMIT_DATA`; pages of files do not count). Plain reading is that of the file from the first to the last byte into a
buffer of 1 MB. The ratio is its seconds, times the number of passes, over those of the whole fit: passes,
the solution of the sample and all else. Where other programs run, compare seconds of processors. With ``--evict`` the
system forgets the pages of the file before each pass.

With ``--peers``, the same problem is solved by `SGDClassifier.partial_fit` of scikit-learn, on the same blocks and for
as long as the fit took; by LIBLINEAR (`pip install liblinear-official`) and by LinearSVC in memory. Objective values
are those of all rows, relative to the largest lower bound. LIBLINEAR minimises the same objective with the squared
hinge only; with the hinge its intercept is regularised, and coordinate descent takes many minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from time import perf_counter, process_time
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


def evict(path: Path) -> None:
    """Let the system forget the pages of a file that it keeps in memory."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read(path: Path, size: int = 2**20) -> tuple[float, float]:
    """Return the seconds it takes to read a file, and those of processors."""
    started, processor = perf_counter(), process_time()
    with path.open("rb", buffering=0) as file:
        buffer = bytearray(size)
        while file.readinto(buffer):
            pass
    return perf_counter() - started, process_time() - processor


def fit(options: argparse.Namespace) -> dict[str, Any]:
    """Fit on blocks; return the results."""
    from maxmargin import LinearSVC, blocks
    from maxmargin.blocks import file_arrays

    file_arrays.MAPS &= not options.no_maps
    limit = int(options.memory * 1e9)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    samples, labels = generate(options.folder, options.rows, options.features)
    data = blocks.open(samples, labels)

    def after_pass(_: Any) -> None:
        if options.evict:
            evict(samples)

    after_pass(None)
    model = LinearSVC(loss=options.loss, tol=options.tol, callback=after_pass)
    started, processor = perf_counter(), process_time()
    model.fit(data)
    seconds, processor = perf_counter() - started, process_time() - processor
    certificate = model.certificate_
    return {
        "loss": options.loss,
        "status": model.status_.name,
        "passes": model.n_passes_,
        "seconds": seconds,
        "processor": processor,
        "relative_gap": certificate.relative_gap,
        "primal": certificate.primal,
        "dual": certificate.dual,
        "weights": model.coef_[0].tolist(),
        "offset": float(model.intercept_[0]),
    }


def peers(options: argparse.Namespace, loss: str, found: dict[str, Any]) -> None:
    """Print the objective that other methods reach on the same problem."""
    from maxmargin import LinearSVC

    samples, labels = generate(options.folder, options.rows, options.features)
    X, y = np.load(samples), np.load(labels)
    signs = np.where(y > 0, 1.0, -1.0)

    def report(name: str, seconds: float, weights: Any, offset: float) -> None:
        slack = np.maximum(0.0, 1.0 - signs * (X @ weights.astype(np.float32) + offset))
        losses = slack @ slack if loss == "squared_hinge" else slack.sum()
        primal = float(0.5 * weights @ weights + losses)
        print(f"| {loss} | {name} | {seconds:.1f} | {primal:.8g} | {primal / bound - 1.0:.1e} |", flush=True)

    started = perf_counter()
    model = LinearSVC(loss=loss, tol=options.tol).fit(X, y)
    in_memory = perf_counter() - started
    bound = max(found["dual"], model.certificate_.dual)
    print("\n| loss | method | seconds | primal value | above the bound |\n|---|---|---:|---:|---:|")
    report("LinearSVC, blocks", found["seconds"], np.array(found["weights"]), found["offset"])
    report("LinearSVC, in memory", in_memory, model.coef_[0], model.intercept_[0])
    report(*stochastic(X, y, loss, found["seconds"]))
    if loss == "squared_hinge":
        report(*liblinear(X, signs))


def stochastic(X: Any, y: Any, loss: str, least: float) -> tuple[str, float, Any, float]:
    """Return name, seconds, weights and offset of SGDClassifier after so many seconds at least."""
    from sklearn.linear_model import SGDClassifier

    from maxmargin import blocks

    sgd = SGDClassifier(loss=loss, alpha=(0.5 if loss == "squared_hinge" else 1.0) / len(y))
    started, epochs = perf_counter(), 0
    while perf_counter() - started < least:
        for block in blocks.open(X, y):
            sgd.partial_fit(block.X, block.y, classes=[0, 1])
        epochs += 1
    return f"SGDClassifier.partial_fit, {epochs} epochs", perf_counter() - started, sgd.coef_[0], sgd.intercept_[0]


def liblinear(X: Any, signs: Any) -> tuple[str, float, Any, float]:
    """Return name, seconds, weights and offset of LIBLINEAR; the conversion of the data is not counted."""
    from liblinear.liblinearutil import parameter, problem, train
    from scipy import sparse

    options = "-s 2 -B 1 -R"
    data = problem(signs, sparse.csr_matrix(X), bias=1)
    started = perf_counter()
    model = train(data, parameter(f"{options} -q"))
    seconds = perf_counter() - started
    sign = 1.0 if model.get_labels()[0] == 1 else -1.0
    weights, offset = model.get_decfun()
    return f"LIBLINEAR {options}", seconds, sign * np.array(weights), sign * offset


def parquet(options: argparse.Namespace) -> None:
    """Print the seconds of a pass over the same rows in Parquet, decoded in every pass or once."""
    import pyarrow as pa
    from pyarrow import parquet

    from maxmargin import blocks

    samples, labels = generate(options.folder, options.rows, options.features)
    path, cache = samples.with_suffix(".parquet"), options.folder / "converted"
    if not path.exists():
        X = np.load(samples, mmap_mode="r")
        columns = {f"x{column}": X[:, column] for column in range(options.features)}
        parquet.write_table(pa.table(columns | {"y": np.load(labels)}), path, row_group_size=GENERATED_ROWS)

    def seconds(work: Any) -> float:
        started = perf_counter()
        for _ in work():
            pass
        return perf_counter() - started

    blocks.clear_cache(cache)
    print("| pass over | seconds |\n|---|---:|")
    print(f"| .npy | {seconds(lambda: blocks.open(samples, labels)):.2f} |")
    print(f"| Parquet | {seconds(lambda: blocks.open(path)):.2f} |")
    print(
        f"| Parquet, converted: the first | {seconds(lambda: blocks.open(path, convert=True, cache_dir=cache)):.2f} |"
    )
    print(f"| Parquet, converted: others | {seconds(lambda: blocks.open(path, convert=True, cache_dir=cache)):.2f} |")
    blocks.clear_cache(cache)


def main() -> None:
    """Print a line for each loss."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where the generated files are or will be")
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--memory", type=float, default=1.0, help="limit of private memory in GB")
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--loss", choices=["squared_hinge", "hinge"])
    parser.add_argument("--repeat", type=int, default=1, help="alternating runs, of which the fastest count")
    parser.add_argument("--evict", action="store_true", help="read from the disk in every pass")
    parser.add_argument("--no-maps", action="store_true", help="read blocks, as from files that do not fit into memory")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--parquet", action="store_true", help="passes over the same rows in Parquet")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)  # print the results of one fit as JSON
    options = parser.parse_args()
    if options.parquet:
        parquet(options)
        return
    if options.one:
        print(json.dumps(fit(options)))
        return
    samples, _ = generate(options.folder, options.rows, options.features)
    size = samples.stat().st_size
    print(f"{options.rows:,} x {options.features}, {size / 1e9:.1f} GB")
    print("| loss | status | passes | relative gap | primal | s | processor s | reading, s | processor s | ratio |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for loss in [options.loss] if options.loss else ["squared_hinge", "hinge"]:
        command = [sys.executable, "-m", "benchmarks.out_of_core", *sys.argv[1:], "--loss", loss, "--one"]
        reading, results = [], []
        for _ in range(options.repeat):
            if options.evict:
                evict(samples)
            reading.append(read(samples))
            results.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
        found, (seconds, processor) = min(results, key=lambda one: one["seconds"]), min(reading)
        print(
            f"| {loss} | {found['status']} | {found['passes']} | {found['relative_gap']:.1e} | {found['primal']:.8g} | "
            f"{found['seconds']:.1f} | {found['processor']:.1f} | {seconds:.2f} | {processor:.2f} | "
            f"{found['passes'] * seconds / found['seconds']:.0%} |",
            flush=True,
        )
        if options.peers:
            peers(options, loss, found)


if __name__ == "__main__":
    main()
