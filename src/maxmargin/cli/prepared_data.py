"""Training data of a command: a table as it comes with the plan of its columns, or samples in another format.

What was done with the columns is stored in the model file, so that `maxmargin predict` needs no option.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.cli import data
from maxmargin.cli.output import Output, check_folder
from maxmargin.datasets import ColumnTable, Samples, read_columns
from maxmargin.datasets.sample_files import TABLE_FORMATS, find_format
from maxmargin.datasets.samples import INEXACT_LABEL

if TYPE_CHECKING:
    from maxmargin.preparation import TablePlan

#: Name of the note of a model file with the plan of the columns.
TABLE_NOTE = "table"

#: Scalings in words.
SCALING_TEXTS = {
    "standard": "scaled to mean 0 and standard deviation 1",
    "range": "scaled to [-1, 1]",
    "none": "not scaled",
}

#: More columns of complete numbers than this are one line of the plan that is shown.
MAX_PLAIN_COLUMNS = 12


@dataclass(frozen=True)
class PreparedData:
    """Samples with their preparation.

    Attributes
    ----------
    samples : Samples
        Features after the preparation.
    plan : TablePlan or None
        What became of the columns; None if DATA is no table.
    transformer : transformer of scikit-learn or None
        Fitted; it makes the features of the values of the plan, or of samples in other formats.
    values : array or None
        What the transformer has transformed.
    table : ColumnTable or None
    """

    samples: Samples
    plan: TablePlan | None = None
    transformer: Any = None
    values: Any = None
    table: ColumnTable | None = None

    def pipeline(self, model: Any, threshold: float | None = None) -> Any:
        """Return a fitted model that includes the preparation, and the threshold of its decision values."""
        if threshold is not None:
            from sklearn.model_selection import FixedThresholdClassifier

            fixed = FixedThresholdClassifier(
                model, threshold=threshold, pos_label=model.classes_[1], response_method="decision_function"
            )
            fixed.estimator_ = model
            model = fixed
        if self.transformer is None:
            return model
        from sklearn.pipeline import Pipeline

        return Pipeline([("prepare", self.transformer), ("model", model)])

    def notes(self) -> dict[str, str | int | float]:
        """Return what a model file remembers of the data beside the pipeline."""
        found: dict[str, str | int | float] = {} if self.plan is None else {TABLE_NOTE: self.plan.to_json()}
        return found | ({"first_index": 0} if self.samples.zero_based else {})


def add_table_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the preparation of tables, and those for reading DATA."""
    group = data.add_data_options(parser, one_hot=False)
    group.add_argument(
        "--type",
        metavar="COLUMN=TYPE",
        action="append",
        type=_typed_column,
        default=[],
        dest="types",
        help="type of a column of a table: number, date, category or ignored [found by its cells]",
    )
    group.add_argument(
        "--scaling",
        choices=["standard", "range", "none"],
        help="scaling of the numbers of a table: mean 0 and standard deviation 1, or to [-1, 1] [standard]",
    )
    group.add_argument("--columns", type=Path, metavar="FILE", help="TOML file with types and treatments of columns")
    group.add_argument(
        "--write-columns", type=Path, metavar="FILE", help="write what was found in the columns to a TOML file"
    )


def is_table(options: argparse.Namespace, source: str | None = None) -> bool:
    """Return whether DATA has columns that are prepared: not kernel values, and not features with a range file."""
    source = options.data if source is None else source
    if getattr(options, "kernel", None) == "precomputed" or getattr(options, "ranges", None) is not None:
        return False
    if source.partition(":")[0] in data.generators():
        return False
    if options.format is not None or source == "-":
        return options.format in TABLE_FORMATS
    return Path(source).is_file() and find_format(source) in TABLE_FORMATS


def read_prepared(options: argparse.Namespace, output: Output, *, need_labels: bool = False) -> PreparedData:
    """Return the training data of DATA: those of a table after their preparation, which is printed."""
    if not is_table(options):
        _check_unused(options)
        return PreparedData(data.read_data(options, need_labels=need_labels))
    from maxmargin.preparation import column_transformer, plan_columns, read_plan, write_plan
    from maxmargin.preparation.transformers import feature_names

    given: dict[str, dict[str, Any]] = {}
    label, query, scaling = options.label, options.query, options.scaling
    if options.columns is not None:
        file = read_plan(options.columns)
        given = file.columns
        label = file.label if label == "auto" and file.label is not None else label
        query, scaling = query or file.query, scaling or file.scaling
    for name, kind in options.types:
        given[name] = {**given.get(name, {}), "type": kind}
    text = {name for name, fields in given.items() if fields.get("type") in ("category", "date")}
    table = read_table(options, options.data, text | {name for name, f in given.items() if f.get("decimal") == ","})
    plan = plan_columns(
        table, label=label, query=query, ignore=options.ignore, given=given, scaling=scaling or "standard"
    )
    table = _labelled(table, plan, output)
    if need_labels and plan.label is None:
        raise table.error("there are no labels")
    _show(plan, table, output)
    if options.write_columns is not None:
        check_folder(options.write_columns)
        write_plan(plan, options.write_columns)
        output.remark(f"the columns are described in {options.write_columns}; change it, and use it with --columns")
    values = plan.values(table)
    transformer = column_transformer(plan)
    X = transformer.fit_transform(values)
    samples = Samples(
        _checked(X), _labels(table, plan), plan.queries(table), feature_names(transformer, plan),
        label_name=plan.label, name=table.name,
    )  # fmt: skip
    return PreparedData(samples, plan, transformer, values, table)


