"""Bounds on the exact kernel optimum from machines on landmarks: their width, and what they take beyond the fit.

    python -m benchmarks.landmark_bounds --data FOLDER [--rows 581012] [--landmarks 1000 ...] [--polish 60]
    python -m benchmarks.landmark_bounds --data FOLDER --blocks     bounds of the same function from blocks of rows, too

The data are the forest cover types, two classes, with standardised columns (`covtype_binary.npy.xz` in the folder). The
time of processors is reported beside that of the clock, which other processes affect.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from benchmarks.peers.loading import covtype, standardised
from maxmargin import KernelApproximationSVC, blocks
from maxmargin.resources import thread_count


def main() -> None:
    """Fit, bound and print a line for each number of landmarks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder with the data")
    parser.add_argument("--rows", type=int, default=581_012)
    parser.add_argument("--landmarks", type=int, nargs="+", default=[1000])
    parser.add_argument("--gamma", type=float, nargs="+", default=[10 / 54])
    parser.add_argument("--cost", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-2)
    parser.add_argument("--polish", type=float, help="seconds of the exact block solver, in a second fit")
    parser.add_argument("--blocks", action="store_true", help="compute the bounds from blocks of rows as well")
    arguments = parser.parse_args()
    X, y = standardised(covtype(arguments.data, arguments.rows))
    print(f"{X.shape[0]:,} rows, C = {arguments.cost:g}, {thread_count(None)} threads")
    for gamma in arguments.gamma:
        for landmarks in arguments.landmarks:
            model = KernelApproximationSVC(
                arguments.cost, gamma=gamma, n_components=landmarks, tol=arguments.tol, random_state=0
            )
            started = perf_counter()
            model.fit(X, y)
            fitted, used = perf_counter(), process_time()
            bounds = model.certify_exact(X, y)
            print(
                f"gamma {gamma:.3g}, {landmarks:,} landmarks (error {model.approximation_error_:.2g}): fit "
                f"{fitted - started:.0f} s, bounds {perf_counter() - fitted:.0f} s ({process_time() - used:.0f} s of "
                f"processors)\n  {bounds}",
                flush=True,
            )
            if arguments.blocks:
                started, used = perf_counter(), process_time()
                bounds = model.certify_exact(blocks.open(X, y))
                print(
                    f"  from blocks of rows: {perf_counter() - started:.0f} s ({process_time() - used:.0f} s of "
                    f"processors)\n  {bounds}",
                    flush=True,
                )
            if arguments.polish is not None:
                print_polish(model, arguments.polish, X, y)


def print_polish(model: KernelApproximationSVC, seconds: float, X: Any, y: Any) -> None:
    """Fit again with a polish of so many seconds, and print how far the bounds have come."""
    started, used = perf_counter(), process_time()
    model.set_params(polish=True, polish_seconds=seconds).fit(X, y)
    print(
        f"  polish of {seconds:g} s: fit, bounds, polish and certificate {perf_counter() - started:.0f} s "
        f"({process_time() - used:.0f} s of processors), {model.polish_status_.value}; relative gap from "
        f"{model.landmark_certificate_.relative_gap:.2g} to {model.exact_certificate_.relative_gap:.2g}\n"
        f"  {model.exact_certificate_}",
        flush=True,
    )


if __name__ == "__main__":
    main()
