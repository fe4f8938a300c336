"""`maxmargin svm-grid`: LIBSVM's grid.py, the search for C and gamma by cross-validation, on all cores.

Points come in its order, with its folds and its lines. In place of a program for each point, the data are read once and
trained on in this process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import IO

from maxmargin._typing import Floats
from maxmargin.cli.libsvm import training
from maxmargin.cli.libsvm.classes import say_nothing
from maxmargin.cli.libsvm.grid_picture import draw
from maxmargin.cli.libsvm.grid_plan import Exponent, Point, Range, plan, read_rates
from maxmargin.cli.libsvm.option_words import ProgramError, UsageError, answer, split_options
from maxmargin.cli.libsvm.parameters import TAKES, Parameters, read_parameters
from maxmargin.cli.libsvm.training import SMALL, Work
from maxmargin.problems import Progress
from maxmargin.resources import thread_count

USAGE = """\
Usage: svm-grid [grid_options] [svm_options] dataset

grid_options :
-log2c {begin,end,step | "null"} : logarithms of C, or no search for C (default -5,15,2)
-log2g {begin,end,step | "null"} : logarithms of gamma, or no search for gamma (default 3,-15,-2)
-v n : n-fold cross-validation (default 5)
-svmtrain pathname : accepted and not needed
-gnuplot {pathname | "null"} : "null" for no picture; a pathname is not needed
-out {pathname | "null"} : every rate as soon as it is known, or no file (default dataset.out)
-png pathname : the picture (default dataset.png)
-resume [pathname] : go on with a file of rates (default dataset.out)

