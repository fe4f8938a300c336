"""Bounds on the exact kernel optimum from machines on landmarks: their width, and what they take beyond the fit.

    python -m benchmarks.landmark_bounds --data FOLDER [--rows 581012] [--landmarks 1000 ...]

The data are the forest cover types, two classes, with standardised columns (`covtype_binary.npy.xz` in the folder). The
time of processors is reported beside that of the clock, which other processes affect.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter, process_time

from benchmarks.peers.loading import covtype, standardised
from maxmargin import KernelApproximationSVC
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


if __name__ == "__main__":
    main()
