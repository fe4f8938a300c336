"""Files that programs read and write while they predict."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import IO, Any

from maxmargin._typing import Floats
from maxmargin.cli.libsvm.option_words import ProgramError
from maxmargin.datasets import iterate_libsvm


def read_blocks(path: str, zero_based: bool = True) -> Iterator[tuple[Any, Floats]]:
    """Return an iterator over blocks of rows and labels; a file that is not there is an error at once."""
    blocks = iterate_libsvm(path, zero_based=zero_based)
    try:
        first = next(blocks, None)
    except OSError as error:
        raise ProgramError(f"can't open input file {path}") from error
    return iter(()) if first is None else chain([first], blocks)


@contextmanager
def open_output(path: str) -> Iterator[IO[str]]:
    """Open the file of predictions; "-" is standard output."""
    if path == "-":
        yield sys.stdout
        return
    try:
        output = open(path, "w", encoding="ascii")  # noqa: SIM115  # an error here is one of the file, not of the work
    except OSError as error:
        raise ProgramError(f"can't open output file {path}") from error
    with output:
        yield output
