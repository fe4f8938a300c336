"""Trace the fit of an estimator through the files of the project.

    python -m tools.trace_fit SVC --rows 150
    python -m tools.trace_fit SVC --rows 20000 --set C=10
    python -m tools.trace_fit LinearSVC --every-hop

Prints the files in the order in which the fit first enters them, indented by the depth of the call, with the functions
that run in each. A call from one file into another is a hop, and so is the return. Compiled loops, other packages and
worker threads are not traced; an estimator with ``n_jobs`` is fitted with one thread.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from sklearn.base import is_regressor
from sklearn.datasets import make_classification

import maxmargin

PACKAGE = Path(maxmargin.__file__).resolve().parent


@dataclass
class Visit:
    """Calls from one file into another: the functions that ran there, and the visits to further files."""

    file: str
    functions: list[str] = field(default_factory=list)
    calls: int = 0
    visits: list[Visit] = field(default_factory=list)

    def add_function(self, code: CodeType) -> None:
        """Add the name of a function once; comprehensions and lambdas belong to the function around them."""
        name = code.co_qualname.partition(".<locals>")[0]
        if not name.endswith(">") and name not in self.functions:
            self.functions.append(name)

    def visit_to(self, file: str) -> Visit:
        """Return the visit to a file from this one; repeated visits are one."""
        for visit in self.visits:
            if visit.file == file:
                return visit
        self.visits.append(Visit(file))
        return self.visits[-1]


@dataclass(frozen=True)
class Hop:
    """A change of the file in which code runs: a call or a return."""

    caller: str
    callee: str
    function: str
    is_return: bool


@dataclass
class FitTrace:
    """The visits and hops of a call."""

    root: Visit = field(default_factory=lambda: Visit(""))
    hops: list[Hop] = field(default_factory=list)

    @property
    def files(self) -> set[str]:
        """The files in which code ran."""
        return {hop.callee for hop in self.hops if hop.callee}


class _Profiler:
    """A profile function that records calls and returns between files of one folder."""

    def __init__(self, folder: Path) -> None:
        self.trace = FitTrace()
        self.prefix = str(folder) + "/"
        self.path = [self.trace.root]  # the visits that the current call is inside of
        self.frames: list[tuple[FrameType, bool]] = []  # calls inside the folder, and whether they changed the file

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(self.prefix):
            self.enter(frame, code.co_filename.removeprefix(self.prefix))
        elif event == "return" and self.frames and self.frames[-1][0] is frame:
            self.leave(code)

    def enter(self, frame: FrameType, file: str) -> None:
        current = self.path[-1]
        hops = file != current.file
        if hops:
            self.trace.hops.append(Hop(current.file, file, frame.f_code.co_qualname, is_return=False))
            current = current.visit_to(file)
            current.calls += 1
            self.path.append(current)
        current.add_function(frame.f_code)
        self.frames.append((frame, hops))

    def leave(self, code: CodeType) -> None:
        _, hopped = self.frames.pop()
        if hopped:
            left = self.path.pop()
            self.trace.hops.append(Hop(left.file, self.path[-1].file, code.co_qualname, is_return=True))


def trace_call(call: Callable[[], object], folder: Path = PACKAGE) -> FitTrace:
    """Return the trace of a call through the files of a folder, in this thread."""
    profiler = _Profiler(folder)
    previous = sys.getprofile()
    sys.setprofile(profiler)
    try:
        call()
    finally:
        sys.setprofile(previous)
    return profiler.trace


def trace_fit(name: str, rows: int, features: int = 10, classes: int = 2, **parameters: Any) -> FitTrace:
    """Return the trace of ``fit`` on generated data, after a fit that imports everything."""
    estimator = getattr(maxmargin, name)(**parameters)
    if "n_jobs" in estimator.get_params() and "n_jobs" not in parameters:
        estimator.set_params(n_jobs=1)
    X, y = make_classification(
        rows, features, n_informative=min(features, 6), n_redundant=0, n_classes=classes, random_state=0
    )
    if is_regressor(estimator):
        y = X[:, 0] + 0.1 * y
    estimator.fit(X, y)
    return trace_call(lambda: estimator.fit(X, y))


def tree_lines(visit: Visit, max_depth: int, depth: int = 0) -> Iterator[str]:
    """Yield a line for each visit below this one, indented by depth."""
    if depth == max_depth:
        return
    for inner in visit.visits:
        repeated = f"  ({inner.calls} calls)" if inner.calls > 1 else ""
        yield f"{'  ' * depth}{inner.file}: {', '.join(inner.functions)}{repeated}"
        yield from tree_lines(inner, max_depth, depth + 1)


def hop_lines(trace: FitTrace) -> Iterator[str]:
    """Yield a line for each hop, indented by depth: -> into a file, <- back to one."""
    depth = 0
    for hop in trace.hops:
        if hop.is_return:
            depth -= 1
            yield f"{'  ' * depth}<- {hop.callee or 'caller'}"
        else:
            yield f"{'  ' * depth}-> {hop.callee}: {hop.function}"
            depth += 1


def summary(trace: FitTrace) -> str:
    """Return the numbers of files and hops as a sentence."""
    between = {(hop.caller, hop.callee) for hop in trace.hops if not hop.is_return}
    return f"{len(trace.files)} files, {len(trace.hops)} hops between files ({len(between)} different calls)"


def _parameter(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value


def main(arguments: list[str] | None = None) -> None:
    """Print the trace of a fit."""
    parser = argparse.ArgumentParser(prog="python -m tools.trace_fit", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("estimator", nargs="?", default="SVC", help="a class of maxmargin (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=150, help="number of samples (default: %(default)s)")
    parser.add_argument("--features", type=int, default=10, help="number of features (default: %(default)s)")
    parser.add_argument("--classes", type=int, default=2, help="number of classes (default: %(default)s)")
    parser.add_argument(
        "--set", type=_parameter, action="append", default=[], metavar="NAME=VALUE", help="a parameter of the estimator"
    )
    parser.add_argument("--depth", type=int, default=5, help="deepest level to print (default: %(default)s)")
    parser.add_argument("--every-hop", action="store_true", help="print each call and return, without merging")
    options = parser.parse_args(arguments)
    trace = trace_fit(options.estimator, options.rows, options.features, options.classes, **dict(options.set))
    for line in hop_lines(trace) if options.every_hop else tree_lines(trace.root, options.depth):
        print(line)
    print(f"\n{options.estimator}, {options.rows} rows: {summary(trace)}")


if __name__ == "__main__":
    main()