svm_options : options of svm-train, but -c and -g
"""

#: Options of the search that have a value.
OWN = ("-log2c", "-log2g", "-v", "-svmtrain", "-gnuplot", "-out", "-png")


@dataclass(frozen=True)
class Search:
    """What is to be done.

    Attributes
    ----------
    costs, gammas : Range, optional
    parameters : Parameters
        Of svm-train, with the number of folds.
    out, picture, resume : Path, optional
    """

    data: str
    costs: Range | None
    gammas: Range | None
    parameters: Parameters
    out: Path | None
    picture: Path | None
    resume: Path | None


@dataclass
class Best:
    """The best point so far: of the largest rate, or in regression of the smallest error."""

    regression: bool
    point: Point = (None, None)
    rate: float | None = None

    def look_at(self, point: Point, rate: float) -> None:
        """Compare; of equal rates with the same gamma the smaller C is the better one."""
        ahead = self.rate is None or (rate < self.rate if self.regression else rate > self.rate)
        smaller = rate == self.rate and point[1] == self.point[1] and (point[0] or 0) < (self.point[0] or 0)
        if ahead or smaller:
            self.point, self.rate = point, rate


def main(arguments: Sequence[str]) -> int:
    """Search, and print the best point."""

    def work() -> int:
        if not arguments:
            raise UsageError("")
        try:
            return run(read_search(list(arguments[:-1]), arguments[-1]))
        except ValueError as error:
            raise ProgramError(f'{error}\nTry "svm-grid" for more information.') from error

    return answer(USAGE, work)


def read_search(words: list[str], data: str) -> Search:
    """Return what a command line asks for."""
    said: dict[str, str] = {}
    passed: list[str] = []
    resume: str | None = None
    title = Path(data).name
    rest = iter(range(len(words)))
    for position in rest:
        word, following = words[position], words[position + 1 : position + 2]
        if word in ("-c", "-g"):
            raise ValueError("Use -log2c and -log2g.")
        if word in OWN:
            if not following:
                raise ValueError(f"{word} needs a value")
            said[word] = words[next(rest)]
        elif word == "-resume":
            named = bool(following) and not following[0].startswith("-")
            resume = words[next(rest)] if named else f"{title}.out"
        else:
            passed.append(word)
    costs = Range.read(said["-log2c"]) if "-log2c" in said else Range(-5, 15, 2)
    gammas = Range.read(said["-log2g"]) if "-log2g" in said else Range(3, -15, -2)
    if not Path(data).exists():
        raise ValueError("dataset not found")
    if resume is not None and not Path(resume).exists():
        raise ValueError("file for resumption not found")
    if costs is None and gammas is None:
        raise ValueError("-log2c and -log2g should not be null simultaneously")
    options, more = split_options([*passed, "-v", said.get("-v", "5")], TAKES)
    if more:
        raise ValueError(f"{more[0]} is no option")
    out = said.get("-out", f"{title}.out")
    return Search(
        data=data,
        costs=costs,
        gammas=gammas,
        parameters=read_parameters(options),
        out=None if out == "null" else Path(out),
        picture=None if said.get("-gnuplot") == "null" else Path(said.get("-png", f"{title}.png")),
        resume=None if resume is None else Path(resume),
    )


def run(search: Search) -> int:
    """Search, and return the exit code."""
    known = {} if search.resume is None else read_rates(search.resume)
    best = Best(search.parameters.regression)
    for point, rate in known.items():
        best.look_at(point, rate)
        print(line_of("resumed", point, rate, best), flush=True)
    points = list(plan(search.costs, search.gammas))
    rates = dict(known)
    rows, y = training.read_problem(search.data, search.parameters)
    left = [point for point in points if point not in known]
    with _journal(search) as journal:
        for point, rate in cross_validated(rows, y, search.parameters, left):
            best.look_at(point, rate)
            rates[point] = rate
            if journal is not None:  # what was said must be there, whenever Ctrl-C comes
                journal.write(f"{_named(('log2c', 'log2g'), point, ' ')}rate={rate}\n")
                journal.flush()
            print(line_of("local", point, rate, best), flush=True)
    if search.picture is not None and search.costs is not None and search.gammas is not None:
        draw({point: rates[point] for point in points}, Path(search.data).name, search.picture)
    print(" ".join(str(value) for value in (*powers(best.point), best.rate) if value is not None))
    return 0


def cross_validated(
    rows: training.Rows, y: Floats, parameters: Parameters, points: list[Point]
) -> Iterator[tuple[Point, float]]:
    """Yield points and their rates, in order: several are worked on side by side."""
    workers, stopped = min(thread_count(None), max(1, len(points))), Event()

    def heed(progress: Progress) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt

    work = Work(n_jobs=1, callback=heed if len(y) > SMALL else None)

    def rate_of(point: Point) -> float:
        cost, gamma = powers(point)
        changed = replace(
            parameters,
            cost=parameters.cost if cost is None else cost,
            gamma=parameters.gamma if gamma is None else gamma,
        )
        found = training.cross_validate(rows, y, changed, say_nothing, work)
        rate = found.mean_squared_error if parameters.regression else found.accuracy
        return float(f"{rate:g}")

    with ThreadPoolExecutor(workers) as pool:
        try:
            yield from zip(points, pool.map(rate_of, points), strict=True)
        finally:  # also after Ctrl-C
            stopped.set()
            pool.shutdown(wait=True, cancel_futures=True)


def line_of(worker: str, point: Point, rate: float, best: Best) -> str:
    """Return the line about a point."""
    where = " ".join(str(value) for value in point if value is not None)
    return f"[{worker}] {where} {rate} (best {_named('cg', powers(best.point), ', ')}rate={best.rate})"


def _named(names: Sequence[str], values: Point, end: str) -> str:
    """Return names and values, without what is not searched for."""
    return "".join(f"{name}={value}{end}" for name, value in zip(names, values, strict=True) if value is not None)


def powers(point: Point) -> tuple[Exponent, Exponent]:
    """Return C and gamma of a point."""
    cost, gamma = (None if value is None else 2.0**value for value in point)
    return cost, gamma


@contextmanager
def _journal(search: Search) -> Iterator[IO[str] | None]:
    """Open the file of rates: new, or to be continued."""
    if search.out is None:
        yield None
        return
    try:
        journal = search.out.open("w" if search.resume is None else "a", encoding="utf-8")
        cut = bool(journal.tell()) and not search.out.read_bytes().endswith(b"\n")
    except OSError as error:
        raise ProgramError(f"can't open output file {search.out}") from error
    with journal:
        if cut:  # whoever wrote the last line did not come to its end
            journal.write("\n")
        yield journal