def read_table(
    options: argparse.Namespace, source: str, text: Sequence[str] | set[str] | frozenset[str]
) -> ColumnTable:
    """Return the columns of a file, or of a random subset of its rows."""
    if source != "-" and not Path(source).exists():
        raise ValueError(f"there is no file {source}, and the generators are {', '.join(data.generators())}")
    table = read_columns(
        source,
        format=options.format,
        header=data.HEADERS[options.header],
        text=text,
        n_jobs=getattr(options, "threads", None),
    )
    rows = data.subset_rows(len(table), options.samples, getattr(options, "seed", None) or 0)
    return table if rows is None else table.take(rows)


def apply_plan(plan: TablePlan, transformer: Any, table: ColumnTable, remark: Any) -> Samples:
    """Return the samples of another table, prepared as the training data were."""
    from maxmargin.preparation.transformers import unknown_categories

    values = plan.values(table)
    for name, found in unknown_categories(transformer, plan, values).items():
        shown = data.listed([repr(value) for value in found])
        remark(f"{name}: categories that the training data do not have count as rare: {shown}")
    y = _labels(table, plan)
    return Samples(
        _checked(transformer.transform(values)), y, plan.queries(table), label_name=plan.label, name=table.name
    )


def _labelled(table: ColumnTable, plan: TablePlan, output: Output) -> ColumnTable:
    """Return the rows that have a label, if any has."""
    missing = missing_labels(plan.labels(table))
    count = 0 if missing is None else int(missing.sum())
    if not count or missing is None:
        return table
    if count == len(table):
        raise table.error(f"all labels in column {plan.label!r} are missing; choose another column with --label")
    output.remark(f"{count:,} rows without a value of {plan.label} are left out")
    return table.take(~missing)


def missing_labels(labels: Any) -> Any:
    """Return which labels are missing; None without labels."""
    if labels is None:
        return None
    return np.isnan(labels) if labels.dtype.kind == "f" else labels == ""


def _labels(table: ColumnTable, plan: TablePlan) -> Any:
    """Return labels as numbers or strings; None if there are none, or if some are missing."""
    labels = plan.labels(table)
    missing = missing_labels(labels)
    if labels is None or missing.any():
        return None
    if labels.dtype.kind == "O":
        return labels.astype(str)
    large = np.flatnonzero(np.abs(labels) >= 2**53)
    if len(large) and np.array_equal(labels, np.rint(labels)):
        raise table.error(
            f"the label {labels[large[0]]:.0f} is an integer that float64 cannot represent; {INEXACT_LABEL}",
            int(large[0]),
        )
    return labels


def _checked(X: Any) -> Any:
    """Return prepared features as a CSR matrix or a contiguous array."""
    return X.tocsr() if hasattr(X, "tocsr") else np.ascontiguousarray(X, dtype=np.float64)


def _show(plan: TablePlan, table: ColumnTable, output: Output) -> None:
    """Print what was found in each column, and what is done with it."""
    if output.quiet:
        return
    plain = [c for c in plan.columns if c.type == "number" and not c.missing and c.decimal == "."]
    rows = []
    for column in plan.columns:
        if column in plain and len(plain) > MAX_PLAIN_COLUMNS:
            if column is plain[0]:
                shown = f"complete: {data.listed([one.name for one in plain])}"
                rows.append((f"{len(plain):,} columns", "number", shown, column.treatment))
            continue
        rows.append((column.name, column.type, column.reason, column.treatment))
    if plan.label is not None:
        rows.append((plan.label, "label", _describe_labels(plan.labels(table)), "to be predicted"))
    if plan.query is not None:
        rows.append((plan.query, "query", "", "groups of rows to be ranked"))
    output.remark_table(("column", "type", "found", "treatment"), rows)
    output.remark(f"numbers are {SCALING_TEXTS[plan.scaling]}")
    if table.encoding != "utf-8":
        output.remark(f"{table.name} is not UTF-8: it was read as Windows-1252, which contains Latin-1")


def _describe_labels(labels: Any) -> str:
    if labels.dtype.kind == "O":
        return f"{len(set(labels.tolist())):,} classes"
    return f"numbers from {labels.min():g} to {labels.max():g}"


def _check_unused(options: argparse.Namespace) -> None:
    """Raise if an option of tables was given for data that are none."""
    unused: Mapping[str, Any] = {
        "--type": options.types, "--scaling": options.scaling, "--columns": options.columns,
        "--write-columns": options.write_columns,
    }  # fmt: skip
    for name, value in unused.items():
        if value:
            raise ValueError(f"{name} is for tables (CSV, TSV, Parquet, Arrow), and {options.data} is none")


def _typed_column(text: str) -> tuple[str, str]:
    """Return a column and its type."""
    from maxmargin.preparation.column_plan import TYPES

    name, equals, kind = text.rpartition("=")
    if not equals or not name or kind not in TYPES:
        raise argparse.ArgumentTypeError(f"{text!r} must be COLUMN=TYPE, where TYPE is {', '.join(TYPES)}")
    return name, kind
