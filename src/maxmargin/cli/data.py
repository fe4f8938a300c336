"""Data for a command: a file of samples and labels, or the name of a generator.

- chessboard, for one, is a generator of `maxmargin.datasets`
- .npz has NumPy arrays X and y
- .csv and .tsv have a line for each sample, with or without a heading; the label is the last column, or the first
- any other file is LIBSVM text: label index:value index:value …
"""

from __future__ import annotations

import csv
import inspect
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxmargin import datasets

#: Where the label of a line may be, and the position of its column.
LABEL_COLUMNS = {"last": -1, "first": 0}

#: How many labels a message lists.
LISTED = 10


class Data(NamedTuple):
    """Samples, their labels and what they are called."""

    X: Any
    y: np.ndarray
    name: str


def read_data(source: str, label_column: str, samples: int | None, seed: int) -> Data:
    """Return the data that a word on the command line stands for, or so many samples of them."""
    if source in generators():
        asked = {} if samples is None else {"n_samples": samples}
        X, y = getattr(datasets, source)(**asked, seed=seed)
        return Data(X, y, source)
    path = Path(source)
    if not path.exists():
        raise ValueError(f"there is no file {source}, and the generators are {', '.join(generators())}")
    X, y = _read_file(path, label_column)
    if samples is not None and samples < X.shape[0]:
        if samples < 2:
            raise ValueError(f"a comparison needs at least 2 samples, not {samples}")
        picks = np.sort(np.random.default_rng(seed).choice(X.shape[0], samples, replace=False))
        X, y = X[picks], y[picks]
    return Data(X, y, path.name)


def generators() -> list[str]:
    """Return the names of the generators: what makes samples by number and seed."""
    makers = {name: getattr(datasets, name) for name in datasets.__all__}
    return [
        name
        for name, make in makers.items()
        if callable(make) and {"n_samples", "seed"} <= set(inspect.signature(make).parameters)
    ]


def two_classes(y: np.ndarray, positive: str | None) -> np.ndarray:
    """Return labels of two classes: as they are, or one against the rest."""
    classes = np.unique(y)
    names = [_name(label) for label in classes]
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


def _name(label: Any) -> str:
    return f"{label:g}" if isinstance(label, float | np.floating) else str(label)


def _read_file(path: Path, label_column: str) -> tuple[Any, np.ndarray]:
    if path.suffix == ".npz":
        return _read_arrays(path)
    if path.suffix in (".csv", ".tsv"):
        return _read_columns(path, "\t" if path.suffix == ".tsv" else ",", LABEL_COLUMNS[label_column])
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(path)
    except ValueError as error:
        raise ValueError(f"{path} has no lines of LIBSVM text 'label index:value …': {error}") from error
    return X, y


def _read_arrays(path: Path) -> tuple[np.ndarray, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            missing = [name for name in ("X", "y") if name not in arrays]
            if missing:
                raise ValueError(f"it has no array {missing[0]}, only {', '.join(arrays) or 'none'}")
            X, y = arrays["X"], arrays["y"]
    except Exception as error:
        raise ValueError(f"{path} must be a NumPy file with arrays X and y: {error}") from error
    if X.ndim != 2 or y.shape != (len(X),):
        raise ValueError(f"{path}: X must be a table and y have a label for each line, not {X.shape} and {y.shape}")
    return X, y


def _read_columns(path: Path, delimiter: str, label_at: int) -> tuple[np.ndarray, np.ndarray]:
    """Read numbers and a label from each line; a first line without numbers is a heading."""
    rows: list[list[float]] = []
    labels: list[str] = []
    with path.open(newline="", encoding="utf-8-sig") as lines:
        reader = csv.reader(lines, delimiter=delimiter)
        for number, cells in enumerate(reader, 1):
            if not any(cell.strip() for cell in cells):
                continue
            label = cells.pop(label_at)
            try:
                values = [float(cell) for cell in cells]
            except ValueError as error:
                if not rows and number == 1:
                    continue
                raise ValueError(f"{path}, line {number}: {error}; all columns but the label are numbers") from error
            if rows and len(values) != len(rows[0]):
                raise ValueError(
                    f"{path}, line {number}: {len(cells) + 1} columns, but lines before have {len(rows[0]) + 1}"
                )
            rows.append(values)
            labels.append(label.strip())
    if not rows or not rows[0]:
        raise ValueError(f"{path} has no lines of numbers and a label, separated by {delimiter!r}")
    return np.array(rows), _as_numbers(labels)


def _as_numbers(labels: list[str]) -> np.ndarray:
    """Return labels as numbers if all are."""
    try:
        return np.array([float(label) for label in labels])
    except ValueError:
        return np.array(labels)
