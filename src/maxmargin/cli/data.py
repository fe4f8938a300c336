"""The word DATA of a command: a file of samples, standard input, or a generator.

- `heart_scale`, `iris.csv`, `a9a.npz`, `test.parquet.gz`: a file of any format that `maxmargin.datasets` reads
- `-`: standard input, compressed or not
- `chessboard`, `spirals:500`, `twonorm:2000,seed=3`: a generator of `maxmargin.datasets`, and what to pass to it
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

#: What the options mean to `read_samples`.
HEADERS: dict[str, bool | str] = {"auto": "auto", "yes": True, "no": False}
FIRST_INDICES: dict[str, bool | Literal["auto"]] = {"auto": "auto", "0": True, "1": False}

#: How many labels a message lists.
LISTED = 10

#: What DATA may be, for the help of a command.
DATA_HELP = "a file (LIBSVM text, CSV, TSV, npz, npy, Parquet, Arrow; also .gz, .bz2, .xz), - or a generator"


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how DATA is read; the argument itself is added by the command."""
    group = parser.add_argument_group("the data")
    group.add_argument("--format", choices=FORMATS, help="of the file; else told by its name or by what is in it")
    group.add_argument(
        "--label",
        metavar="COLUMN",
        type=_column,
        default="auto",
        help="of a table: its name, its number from 1, first, last, or none; "
        "else the one called label, target or class, or the last",
    )
    group.add_argument("--query", metavar="COLUMN", type=_column, help="of a table: which samples belong together")
    group.add_argument(
        "--ignore",
        metavar="COLUMNS",
        type=_columns,
        default=(),
        help="of a table: leave these out (commas between them)",
    )
    group.add_argument(
        "--one-hot",
        metavar="FILE",
        type=Path,
        help="make a column of 0 and 1 for each word in columns of words; "
        "the words are kept in FILE, and taken from it if it is there",
    )
    group.add_argument("--header", choices=HEADERS, default="auto", help="of CSV and TSV [%(default)s]")
    group.add_argument(
        "--first-index", choices=FIRST_INDICES, default="auto", help="of LIBSVM text; auto is 0 if one is 0"
    )
    group.add_argument("--samples", type=int, metavar="N", help="make so many, or draw so many of a file at random")


def read_data(
    options: argparse.Namespace,
    source: str | None = None,
    *,
    n_features: int | None = None,
    need_labels: bool = False,
) -> Samples:
    """Return the samples that a word on the command line stands for.

    Parameters
    ----------
    options : Namespace
        As `add_data_options` made it; `seed` and `threads` count if the command has them.
    source : str or None
        The word; None: `options.data`.
    n_features : int or None
        How many features a model has; a table with just so many columns has no labels.
    need_labels : bool
        Whether samples without labels are a mistake.
    """
    word = options.data if source is None else source
    seed = getattr(options, "seed", None) or 0
    name, _, details = word.partition(":")
    if name in generators():
        return generate(name, details, options.samples, seed)
    if word != "-" and not Path(word).exists():
        raise ValueError(f"there is no file {word}, and the generators are {', '.join(generators())}")
    words = known_words(options.one_hot)
    samples = read_samples(
        word,
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
        options.one_hot.write_text(text + "\n", encoding="utf-8")
    if need_labels and samples.y is None:
        raise DataFileError(samples.name, "there are no labels")
    return _some(samples, options.samples, seed)


def generators() -> list[str]:
    """Return the names of the generators: what makes samples by number and seed."""
    makers = {name: getattr(datasets, name) for name in datasets.__all__}
    return [
        name
        for name, make in makers.items()
        if inspect.isfunction(make) and {"n_samples", "seed"} <= set(inspect.signature(make).parameters)
    ]


def generate(name: str, details: str = "", samples: int | None = None, seed: int = 0) -> Samples:
    """Return what a generator makes: `details` are its arguments, as in "500,noise=0.1"."""
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
    """Return labels of two classes: as they are, or one against the rest."""
    classes = np.unique(y)
    names = [label_name(label) for label in classes]
    listed = ", ".join(names[:LISTED]) + (", …" if len(names) > LISTED else "")
    if positive is not None:
        if positive not in names:
            raise ValueError(f"no label is {positive}; there are {listed}")
        chosen: np.ndarray = y == classes[names.index(positive)]
        return chosen
    if y.dtype.kind == "f" and not np.array_equal(y, np.rint(y)):
        raise ValueError("the labels are numbers with fractions, and regression cannot be compared; give classes")
    if len(classes) > 2:
        raise ValueError(f"the labels are of {len(classes)} classes ({listed}): choose one with --positive LABEL")
    return y


def label_name(label: Any) -> str:
    """Return a label as a person writes it."""
    return f"{label:g}" if isinstance(label, float | np.floating) else str(label)


def _some(samples: Samples, count: int | None, seed: int) -> Samples:
    """Return some of the samples, drawn at random, in their order."""
    if count is None or count >= len(samples):
        return samples
    if count < 2:
        raise ValueError(f"at least 2 samples are needed, not {count}")
    return samples.take(np.sort(np.random.default_rng(seed).choice(len(samples), count, replace=False)))


def _arguments(name: str, details: str, signature: inspect.Signature) -> dict[str, Any]:
    """Return the arguments of a generator: a number of samples first, and others by name."""
    found = {}
    for position, part in enumerate(part for part in details.split(",") if part):
        key, equals, value = part.partition("=")
        if not equals and position == 0:
            key, value = "n_samples", part
        if key not in signature.parameters:
            raise ValueError(f"{name} has no {key!r}; it takes {', '.join(signature.parameters)}")
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
    """Return a column of a table: counted from 1 by people, from 0 here."""
    if text == "none":
        return None
    return int(text) - 1 if text.isdecimal() and int(text) > 0 else text


def _columns(text: str) -> Sequence[str | int]:
    return tuple(column for part in text.split(",") if (column := _column(part)) is not None)


def known_words(path: Path | None) -> str | Mapping[str, Sequence[str]]:
    """Return what becomes of words: refused, encoded, or encoded as a file says."""
    if path is None:
        return "error"
    if not path.exists():
        return "one-hot"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataFileError(path, f"it must be JSON, words by column: {error}") from error
    good = isinstance(found, dict) and all(
        isinstance(words, list) and all(isinstance(word, str) for word in words) and len(set(words)) == len(words)
        for words in found.values()
    )
    if not good:
        raise DataFileError(path, "it must have a list of different words for each column")
    return {column: tuple(words) for column, words in found.items()}
