"""Shared by the experiments: problems, tables, colours, output.

An experiment is a module with three functions: `measure(options)` returns the results, `tables(results)` formats them
as Markdown, `draw(results)` as a plot. `run` calls them and writes DIR/NAME.png and the part of DIR/NAME.md between two
markers.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from scipy.stats import norm
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from maxmargin.formulations.c_classification import pose
from maxmargin.kernels import Gaussian, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import DualProblem, Solution
from maxmargin.problems.offsets import group_offsets
from maxmargin.solvers import BlockSolver, PairwiseSolver

Solver = PairwiseSolver | BlockSolver
DOCS = Path(__file__).parents[2] / "docs" / "experiments"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"

#: The colour-blind safe palette of Okabe and Ito.
BLUE, ORANGE, GREEN, RED, SKY, BLACK = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#000000"


class Options(NamedTuple):
    """Options of an experiment: smoke test, output folder, and optional data folder."""

    quick: bool = False
    output: Path = DOCS
    data: Path | None = None


class Data(NamedTuple):
    """Samples with labels ±1, cost and kernel width."""

    name: str
    X: np.ndarray
    signs: np.ndarray
    cost: float
    gamma: float

    def pose(self, cost: float | None = None, threads: int = 1) -> DualProblem:
        """Return the dual problem of a soft margin with an RBF kernel."""
        matrix = KernelMatrix(Gaussian(self.gamma), Points(self.X), threads)
        return pose(matrix, self.signs, np.full(len(self.X), self.cost if cost is None else cost))

    def pose_row_by_row(self) -> DualProblem:
        """Return the same problem with a matrix that computes single rows, as in the published algorithms."""
        matrix = RowByRow(Gaussian(self.gamma), Points(self.X))
        return pose(matrix, self.signs, np.full(len(self.X), self.cost))


class RowByRow(KernelMatrix):
    """A kernel matrix that computes single rows, without prefetching."""

    rows_per_request = 1


def signs_of(y: np.ndarray) -> np.ndarray:
    return np.where(y == y.max(), 1.0, -1.0)


def gaussians(n: int, error: float, dimension: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return two overlapping Gaussian classes with Bayes error `error`, and labels ±1."""
    random = np.random.default_rng(seed)
    signs = np.where(np.arange(n) % 2, 1.0, -1.0)
    X = random.normal(size=(n, dimension))
    X[:, 0] -= norm.ppf(error) * signs
    return X, signs


def rings(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return a disc and a ring that overlap slightly, and labels ±1."""
    random = np.random.default_rng(seed)
    signs = np.where(np.arange(n) % 2, 1.0, -1.0)
    angle, radius = random.uniform(0, 2 * np.pi, n), np.where(signs > 0, 2.0, 1.0) + random.normal(0, 0.3, n)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1), signs


def read(folder: Path, name: str, cost: float = 1.0, most: int = 4000) -> Data:
    """Return samples of a file of LIBSVM text, standardised, with γ = 1 / features."""
    X, y = load_svmlight_file(str(folder / name))
    chosen = np.random.default_rng(0).permutation(len(y))[:most]
    X, y = StandardScaler().fit_transform(X.toarray()[chosen]), y[chosen]
    return Data(f"{name.split('.')[0].removesuffix('_scale')}, n = {len(X):,}", X, signs_of(y), cost, 1 / X.shape[1])


def solve(solver: Solver, problem: DualProblem) -> tuple[Solution, float]:
    """Return the solution and its CPU time, which hardly depends on other load."""
    started = time.process_time()
    solution = solver.solve(problem)
    return solution, time.process_time() - started


def support(problem: DualProblem, dual: np.ndarray) -> tuple[int, int]:
    """Return the numbers of support vectors and of free ones."""
    free = (problem.lower < dual) & (dual < problem.upper) & (dual != 0)
    return int(np.count_nonzero(dual)), int(np.count_nonzero(free))


def decide(data: Data, problem: DualProblem, solution: Solution, X: np.ndarray) -> np.ndarray:
    """Return the decision values Σ b_i k(x_i, x) + offset of new samples."""
    offset = group_offsets(problem, solution.dual, solution.gradient)[0]
    used = np.flatnonzero(solution.dual)
    kernel, points = Gaussian(data.gamma), Points(data.X[used])
    parts = [kernel.evaluate(Points(part), points) @ solution.dual[used] for part in np.array_split(X, 10)]
    return np.concatenate(parts) + offset


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Return the exponent p of a fit value ∝ size^p."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def markdown(header: str, rows: Iterable[Sequence[object]]) -> str:
    """Return a table; `header` has the titles separated by bars, and columns after the first are right-aligned."""
    titles = header.split("|")
    lines = [titles, ["---"] + ["---:"] * (len(titles) - 1), *([str(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cell.strip() for cell in line)} |" for line in lines)


def logarithmic(axes: Axes, x: str, y: str, title: str) -> None:
    axes.set(xscale="log", yscale="log", xlabel=x, ylabel=y, title=title)
    axes.grid(alpha=0.3)


def plain_ticks(axis: Axis) -> None:
    """Label a short logarithmic axis with 1, 2, 5, 10."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def figure(columns: int = 2, height: float = 4.2) -> tuple[Figure, np.ndarray]:
    """Return a figure with panels, and the panels."""
    picture = Figure(figsize=(max(10, 4 * columns), height), layout="constrained")
    return picture, picture.subplots(1, columns, squeeze=False)[0]


def parse(description: str | None) -> Options:
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small data: seconds instead of minutes")
    parser.add_argument(
        "--output", type=Path, help="folder for tables and pictures; docs/experiments, not with --quick"
    )
    parser.add_argument("--data", type=Path, help="folder with files of LIBSVM text, for experiments on real data")
    given = parser.parse_args()
    if given.quick and given.output is None:
        parser.error("--quick needs --output: small tables are not for the docs")
    return Options(given.quick, given.output or DOCS, given.data)


def run(experiment: ModuleType, options: Options) -> Any:
    """Measure, write table and plot, and return the results."""
    name, started = Path(str(experiment.__file__)).stem, time.perf_counter()
    with threadpool_limits(1):
        results = experiment.measure(options)
    options.output.mkdir(parents=True, exist_ok=True)
    experiment.draw(results).savefig(options.output / f"{name}.png", dpi=110)
    text = experiment.tables(results)
    write_part(options.output / f"{name}.md", name, text)
    print(f"{text}\n{name}: {time.perf_counter() - started:.0f} s, {options.output / name}.md and .png\n", flush=True)
    return results


def write_part(page: Path, name: str, text: str) -> None:
    """Replace the part between the markers of a page; a new page gets a title and the markers."""
    old = page.read_text(encoding="utf-8") if page.exists() else f"# {name}\n\n{BEGIN}\n{END}\n"
    if old.count(BEGIN) != 1 or old.count(END) != 1:
        raise ValueError(f"{page} must have each of these lines once: {BEGIN} and {END}")
    before, after = old.split(BEGIN)[0], old.split(END)[1]
    part = f"{BEGIN}\n{text}\n\n![{name}]({name}.png)\n{END}"
    page.write_text(before + part + after, encoding="utf-8")
