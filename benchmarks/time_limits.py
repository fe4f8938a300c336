"""How long fits take that reach their time limit: seconds taken, and by how much they exceed ``max_seconds``.

    python -m benchmarks.time_limits                       # all cases, about ten minutes
    python -m benchmarks.time_limits --only SVDD NuSVC     # those whose names contain one of the words
    python -m benchmarks.time_limits --fraction 0.1        # a tenth of the samples and of the limits

The promise (docs/fitting.md) is an overshoot of at most a tenth of the limit or half a second, whichever is more; the
exit status is 1 if a case exceeds it. On a computer that is busy with other work a fit waits for processors after its
limit, too; the last column, the processor time of all threads after the limit, does not count that. A case exceeds the
promise if both numbers do.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from scipy import sparse

import maxmargin as mm
from maxmargin.cli.main import main as command
from maxmargin.search import grid_search

#: The overshoot that is promised at most: a fraction of the limit, or so many seconds.
ALLOWED_FRACTION, ALLOWED_SECONDS = 0.1, 0.5


@cache
def samples(n: int, features: int, classes: int = 2) -> tuple[Any, Any, Any]:
    """Return samples, labels of classes that overlap, and noisy targets."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, features))
    score = X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + random.normal(size=n)
    labels = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    return X, labels, np.sin(X[:, 0]) + X[:, 1] + 0.3 * random.normal(size=n)


@cache
def sparse_samples(n: int, features: int) -> Any:
    """Return samples of which one value in fifty is stored."""
    return sparse.random_array((n, features), density=0.02, format="csr", rng=np.random.default_rng(0))


@dataclass(frozen=True)
class Case:
    """A fit that reaches its limit: what is run, with the number of samples and the limit as arguments."""

    name: str
    n: int
    features: int
    limit: float
    run: Callable[[int, int, float], Any]


def estimator(name: str, target: str = "labels", classes: int = 2, **options: Any) -> Callable[[int, int, float], Any]:
    """Return a fit of an estimator with a limit."""

    def run(n: int, features: int, limit: float) -> Any:
        X, labels, targets = samples(n, features, classes)
        model = getattr(mm, name)(max_seconds=limit, **options)
        return model.fit(X, {"labels": labels, "targets": targets, "none": None}[target])

    return run


def sparse_svc(n: int, features: int, limit: float) -> Any:
    """Fit a classifier to sparse samples."""
    return mm.SVC(max_seconds=limit).fit(sparse_samples(n, features), samples(n, 3)[1])


def ranking(n: int, features: int, limit: float) -> Any:
    """Fit a ranking of all pairs."""
    X, _, targets = samples(n, features)
    return mm.RankSVC(max_seconds=limit).fit(X, targets)


def search(n: int, features: int, limit: float) -> Any:
    """Search a grid."""
    X, labels, _ = samples(n, features)
    return grid_search(X, labels, Cs=[0.1, 1, 10, 100], gammas=[0.001, 0.01, 0.1, 1], max_seconds=limit)


def program(*arguments: str) -> Callable[[int, int, float], Any]:
    """Return a run of the command line on a file, whose reading does not count as training."""

    def run(n: int, features: int, limit: float) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            data, model = Path(folder, "data.npz"), Path(folder, "model")
            X, labels, _ = samples(n, features)
            np.savez(data, X=X, y=labels)
            tiny = Path(folder, "tiny.npz")
            np.savez(tiny, X=X[:200], y=labels[:200])

            def words(data: Path, model: Path, limit: float) -> list[str]:
                found = [word.replace("DATA", str(data)).replace("MODEL", str(model)) for word in arguments]
                return [*found, "--max-seconds", str(limit), "--quiet"]

            with redirect_stdout(StringIO()):
                command(words(tiny, Path(folder, "tiny.model"), 1.0))
                started[0] = perf_counter()  # without loading modules
                return command(words(data, model, limit))

    return run


#: When the clock of the running case started.
started = [0.0]

