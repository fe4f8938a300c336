"""`maxmargin svm-grid`: replacement of LIBSVM's grid.py, on all cores.

Order of points, folds and output are those of grid.py. Instead of starting a program per point, the data are read once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import IO

import numpy as np

from maxmargin._typing import Floats
from maxmargin.cli.libsvm import svm_training
from maxmargin.cli.libsvm.classes import discard
from maxmargin.cli.libsvm.grid_order import Exponent, Point, Range, grid_order, read_rates
from maxmargin.cli.libsvm.program_options import ProgramError, UsageError, run_program, split_options
from maxmargin.cli.libsvm.svm_parameters import OPTION_VALUES, SvmParameters, read_parameters
from maxmargin.cli.libsvm.svm_training import MAX_UNOBSERVED_SAMPLES, FitOptions
from maxmargin.problems import Progress
from maxmargin.resources import thread_count
from maxmargin.storage.output_files import atomic_path, naming

USAGE = """\
Usage: svm-grid [grid_options] [svm_options] dataset

grid_options :
-log2c {begin,end,step | "null"} : set the range of C, or no search for C (default -5,15,2)
-log2g {begin,end,step | "null"} : set the range of gamma, or no search for gamma (default 3,-15,-2)
-v n : n-fold cross-validation (default 5)
-svmtrain pathname : accepted and ignored
-gnuplot {pathname | "null"} : "null" for no plot; a pathname is ignored
-out {pathname | "null"} : output file of rates, or no file (default dataset.out)
-png pathname : file of the plot (default dataset.png)
-resume [pathname] : resume from an output file (default dataset.out)

