"""Seconds of decision values on a GPU, of samples in host memory and on the card.

    python -m benchmarks.gpu.prediction --data FOLDER

The model is an SVC of 100,000 rows of the forest cover types; the rows to predict are all of them, repeated. Errors are
those of the first rows, beside the CPU.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.peers import loading

#: Rows of the training set, rows to predict, and rows whose decision values the CPU computes, too.
TRAINED, PREDICTED, COMPARED = 100_000, 1_000_000, 2_000


def seconds(predict: Any) -> float:
    """Return the median of three calls after a first one."""
    times = []
    for _ in range(4):
        began = perf_counter()
        predict()
        times.append(perf_counter() - began)
    return median(times[1:])


def main() -> None:
    import cupy

    from maxmargin import SVC

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data set")
    X, y = loading.standardised(loading.covtype(parser.parse_args().data, 581_012))
    model = SVC(device="cuda").fit(X[:TRAINED], y[:TRAINED])
    rows = np.resize(X, (PREDICTED, X.shape[1]))
    print(f"{PREDICTED:,} rows x {X.shape[1]}, {len(model.support_):,} support vectors")
    for name, samples in [("host memory, float64", rows), ("host memory, float32", rows.astype(np.float32))]:
        print(f"{name}: {seconds(lambda samples=samples: model.decision_function(samples)):.3f} s")
    on_card = cupy.asarray(rows)

    def predict() -> None:
        model.decision_function(on_card)
        cupy.cuda.Device().synchronize()

    print(f"on the card, float64: {seconds(predict):.3f} s")
    found = model.decision_function(rows)[:COMPARED]
    expected = model.set_params(device="cpu").decision_function(rows[:COMPARED])
    print(f"largest error of {COMPARED:,} decision values: {np.abs(found - expected).max():.1e}")


if __name__ == "__main__":
    main()