CASES = [
    Case("SVC, little memory", 200_000, 20, 20.0, estimator("SVC", cache_size=50)),
    Case("SVC", 60_000, 50, 6.0, estimator("SVC")),
    Case("SVC, sparse", 60_000, 2000, 6.0, sparse_svc),
    Case("SVC, pairwise solver", 60_000, 50, 6.0, estimator("SVC", solver="pairwise")),
    Case("SVC, probabilities", 60_000, 50, 6.0, estimator("SVC", probability=True)),
    Case("SVC, probabilities, limit in the folds", 8_000, 50, 0.6, estimator("SVC", probability=True)),
    Case("SVC, one-vs-one", 60_000, 50, 6.0, estimator("SVC", classes=5)),
    Case("SVC, one-vs-one, probabilities", 60_000, 50, 6.0, estimator("SVC", classes=5, probability=True)),
    Case("SVC, one-vs-rest", 60_000, 50, 6.0, estimator("SVC", classes=5, multi_class="ovr")),
    Case("SVC, Crammer-Singer", 60_000, 50, 6.0, estimator("SVC", classes=5, multi_class="crammer_singer")),
    Case("SVC, Weston-Watkins", 60_000, 50, 6.0, estimator("SVC", classes=5, multi_class="weston_watkins")),
    Case("SVC, many features", 2_000, 20_000, 1.0, estimator("SVC")),
    Case("NuSVC", 60_000, 50, 6.0, estimator("NuSVC")),
    Case("SVR", 60_000, 50, 6.0, estimator("SVR", "targets")),
    Case("SVR, noise", 60_000, 50, 6.0, estimator("SVR", "targets", noise=True)),
    Case("NuSVR", 60_000, 50, 6.0, estimator("NuSVR", "targets")),
    Case("QuantileSVR", 60_000, 50, 6.0, estimator("QuantileSVR", "targets")),
    Case("OneClassSVM", 60_000, 50, 6.0, estimator("OneClassSVM", "none", probability=True)),
    Case("SVDD", 60_000, 50, 6.0, estimator("SVDD", "none")),
    Case("LSSVC", 60_000, 50, 6.0, estimator("LSSVC")),
    Case("LSSVR", 60_000, 50, 6.0, estimator("LSSVR", "targets")),
    Case("LSSVC, direct", 8_000, 50, 1.0, estimator("LSSVC", C=1e6)),
    Case("RankSVC", 2_000, 50, 3.0, ranking),
    Case("OnlineSVC", 60_000, 50, 6.0, estimator("OnlineSVC")),
    Case("OnlineSVC, finishing", 10_000, 50, 6.0, estimator("OnlineSVC", finishing=True)),
    Case("OnlineOneClassSVM", 60_000, 50, 6.0, estimator("OnlineOneClassSVM", "none")),
    Case("LinearSVC", 1_000_000, 50, 1.5, estimator("LinearSVC", C=1e4, tol=1e-10)),
    Case("LinearSVC, many features", 20_000, 2_000, 3.0, estimator("LinearSVC", tol=1e-10)),
    Case("LinearSVC, probabilities", 1_000_000, 50, 3.0, estimator("LinearSVC", probability=True, tol=1e-9)),
    Case("LinearSVC, L1", 1_000_000, 50, 3.0, estimator("LinearSVC", penalty="l1", tol=1e-10)),
    Case("LinearSVC, Crammer-Singer", 200_000, 50, 3.0, estimator(
        "LinearSVC", classes=5, multi_class="crammer_singer")),
    Case("LinearSVR", 1_000_000, 50, 2.0, estimator("LinearSVR", "targets", noise=True, tol=1e-9)),
    Case("LinearOneClassSVM", 1_000_000, 50, 2.0, estimator("LinearOneClassSVM", "none", tol=1e-10)),
    Case("KernelApproximationSVC", 200_000, 50, 6.0, estimator("KernelApproximationSVC", n_components=1000)),
    Case("KernelApproximationSVC, k-means", 200_000, 50, 3.0, estimator(
        "KernelApproximationSVC", n_components=2000, landmarks="kmeans")),
    Case("grid_search", 20_000, 50, 6.0, search),
    Case("maxmargin train", 60_000, 50, 6.0, program("train", "DATA", "MODEL")),
    Case("maxmargin grid", 20_000, 50, 6.0, program("grid", "DATA", "--journal", "MODEL")),
    Case("maxmargin easy", 20_000, 50, 15.0, program("easy", "DATA", "--output", "MODEL", "--no-report")),
]  # fmt: skip


def measure(case: Case, fraction: float) -> tuple[float, float, float]:
    """Run a case; return its limit, the seconds that it took, and the processor seconds after the limit."""
    n, limit = max(200, int(fraction * case.n)), fraction * case.limit
    for classes in (2, 5):
        samples(n, case.features, classes)  # generated before the clock starts
    started[0], ended = perf_counter(), threading.Event()
    at_limit = []

    def watch() -> None:
        while not ended.wait(max(0.001, started[0] + limit - perf_counter())):
            if perf_counter() >= started[0] + limit:
                at_limit.append(process_time())
                return

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        watcher = threading.Thread(target=watch)
        watcher.start()
        case.run(n, case.features, limit)
        seconds, processor = perf_counter() - started[0], process_time()
    ended.set()
    watcher.join()
    return limit, seconds, processor - at_limit[0] if at_limit else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="WORD", help="cases whose names contain one of these words")
    parser.add_argument("--fraction", type=float, default=1.0, help="of the samples and of the limits [%(default)g]")
    options = parser.parse_args()
    exceeded = 0
    print(f"| {'case':40} | {'samples':>15} | limit | seconds | overshoot | allowed | processor |")
    print(f"|{'-' * 42}|{'-' * 16}:|------:|--------:|----------:|--------:|----------:|")
    for case in CASES:
        if options.only and not any(word.lower() in case.name.lower() for word in options.only):
            continue
        limit, seconds, processor = measure(case, options.fraction)
        allowed = max(ALLOWED_FRACTION * limit, ALLOWED_SECONDS)
        over = max(0.0, seconds - limit)
        exceeds = min(over, processor) > allowed
        exceeded += exceeds
        size = f"{max(200, int(options.fraction * case.n)):,} × {case.features}"
        print(
            f"| {case.name:40} | {size:>15} | {limit:5.1f} | {seconds:7.2f} | {over:9.2f} | {allowed:7.2f} | "
            f"{processor:9.2f} |{' exceeded' if exceeds else ''}",
            flush=True,
        )
        samples.cache_clear()
    return int(exceeded > 0)


if __name__ == "__main__":
    sys.exit(main())
