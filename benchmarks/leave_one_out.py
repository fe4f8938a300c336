"""Leave-one-out beside one fit: its cost in fits, its growth with the number of samples, and refitting as the check.

    python -m benchmarks.leave_one_out --data FOLDER                     # covtype, then the small sets by refitting
    python -m benchmarks.leave_one_out --data FOLDER --sizes 1000 5000   # covtype of these sizes alone
    python -m benchmarks.leave_one_out --data FOLDER --small             # heart, diabetes, german: sample by sample

FOLDER is the data folder of benchmarks/peers. Times are processor seconds of one thread. C and γ on covtype are the
best of a grid of 4 × 4 by the default folds,
unless --point gives them; a fit is the median of three. The exit status is 1 if a sample of a small set differs from
refitting without it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.peers import loading
from maxmargin import SVC, SVR, error_estimates, grid_search, leave_one_out

#: The small sets by name, with C and γ near their best points.
SMALL = {
    "heart": ("heart_scale.libsvm", 1.0, 0.05),
    "diabetes": ("diabetes_scale.libsvm", 10.0, 0.1),
    "german": ("german.numer_scale.libsvm", 1.0, 0.05),
}


def timed(task: Any) -> tuple[Any, float, float]:
    """Return the result of a task, its seconds and its processor seconds."""
    wall, processor = perf_counter(), process_time()
    found = task()
    return found, perf_counter() - wall, process_time() - processor


def cover(folder: Path, count: int, point: tuple[float, float] | None) -> tuple[float, float]:
    """Print lines about covtype, with its classes, and as targets ±1 of a regression; return C and γ."""
    X, y = loading.standardised(loading.covtype(folder, count))[:2]
    if point is None:
        best = grid_search(X, y, Cs=[1, 10, 100, 1000], gammas=(2.0 ** np.arange(-1, 7, 2) / 54).tolist()).best.point
        assert best.gamma is not None
        point = best.C, best.gamma
    C, gamma = point
    machines = (SVC(C=C, gamma=gamma, n_jobs=1), SVR(C=C, gamma=gamma, n_jobs=1))
    for machine, targets in zip(machines, (y, np.where(y == y[0], 1.0, -1.0)), strict=True):
        fits = [timed(lambda machine=machine, targets=targets: machine.fit(X, targets)) for _ in range(3)]
        model, seconds, processor = fits[0][0], *(float(np.median([fit[k] for fit in fits])) for k in (1, 2))
        found, of_all, processor_of_all = timed(lambda model=model: leave_one_out(model))
        estimates, _, of_estimates = timed(lambda model=model: error_estimates(model))
        of_both = [timed(lambda model=model: error_estimates(model, loo=True))[2] for _ in range(2)]
        of_all_again = min(processor_of_all, timed(lambda model=model: leave_one_out(model))[2])
        of_xi_alpha = "" if estimates.xi_alpha is None else f"{estimates.xi_alpha:.4f}"
        print(
            f"| {type(model).__name__} | {count:,} | {C:g} | {gamma:.3g} | {len(model.support_):,} | {processor:.3f} | "
            f"{processor_of_all:.2f} | {processor_of_all / processor:.1f} | {of_all / seconds:.1f} | "
            f"{of_estimates / processor:.1f} | {(min(of_both) - of_all_again) / processor:.1f} | "
            f"{found.error:.4f} | {found.proved.mean():.4f} | {estimates.span:.4f} | "
            f"{of_xi_alpha} |",
            flush=True,
        )
    return point


def small(folder: Path) -> bool:
    """Compare each sample of the small sets with refitting; return whether all are equal."""
    print("| set | samples | errors | different from refitting | nearest value to 0 | time | refitting |")
    print("|---|---|---|---|---|---|---|")
    equal = True
    for name, (file, C, gamma) in SMALL.items():
        X, y = loading.libsvm_text(folder, file)[:2]
        model = SVC(C=C, gamma=gamma).fit(X, y)
        found, seconds, _ = timed(lambda model=model: leave_one_out(model))

        def refit(i: int, X: Any = X, y: Any = y, C: float = C, gamma: float = gamma) -> float:
            others = np.arange(len(y)) != i
            return float(SVC(C=C, gamma=gamma, tol=1e-7).fit(X[others], y[others]).decision_function(X[i : i + 1])[0])

        rows = range(len(y))
        values, refitting, _ = timed(lambda refit=refit, rows=rows: np.array([refit(i) for i in rows]))
        different = int(np.sum(model.classes_[(values >= 0).astype(int)] != found.predictions))
        wrong = int(np.sum(found.predictions != y))
        print(
            f"| {name} | {len(y):,} | {wrong} | {different} | {np.abs(values).min():.2g} | {seconds:.2f} s | "
            f"{refitting:.1f} s |",
            flush=True,
        )
        equal &= different == 0
    return equal


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sizes", type=int, nargs="*")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--point", type=float, nargs=2, metavar=("C", "GAMMA"))
    options = parser.parse_args(arguments)
    if not options.small:
        print("| machine | samples | C | γ | support vectors | fit s | leave-one-out s | fits | fits by the clock | "
              "estimates, in fits | beside leave-one-out | error | proved | span | ξα |")  # fmt: skip
        print("|---" * 15 + "|")
        for count in options.sizes or (1_000, 2_000, 5_000, 10_000):
            cover(options.data, count, tuple(options.point) if options.point else None)
    if options.small or not options.sizes:
        return 0 if small(options.data) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
