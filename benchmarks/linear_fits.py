"""Linear fits to the same duality gap as LIBLINEAR, by processor time, alternating in one process.

    python -m benchmarks.linear_fits --data FOLDER
    python -m benchmarks.linear_fits --data FOLDER --cases a9a,covtype_C1 --gap 1e-2 --threads 1

The cases of classification are those of the suite `linear` whose fits take up to a second, those of regression have the
same costs; names select others. LIBLINEAR runs through its own interface on data that are converted before, with the
faster of its primal and dual solvers and the loosest tolerance that reaches the gap, which are searched first. Ratios
above 1 mean that maxmargin is faster: by processor time, which other work on the computer changes little and which
counts all threads, and by the clock.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from scipy import sparse

import maxmargin
from benchmarks.peers import generated, loading
from benchmarks.peers.linear.cases import COSTS, LinearCase, linear
from benchmarks.peers.linear.libraries import TOLERANCES
from benchmarks.peers.linear.loosest_setting import find_loosest
from benchmarks.peers.linear.verification import relative_gap
from benchmarks.peers.loading import standardised
from benchmarks.peers.suites import GROUPS, group_of

#: Without a selection, data whose fits take longer are left out.
SLOW = ("covtype", "text", "usps", "mnist")

#: The gap of the fit that bounds the optimum from below, and the width of the insensitive tube of regression.
REFERENCE_GAP, EPSILON = 1e-7, 0.1

#: LIBLINEAR's solvers of each loss.
SOLVERS = {
    "squared_hinge": (1, 2),
    "squared_epsilon_insensitive": (11, 12),
    "epsilon_insensitive": (13,),
}

#: Fits of each library: at least, at most, and no more after this many seconds.
MIN_FITS, MAX_FITS, MAX_SECONDS = 5, 41, 4.0


@dataclass(frozen=True)
class Fit:
    """Data and parameters of a linear machine with a regularised intercept; all labels are −1 and 1."""

    X: Any
    y: np.ndarray
    C: float
    loss: str
    threads: int | None

    @property
    def is_regression(self) -> bool:
        return "epsilon" in self.loss

    def ours(self, tolerance: float) -> Any:
        """Return the estimator."""
        own = {"epsilon": EPSILON} if self.is_regression else {}
        make = maxmargin.LinearSVR if self.is_regression else maxmargin.LinearSVC
        return make(C=self.C, loss=self.loss, tol=tolerance, intercept_scaling=1, n_jobs=self.threads, **own)

    def primal(self, weights: np.ndarray) -> float:
        """Return the primal value of weights, of which the last is the intercept."""
        values = self.X @ weights[:-1] + weights[-1]
        if self.is_regression:
            loss = np.maximum(0.0, np.abs(self.y - values) - EPSILON)
        else:
            loss = np.maximum(0.0, 1.0 - self.y * values)
        power = 2 if self.loss.startswith("squared") else 1
        return float(0.5 * weights @ weights + self.C * (loss**power).sum())


class Liblinear:
    """A problem in LIBLINEAR's own format, and one of its solvers."""

    def __init__(self, fit: Fit, solver: int) -> None:
        from liblinear import liblinearutil

        self.library, self.first = liblinearutil, fit.y[0]
        self.problem = liblinearutil.problem(fit.y, sparse.csr_matrix(fit.X), 1.0)
        # An intercept of regression is regularised as well.
        options = f"-s {solver} -c {fit.C!r} -B 1 -q" + (f" -p {EPSILON!r}" if fit.is_regression else "")
        self.options = liblinearutil.parameter(options)
        self.is_regression = fit.is_regression

    def fit(self) -> Any:
        self.model = self.library.train(self.problem, self.options)

    def weights(self) -> np.ndarray:
        count = self.model.nr_feature + 1
        sign = 1.0 if self.is_regression or self.model.get_labels()[0] > 0 else -1.0
        return sign * np.ctypeslib.as_array(self.model.w, (count,))


def fastest(fit: Fit, bound: float, gap: float) -> tuple[Liblinear, float] | None:
    """Return LIBLINEAR with the solver and the tolerance that reach the gap soonest, and the gap that it reaches."""
    found = []
    for solver in SOLVERS[fit.loss]:
        library = Liblinear(fit, solver)
        known: dict[int, float] = {}

        def gap_at(index: int, library: Liblinear = library) -> float:
            library.options.eps = TOLERANCES[index]
            library.fit()
            return relative_gap(fit.primal(library.weights()), bound)

        index = find_loosest(gap_at, len(TOLERANCES), gap, known)
        if index is not None:
            library.options.eps = TOLERANCES[index]
            seconds = min(seconds_of(library.fit)[0] for _ in range(3))
            found.append((seconds, library, known[index]))
    return min(found, key=lambda one: one[0])[1:] if found else None


