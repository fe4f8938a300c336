"""The argument DATA of a command: a file of samples, standard input, or a generator.

- `heart_scale`, `iris.csv`, `a9a.npz`, `test.parquet.gz`: a file in any format that `maxmargin.datasets` reads
- `-`: standard input, compressed or not
- `chessboard`, `spirals:500`, `twonorm:2000,seed=3`: a generator of `maxmargin.datasets` with its arguments
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from maxmargin import datasets
from maxmargin.datasets import DataFileError, Samples, read_samples
from maxmargin.datasets.sample_files import FORMATS
from maxmargin.storage.output_files import write_atomically

#: Values of the options, as `read_samples` takes them.
HEADERS: dict[str, bool | str] = {"auto": "auto", "yes": True, "no": False}
FIRST_INDICES: dict[str, bool | Literal["auto"]] = {"auto": "auto", "0": True, "1": False}

#: Limit on the names in a list.
MAX_LISTED = 10

#: Help text of DATA.
DATA_HELP = "a file (LIBSVM text, CSV, TSV, npz, npy, Parquet, Arrow; also .gz, .bz2, .xz), -, or a generator"


def add_data_options(parser: argparse.ArgumentParser, *, one_hot: bool = True) -> argparse._ArgumentGroup:
    """Add the options for reading DATA, with or without --one-hot; the command adds the argument itself."""
    group = parser.add_argument_group("data")
    group.add_argument("--format", choices=FORMATS, help="file format [detected by name or content]")
    group.add_argument(
        "--label",
        metavar="COLUMN",
        type=_column,
        default="auto",
        help="label column of a table: name, number from 1, first, last or none "
        "[the one called label, target or class, or the last]",
    )
    group.add_argument(
        "--query", metavar="COLUMN", type=_column, help="column of a table with the query of each sample, for ranking"
    )
    group.add_argument(
        "--ignore",
        metavar="COLUMNS",
        type=_columns,
        default=(),
        help="columns of a table to ignore, separated by commas",
    )
    if one_hot:
        group.add_argument(
            "--one-hot",
            metavar="FILE",
            type=Path,
            help="one-hot encode categorical columns; the categories are read from FILE, or written to it if it is new",
        )
    group.add_argument(
        "--header", choices=HEADERS, default="auto", help="whether CSV and TSV have a header [%(default)s]"
    )
    group.add_argument(
        "--first-index",
        choices=FIRST_INDICES,
        default="auto",
        help="first feature index of LIBSVM text [auto: 0 if any index is 0]",
    )
    group.add_argument(
        "--samples", type=int, metavar="N", help="number of samples to generate, or to draw at random from a file"
    )
    return group


def read_data(
    options: argparse.Namespace,
    source: str | None = None,
    *,
    n_features: int | None = None,
    need_labels: bool = False,
) -> Samples:
    """Return the samples of an argument DATA.

    Parameters
    ----------
    options : Namespace
        With those of `add_data_options`, and optionally `seed` and `threads`.
    source : str or None
        The argument; `options.data` if None.
    n_features : int or None
        Number of features of a model: a table with exactly that many columns has no labels.
    need_labels : bool
        Whether samples without labels are an error.
    """
    source = options.data if source is None else source
    seed = getattr(options, "seed", None) or 0
    name, _, details = source.partition(":")
    if name in generators():
        return generate(name, details, options.samples, seed)
    if source != "-" and not Path(source).exists():
        raise ValueError(f"there is no file {source}, and the generators are {', '.join(generators())}")
    words = known_categories(getattr(options, "one_hot", None))
    samples = read_samples(
        source,
        format=options.format,
        label=options.label,
        query=options.query,
        ignore=options.ignore,
        categorical=words,
        header=HEADERS[options.header],
        n_features=n_features,
        zero_based=FIRST_INDICES[options.first_index],
        n_jobs=getattr(options, "threads", None),
    )
    if words == "one-hot":
        text = json.dumps(samples.categories, ensure_ascii=False, indent=1)
        write_atomically(options.one_hot, [f"{text}\n".encode()])
    if need_labels and samples.y is None:
        raise DataFileError(samples.name, "there are no labels")
    return _subset(samples, options.samples, seed)


def generators() -> list[str]:
    """Return the names of the generators: functions of `maxmargin.datasets` with a number of samples and a seed."""
    makers = {name: getattr(datasets, name) for name in datasets.__all__}
    return [
        name
        for name, make in makers.items()
        if inspect.isfunction(make) and {"n_samples", "seed"} <= set(inspect.signature(make).parameters)
    ]


def generate(name: str, details: str = "", samples: int | None = None, seed: int = 0) -> Samples:
    """Return the samples of a generator; `details` are its arguments, as in "500,noise=0.1"."""
    make: Callable[..., Any] = getattr(datasets, name)
    given = _arguments(name, details, inspect.signature(make))
    asked = ({} if samples is None else {"n_samples": samples}) | {"seed": seed} | given
    X, y, *query = make(**asked)
    return Samples(
        X,
        y.astype(np.float64) if y.dtype.kind in "biu" else y,
        query[0] if query else None,
        name=f"{name}:{details}".rstrip(":"),
    )


def two_classes(y: np.ndarray, positive: str | None) -> np.ndarray:
    """Return labels of two classes: as they are, or the positive class against the rest."""
    classes = np.unique(y)
    names = [label_name(label) for label in classes]
    if positive is not None:
        if positive not in names:
            raise ValueError(f"there is no label {positive}; the labels are {listed(names)}")
        chosen: np.ndarray = y == classes[names.index(positive)]
        return chosen
    if y.dtype.kind == "f" and not np.array_equal(y, np.rint(y)):
        raise ValueError("the labels are fractional numbers, and compare is for classification")
    if len(classes) > 2:
        raise ValueError(f"there are {len(classes)} classes ({listed(names)}): choose one with --positive LABEL")
    return y


def listed(names: Sequence[str]) -> str:
    """Return the first names, separated by commas."""
    return ", ".join(names[:MAX_LISTED]) + (f", … ({len(names)} in total)" if len(names) > MAX_LISTED else "")


def label_name(label: Any) -> str:
    """Return a label as text, numbers without trailing zeros."""
    return f"{label:g}" if isinstance(label, float | np.floating) else str(label)


def _subset(samples: Samples, count: int | None, seed: int) -> Samples:
    """Return a random subset of the samples, in their order."""
    rows = subset_rows(len(samples), count, seed)
    return samples if rows is None else samples.take(rows)


def subset_rows(rows: int, count: int | None, seed: int) -> np.ndarray | None:
    """Return `count` random rows in their order, None for all."""
    if count is None or count >= rows:
        return None
    if count < 2:
        raise ValueError(f"--samples must be at least 2, not {count}")
    chosen: np.ndarray = np.sort(np.random.default_rng(seed).choice(rows, count, replace=False))
    return chosen


def _arguments(name: str, details: str, signature: inspect.Signature) -> dict[str, Any]:
    """Return the arguments of a generator: an optional number of samples, then others by name."""
    found = {}
    for position, part in enumerate(part for part in details.split(",") if part):
        key, equals, value = part.partition("=")
        if not equals and position == 0:
            key, value = "n_samples", part
        if key not in signature.parameters:
            raise ValueError(f"{name} has no argument {key!r}; it takes {', '.join(signature.parameters)}")
        try:
            found[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError) as error:
            raise ValueError(f"{key} of {name} must be a number, not {value!r}") from error
        if not isinstance(found[key], int | float) or (
            key in ("n_samples", "seed") and not isinstance(found[key], int)
        ):
            raise ValueError(f"{key} of {name} must be a number, not {value!r}")
    return found


def _column(text: str) -> str | int | None:
    """Return a column name, or a column number, from 1 on the command line and from 0 here."""
    if text == "none":
        return None
    return int(text) - 1 if text.isdecimal() and int(text) > 0 else text


def _columns(text: str) -> Sequence[str | int]:
    return tuple(column for part in text.split(",") if (column := _column(part)) is not None)


def known_categories(path: Path | None) -> str | Mapping[str, Sequence[str]]:
    """Return how text columns are read: "refuse", "one-hot", or the categories of a file by column."""
    if path is None:
        return "error"
    if not path.exists():
        return "one-hot"
    try:
        categories = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataFileError(path, f"it must be JSON with the categories of each column: {error}") from error
    valid = isinstance(categories, dict) and all(
        isinstance(words, list) and all(isinstance(word, str) for word in words) and len(set(words)) == len(words)
        for words in categories.values()
    )
    if not valid:
        raise DataFileError(path, "it must have a list of distinct categories for each column")
    return {column: tuple(words) for column, words in categories.items()}