svm_options : options of svm-train except -c and -g
"""

#: Options of the search with a value.
GRID_OPTIONS = ("-log2c", "-log2g", "-v", "-svmtrain", "-gnuplot", "-out", "-png")


@dataclass(frozen=True)
class GridArguments:
    """Parameters and files of a command line.

    Attributes
    ----------
    costs, gammas : Range, optional
    parameters : SvmParameters
        Those of svm-train, with the number of folds.
    out, plot, resume : Path, optional
    """

    data: str
    costs: Range | None
    gammas: Range | None
    parameters: SvmParameters
    out: Path | None
    plot: Path | None
    resume: Path | None


@dataclass
class BestPoint:
    """The best point so far: with the largest rate, or in regression the smallest error."""

    regression: bool
    point: Point = (None, None)
    rate: float | None = None

    def update(self, point: Point, rate: float) -> None:
        """Compare with a point; of equal rates with the same gamma the smaller C is better."""
        better = self.rate is None or (rate < self.rate if self.regression else rate > self.rate)
        smaller = rate == self.rate and point[1] == self.point[1] and (point[0] or 0) < (self.point[0] or 0)
        if better or smaller:
            self.point, self.rate = point, rate


def main(arguments: Sequence[str]) -> int:
    """Search, and print the best point."""

    def work() -> int:
        if not arguments:
            raise UsageError("")
        try:
            return run(read_arguments(list(arguments[:-1]), arguments[-1]))
        except ValueError as error:
            raise ProgramError(f'{error}\nTry "svm-grid" for more information.') from error

    return run_program(USAGE, work)


def read_arguments(words: list[str], data: str) -> GridArguments:
    """Return the parameters and files of a command line."""
    given: dict[str, str] = {}
    passed: list[str] = []
    resume: str | None = None
    title = Path(data).name
    rest = iter(range(len(words)))
    for position in rest:
        word, following = words[position], words[position + 1 : position + 2]
        if word in ("-c", "-g"):
            raise ValueError("Use -log2c and -log2g.")
        if word in GRID_OPTIONS:
            if not following:
                raise ValueError(f"{word} needs a value")
            given[word] = words[next(rest)]
        elif word == "-resume":
            named = bool(following) and not following[0].startswith("-")
            resume = words[next(rest)] if named else f"{title}.out"
        else:
            passed.append(word)
    costs = Range.read(given["-log2c"]) if "-log2c" in given else Range(-5, 15, 2)
    gammas = Range.read(given["-log2g"]) if "-log2g" in given else Range(3, -15, -2)
    if not Path(data).exists():
        raise ValueError("dataset not found")
    if resume is not None and not Path(resume).exists():
        raise ValueError("file for resumption not found")
    if costs is None and gammas is None:
        raise ValueError("-log2c and -log2g should not be null simultaneously")
    options, more = split_options([*passed, "-v", given.get("-v", "5")], OPTION_VALUES)
    if more:
        raise ValueError(f"{more[0]} is not an option")
    out = given.get("-out", f"{title}.out")
    return GridArguments(
        data=data,
        costs=costs,
        gammas=gammas,
        parameters=read_parameters(options),
        out=None if out == "null" else Path(out),
        plot=None if given.get("-gnuplot") == "null" else Path(given.get("-png", f"{title}.png")),
        resume=None if resume is None else Path(resume),
    )


def run(arguments: GridArguments) -> int:
    """Search, and return the exit code."""
    known = {} if arguments.resume is None else read_rates(arguments.resume)
    best = BestPoint(arguments.parameters.regression)
    for point, rate in known.items():
        best.update(point, rate)
        print(line_of("resumed", point, rate, best), flush=True)
    points = list(grid_order(arguments.costs, arguments.gammas))
    rates = dict(known)
    rows, y = svm_training.read_problem(arguments.data, arguments.parameters)
    unknown = [point for point in points if point not in known]
    with _journal(arguments) as journal:
        for point, rate in cross_validated(rows, y, arguments.parameters, unknown):
            best.update(point, rate)
            rates[point] = rate
            if journal is not None:  # before it is printed, so that Ctrl-C loses nothing
                journal.write(f"{_named(('log2c', 'log2g'), point, ' ')}rate={rate}\n")
                journal.flush()
            print(line_of("local", point, rate, best), flush=True)
    if arguments.plot is not None and arguments.costs is not None and arguments.gammas is not None:
        draw({point: rates[point] for point in points}, Path(arguments.data).name, arguments.plot)
    print(" ".join(str(value) for value in (*powers(best.point), best.rate) if value is not None))
    return 0


def cross_validated(
    rows: svm_training.Rows, y: Floats, parameters: SvmParameters, points: list[Point]
) -> Iterator[tuple[Point, float]]:
    """Yield points and their rates in order; several are computed in parallel."""
    workers, stopped = min(thread_count(None), max(1, len(points))), Event()

    def stop_if_requested(progress: Progress) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt

    observed = len(y) > MAX_UNOBSERVED_SAMPLES
    fit_options = FitOptions(n_jobs=1, callback=stop_if_requested if observed else None)

    def rate_of(point: Point) -> float:
        cost, gamma = powers(point)
        changed = replace(
            parameters,
            cost=parameters.cost if cost is None else cost,
            gamma=parameters.gamma if gamma is None else gamma,
        )
        evaluation = svm_training.cross_validate(rows, y, changed, discard, fit_options)
        rate = evaluation.mean_squared_error if parameters.regression else evaluation.accuracy
        return float(f"{rate:g}")

    with ThreadPoolExecutor(workers) as pool:
        try:
            yield from zip(points, pool.map(rate_of, points), strict=True)
        finally:  # also after Ctrl-C
            stopped.set()
            pool.shutdown(wait=True, cancel_futures=True)


def line_of(worker: str, point: Point, rate: float, best: BestPoint) -> str:
    """Return the output line of a point."""
    where = " ".join(str(value) for value in point if value is not None)
    return f"[{worker}] {where} {rate} (best {_named('cg', powers(best.point), ', ')}rate={best.rate})"


def _named(names: Sequence[str], values: Point, end: str) -> str:
    """Return names and values, without parameters that are not searched for."""
    return "".join(f"{name}={value}{end}" for name, value in zip(names, values, strict=True) if value is not None)


def powers(point: Point) -> tuple[Exponent, Exponent]:
    """Return C and gamma of a point."""
    cost, gamma = (None if value is None else 2.0**value for value in point)
    return cost, gamma


@contextmanager
def _journal(arguments: GridArguments) -> Iterator[IO[str] | None]:
    """Open the output file, new or to be continued."""
    if arguments.out is None:
        yield None
        return
    try:
        journal = arguments.out.open("w" if arguments.resume is None else "a", encoding="utf-8")
        incomplete = bool(journal.tell()) and not arguments.out.read_bytes().endswith(b"\n")
    except OSError as error:
        raise ProgramError(f"can't open output file {arguments.out}") from error
    with naming(arguments.out), journal:
        if incomplete:  # the last line is incomplete
            journal.write("\n")
        yield journal


def draw(rates: Mapping[Point, float], title: str, path: Path) -> None:
    """Plot contours of the rates; nothing if the grid has a single row or all rates are equal."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("matplotlib is not installed, so there is no plot: pip install 'maxmargin[plot]'", file=sys.stderr)
        return
    costs = sorted({float(c) for c, _ in rates if c is not None})
    gammas = sorted({float(g) for _, g in rates if g is not None})
    heights = np.array([[rates[c, g] for c in costs] for g in gammas])
    if min(heights.shape) < 2 or np.ptp(heights) == 0:
        return
    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.subplots()
    filled = axes.contourf(costs, gammas, heights, levels=20)
    figure.colorbar(filled, label="rate")
    axes.set(title=title, xlabel="log₂ C", ylabel="log₂ γ")
    with atomic_path(path) as target:
        figure.savefig(target, format="png", dpi=120)
