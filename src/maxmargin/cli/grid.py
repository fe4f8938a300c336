"""`maxmargin grid`: grid search for C, gamma, epsilon and nu by cross-validation, with a heat map of the scores.

Every finished trial is appended to a journal. The journal of a complete search is deleted, unless it was requested by
name; after Ctrl-C or a limit it is kept, and `--resume` continues the search.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maxmargin.cli import data
from maxmargin.cli.estimator_options import add_estimator_options, make_estimator
from maxmargin.cli.output import Output, add_output_options, check_folder, resume_command
from maxmargin.cli.prepared_data import add_table_options, read_prepared
from maxmargin.storage.output_files import atomic_path

if TYPE_CHECKING:
    from maxmargin.search import GridSearchResult, Point

#: Exit codes if a limit or Ctrl-C ended the search; finished trials are in the journal.
LIMITED, INTERRUPTED = 3, 130

#: Syntax of a range, for help and error messages.
RANGE_SYNTAX = "FROM:TO:FACTOR, such as 2^-5:2^15:4, or comma-separated values"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("data", metavar="DATA", help=data.DATA_HELP)
    search = parser.add_argument_group("search")
    search.add_argument("--Cs", type=_values, metavar="RANGE", help=f"{RANGE_SYNTAX} [2^-5:2^15:4, or the value of -C]")
    search.add_argument("--gammas", type=_values, metavar="RANGE", help="[2^-15:2^3:4, or the value of --gamma]")
    search.add_argument("--epsilons", type=_epsilons, metavar="RANGE", help="of a regression [the value of --epsilon]")
    search.add_argument("--nus", type=_values, metavar="RANGE", help="of nu-svc and nu-svr [the value of --nu]")
    search.add_argument("--folds", type=int, default=5, help="number of folds of the cross-validation [%(default)s]")
    search.add_argument("--score", metavar="NAME", help="name of a scikit-learn scorer [accuracy, or r2]")
    search.add_argument(
        "--refine",
        type=int,
        default=0,
        metavar="N",
        help="number of refinements around the best point, with half the distances each [%(default)s]",
    )
    search.add_argument("--prune", action="store_true", help="skip folds of points that cannot be the best any more")
    search.add_argument("--journal", type=Path, metavar="FILE", help="file of trials [the name of DATA + .grid.jsonl]")
    search.add_argument("--resume", action="store_true", help="reuse the trials in the journal")
    search.add_argument("--plot", type=Path, metavar="FILE", help="write the heat map: .png, .svg or .pdf")
    add_table_options(parser)
    add_estimator_options(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from maxmargin.cli.heat_map import LiveHeatMap
    from maxmargin.search import grid_search
    from maxmargin.search.data_summary import densify
    from maxmargin.search.grid_search_result import COMPLETE

    output = Output(options)
    check_plot(options.plot)
    journal = options.journal or Path(default_journal(options.data))
    samples = read_prepared(options, output, need_labels=True).samples
    limit, options.max_seconds = options.max_seconds, None  # a limit of the search, not of each fit
    estimator = make_estimator(options, samples, output.remark)
    costs = _axis("--Cs", options.Cs, "-C", options.C)
    gammas = _axis("--gammas", options.gammas, "--gamma", options.gamma)
    # These are searched only if there is a range.
    epsilons = _axis("--epsilons", options.epsilons, "--epsilon", options.epsilon) or None
    nus = _axis("--nus", options.nus, "--nu", options.nu) or None
    try:
        with LiveHeatMap(output.errors, not output.quiet) as callback:
            result = grid_search(
                densify(samples.X),
                samples.y,
                estimator,
                Cs=[options.C] if costs == [] else costs,
                gammas=gammas,
                epsilons=epsilons,
                nus=nus,
                folds=options.folds,
                scoring=options.score,
                refine=options.refine,
                prune=options.prune,
                seed=options.seed or 0,
                max_seconds=limit,
                n_jobs=options.threads,
                journal=journal,
                resume=options.resume,
                callback=callback,
            )
    except KeyboardInterrupt:  # between two rounds; a round returns what it has scored
        if journal.exists():
            output.remark(f"to resume:  {resume_command(options.words)}")
        raise
    if result.status == COMPLETE and options.journal is None:
        journal.unlink()
    _report(output, result, journal if journal.exists() else None, options)
    if options.plot is not None and result.scores:
        draw(result, options.plot)
    return {COMPLETE: 0, "interrupted": INTERRUPTED}.get(result.status, LIMITED)


def default_journal(source: str) -> str:
    """Return the default name of the journal, in the current folder."""
    return "grid.jsonl" if source == "-" else f"{Path(source).name}.grid.jsonl"


def check_plot(target: Path | None) -> None:
    """Raise before the computation if a plot cannot be written."""
    if target is None:
        return
    from maxmargin.plotting.style import pyplot

    pyplot()
    if target.suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(f"the suffix of a plot must be .png, .svg or .pdf: {target.name}")
    check_folder(target)


def draw(result: GridSearchResult, target: Path) -> None:
    """Write the heat map to a file."""
    from maxmargin.plotting import ScoreGridDisplay
    from maxmargin.plotting.style import pyplot

    figure = ScoreGridDisplay.from_search(result).figure_
    with atomic_path(target) as path:
        figure.savefig(path, dpi=120)
    pyplot().close(figure)


def _report(output: Output, result: GridSearchResult, journal: Path | None, options: argparse.Namespace) -> None:
    """Print the scores, the best point and how to resume."""
    from maxmargin.cli.heat_map import heat_map
    from maxmargin.search.grid import Point
    from maxmargin.search.score_colormap import format_score

    if output.console.is_terminal and not output.as_json and result.scores:
        best = result.best
        output.console.print(heat_map(result, output.console.width))
        parameters = {name: f"{value:.6g}" for name, value in best.point.parameters.items()}
        mean, std = format_score(best.mean, result.scoring), format_score(best.std, result.scoring)
        score = f"{mean} ± {std} over {result.folds} folds"
        trials = f"{len(result.trials):,} trials in {result.seconds:.1f} s"
        output.facts({**parameters, result.scoring: score, "search": f"{len(result.scores):,} points, {trials}"})
    else:
        names = [name for name in Point._fields if name in ("C", "gamma") or name in result.values]
        headings = (*names, result.scoring, "std", "seconds")
        rows = [
            (*_cells(point, names), repr(mean), f"{std:.6g}", f"{seconds:.4g}")
            for point, mean, std, seconds in result.scores
        ]
        output.table(headings, rows)
    edges = " and the ".join(result.edges()) if result.scores else ""
    if edges:
        output.remark(f"the best point has the {edges} of the grid: a wider range may contain a better one")
    if result.pruned:
        output.remark(f"{len(result.pruned):,} points were dropped, because they cannot be the best")
    if result.status != "complete":
        output.remark(f"{result.status}: {result.record()['unfinished']:,} points are not finished")
        if journal is not None:
            output.remark(f"to resume:  {resume_command(options.words)}")
    output.result({**result.record(), "journal": None if journal is None else str(journal)})


def _cells(point: Point, names: list[str]) -> list[str]:
    """Return the values of a point as text, empty for those that are not searched for."""
    values = [getattr(point, name) for name in names]
    return ["" if value is None else repr(value) for value in values]


def _axis(plural: str, values: Any, single: str, value: Any) -> Any:
    """Return the values of an axis: those of a range, [] to keep the single value, None for the default."""
    if values is not None and value is not None:
        raise ValueError(f"give either {plural} or {single}, not both")
    return [] if value is not None else values


def _epsilons(text: str) -> tuple[float, ...]:
    """Return the values of a range, which may contain 0."""
    return _values(text, "epsilons")


def _values(text: str, name: str = "values") -> tuple[float, ...]:
    """Return the values of a range."""
    from maxmargin.search.grid import check_values, powers

    try:
        if ":" not in text:
            return check_values(name, map(_number, text.split(",")))
        low, high, factor = [_number(part) for part in f"{text}:4".split(":")[:3]]
        if text.count(":") > 2:
            raise ValueError("it has too many parts")
        return powers(low, high, factor)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a range: {error}; write {RANGE_SYNTAX}") from error


def _number(text: str) -> float:
    """Return a number, which may be written as a power: 2^-5."""
    base, caret, exponent = text.partition("^")
    return float(base) ** float(exponent) if caret else float(text)
