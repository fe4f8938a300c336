"""The time of a pass on worker processes of one thread, and what a cost model predicts for larger clusters.

    python -m benchmarks.dask_scaling
    python -m benchmarks.dask_scaling --rows 400000 --features 200 --workers 1 2 4

Every worker is a process of a `LocalCluster`: more workers than cores measure nothing but the communication. The model
of a round on p workers, with n rows of d features, is

    seconds = row · n / p + depth · (latency + 2 · bytes / bandwidth),        depth = ⌊log₂ p⌋, the levels of the tree

`row` is that of one worker. The latency is the growth, per level, of a round on a few rows. The bytes are those of the
second moments, 4 d (d + 1), which a worker receives from two children. Predictions are for one worker on a machine.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from maxmargin.dask import LinearSVC

#: Rows of each worker in the fit whose rounds consist of communication.
MIN_ROWS_OF_A_WORKER = 64

#: Rows, workers and bandwidths of the predictions.
PREDICTED_ROWS, PREDICTED_WORKERS, GIGABITS = 100_000_000, (8, 64, 512), (10, 100)


@dataclass(frozen=True)
class Model:
    """Seconds of a pass per row, bytes of the sums of a worker, and seconds of a round on few rows per level."""

    row: float
    size: float
    latency: float

    def seconds(self, rows: float, workers: int, gigabits: float) -> float:
        """Return the predicted time of a round."""
        depth = int(np.log2(workers))
        return self.row * rows / workers + depth * (self.latency + 2 * 8 * self.size / (gigabits * 1e9))


def generate(rows: int, features: int, chunks: int) -> tuple[da.Array, da.Array]:
    """Return rows and labels of two classes, as Dask arrays."""
    random = da.random.default_rng(0)
    size = -(-rows // chunks)
    X = random.normal(size=(rows, features), chunks=(size, features))
    weights = np.random.default_rng(1).normal(size=features) / np.sqrt(features)
    return X, (X @ weights + 0.7 * random.normal(size=rows, chunks=size) > 0.2).astype(np.int8)


def seconds_of_a_round(client: Client, rows: int, features: int, loss: str) -> tuple[float, int, float]:
    """Return the median time of a round, the passes of the fit, and its relative gap."""
    X, y = client.persist(generate(rows, features, max(4, 2 * len(client.nthreads()))))
    times: list[float] = []
    model = LinearSVC(loss=loss, tol=1e-6, callback=lambda progress: times.append(progress.seconds))
    model.fit(X, y, client=client)
    return float(np.median(np.diff(times))) if len(times) > 1 else times[0], len(times), model.certificate_.relative_gap


def measure(workers: int, options: argparse.Namespace) -> tuple[float, float]:
    """Return the time of a round on all rows and on a few; print both."""
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0) as cluster,
        Client(cluster) as client,
    ):
        seconds_of_a_round(client, MIN_ROWS_OF_A_WORKER * workers, options.features, options.loss)  # imports
        few, _, _ = seconds_of_a_round(client, MIN_ROWS_OF_A_WORKER * workers, options.features, options.loss)
        all_rows, passes, gap = seconds_of_a_round(client, options.rows, options.features, options.loss)
    print(f"{workers:7d} {1e3 * all_rows:12.2f} {1e3 * few:12.2f} {passes:7d} {gap:9.1e}", flush=True)
    return all_rows, few


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--loss", default="hinge")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    options = parser.parse_args()
    print(f"{options.rows:,} rows of {options.features} features, {options.loss} loss; milliseconds of a round")
    print("workers     all rows     few rows  passes       gap")
    found = {workers: measure(workers, options) for workers in options.workers}
    least, most = min(found), max(found)
    row = max(0.0, found[least][0] - found[least][1]) * least / options.rows
    levels = int(np.log2(most)) - int(np.log2(least))
    latency = max(0.0, found[most][1] - found[least][1]) / max(1, levels)
    model = Model(row, 4.0 * options.features * (options.features + 1), latency)
    print(f"model: {1e9 * row:.1f} ns a row, {model.size:,.0f} bytes a round, latency {1e3 * latency:.2f} ms a level")
    print(f"prediction, not measured, for {PREDICTED_ROWS:,} rows: seconds of a round, share of computation in it")
    for workers in PREDICTED_WORKERS:
        for gigabits in GIGABITS:
            seconds = model.seconds(PREDICTED_ROWS, workers, gigabits)
            share = row * PREDICTED_ROWS / workers / seconds
            print(f"{workers:7d} workers, {gigabits:3d} Gbit/s: {seconds:8.3f} s, {100 * share:.1f} %")


if __name__ == "__main__":
    main()
