"""`maxmargin svm-scale`: LIBSVM's program that brings features to a common range, with its files of ranges."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.cli.libsvm.option_words import ProgramError, UsageError, answer, split_options
from maxmargin.cli.libsvm.problem import read_rows
from maxmargin.datasets import DataFileError, Scaling, dump_libsvm

USAGE = """\
Usage: svm-scale [options] data_filename
options:
-l lower : lower limit of features (default -1)
-u upper : upper limit of features (default +1)
-y y_lower y_upper : limits of targets (default: targets stay as they are)
-s save_filename : write the ranges to this file
-r restore_filename : use the ranges of this file, and its limits
"""

#: Significant digits of scaled features, as LIBSVM prints them.
DIGITS = 6

#: Samples that are scaled and printed at once.
BLOCK = 10_000


def main(arguments: Sequence[str]) -> int:
    """Print scaled data."""

    def work() -> int:
        options, files = split_options(arguments, {"l": 1, "u": 1, "y": 2, "s": 1, "r": 1}, "unknown option")
        said = {option.letter: option for option in options}
        lower = said["l"].number if "l" in said else -1.0
        upper = said["u"].number if "u" in said else 1.0
        target = said["y"].numbers if "y" in said else None
        if not upper > lower or (target is not None and not target[1] > target[0]):
            raise ProgramError("inconsistent lower/upper specification")
        if "s" in said and "r" in said:
            raise ProgramError("cannot use -r and -s simultaneously")
        if len(files) != 1:
            raise UsageError("")
        X, y = _read(files[0], said["s"].value if "s" in said else None)
        if "r" in said:
            scaling = _restore(said["r"].value, files[0], X[:, 1:])
        else:
            scaling = Scaling.fit(X[:, 1:], lower, upper)
            scaling = scaling if target is None else scaling.with_target(y, *target)
        if "s" in said:
            _save(scaling, said["s"].value)
        _print_scaled(scaling, X, y)
        return 0

    return answer(USAGE, work)


def _read(path: str, ranges: str | None) -> tuple[Any, Floats]:
    """Return samples, with a column for the index 0, and labels."""
    X, y = read_rows(path, what="file")
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
    """Print the samples; warn if they have more values than before."""
    targets, zeroth = scaling.apply_to_target(y), _scaled_zeroth(scaling, X[:, :1].tocsc())
    printed = int(np.count_nonzero(zeroth))
    for start in range(0, X.shape[0], BLOCK):
        block = slice(start, start + BLOCK)
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
    """Return what becomes of the index 0; LIBSVM takes its range from the values in the file at hand, and no zeros."""
    found = np.zeros(column.shape[0])
    if column.nnz:
        values = column.data[:, None]
        found[column.indices] = Scaling.fit(values, scaling.lower, scaling.upper).apply(values)[:, 0]
    return found


def _lines(scaled: Any, targets: Floats, zeroth: Floats) -> Iterator[str]:
    """Yield lines as LIBSVM writes them: all digits of the target, few of the features, a space at the end."""
    text = io.BytesIO()
    dump_libsvm(scaled, targets * 0.0, text, digits=DIGITS)
    lines = text.getvalue().decode("ascii").splitlines()
    for target, value, line in zip(targets.tolist(), zeroth.tolist(), lines, strict=True):
        first = f" 0:{value:.{DIGITS}g}" if value else ""
        yield f"{target:.17g}{first}{line.removeprefix('-').removeprefix('0')} \n"
