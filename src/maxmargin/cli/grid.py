"""`maxmargin grid`: the cost C and the kernel's gamma by cross-validation, with a map of the scores.

Every trial is written to a journal as soon as it is known. The journal of a search that has come to its end is removed,
unless it was asked for by name; that of an interrupted one stays, and `--resume` goes on with it.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maxmargin.cli import data
from maxmargin.cli.machine_options import add_machine_options, choose_machine, make_machine
from maxmargin.cli.output import Output, add_output_options

if TYPE_CHECKING:
    from maxmargin.search import GridSearchResult

#: Exit codes beside 0: a limit or Ctrl-C has ended the search, and what was found is in the journal.
LIMITED, INTERRUPTED = 3, 130

#: How a range is written.
RANGE = "FROM:TO:FACTOR, such as 2^-5:2^15:4, or values with commas between them"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("data", metavar="DATA", help=data.DATA_HELP)
    search = parser.add_argument_group("the search")
    search.add_argument("--Cs", type=_values, metavar="RANGE", help=f"{RANGE} [2^-5:2^15:4, or -C alone]")
    search.add_argument("--gammas", type=_values, metavar="RANGE", help="[2^-15:2^3:4, or --gamma alone]")
    search.add_argument("--folds", type=int, default=5, help="every sample is held out once [%(default)s]")
    search.add_argument("--score", metavar="NAME", help="a scorer of scikit-learn, by name [accuracy, or r2]")
    search.add_argument(
        "--refine", type=int, default=0, metavar="N", help="look so often around the best, in steps half as large [0]"
    )
    search.add_argument("--journal", type=Path, metavar="FILE", help="of all trials [the name of DATA + .grid.jsonl]")
    search.add_argument("--resume", action="store_true", help="go on with what is in the journal")
    search.add_argument("--picture", type=Path, metavar="FILE", help="write the map: .png, .svg or .pdf")
    data.add_data_options(parser)
    add_machine_options(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Read, search, tell."""
    from maxmargin.cli.heat_map import LiveMap
    from maxmargin.search import grid_search
    from maxmargin.search.data_summary import densify
    from maxmargin.search.grid_search_result import COMPLETE

    output = Output(options)
    check_picture(options.picture)
    journal = options.journal or Path(journal_of(options.data))
    samples = data.read_data(options, need_labels=True)
    limit, options.max_seconds = options.max_seconds, None  # of the search, not of each fit
    name, why = choose_machine(options, samples.y)
    if why is not None:
        output.remark(why.replace("training", "searching for parameters of"))
    costs = _axis("--Cs", options.Cs, "-C", options.C)
    gammas = _axis("--gammas", options.gammas, "--gamma", options.gamma)
    with LiveMap(output.errors, not output.quiet) as live_map:
        found = grid_search(
            densify(samples.X),
            samples.y,
            make_machine(name, options, samples.y),
            Cs=[options.C] if costs == [] else costs,
            gammas=gammas,
            folds=options.folds,
            scoring=options.score,
            refine=options.refine,
            seed=options.seed or 0,
            max_seconds=limit,
            n_jobs=options.threads,
            journal=journal,
            resume=options.resume,
            callback=live_map,
        )
    if found.status == COMPLETE and options.journal is None:
        journal.unlink()
    _tell(output, found, journal if journal.exists() else None, options)
    if options.picture is not None and found.scores:
        draw(found, options.picture)
    return {COMPLETE: 0, "interrupted": INTERRUPTED}.get(found.status, LIMITED)


def journal_of(source: str) -> str:
    """Return the name of the journal of some data, in the folder where the command runs."""
    return "grid.jsonl" if source == "-" else f"{Path(source).name}.grid.jsonl"


def check_picture(target: Path | None) -> None:
    """Raise before any work if a picture cannot be written in the end."""
    if target is None:
        return
    from maxmargin.plotting.style import pyplot

    pyplot()
    if target.suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(f"a picture is a .png, .svg or .pdf, not {target.name}")
    if not target.absolute().parent.is_dir():
        raise ValueError(f"{target} cannot be written: there is no folder {target.parent}")


def draw(found: GridSearchResult, target: Path) -> None:
    """Write the map as a picture."""
    from maxmargin.plotting import ScoreGridDisplay
    from maxmargin.plotting.style import pyplot

    figure = ScoreGridDisplay.from_search(found).figure_
    figure.savefig(target, dpi=120)
    pyplot().close(figure)


def _tell(output: Output, found: GridSearchResult, journal: Path | None, options: argparse.Namespace) -> None:
    """Report the scores, the best of them, and what there is to say about that."""
    from maxmargin.cli.heat_map import heat_map
    from maxmargin.search.score_colormap import format_score

    again = shlex.join(["maxmargin", *(word for word in options.words if word != "--resume"), "--resume"])
    if output.console.is_terminal and not output.as_json and found.scores:
        best = found.best
        output.console.print(heat_map(found, output.console.width))
        parameters = {"C": f"{best.point.C:.6g}"}
        if best.point.gamma is not None:
            parameters["gamma"] = f"{best.point.gamma:.6g}"
        mean, std = format_score(best.mean, found.scoring), format_score(best.std, found.scoring)
        score = f"{mean} ± {std} over {found.folds} folds"
        trials = f"{len(found.trials):,} trials in {found.seconds:.1f} s"
        output.facts({**parameters, found.scoring: score, "search": f"{len(found.scores):,} points, {trials}"})
    else:
        headings = ("C", "gamma", found.scoring, "std", "seconds")
        rows = [(repr(p.C), "" if p.gamma is None else repr(p.gamma), repr(m), f"{d:.6g}", f"{s:.4g}")
                for p, m, d, s in found.scores]  # fmt: skip
        output.table(headings, rows)
    if found.scores:
        beyond = " and the ".join(found.edges())
        if beyond:
            output.remark(f"the best point has the {beyond} of the grid: wider ranges may have better ones")
    if found.status != "complete":
        output.remark(f"{found.status}: {len(found.points) - len(found.scores):,} points are not finished")
        if journal is not None:
            output.remark(f"to go on:  {again}")
    output.result({**found.record(), "journal": None if journal is None else str(journal)})


def _axis(plural: str, values: Any, single: str, value: Any) -> Any:
    """Return the values of an axis: those of a range, [] for one that stays as the machine has it, None by default."""
    if values is not None and value is not None:
        raise ValueError(f"give either {plural} or {single}, not both")
    return [] if value is not None else values


def _values(text: str) -> tuple[float, ...]:
    """Return the values that a range stands for."""
    from maxmargin.search.grid import check_values, powers

    try:
        if ":" not in text:
            return check_values("they", map(_number, text.split(",")))
        low, high, factor = [_number(part) for part in f"{text}:4".split(":")[:3]]
        if text.count(":") > 2:
            raise ValueError("there are too many parts")
        return powers(low, high, factor)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no range: {error}; write {RANGE}") from error


def _number(text: str) -> float:
    """Return a number, which may be written as a power: 2^-5."""
    base, caret, exponent = text.partition("^")
    return float(base) ** float(exponent) if caret else float(text)
