"""Rounds that CoCoA+ and Newton's method by passes take on a cluster, for the hinge loss.

    python -m benchmarks.cocoa
    python -m benchmarks.cocoa --data FOLDER        with a9a and ijcnn1 of the folder

CoCoA+ (Ma et al. 2015) is simulated: the rows are divided at random among K workers; in a round each runs epochs of
dual coordinate ascent on its rows with the weights of the round before and σ' = K, and the changes of the weights are
added. A round sends d numbers to and from each worker, as one of Newton's method does, but for the second moments. Both
minimise ½‖w‖² + C Σ max(0, 1 − y f(x)), the last component of w being the weight of a constant feature 1, to the same
relative gap. Newton's method starts from the solution of a sample of a twentieth of the rows.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import LinearSVC, blocks
from maxmargin.datasets import read_samples
from maxmargin.machines.linear import block_data

MAX_ROUNDS = 300


def generated(rows: int, features: int, noise: float) -> tuple[Any, Any]:
    """Return rows of two overlapping classes and their signs."""
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, features))
    weights = random.normal(size=features) / np.sqrt(features)
    return X, np.where(X @ weights + noise * random.normal(size=rows) > 0.2, 1.0, -1.0)


def cocoa(X: Any, y: Any, cost: float, workers: int, epochs: int, tolerance: float) -> tuple[int, float]:
    """Return the rounds until the relative gap is within a tolerance, and the gap."""
    random = np.random.default_rng(1)
    rows = np.hstack([X, np.ones((len(X), 1))]) * y[:, None]
    parts = np.array_split(random.permutation(len(rows)), workers)
    curvature = workers * np.einsum("ij,ij->i", rows, rows)
    dual, weights, gap = np.zeros(len(rows)), np.zeros(rows.shape[1]), np.inf
    for round in range(1, MAX_ROUNDS + 1):
        changes = []
        for part in parts:
            own = weights.copy()  # plus σ' times the change
            for _ in range(epochs):
                for row in random.permutation(part):
                    x = rows[row]
                    before = dual[row]
                    dual[row] = min(max(before + (1.0 - x @ own) / curvature[row], 0.0), cost)
                    if dual[row] != before:
                        own += (workers * (dual[row] - before)) * x
            changes.append((own - weights) / workers)
        weights = weights + np.sum(changes, axis=0)
        primal = 0.5 * weights @ weights + cost * np.maximum(0.0, 1.0 - rows @ weights).sum()
        gap = (primal - (dual.sum() - 0.5 * weights @ weights)) / primal
        if gap <= tolerance:
            return round, gap
    return MAX_ROUNDS, gap


def main() -> None:
    """Print a line for each table and number of workers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--workers", type=int, nargs="+", default=[4, 16, 64])
    options = parser.parse_args()
    tables = {"generated, 20 features": generated(options.rows, 20, 0.7)}
    tables["generated, 100 features, less noise"] = generated(options.rows, 100, 0.1)
    for name in ("a9a.libsvm", "ijcnn1.libsvm.bz2") if options.data is not None else ():
        samples = read_samples(options.data / name)
        chosen = np.random.default_rng(0).permutation(samples.X.shape[0])[: options.rows]
        tables[name] = samples.X.toarray()[chosen], np.where(samples.y[chosen] > 0, 1.0, -1.0)
    print("| data | C | workers | local epochs | rounds of CoCoA+ | its gap | rounds of Newton's method |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, (X, y) in tables.items():
        for cost in (0.01, 1.0):
            model = LinearSVC(loss="hinge", C=cost, tol=options.tol, intercept_scaling=1.0, fit_intercept=True)
            block_data.SAMPLE_VALUES, block_data.MIN_SAMPLE_ROWS = X.size // 20, 100
            passes = model.fit(blocks.open(X, y)).n_passes_ - 1  # the first one scans the data
            for workers in options.workers:
                for epochs in (1, 10):
                    rounds, gap = cocoa(X, y, cost, workers, epochs, options.tol)
                    more = ">" if gap > options.tol else ""
                    line = f"| {name} | {cost:g} | {workers} | {epochs} | {more}{rounds} | {gap:.1e} | {passes} |"
                    print(line, flush=True)


if __name__ == "__main__":
    main()
