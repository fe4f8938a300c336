"""Read and write LIBSVM text with maxmargin and scikit-learn: CPU and wall-clock time.

    python -m benchmarks.reading [FILE] [--copies 20] [--runs 5]

Without a file the text is generated: 32,561 lines like those of a9a, 14 of 123 features, all 1. The text is repeated
``--copies`` times. Readers alternate, and the fastest run counts; that all return the same bits is checked first.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import lzma
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from types import ModuleType

import numpy as np
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from maxmargin.datasets import dump_libsvm, find_libsvm_problems, iterate_libsvm, load_libsvm


def generated_text() -> bytes:
    random = np.random.default_rng(0)
    rows = [np.sort(random.choice(123, 14, replace=False)) + 1 for _ in range(32_561)]
    labels = random.choice(["-1", "+1"], len(rows), p=[0.76, 0.24])
    lines = (f"{y} {' '.join(f'{j}:1' for j in row)} \n" for y, row in zip(labels, rows, strict=True))
    return "".join(lines).encode()


def alternate(tasks: dict[str, Callable[[], object]], runs: int) -> dict[str, tuple[float, float]]:
    """Return the best CPU and wall-clock time of each task."""
    best = dict.fromkeys(tasks, (np.inf, np.inf))
    for _ in range(runs):
        for name, task in tasks.items():
            clock, processor = perf_counter(), process_time()
            task()
            seconds = process_time() - processor, perf_counter() - clock
            best[name] = min(best[name][0], seconds[0]), min(best[name][1], seconds[1])
    return best


def print_table(title: str, best: dict[str, tuple[float, float]], megabytes: float, peer: str) -> None:
    print(f"\n| {title} | CPU | wall clock | MB/s (wall clock) | times {peer}: CPU | wall clock |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, (processor, clock) in best.items():
        ratios = f"{best[peer][0] / processor:.1f} | {best[peer][1] / clock:.1f}"
        print(f"| {name} | {processor:.3f} s | {clock:.3f} s | {megabytes / clock:.0f} | {ratios} |")


def decompress(module: ModuleType, path: Path) -> bytes:
    with module.open(path) as file:
        return file.read()


def consume(path: Path) -> None:
    for _ in iterate_libsvm(path):
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path, help="LIBSVM text; generated if not given")
    parser.add_argument("--copies", type=int, default=20)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    text = (generated_text() if options.file is None else options.file.read_bytes()) * options.copies
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data"
        path.write_bytes(text)
        (X, y), (theirs, labels) = load_libsvm(path), load_svmlight_file(path)
        assert X.data.tobytes() == theirs.data.tobytes()
        assert np.array_equal(X.indices, theirs.indices)
        assert np.array_equal(y, labels)
        print(f"{X.shape[0]} lines, {X.shape[1]} features, {X.nnz} values, {len(text) / 1e6:.1f} MB of text")
        peer = "scikit-learn"
        reading = {
            peer: partial(load_svmlight_file, path),
            "maxmargin, 1 thread": partial(load_libsvm, path, n_jobs=1),
            "maxmargin": partial(load_libsvm, path),
            "maxmargin, in blocks": partial(consume, path),
            "maxmargin, all problems": partial(find_libsvm_problems, path),
        }
        print_table("reading", alternate(reading, options.runs), len(text) / 1e6, peer)
        for suffix, module in (".gz", gzip), (".bz2", bz2), (".xz", lzma):
            compressed = path.with_suffix(suffix)
            compressed.write_bytes(module.compress(text))
            tasks = {
                "decompressed, not read": partial(decompress, module, compressed),
                peer: lambda module=module, file=compressed: load_svmlight_file(io.BytesIO(decompress(module, file))),
                "maxmargin": partial(load_libsvm, compressed),
            }
            best = alternate(tasks, min(2, options.runs))
            print_table(f"reading {suffix}", best, len(text) / 1e6, peer)
        out = Path(folder) / "out"
        writing = {
            peer: partial(dump_svmlight_file, X, y, str(out), zero_based=False),
            "maxmargin, 1 thread": partial(dump_libsvm, X, y, out, n_jobs=1),
            "maxmargin": partial(dump_libsvm, X, y, out),
        }
        print_table("writing", alternate(writing, min(2, options.runs)), len(text) / 1e6, peer)


if __name__ == "__main__":
    main()
