"""`maxmargin compare`: several solvers on the same data, a live table, a result table, pictures and a page."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from maxmargin.cli import data
from maxmargin.cli.live_table import LiveTable, table_of
from maxmargin.comparison import Comparison, compare
from maxmargin.comparison.picture import draw_off_screen, require_matplotlib
from maxmargin.comparison.tables import cells, remarks
from maxmargin.kernels import KERNELS
from maxmargin.solvers import SOLVERS

#: What the shell learns of a command that Ctrl-C has ended.
INTERRUPTED = 130


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("data", metavar="DATA", help=f"{data.DATA_HELP}: {', '.join(data.generators())}")
    parser.add_argument(
        "--solvers",
        metavar="NAMES",
        help=f"names with commas between them, or all; by default a few that suit the kernel: {', '.join(SOLVERS)}",
    )
    machine = parser.add_argument_group("the machine")
    machine.add_argument("--kernel", default="rbf", help=f"one of {', '.join(sorted(KERNELS))} [%(default)s]")
    machine.add_argument("-C", type=float, default=1.0, help="cost of slack [%(default)s]")
    machine.add_argument(
        "-g", "--gamma", type=_number_or_word, default="scale", help="a number, scale or auto [%(default)s]"
    )
    machine.add_argument("--degree", type=int, default=3, help="of the polynomial kernel [%(default)s]")
    machine.add_argument(
        "--coef0", type=float, default=0.0, help="of the polynomial and the sigmoid kernel [%(default)s]"
    )
    data.add_data_options(parser)
    parser.add_argument("--positive", metavar="LABEL", help="tell this class from the rest; needed for more than two")
    parser.add_argument("--seed", type=int, default=0, help="of the data, and of solvers that draw [%(default)s]")
    work = parser.add_argument_group("the work")
    work.add_argument("--tol", type=float, default=1e-3, help="largest violation that is accepted [%(default)s]")
    work.add_argument("--gap", type=float, help="duality gap that is accepted even if the violation is larger")
    work.add_argument("--max-seconds", type=float, help="for each solver")
    work.add_argument("--max-iter", type=int, help="for each solver; what an iteration is differs")
    work.add_argument("--cache-size", type=float, metavar="MB", help="for rows of the matrix; else a quarter of memory")
    work.add_argument("--threads", type=int, help="all cores if not given")
    output = parser.add_argument_group("the result")
    output.add_argument("--json", action="store_true", help="print everything as JSON in place of the table")
    output.add_argument("--html", type=Path, metavar="FILE", help="write one page with table and pictures")
    output.add_argument("--picture", type=Path, metavar="FILE", help="write the pictures: .png, .svg or .pdf")


def run(options: argparse.Namespace) -> int:
    """Read the data, compare, report."""
    for target in (options.html, options.picture):
        _check_target(target)
    given = data.read_data(options, need_labels=True)
    assert given.y is not None
    labels = data.two_classes(given.y, options.positive)
    with LiveTable(Console(stderr=True)) as watch:
        found = compare(
            (given.X, labels),
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
            name=given.name,
            watch=watch,
        )
    _print(found, options.json)
    if options.html is not None:
        options.html.write_text(found.to_html(), encoding="utf-8")
    if options.picture is not None:
        draw_off_screen(found).savefig(options.picture, dpi=120)
    return INTERRUPTED if found.interrupted else 0


def _print(found: Comparison, as_json: bool) -> None:
    console = Console(highlight=False)
    if as_json:
        print(found.to_json())
    elif console.is_terminal:
        console.print(table_of([cells(run) for run in found.runs]))
        for remark in remarks(found.runs):
            console.print(remark, style="dim", markup=False)
    else:
        print(found)


def _names(text: str | None) -> list[str] | str | None:
    if text is None or text == "all":
        return text
    return [name.strip() for name in text.split(",") if name.strip()]


def _number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _check_target(path: Path | None) -> None:
    """Raise before any work if a file cannot be written in the end."""
    if path is None:
        return
    require_matplotlib()
    if not path.absolute().parent.is_dir():
        raise ValueError(f"{path} cannot be written: there is no folder {path.parent}")
