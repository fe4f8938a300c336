"""`maxmargin compare`: several solvers on the same data, with a table, a figure and an HTML page."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from maxmargin.cli import data
from maxmargin.cli.estimator_options import number_or_word
from maxmargin.cli.live_table import LiveTable, make_table
from maxmargin.cli.output import check_folder
from maxmargin.comparison import Comparison, compare
from maxmargin.comparison.figure import draw_off_screen, require_matplotlib
from maxmargin.comparison.report import cells, remarks, title_of
from maxmargin.kernels import KERNELS
from maxmargin.solvers import SOLVERS
from maxmargin.storage.output_files import atomic_path, write_atomically

#: Exit code after Ctrl-C.
INTERRUPTED = 130


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("data", metavar="DATA", help=f"{data.DATA_HELP}: {', '.join(data.generators())}")
    parser.add_argument(
        "--solvers",
        metavar="NAMES",
        help=f"comma-separated names, or all; the default depends on the kernel. Names: {', '.join(SOLVERS)}",
    )
    estimator = parser.add_argument_group("estimator")
    estimator.add_argument("--kernel", default="rbf", help=f"one of {', '.join(sorted(KERNELS))} [%(default)s]")
    estimator.add_argument("-C", type=float, default=1.0, help="penalty of slack [%(default)s]")
    estimator.add_argument(
        "-g", "--gamma", type=number_or_word, default="scale", help="a number, scale or auto [%(default)s]"
    )
    estimator.add_argument("--degree", type=int, default=3, help="degree of the polynomial kernel [%(default)s]")
    estimator.add_argument(
        "--coef0", type=float, default=0.0, help="constant of the polynomial and the sigmoid kernel [%(default)s]"
    )
    data.add_data_options(parser)
    parser.add_argument(
        "--positive", metavar="LABEL", help="the positive class, against the rest; required for more than two classes"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of generators and randomised solvers [%(default)s]")
    stopping = parser.add_argument_group("stopping and resources")
    stopping.add_argument("--tol", type=float, default=1e-3, help="tolerance on the KKT violation [%(default)s]")
    stopping.add_argument("--gap", type=float, help="tolerance on the duality gap, as an alternative to --tol")
    stopping.add_argument("--max-seconds", type=float, help="time limit of each solver")
    stopping.add_argument("--max-iter", type=int, help="iteration limit of each solver")
    stopping.add_argument("--cache-size", type=float, metavar="MB", help="size of the kernel cache [a quarter of RAM]")
    stopping.add_argument("--threads", type=int, help="number of threads [all cores]")
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print problem, runs and traces as JSON")
    output.add_argument("--html", type=Path, metavar="FILE", help="write a page with the table and the figure")
    output.add_argument("--plot", type=Path, metavar="FILE", help="write the figure: .png, .svg or .pdf")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    for target in (options.html, options.plot):
        _check_target(target)
    samples = data.read_data(options, need_labels=True)
    assert samples.y is not None
    labels = data.two_classes(samples.y, options.positive)
    with LiveTable(Console(stderr=True)) as observer:
        comparison = compare(
            (samples.X, labels),
            _names(options.solvers),
            kernel=options.kernel,
            C=options.C,
            gamma=options.gamma,
            degree=options.degree,
            coef0=options.coef0,
            tol=options.tol,
            gap=options.gap,
            max_seconds=options.max_seconds,
            max_iter=options.max_iter,
            cache_size=options.cache_size,
            n_jobs=options.threads,
            seed=options.seed,
            name=samples.name,
            observer=observer,
        )
    _print(comparison, options.json)
    if options.html is not None:
        write_atomically(options.html, [comparison.to_html().encode()])
    if options.plot is not None:
        with atomic_path(options.plot) as path:
            draw_off_screen(comparison.runs, title_of(comparison.problem)).savefig(path, dpi=120)
    return INTERRUPTED if comparison.interrupted else 0


def _print(comparison: Comparison, as_json: bool) -> None:
    console = Console(highlight=False)
    if as_json:
        print(comparison.to_json())
    elif console.is_terminal:
        console.print(make_table([cells(run) for run in comparison.runs]))
        for remark in remarks(comparison.runs):
            console.print(remark, style="dim", markup=False)
    else:
        print(comparison)


def _names(text: str | None) -> list[str] | str | None:
    if text is None or text == "all":
        return text
    return [name.strip() for name in text.split(",") if name.strip()]


def _check_target(path: Path | None) -> None:
    """Raise before the computation if a figure cannot be written."""
    if path is None:
        return
    require_matplotlib()
    check_folder(path)
