"""Multi-class strategies of `SVC`: accuracy, fit time and support vectors on iris and digits.

    python -m benchmarks.multi_class

Five-fold cross-validation with a fixed seed, standardised features, the default RBF kernel and the best C among a few
for each strategy; the time is the median of one fit per fold on all cores.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC

STRATEGIES = ("ovo", "ovr", "crammer_singer", "weston_watkins")
COSTS = (0.1, 1.0, 10.0, 100.0)


def validate(X: np.ndarray, y: np.ndarray, strategy: str, cost: float) -> tuple[float, float, float, float]:
    """Return accuracy, median seconds, mean number of support vectors and largest violation."""
    scores, seconds, support, violations = [], [], [], []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        model = make_pipeline(StandardScaler(), SVC(C=cost, multi_class=strategy))
        started = perf_counter()
        model.fit(X[train], y[train])
        seconds.append(perf_counter() - started)
        scores.append(model.score(X[test], y[test]))
        support.append(len(model[-1].support_))
        certificates = model[-1].certificate_
        violations += [c.violation for c in (certificates if isinstance(certificates, list) else [certificates])]
    return float(np.mean(scores)), float(np.median(seconds)), float(np.mean(support)), max(violations)


def main() -> None:
    SVC().fit([[0.0], [1.0]], [0, 1])  # warm-up
    print("| data | strategy | best C | accuracy | seconds per fit | support vectors | largest violation |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for name, load in (("iris", load_iris), ("digits", load_digits)):
        X, y = load(return_X_y=True)
        for strategy in STRATEGIES:
            found = {cost: validate(X, y, strategy, cost) for cost in COSTS}
            cost = max(COSTS, key=lambda cost: found[cost][0])
            accuracy, seconds, support, violation = found[cost]
            cells = (name, strategy, f"{cost:g}", f"{accuracy:.3f}", f"{seconds:.3f}", f"{support:.0f}")
            print(f"| {' | '.join(cells)} | {violation:.0e} |", flush=True)


if __name__ == "__main__":
    main()
