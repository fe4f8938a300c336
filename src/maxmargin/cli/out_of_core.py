"""Training on a file that is read block by block: `maxmargin train --out-of-core`."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin.cli import training_progress
from maxmargin.cli.estimator_options import estimator_class, parameters_of
from maxmargin.cli.model_files import format_for, write_model
from maxmargin.cli.model_report import describe
from maxmargin.cli.output import Output
from maxmargin.cli.ranges import ranges_of
from maxmargin.cli.tables import open_table
from maxmargin.datasets.samples import MAX_CLASSES_WITH_SAMPLES, are_counted_classes
from maxmargin.deadline import Deadline

if TYPE_CHECKING:
    from maxmargin.blocks import RowBlocks

#: Estimators that take blocks of rows, by name.
ESTIMATORS = ("linear-svc", "linear-svr", "linear-one-class", "approximate-svc")


class TableName(NamedTuple):
    """What reports say about a table."""

    name: str
    rows: int
    n_features: int

    def __len__(self) -> int:
        return self.rows


def read_labels(table: RowBlocks) -> tuple[np.ndarray[Any, Any], bool] | None:
    """Return the labels that occur and whether they look like classes, None if there are none.

    All blocks are read, unless the first ones show that the labels are targets of a regression.
    """
    from maxmargin import blocks

    counts: dict[Any, int] = {}
    labels = np.empty(0)
    for block in blocks.read_ahead(table):
        if block.y is None:
            return None
        labels, found = np.unique(block.y, return_counts=True)
        for label, count in zip(labels.tolist(), found.tolist(), strict=True):
            counts[label] = counts.get(label, 0) + count
        if not are_counted_classes(labels, np.full(len(labels), block.y.size)):
            return labels, False
        if len(counts) > MAX_CLASSES_WITH_SAMPLES:
            break
    labels = np.array(list(counts))  # text if some are text: the fit says that they disagree
    return labels, are_counted_classes(labels, np.array(list(counts.values())))


def make_estimator(options: argparse.Namespace, table: RowBlocks, output: Output) -> Any:
    """Return an unfitted estimator; without --estimator the labels determine it."""
    name = options.estimator
    found = None
    if name is None or options.class_weight is not None:
        with training_progress.spinner(output.errors, "reading the labels", not output.quiet):
            found = read_labels(table)
    if found is None and options.class_weight is not None:
        raise ValueError(f"{table.name} has no labels; omit --class-weight")
    if name is None:
        if found is None:
            raise ValueError(f"{table.name} has no labels; --estimator linear-one-class needs none")
        name = "linear-svc" if found[1] else "linear-svr"
        output.remark(f"data are read in blocks: using {name}; --estimator selects another one")
    if name not in ESTIMATORS:
        raise ValueError(f"{name} needs the data in memory; out of core there are {', '.join(ESTIMATORS)}")
    return estimator_class(name)().set_params(**parameters_of(name, options, None if found is None else found[0]))


def train(options: argparse.Namespace, output: Output, target: Path, report: Any) -> int:
    """Train on blocks and write the model; `report` prints the results and returns the exit code."""
    from maxmargin import blocks
    from maxmargin.interchange import save
    from maxmargin.training.checkpoint_file import remove_checkpoint

    if options.resume and options.checkpoint is None:
        raise ValueError("training on blocks resumes from a checkpoint: add --checkpoint FILE")
    if options.resume and not Path(options.checkpoint).exists():
        raise FileNotFoundError(f"there is no checkpoint {options.checkpoint} to resume from; omit --resume")
    began = perf_counter()
    with training_progress.spinner(output.errors, f"opening {options.data}", not output.quiet):
        table = open_table(options)
        if options.ranges is not None:
            table = blocks.transform(table, ranges_of(options, table, output))
    opening = perf_counter() - began
    model = make_estimator(options, table, output)
    if options.checkpoint is not None:
        model.set_params(checkpoint=options.checkpoint, checkpoint_seconds=options.checkpoint_seconds)
        model._keeps_checkpoint = True  # until the model is written
        if Path(options.checkpoint).exists():
            output.remark(f"resuming from {options.checkpoint}")
    deadline = Deadline.after(options.max_seconds)
    estimate = training_progress.ProgressEstimate(model.tol, True, table.n_rows)
    bar = training_progress.TrainingProgressBar(
        output.errors, estimate, options.max_seconds, not output.quiet, "training"
    )
    outcome = training_progress.fit(model, (table,), bar)
    if options.checkpoint is not None:
        fresh = type(model)().get_params()
        model.set_params(**{name: fresh[name] for name in ("checkpoint", "checkpoint_seconds")})
        del model._keeps_checkpoint
    notes: dict[str, str | int | float] = {
        "data": os.path.basename(table.name), "rows": table.n_rows, "columns": table.n_features,
        "seconds": round(outcome.seconds, 3),
    }  # fmt: skip
    if options.ranges is not None:
        notes["ranges"] = str(options.ranges)
    facts = describe(model, deadline) | {"passes": int(model.n_passes_)}
    format = format_for(model, target)
    if format == "maxmargin":
        save(model, target, notes)
    else:
        write_model(model, target, format)
    unfinished = outcome.interrupted or outcome.limited
    if options.checkpoint is not None and not unfinished:
        remove_checkpoint(Path(os.path.realpath(options.checkpoint)))
    resume = shlex.join(["maxmargin", *options.words]) if unfinished and options.checkpoint is not None else None
    seconds = {"opening": opening, "training": outcome.seconds}
    code: int = report(output, outcome, TableName(table.name, *table.shape), facts, seconds, target, resume)
    return code
