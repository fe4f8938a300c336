"""Fits, predictions, saves and loads of random estimators in threads for an hour: same results, flat memory.

    python -m benchmarks.soak --minutes 60

First every case is fitted alone. Then threads fit random cases, predict, save and load in files and in memory, and
compare all results with the first ones, bit for bit. Memory, threads and open files are recorded every two seconds.
Exits with 1 if a result differs or the memory grows after the first quarter of the time. Linux only, because memory is
read from /proc.
"""

from __future__ import annotations

import argparse
import io
import os
import pickle
import random
import sys
import tempfile
import threading
import traceback
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

import maxmargin
from maxmargin.datasets import chessboard, dump_libsvm, load_libsvm

#: Growth of the resident memory that counts as a leak, in MB: from the second quarter of the time to the last.
MAX_GROWTH_MB = 40

#: Seconds between two records.
INTERVAL = 2.0


@dataclass
class Case:
    """An estimator, its data, and its results when it was fitted alone."""

    model: Any
    X: Any
    y: Any
    expected: Any = None

    def results(self, model: Any) -> Any:
        """Return the predictions of a fitted model, and its decision values if it has them."""
        decisions = getattr(model, "decision_function", model.predict)
        return np.asarray(model.predict(self.X[:64])), np.asarray(decisions(self.X[:64]))

    def check(self, model: Any, what: str) -> None:
        """Raise unless a model predicts as the one that was fitted alone."""
        for found, expected in zip(self.results(model), self.expected, strict=True):
            if not np.array_equal(found, expected, equal_nan=found.dtype.kind == "f"):
                raise AssertionError(f"{what} of {self.model!r} differs")


@dataclass
class State:
    """What the threads share."""

    end: float
    operations: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, operation: str) -> None:
        """Count an operation."""
        with self.lock:
            self.operations[operation] = self.operations.get(operation, 0) + 1


def make_cases(count: int, seed: int) -> list[Case]:
    """Return random estimators with random parameters and data."""
    chance, found = random.Random(seed), []
    while len(found) < count:
        name = chance.choice(
            ["SVC", "SVC", "NuSVC", "SVR", "NuSVR", "LSSVC", "LSSVR", "QuantileSVR", "OneClassSVM", "SVDD", "OnlineSVC",
             "LinearSVC", "LinearSVC", "LinearSVR", "LinearOneClassSVM", "KernelApproximationSVC"]
        )  # fmt: skip
        kind = getattr(maxmargin, name)
        known = set(kind().get_params())
        options = {
            "C": chance.choice([0.1, 1.0, 30.0]),
            "kernel": chance.choice(["rbf", "linear", "poly", "laplacian"]),
            "gamma": chance.choice(["scale", 0.5]),
            "nu": 0.3,
            "n_jobs": chance.choice([1, 2]),
            "probability": chance.random() < 0.15,
            "n_components": 40,
            "random_state": 0,
            "max_iter": 20_000,
        }
        if name == "KernelApproximationSVC":
            options["kernel"] = "rbf"
        rows = chance.choice([60, 300, 600])
        X, y = chessboard(rows, noise=0.05, seed=chance.randrange(100))
        X = np.hstack([X, np.random.default_rng(rows).normal(size=(rows, chance.choice([1, 6])))])
        classes = chance.choice([2, 2, 3])
        y = y if classes == 2 else np.arange(rows) % classes
        form = chance.choice([np.asarray, sparse.csr_matrix, lambda data: data.astype(np.float32)])
        model = kind(**{key: value for key, value in options.items() if key in known})
        found.append(Case(model, form(X), y))
    return found


def work(number: int, cases: list[Case], state: State, folder: Path) -> None:
    """Fit, predict, save and load random cases until the end."""
    chance = random.Random(number)
    path = folder / f"{number}.maxmargin"
    while perf_counter() < state.end and not state.failures:
        case = chance.choice(cases)
        try:
            model = clone(case.model).fit(case.X, case.y)
            state.count("fits")
            case.check(model, "the fit")
            state.count("predictions")
            if chance.random() < 0.5 and type(model) is not maxmargin.OnlineSVC:  # which model files do not store
                maxmargin.save(model, path)
                case.check(maxmargin.load(path), "the model in the file")
                state.count("saves and loads")
            if chance.random() < 0.2:
                case.check(pickle.loads(pickle.dumps(model)), "the pickle")
                state.count("pickles")
            if chance.random() < 0.1 and sparse.issparse(case.X):
                text = io.BytesIO()
                dump_libsvm(case.X, case.y, text)
                text.seek(0)
                again, _ = load_libsvm(text, n_features=case.X.shape[1])
                if (again != case.X).nnz:
                    raise AssertionError("the data differ")
                state.count("data files")
        except BaseException:  # ends the whole run with the reason
            state.failures.append(traceback.format_exc())


def process_state() -> tuple[float, int, int]:
    """Return the resident memory in MB, the number of threads, and of open files."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return (
        pages * os.sysconf("SC_PAGE_SIZE") / 1e6,
        len(os.listdir("/proc/self/task")),
        len(os.listdir("/proc/self/fd")),
    )


def growth(memory: list[float]) -> float:
    """Return by how much the median of the last quarter exceeds that of the second."""
    quarter = max(1, len(memory) // 4)
    return float(np.median(memory[-quarter:]) - np.median(memory[quarter : 2 * quarter] or memory))


def observe(state: State, started: float, lines: int) -> list[tuple[float, int, int]]:
    """Record the state of the process until the end; print about so many lines."""
    records: list[tuple[float, int, int]] = []
    printed, step = 0.0, (state.end - started) / lines
    print("| minutes | memory, MB | threads | open files | operations |")
    print("|---:|---:|---:|---:|---:|")
    while perf_counter() < state.end and not state.failures:
        sleep(min(INTERVAL, max(0.0, state.end - perf_counter())))
        records.append(process_state())
        now = perf_counter() - started
        if now >= printed:
            memory, threads, files = records[-1]
            done = sum(state.operations.values())
            print(f"| {now / 60:.1f} | {memory:.0f} | {threads} | {files} | {done:,} |", flush=True)
            printed = now + step
    return records


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # some fits end at max_iter
    cases = make_cases(options.cases, options.seed)
    for case in cases:
        case.expected = case.results(clone(case.model).fit(case.X, case.y))
    before = process_state()
    started = perf_counter()
    state = State(started + 60.0 * options.minutes)
    with tempfile.TemporaryDirectory() as folder:
        arguments = [(number, cases, state, Path(folder)) for number in range(options.threads)]
        workers = [threading.Thread(target=work, args=own) for own in arguments]
        for worker in workers:
            worker.start()
        records = observe(state, started, lines=30)
        for worker in workers:
            worker.join()
    grown = growth([memory for memory, _, _ in records])
    print(f"\n{', '.join(f'{count:,} {name}' for name, count in sorted(state.operations.items()))}")
    after = process_state()
    print(f"memory grew by {grown:.1f} MB from the second quarter to the last (allowed {MAX_GROWTH_MB})")
    print(f"open files before and after: {before[2]}, {after[2]}; {len(state.failures)} failures")
    if state.failures:
        print(state.failures[0])
    return 1 if state.failures or grown > MAX_GROWTH_MB or after[2] > before[2] else 0


if __name__ == "__main__":
    sys.exit(main())
