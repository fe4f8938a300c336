"""Compare steps, kernel evaluations and rounds of fixed fits with recorded counts, to detect regressions.

    python -m benchmarks.regression            # compare; exit status 1 if a count increased
    python -m benchmarks.regression --update   # record the current counts

Counts do not depend on the load of the computer. They differ slightly between instruction sets, because kernel values
differ in the last digit; hence the allowance.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_iris, make_classification

from maxmargin import SVC, SVR
from maxmargin.datasets import chessboard

EXPECTED = Path(__file__).with_name("regression.json")

#: Largest allowed multiple of the recorded count.
ALLOWANCE = 1.6


def noisy() -> tuple:
    return make_classification(6000, 20, n_informative=12, n_redundant=0, flip_y=0.1, random_state=0)


def three_classes() -> tuple:
    return make_classification(4500, 15, n_informative=10, n_redundant=0, n_classes=3, random_state=0)


def text_like() -> tuple:
    random = np.random.default_rng(0)
    X = sparse.random_array((3000, 4000), density=0.01, format="csr", rng=random)
    return X, (X[:, :400].sum(axis=1) > X[:, 400:800].sum(axis=1)).astype(int)


def smooth() -> tuple:
    X = np.random.default_rng(0).normal(size=(5000, 8))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.3 * np.random.default_rng(1).normal(size=5000)


CASES = {
    "iris": (lambda: load_iris(return_X_y=True), {}),
    "chessboard, C = 100": (lambda: chessboard(5000), {"C": 100, "gamma": 0.5}),
    "chessboard, C = 1e5": (lambda: chessboard(3000), {"C": 1e5, "gamma": 0.5}),
    "noisy, mostly bounded": (noisy, {"C": 1}),
    "noisy, mostly free": (noisy, {"C": 10, "gamma": 0.5}),
    "little memory": (noisy, {"C": 1, "cache_size": 4}),
    "three classes": (three_classes, {"C": 10}),
    "sparse": (text_like, {"C": 10}),
}

#: The cases of regression.
OF_SVR = {
    "regression": (smooth, {"C": 1}),
    "regression, wide tube": (smooth, {"C": 1, "epsilon": 0.5}),
}


def count(name: str) -> dict[str, int]:
    """Fit a case on one thread and return its counts."""
    load, options = (CASES | OF_SVR)[name]
    X, y = load()
    model = (SVR if name in OF_SVR else SVC)(n_jobs=1, **options).fit(X, y)
    counters = [machine.counters for machine in model._models_]
    return {
        "steps": sum(c.iterations for c in counters),
        "kernel values": sum(c.kernel_evaluations for c in counters),
        "rounds": sum(c.rounds for c in counters),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="record the current counts")
    update = parser.parse_args().update
    counts = {name: count(name) for name in CASES | OF_SVR}
    if update:
        EXPECTED.write_text(json.dumps(counts, indent=2) + "\n", encoding="utf-8")
        return 0
    expected = json.loads(EXPECTED.read_text(encoding="utf-8"))
    worse = False
    for name, current in counts.items():
        for kind, number in current.items():
            before = expected[name][kind]
            increased = number > ALLOWANCE * before + 10
            worse |= increased
            print(f"{name:24} {kind:14} {number:12,} (was {before:,}){'  INCREASED' if increased else ''}")
    return int(worse)


if __name__ == "__main__":
    sys.exit(main())
