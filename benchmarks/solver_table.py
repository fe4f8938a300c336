"""Benchmark all solvers on the same problems, with certificates: the tables of docs/solvers.md.

    python -m benchmarks.solver_table            writes them into the page
    python -m benchmarks.solver_table --print    prints them

Data sets are those of scikit-learn and our own generators, so that no download is needed. Counts are the same on
every computer; times are those of the solver alone, medians of several runs.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

from maxmargin import compare
from maxmargin.datasets import chessboard

PAGE = Path(__file__).parents[1] / "docs" / "solvers.md"
TOLERANCE, SECONDS, RUNS = 1e-3, 120.0, 3

#: The solvers for any kernel, in historical order.
KERNEL = ("quadratic_program", "chunking", "gradient_projection", "decomposition", "platt", "active_set", "pairwise")
KERNEL += ("block",)

#: The solvers for the linear kernel.
LINEAR = ("primal_quadratic_program", "subgradient", "stochastic_subgradient", "dual_coordinate_ascent")
LINEAR += ("semismooth_newton", "linear")


def cancer() -> tuple[Any, Any]:
    """Return the breast cancer data, scaled."""
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def digits() -> tuple[Any, Any]:
    """Return the digits, labelled odd or even."""
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y % 2


#: Title, data, parameters of the estimator, and solvers.
PROBLEMS: list[tuple[str, Callable[[], tuple[Any, Any]], dict[str, Any], tuple[str, ...]]] = [
    (
        "Chessboard, n = 1,000, 10 % of the labels flipped, RBF kernel, γ = 1, C = 10",
        lambda: chessboard(1000, noise=0.1),
        {"C": 10.0, "gamma": 1.0},
        KERNEL,
    ),
    ("Breast cancer, n = 569, RBF kernel, γ = 0.03, C = 10", cancer, {"C": 10.0, "gamma": 0.03}, KERNEL),
    (
        "Digits, odd vs even, n = 1,797, RBF kernel, γ = 0.1, C = 10",
        digits,
        {"C": 10.0, "gamma": 0.1},
        KERNEL,
    ),
    ("Breast cancer, n = 569, linear kernel, C = 1", cancer, {"C": 1.0, "kernel": "linear"}, ("block", *LINEAR)),
]


def table(make: Callable[[], tuple[Any, Any]], parameters: dict[str, Any], names: tuple[str, ...]) -> list[str]:
    """Return the lines of one table."""
    lines = [
        "| solver | seconds | iterations | kernel values | relative gap | support vectors | |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    X, y = make()
    runs = [compare((X, y), list(names), tol=TOLERANCE, max_seconds=SECONDS, **parameters) for _ in range(RUNS)]
    seconds = {name: median(run[name].counters.seconds for run in runs) for name in names}
    for name in names:
        run = runs[0][name]
        counters, certificate = run.counters, run.certificate
        kernel_values = f"{counters.kernel_evaluations:,}" if counters.kernel_evaluations else "none"
        gap = "" if certificate is None else f"{certificate.relative_gap:.0e}"
        remark = "" if run.outcome == "converged" else run.outcome
        lines.append(
            f"| `{name}` | {seconds[name]:.3g} | {counters.iterations:,} | {kernel_values} | {gap} | "
            f"{run.support_vectors:,} | {remark} |"
        )
    return lines


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--print", action="store_true", dest="show", help="print the tables without writing the page")
    options = parser.parse_args()
    parts = []
    for title, make, parameters, names in PROBLEMS:
        parts.append("\n".join([f"**{title}**", "", *table(make, parameters, names)]))
        print(parts[-1], flush=True)
    if not options.show:
        text = PAGE.read_text(encoding="utf-8")
        between = re.compile(r"(<!-- tables -->\n).*(<!-- end of tables -->)", re.DOTALL)
        PAGE.write_text(between.sub(lambda m: m[1] + "\n" + "\n\n".join(parts) + "\n\n" + m[2], text), encoding="utf-8")


if __name__ == "__main__":
    main()
