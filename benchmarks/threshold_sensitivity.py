"""Measure how counts of fixed fits change when a tuned threshold is halved or doubled.

    python -m benchmarks.threshold_sensitivity > docs/thresholds.md
    python -m benchmarks.threshold_sensitivity --quick                 # one threshold, one case
    python -m benchmarks.threshold_sensitivity --only MAX_FREE         # thresholds whose names contain this

For each threshold the package is imported again with another value in the assignment of the constant, so that constants
derived from it, imports of its value and default arguments change with it. The counts (steps, kernel values, rounds)
do not depend on the load of the computer. A threshold without effect is also tried at a tenth and at ten times its
value. Every fit is checked against its tolerance.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.threshold_cases import CASES, Case, Counts
from benchmarks.tuned_thresholds import THRESHOLDS, Threshold, comment_of, evaluate, find_assignment, present_value

#: Compiled modules: compiling takes most of the time of an import.
_CODE: dict[str, CodeType] = {}


class _ScalingLoader(SourceFileLoader):
    """Loads modules of the package, that of a threshold with a multiple of its value."""

    def __init__(self, fullname: str, path: str, threshold: Threshold, factor: float) -> None:
        super().__init__(fullname, path)
        self.threshold, self.factor = threshold, factor

    def get_code(self, fullname: str) -> CodeType:
        """Return the compiled module."""
        if fullname == f"maxmargin.{self.threshold.module}":
            return self._scaled_code()
        if fullname not in _CODE:
            code = super().get_code(fullname)
            assert code is not None
            _CODE[fullname] = code
        return _CODE[fullname]

    def _scaled_code(self) -> CodeType:
        tree = ast.parse(self.get_data(self.path))
        expression, _ = find_assignment(tree, self.threshold.name)
        scaled = self.threshold.scaled(evaluate(expression), self.factor)
        replacement = ast.copy_location(ast.Constant(scaled), expression)

        class Replace(ast.NodeTransformer):
            def visit(self, node: ast.AST) -> ast.AST:
                return replacement if node is expression else self.generic_visit(node)

        return compile(ast.fix_missing_locations(Replace().visit(tree)), self.path, "exec")


class _ScalingFinder:
    """Finds the modules of the package and has them loaded by `_ScalingLoader`."""

    def __init__(self, threshold: Threshold, factor: float) -> None:
        self.threshold, self.factor = threshold, factor

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the specification of a module of the package, None for others."""
        if fullname.split(".")[0] != "maxmargin":
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.origin is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _ScalingLoader(fullname, spec.origin, self.threshold, self.factor)
        return spec


@contextmanager
def scaled_package(threshold: Threshold, factor: float) -> Iterator[None]:
    """Import the package with a multiple of a threshold, and forget it afterwards."""
    finder = _ScalingFinder(threshold, factor)
    _forget_package()
    sys.meta_path.insert(0, finder)  # type: ignore[arg-type]
    try:
        importlib.import_module("maxmargin")
        importlib.import_module(f"maxmargin.{threshold.module}")
        yield
    finally:
        sys.meta_path.remove(finder)  # type: ignore[arg-type]
        _forget_package()


def _forget_package() -> None:
    for name in list(sys.modules):
        if name.split(".")[0] == "maxmargin" and not name.startswith("maxmargin._native"):
            del sys.modules[name]


def measure(cases: dict[str, Case], threshold: Threshold | None = None, factor: float = 1.0) -> dict[str, Counts]:
    """Return the counts of all cases with a multiple of a threshold."""
    if threshold is None:
        return {name: fit() for name, fit in cases.items()}
    with scaled_package(threshold, factor):
        return {name: fit() for name, fit in cases.items()}


def describe(counts: dict[str, Counts], reference: dict[str, Counts]) -> str:
    """Return the range over the cases of each count that changed, relative to the reference."""
    changes = []
    for kind in ("steps", "kernel_values", "rounds"):
        pairs = [(getattr(counts[name], kind), getattr(reference[name], kind)) for name in reference]
        if all(now == before for now, before in pairs):
            continue
        ratios = [now / before if before else (1.0 if now == before else np.inf) for now, before in pairs]
        low, high = f"{min(ratios):.2f}", f"{max(ratios):.2f}"
        changes.append(f"{kind.replace('_', ' ')} {low if low == high else f'{low}–{high}'}")
    if not changes:
        same = all(counts[name].digest == reference[name].digest for name in reference)
        changes.append("none" if same else "last digits of the solution")
    missed = [name for name in reference if reference[name].met and not counts[name].met]
    if missed:
        changes.append(f"**tolerance missed** ({', '.join(missed)})")
    return "; ".join(changes)


def row(threshold: Threshold, cases: dict[str, Case], reference: dict[str, Counts]) -> str:
    """Return the line of the table for a threshold."""
    value = present_value(threshold)
    half, double = (describe(measure(cases, threshold, factor), reference) for factor in (0.5, 2.0))
    note = ""
    if half == double == "none":
        tenth, tenfold = (describe(measure(cases, threshold, factor), reference) for factor in (0.1, 10.0))
        note = threshold.kept if tenth == tenfold == "none" else f"at 1/10: {tenth}; at 10 times: {tenfold}"
    return f"| `{threshold.label}` = {value:,g} | {comment_of(threshold)} | {half} | {double} | {note} |"


INTRODUCTION = """\
# Tuned thresholds

What each threshold of the solvers and of training bounds, and how counts change when it is halved and doubled. Written
by `python -m benchmarks.threshold_sensitivity`; names, values and descriptions are those of the source. The data on
which the values were chosen are not recorded.

The numbers are multiples of the counts with the present value, as a range over the cases of the group; counts that do
not change are left out, and "inf" stands for an increase from 0. Every fit is checked against its tolerance; "tolerance
missed" would mark one that fails. A doubled fraction is limited to its largest sensible value. Where neither half nor
double changes anything, a tenth and ten times the value were tried; where these change nothing either, the last column
says why the threshold is kept; these reasons come from reading the code, not from a measurement."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one threshold on one case")
    parser.add_argument("--group", default="", metavar="TEXT", help="only groups whose names contain this")
    parser.add_argument("--only", default="", metavar="TEXT", help="only thresholds whose names contain this")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(INTRODUCTION)
    failed = False
    with threadpool_limits(1):
        for group, thresholds in THRESHOLDS.items():
            chosen, cases = [t for t in thresholds if arguments.only in t.name], CASES[group]
            if arguments.quick:
                chosen, cases = chosen[:1], dict(list(cases.items())[:1])
            if not chosen or arguments.group not in group:
                continue
            reference = measure(cases)
            failed |= not all(counts.met for counts in reference.values())
            print(f"\n## {group}\n")
            for name, counts in reference.items():
                met = "" if counts.met else ", **misses its tolerance**"
                print(
                    f"- {name}: {counts.steps:,} steps, {counts.kernel_values:,} kernel values, "
                    f"{counts.rounds:,} rounds{met}"
                )
            print("\n| threshold | what it bounds | half | double | notes |\n|---|---|---|---|---|")
            for threshold in chosen:
                print(row(threshold, cases, reference), flush=True)
            if arguments.quick:
                break
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
