"""Read CSV files with maxmargin, pandas, polars, pyarrow and NumPy: CPU and wall-clock time.

    python -m benchmarks.reading_csv [FILE ...] [--lines 100000] [--runs 7]

Without files two are generated: 20 columns of numbers with all their digits; and numbers with four digits among names
in quotes, identifiers and labels of text. Readers alternate, and the fastest run counts. The result of every reader is
an array of features and one of labels, as training needs them; that they are equal to the bit is checked first.
Readers are imported before, and the time of each import is printed, too.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.csv

from benchmarks.reading import alternate, print_table
from maxmargin.datasets import csv_files, read_samples

#: Cities of the generated file.
CITIES = ("Paris", "London", "New York, NY", "San Juan", "Rome")

Arrays = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def write_numbers(path: Path, lines: int) -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(lines, 20)), random.integers(0, 3, lines)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*(f"x{column}" for column in range(20)), "label"])
        writer.writerows([*row, label] for row, label in zip(X.tolist(), y.tolist(), strict=True))


def write_mixed(path: Path, lines: int) -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(lines, 8))
    cities, answers = random.choice(CITIES, lines), random.choice(["yes", "no"], lines)
    with path.open("w", newline="") as file:
        file.write(",".join(["id", *(f"x{column}" for column in range(8)), "city", "count", "label"]) + "\n")
        for number, (row, city, answer) in enumerate(zip(X.tolist(), cities, answers, strict=True)):
            cells = ",".join(f"{value:.4f}" for value in row)
            file.write(f's{number},{cells},"{city}",{number % 1000},{answer}\n')


def read_ours(
    path: Path, parser: Callable[..., Any] | None = csv_files.parse_block, n_jobs: int | None = None
) -> Arrays:
    with patch.object(csv_files, "parse_block", parser):
        samples = read_samples(path, ignore=text_columns(path), n_jobs=n_jobs)
    return samples.X, samples.y


def text_columns(path: Path) -> list[str]:
    """Return the columns that are not used: those of text that are not the label, the last column."""
    with path.open() as file:
        header, first = next(rows := csv.reader(file)), next(rows)
    return [name for name, cell in zip(header[:-1], first[:-1], strict=True) if not cell.lstrip("-")[0].isdigit()]


def read_pandas(path: Path) -> Arrays:
    frame = pd.read_csv(path).drop(columns=text_columns(path))
    return frame.iloc[:, :-1].to_numpy(np.float64), frame.iloc[:, -1].to_numpy()


def read_polars(path: Path) -> Arrays:
    frame = pl.read_csv(path, infer_schema_length=100).drop(text_columns(path))
    return frame[:, :-1].cast(pl.Float64).to_numpy(), frame[:, -1].to_numpy()


def read_pyarrow(path: Path) -> Arrays:
    table = pyarrow.csv.read_csv(path).drop_columns(text_columns(path))
    X = np.column_stack([column.to_numpy() for column in table.columns[:-1]])
    return X, table.columns[-1].to_numpy()


def read_loadtxt(path: Path) -> Arrays:
    with path.open() as file:
        header = file.readline().rstrip("\n").split(",")
    used = [column for column, name in enumerate(header) if name not in text_columns(path)]
    dtype = np.dtype([("X", np.float64, (len(used) - 1,)), ("y", object)])
    rows = np.loadtxt(path, dtype, delimiter=",", comments=None, quotechar='"', skiprows=1, usecols=used)
    y = rows["y"]
    return rows["X"], y.astype(np.int64) if y[0].isdigit() else y


READERS = {
    "pandas": read_pandas,
    "polars": read_polars,
    "pyarrow": read_pyarrow,
    "numpy.loadtxt": read_loadtxt,
    "maxmargin": read_ours,
    "maxmargin, 1 thread": partial(read_ours, n_jobs=1),
    "maxmargin without pyarrow": partial(read_ours, parser=lambda *arguments: None),
}


def import_seconds(module: str) -> float:
    """Return the fastest import of a module in three processes."""
    code = f"from time import perf_counter as t; import numpy; a = t(); import {module}; print(t() - a)"
    runs = (subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True) for _ in range(3))
    return min(float(run.stdout) for run in runs)


def compare(path: Path, runs: int) -> None:
    X, y = read_ours(path)
    for reader in READERS.values():
        theirs, labels = reader(path)
        assert np.array_equal(theirs, X), reader
        assert np.array_equal(labels.astype(str), y.astype(labels.dtype).astype(str)), reader
    tasks = {name: partial(reader, path) for name, reader in READERS.items()}
    size = path.stat().st_size / 1e6
    print_table(f"{path.name}: {len(y)} lines, {size:.1f} MB", alternate(tasks, runs), size, "pandas")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, help="CSV files with a header and the label last")
    parser.add_argument("--lines", type=int, default=100_000, help="lines of the generated files")
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    for module in ("pandas", "polars", "pyarrow.csv"):
        name = module.split(".")[0]
        print(f"{name} {version(name)}: imported in {import_seconds(module):.2f} s")
    with tempfile.TemporaryDirectory() as folder:
        generated = {"numbers.csv": write_numbers, "mixed.csv": write_mixed}
        for name, write in generated.items() if not options.files else ():
            write(Path(folder) / name, options.lines)
            compare(Path(folder) / name, options.runs)
        for file in options.files:
            compare(file, options.runs)


if __name__ == "__main__":
    main()
