"""`maxmargin info`: what is in a file, be it a model or data."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from maxmargin.cli import data
from maxmargin.cli.output import Output, add_output_options


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("data", metavar="FILE", help=f"a model, or data: {data.DATA_HELP}")
    data.add_data_options(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Look which it is, describe it."""
    from maxmargin.cli.model_files import model_format

    output = Output(options)
    found = model_format(options.data) if Path(options.data).is_file() else None
    facts, words = _of_data(options) if found is None else _of_model(options.data, found)
    output.facts(words)
    output.result({"kind": "data" if found is None else "model", **facts})
    return 0


def _of_data(options: argparse.Namespace) -> tuple[dict[str, Any], dict[str, str]]:
    from maxmargin.cli.info_data import describe, in_words

    facts = describe(data.read_data(options))
    return facts, in_words(facts)


def _of_model(path: str, format: str) -> tuple[dict[str, Any], dict[str, str]]:
    from maxmargin.cli.info_model import describe
    from maxmargin.cli.model_files import read_model
    from maxmargin.cli.model_words import for_programs, in_words
    from maxmargin.interchange import read_notes

    facts: dict[str, Any] = {"format": format, **describe(read_model(path)), "bytes": Path(path).stat().st_size}
    words = in_words(facts)
    notes = read_notes(path) if format == "maxmargin" else {}
    if "checksum" in notes:
        words["trained on"] = (
            f"{notes['data']}: {notes['rows']:,} samples, {notes['columns']:,} features, in {notes['seconds']} seconds"
        )
    return {**for_programs(facts), "notes": notes}, words
