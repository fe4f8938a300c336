"""What features and the linear problem take of a fit of `KernelApproximationSVC`.

    python -m benchmarks.gpu.landmarks --data FOLDER
    python -m benchmarks.gpu.landmarks --data FOLDER --device cuda --rows 581012

Processor seconds of all threads, and seconds by the clock in parentheses, for rows of the forest cover types.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from benchmarks.peers import loading
from maxmargin import KernelApproximationSVC
from maxmargin.kernels import Gaussian, Points
from maxmargin.models import LandmarkFeatures


def seconds(work: Any) -> str:
    """Return the processor seconds of a call, and those by the clock."""
    processor, clock = process_time(), perf_counter()
    work()
    return f"{process_time() - processor:.1f} ({perf_counter() - clock:.1f})"


def main() -> None:
    """Print the times for two numbers of landmarks and two costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data set")
    parser.add_argument("--rows", type=int, default=50_000, help="number of rows [50000]")
    parser.add_argument("--device", default="cpu", help="cpu or cuda [cpu]")
    options = parser.parse_args()
    X, y = loading.standardised(loading.covtype(options.data, options.rows))
    kernel = Gaussian(1.0 / (X.shape[1] * X.var()))
    for landmarks in (500, 2000):
        features = LandmarkFeatures.of(kernel, Points(X[:landmarks]), 2, options.device)
        print(f"{landmarks} landmarks: features {seconds(lambda features=features: features(Points(X)))}", flush=True)
        for C in (1.0, 100.0):
            model = KernelApproximationSVC(C, n_components=landmarks, random_state=0, device=options.device)
            print(f"  C = {C:g}: fit {seconds(lambda model=model: model.fit(X, y))}", flush=True)


if __name__ == "__main__":
    main()
