"""Output of commands: tables on a terminal, tab-separated lines in a pipe, or JSON.

On a terminal results are formatted tables. In a pipe they are lines "name<tab>value", or tab-separated columns, never
wrapped. With ``--json`` standard output has one JSON object and nothing else. Remarks, warnings and progress go to
standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rich.console import Console


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the output of a command."""
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="print only results and errors, no remarks and no progress"
    )


def check_folder(path: Path) -> None:
    """Raise, before a long computation, if the folder of an output file does not exist."""
    if not path.absolute().parent.is_dir():
        raise ValueError(f"cannot write {path}: there is no folder {path.parent}")


def resume_command(words: Sequence[str]) -> str:
    """Return the command line that resumes an interrupted command."""
    return shlex.join(["maxmargin", *(word for word in words if word != "--resume"), "--resume"])


class Output:
    """Prints the results and remarks of a command as its options request."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.as_json: bool = options.json
        self.quiet: bool = options.quiet

    # Without markup: "[red]" may be a label or a file name. Imported when used: rich takes a while to load.

    @cached_property
    def console(self) -> Console:
        """Standard output as a terminal."""
        from rich.console import Console

        return Console(highlight=False, markup=False)

    @cached_property
    def errors(self) -> Console:
        """Standard error as a terminal."""
        from rich.console import Console

        return Console(stderr=True, highlight=False, markup=False)

    @property
    def _formats(self) -> bool:
        """Whether results are formatted tables; rich is asked only where there may be a terminal."""
        possible = sys.stdout.isatty() or "FORCE_COLOR" in os.environ or "TTY_COMPATIBLE" in os.environ
        return possible and self.console.is_terminal

    def facts(self, facts: Mapping[str, Any], title: str | None = None) -> None:
        """Print names and values, one pair per line."""
        if self.as_json:
            return
        if not self._formats:
            for name, value in facts.items():
                print(f"{name}\t{value}")
            return
        from rich.table import Table

        table = Table(show_header=False, box=None, padding=(0, 2, 0, 0), title=title, title_justify="left")
        for name, value in facts.items():
            table.add_row(name, str(value))
        self.console.print(table)

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[Any]], title: str | None = None) -> None:
        """Print columns, the first one left-aligned, the others right-aligned."""
        if self.as_json:
            return
        if not self._formats:
            for cells in (headings, *rows):
                print("\t".join(str(cell) for cell in cells))
            return
        self.console.print(_rich_table(headings, rows, title))

    def remark_table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print columns of text on standard error, unless quiet: aligned on a terminal, else separated by tabs."""
        if self.quiet:
            return
        if self.errors.is_terminal:
            self.errors.print(_rich_table(headings, rows, None, numbers=False))
            return
        for cells in rows:  # a console would expand tabs
            print("\t".join(cells), file=sys.stderr, flush=True)

    def line(self, text: str) -> None:
        """Print a line of the result."""
        if not self.as_json:
            print(text)

    def remark(self, text: str) -> None:
        """Print a line on standard error, unless quiet."""
        if self.quiet:
            return
        if "errors" in vars(self):  # it may have a progress bar, above which the line belongs
            self.errors.print(text, soft_wrap=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def result(self, data: Mapping[str, Any]) -> None:
        """Print the result as JSON, if requested."""
        if self.as_json:
            print(json.dumps(data, default=_plain, allow_nan=False, ensure_ascii=False, indent=2))


def _rich_table(headings: Sequence[str], rows: Sequence[Sequence[Any]], title: str | None, numbers: bool = True) -> Any:
    """Return a table for a terminal, whose columns are right-aligned but the first if they have numbers."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.HEAVY_HEAD if numbers else box.SIMPLE_HEAD)
    for position, heading in enumerate(headings):
        table.add_column(heading, justify="right" if position and numbers else "left")
    for cells in rows:
        table.add_row(*(str(cell) for cell in cells))
    return table


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return str(value)
