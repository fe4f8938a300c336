"""`maxmargin svm-scale`: replacement of LIBSVM's svm-scale."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.cli.libsvm.program_data import read_rows
from maxmargin.cli.libsvm.program_options import ProgramError, UsageError, run_program, split_options
from maxmargin.datasets import DataFileError, Scaling, dump_libsvm

USAGE = """\
Usage: svm-scale [options] data_filename
options:
-l lower : x scaling lower limit (default -1)
-u upper : x scaling upper limit (default +1)
-y y_lower y_upper : y scaling limits (default: no y scaling)
-s save_filename : save scaling parameters to save_filename
-r restore_filename : restore scaling parameters from restore_filename
"""

#: Significant digits of scaled features in LIBSVM's output.
DIGITS = 6

#: Samples per block that is scaled and printed.
BLOCK_ROWS = 10_000


def main(arguments: Sequence[str]) -> int:
    """Print scaled data."""

    def work() -> int:
        options, files = split_options(arguments, {"l": 1, "u": 1, "y": 2, "s": 1, "r": 1}, "unknown option")
        given = {option.letter: option for option in options}
        lower = given["l"].number if "l" in given else -1.0
        upper = given["u"].number if "u" in given else 1.0
        target = given["y"].numbers if "y" in given else None
        if not upper > lower or (target is not None and not target[1] > target[0]):
            raise ProgramError("inconsistent lower/upper specification")
        if "s" in given and "r" in given:
            raise ProgramError("cannot use -r and -s simultaneously")
        if len(files) != 1:
            raise UsageError("")
        X, y = _read(files[0], given["s"].value if "s" in given else None)
        if "r" in given:
            scaling = _restore(given["r"].value, files[0], X[:, 1:])
        else:
            scaling = Scaling.fit(X[:, 1:], lower, upper)
            scaling = scaling if target is None else scaling.with_target(y, *target)
        if "s" in given:
            _save(scaling, given["s"].value)
        _print_scaled(scaling, X, y)
        return 0

    return run_program(USAGE, work)


def _read(path: str, ranges: str | None) -> tuple[Any, Floats]:
    """Return samples, with a column for index 0, and labels."""
    rows, y = read_rows(path, kind="file")
    X = rows.matrix()
    if X[:, :1].nnz:
        print("WARNING: minimal feature index is 0, but indices should start from 1", file=sys.stderr)
        if ranges is not None:
            print(
                f"WARNING: scaling factors with indices smaller than 1 are not stored to the file {ranges}.",
                file=sys.stderr,
            )
    return X, y


def _restore(path: str, data: str, X: Any) -> Scaling:
    try:
        scaling = Scaling.read(path)
    except DataFileError as error:
        raise ProgramError(str(error)) from error
    except OSError as error:
        raise ProgramError(f"can't open file {path}") from error
    for column in scaling.unseen(X).tolist():
        print(
            f"WARNING: feature index {column + 1} appeared in file {data} was not seen in the scaling factor file "
            f"{path}. The feature is scaled to 0.",
            file=sys.stderr,
        )
    return scaling


def _save(scaling: Scaling, path: str) -> None:
    try:
        scaling.write(path)
    except OSError as error:
        raise ProgramError(f"can't open file {path}") from error


def _print_scaled(scaling: Scaling, X: Any, y: Floats) -> None:
    """Print the scaled samples; warn if the number of nonzeros grew."""
    targets, zeroth = scaling.apply_to_target(y), _scaled_zeroth(scaling, X[:, :1].tocsc())
    printed = int(np.count_nonzero(zeroth))
    for start in range(0, X.shape[0], BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        scaled = scaling.apply(X[block, 1:])
        printed += scaled.nnz
        sys.stdout.writelines(_lines(scaled, targets[block], zeroth[block]))
    if printed > X.nnz:
        print(
            f"WARNING: original #nonzeros {X.nnz}\n       > new      #nonzeros {printed}\n"
            "If feature values are non-negative and sparse, use -l 0 rather than the default -l -1",
            file=sys.stderr,
        )


def _scaled_zeroth(scaling: Scaling, column: Any) -> Floats:
    """Return the scaled values of index 0; LIBSVM takes its range from the nonzero values of the file."""
    scaled = np.zeros(column.shape[0])
    if column.nnz:
        values = column.data[:, None]
        scaled[column.indices] = Scaling.fit(values, scaling.lower, scaling.upper).apply(values)[:, 0]
    return scaled


def _lines(scaled: Any, targets: Floats, zeroth: Floats) -> Iterator[str]:
    """Yield lines in LIBSVM's format: targets with 17 digits, features with 6, and a trailing blank."""
    text = io.BytesIO()
    dump_libsvm(scaled, targets * 0.0, text, digits=DIGITS)
    lines = text.getvalue().decode("ascii").splitlines()
    for target, value, line in zip(targets.tolist(), zeroth.tolist(), lines, strict=True):
        first = f" 0:{value:.{DIGITS}g}" if value else ""
        yield f"{target:.17g}{first}{line.removeprefix('-').removeprefix('0')} \n"
