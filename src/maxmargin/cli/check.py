"""`maxmargin check`: validate a data file and list its errors by line.

Exit code 0 if the file is valid, 1 otherwise.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path

from maxmargin.cli import data
from maxmargin.cli.output import Output, add_output_options
from maxmargin.datasets import DataFileError, find_libsvm_problems, read_samples
from maxmargin.datasets.column_roles import ColumnSelection
from maxmargin.datasets.compression import Source, open_bytes, source_name
from maxmargin.datasets.csv_files import find_csv_problems
from maxmargin.datasets.sample_files import find_format, format_by_content

#: The line of a problem (None in binary files), and its description.
LineProblem = tuple[int | None, str]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("data", metavar="DATA", help="a file, or - for standard input")
    parser.add_argument("--limit", type=int, default=100, metavar="N", help="report at most N problems [%(default)s]")
    data.add_data_options(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    output = Output(options)
    if options.limit < 1:
        raise ValueError(f"--limit must be at least 1, not {options.limit}")
    if options.data != "-" and not Path(options.data).exists():
        raise ValueError(f"there is no file {options.data}")
    name, (format, problems) = source_name(options.data), find_problems(options)
    if problems:
        output.table(["line", "problem"], [["" if line is None else line, message] for line, message in problems])
    count = f"{len(problems)} or more" if len(problems) == options.limit else str(len(problems))
    output.remark(f"{name} ({format}): {count if problems else 'no'} problem{'' if count == '1' else 's'}")
    output.result(
        {
            "file": name,
            "format": format,
            "problems": [{"line": line, "message": message} for line, message in problems],
            "complete": len(problems) < options.limit,
        }
    )
    return 1 if problems else 0


def find_problems(options: argparse.Namespace) -> tuple[str, list[LineProblem]]:
    """Return the format of the file, and its problems."""
    source: Source = options.data
    name = source_name(source)
    try:
        format = options.format or find_format(source)
        if format is None:  # standard input can be read only once
            with open_bytes(source) as stream:
                source = io.BytesIO(stream.read())
            format = format_by_content(source.getvalue(), name)
    except DataFileError as error:
        return options.format or "unknown", [(error.line, error.message)]
    return format, _problems_of(source, name, format, options)


def _problems_of(source: Source, name: str, format: str, options: argparse.Namespace) -> list[LineProblem]:
    try:
        if format == "libsvm":
            return [(line, message) for line, message in find_libsvm_problems(source, limit=options.limit)]
        if format in ("csv", "tsv"):
            return _problems_of_table(source, name, format, options)
        read_samples(
            source,
            format=format,
            label=options.label,
            query=options.query,
            ignore=options.ignore,
            categorical=data.known_categories(options.one_hot),
        )
    except DataFileError as error:
        return [(error.line, error.message)]
    return []


def _problems_of_table(source: Source, name: str, format: str, options: argparse.Namespace) -> list[LineProblem]:
    selection = ColumnSelection(options.label, options.query, options.ignore, data.known_categories(options.one_hot))
    with open_bytes(source) as stream:
        problems = find_csv_problems(
            stream,
            name,
            selection,
            delimiter="\t" if format == "tsv" else None,
            header=data.HEADERS[options.header],
            limit=options.limit,
        )
    return [(problem.line, problem.message) for problem in problems]
