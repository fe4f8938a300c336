"""Steps and kernel evaluations of the three selection rules, with and without shrinking, on four data sets.

    python -m benchmarks.selection_rules            prints the table and writes it to docs/experiments/selection.md
    python -m benchmarks.selection_rules --quick    prints a smaller table only

Rows are computed one at a time and the cache holds a tenth of the matrix, so that the counts are those of the
algorithm. All runs of a data set must certify the same optimum.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.preprocessing import StandardScaler

from maxmargin.datasets import chessboard
from maxmargin.formulations.c_classification import pose
from maxmargin.kernels import Gaussian, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import certify
from maxmargin.solvers import PairwiseSolver, StoppingRule
from maxmargin.solvers.smo.smo_state import SELECTION_RULES

PAGE = Path(__file__).parents[1] / "docs" / "experiments" / "selection.md"


class RowByRow(KernelMatrix):
    """A kernel matrix that computes single rows."""

    rows_per_request = 1


def data_sets(quick: bool):
    """Yield name, samples, signs, C and gamma."""
    n = 400 if quick else 2000
    X, y = chessboard(n)
    yield f"chessboard, n = {n}", X, y, 1000.0, 0.5
    X, y = chessboard(n, noise=0.1)
    yield f"chessboard, 10 % flipped labels, n = {n}", X, y, 10.0, 1.0
    X, y = load_breast_cancer(return_X_y=True)
    yield f"breast cancer, n = {len(X)}", StandardScaler().fit_transform(X), y, 10.0, 0.03
    if quick:
        X, y = make_classification(n, 20, n_informative=10, flip_y=0.1, random_state=0)
        yield f"two clouds, n = {n}", X, y, 1.0, 0.05
    else:
        X, y = load_digits(return_X_y=True)
        yield f"digits, odd vs even, n = {len(X)}", X / 16.0, y % 2, 10.0, 0.05


def measure(X, y, cost: float, gamma: float) -> list[tuple[str, bool, int, int, float]]:
    signs = np.where(y == 1, 1.0, -1.0)
    problem = pose(RowByRow(Gaussian(gamma), Points(X)), signs, np.full(len(X), cost))
    budget = 8 * len(X) * max(2, len(X) // 10)
    rows, values = [], []
    for selection in SELECTION_RULES:
        for shrinking in (False, True):
            solver = PairwiseSolver(selection, shrinking, budget, StoppingRule(violation=1e-3), finish_below=0)
            solution = solver.solve(problem)
            certificate = certify(problem, solution.dual)
            assert certificate.violation <= 1e-3 + 1e-9
            values.append(certificate.dual)
            counters = solution.counters
            rows.append(
                (selection, shrinking, counters.iterations, counters.kernel_evaluations, certificate.relative_gap)
            )
    np.testing.assert_allclose(values, values[0], rtol=1e-4)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small data, print only")
    options = parser.parse_args()
    lines = [
        "| data | rule | shrinking | steps | kernel values | per n² | gap |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for name, X, y, cost, gamma in data_sets(options.quick):
        for selection, shrinking, steps, values, gap in measure(X, y, cost, gamma):
            cells = [
                f"{name}, C = {cost:g}, γ = {gamma:g}",
                f"`{selection}`",
                "on" if shrinking else "off",
                f"{steps:,}",
                f"{values:,}",
                f"{values / len(X) ** 2:.2f}",
                f"{gap:.0e}",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    table = "\n".join(lines)
    print(table)
    if not options.quick:
        between = re.compile(r"(<!-- shrinking -->\n).*(\n<!-- end of shrinking -->)", re.DOTALL)
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(between.sub(lambda match: match[1] + table + match[2], page), encoding="utf-8")


if __name__ == "__main__":
    main()
