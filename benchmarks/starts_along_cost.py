"""Linear fits along C: each from the solution of the one before, or from zero.

    python -m benchmarks.starts_along_cost

The processor time of six values of C from 2⁻¹¹ to 2⁹ in one thread, the smaller of three runs each, alternating. Small
problems are solved in one native call from zero; a start goes through the pipeline.
"""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

from maxmargin import LinearSVC, LinearSVR

SHAPES = ((20, 5), (400, 20), (5_000, 20), (5_000, 64), (5_000, 200), (50_000, 50))
COSTS = tuple(2.0**exponent for exponent in range(-11, 10, 4))
RUNS = 3


def seconds(estimator: Any, X: Any, y: Any, warm: bool) -> float:
    """Return the processor time of all costs."""
    model = estimator(warm_start=warm, n_jobs=1)
    begin = process_time()
    for cost in COSTS:
        model.set_params(C=cost).fit(X, y)
    return process_time() - begin


def main() -> None:
    """Print a line for each estimator and shape."""
    print("estimator  rows    features  warm [ms]  cold [ms]")
    for estimator in (LinearSVC, LinearSVR):
        for rows, features in SHAPES:
            X, y = make_classification(rows, features, n_informative=3, random_state=0)
            y = y + 0.1 * X[:, 0] if estimator is LinearSVR else y
            times = [[seconds(estimator, X, y, warm) for warm in (True, False)] for _ in range(RUNS)]
            warm, cold = 1e3 * np.min(times, axis=0)
            print(f"{estimator.__name__}  {rows:6,}  {features:8}  {warm:9.1f}  {cold:9.1f}")


if __name__ == "__main__":
    main()