def seconds_of(function: Callable[[], Any]) -> tuple[float, float]:
    """Return the processor time of all threads and the time by the clock."""
    cpu, wall = process_time(), perf_counter()
    function()
    return process_time() - cpu, perf_counter() - wall


def compare(fit: Fit, gap: float) -> tuple[np.ndarray, float] | None:
    """Return the median times of LIBLINEAR and maxmargin and the gap of LIBLINEAR; None if that misses the gap."""
    reference = fit.ours(REFERENCE_GAP).fit(fit.X, fit.y)
    peer = fastest(fit, reference.certificate_.dual, gap)
    if peer is None:
        return None
    model = fit.ours(gap)
    functions = peer[0].fit, partial(model.fit, fit.X, fit.y)
    times: list[list[tuple[float, float]]] = []
    began = perf_counter()
    while len(times) < MIN_FITS or (len(times) < MAX_FITS and perf_counter() - began < MAX_SECONDS):
        times.append([seconds_of(function) for function in functions])
    return np.median(times, axis=0), peer[1]


def regression(folder: Path) -> Iterable[LinearCase]:
    """Return the cases of regression, with both losses."""
    text = partial(loading.libsvm_text, folder)
    data = {
        "abalone": lambda: standardised(text("abalone_scale.libsvm")),
        "cpusmall": lambda: standardised(text("cpusmall_scale.libsvm")),
        "housing": lambda: standardised(text("housing_scale.libsvm")),
        "smooth": lambda: generated.smooth_targets(10_000),
    }
    for loss, name in (("squared_epsilon_insensitive", "SVR"), ("epsilon_insensitive", "SVR_l1")):
        for data_name, load in data.items():
            for C in COSTS:
                yield LinearCase(f"{data_name}_{name}_C{C:g}", load, C, loss)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder with the data files")
    parser.add_argument("--cases", default="", help="only these, separated by commas; `a9a` selects all costs")
    parser.add_argument("--gap", type=float, default=1e-4, help="relative duality gap, default 1e-4")
    parser.add_argument("--threads", type=int, help="threads of maxmargin; default all cores. LIBLINEAR has one")
    options = parser.parse_args()
    warnings.simplefilter("error")
    wanted = [name for name in options.cases.split(",") if name]
    print("| case | group | LIBLINEAR, gap | CPU | maxmargin, CPU | ratio, CPU | ratio, clock |")
    print("|---|---|---:|---:|---:|---:|---:|")
    ratios: dict[str, list[np.ndarray]] = {group: [] for group in GROUPS}
    for case in [*linear(options.data), *regression(options.data)]:
        data_name = case.name.rpartition("_C")[0]
        if (wanted and not {case.name, data_name} & set(wanted)) or (not wanted and data_name in SLOW):
            continue
        X, y = case.load()
        fit = Fit(X, np.asarray(y, dtype=np.float64), case.C, case.loss, options.threads)
        if not fit.is_regression:
            fit = replace(fit, y=np.where(fit.y == fit.y.max(), 1.0, -1.0))
        found = compare(fit, options.gap)
        if found is None:
            print(f"| {case.name} | {group_of(case.name)} | not reached | | | | |", flush=True)
            continue
        (theirs, ours), gap = found
        ratios[group_of(case.name)].append(theirs / ours)
        cells = f"{theirs[0] * 1e3:.2f} ms | {ours[0] * 1e3:.2f} ms | " + " | ".join(f"{r:.2f}" for r in theirs / ours)
        print(f"| {case.name} | {group_of(case.name)} | {gap:.1e} | {cells} |", flush=True)
    print()
    for group, several in ratios.items():
        if several:
            means, least = np.exp(np.log(several).mean(axis=0)), np.min(several, axis=0)
            words = [f"{means[k]:.2f} by {what}, at least {least[k]:.2f}" for k, what in enumerate(("CPU", "clock"))]
            print(f"{group}: geometric mean {'; '.join(words)}, {len(several)} cases")


if __name__ == "__main__":
    main()
