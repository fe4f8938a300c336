"""`maxmargin train`: train an estimator on data, verify the solution and write the model.

Ctrl-C and limits end the training, not the command: the unfinished model is written with its certificate, and
`--resume` continues from its dual variables, if the data are the same.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Any

import numpy as np

from maxmargin.cli import data, out_of_core, training_progress
from maxmargin.cli.estimator_options import (
    add_estimator_options,
    make_estimator,
    name_of,
    parameters_of,
)
from maxmargin.cli.model_data import parts_of
from maxmargin.cli.model_files import format_for, model_format, write_model
from maxmargin.cli.model_report import describe, to_json, to_text
from maxmargin.cli.output import Output, add_output_options, check_folder, resume_command
from maxmargin.cli.prepared_data import PreparedData, add_table_options, read_prepared
from maxmargin.cli.ranges import ranges_of
from maxmargin.cli.tables import is_read_in_blocks
from maxmargin.datasets import Samples
from maxmargin.datasets.samples import checksum
from maxmargin.deadline import Deadline, TimeLimitReachedError

#: Exit codes if a limit or Ctrl-C ended the training; the unfinished model is written.
LIMITED, INTERRUPTED = 3, 130

#: Limit on the multiplications for computing the training accuracy.
MAX_SCORE_OPERATIONS = 2 * 10**9

#: Parameters that a resumed training takes from the command line, not from the model.
RUN_PARAMETERS = ("max_iter", "max_seconds", "cache_size", "n_jobs")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("data", metavar="DATA", help=data.DATA_HELP)
    parser.add_argument("model", metavar="MODEL", nargs="?", help="model file to write [the name of DATA + .maxmargin]")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue the training of MODEL, which Ctrl-C or a limit ended; out of core, that of --checkpoint FILE",
    )
    parser.add_argument(
        "--checkpoint", metavar="FILE", help="store the state of the training, and resume from it if the file exists"
    )
    parser.add_argument(
        "--checkpoint-seconds",
        "--every",
        type=float,
        default=60.0,
        metavar="S",
        help="time between two checkpoints [60]",
    )
    parser.add_argument(
        "--out-of-core",
        action="store_true",
        help="read DATA in blocks, pass after pass; for linear estimators [if a file does not fit into memory]",
    )
    parser.add_argument(
        "--convert",
        action="store_true",
        help="out of core: decode Parquet and Arrow files once, into the folder for converted files",
    )
    parser.add_argument(
        "--ranges",
        type=Path,
        metavar="FILE",
        help="scale the features by the ranges of this file; if it is missing, by those of DATA, and write them to it",
    )
    parser.add_argument(
        "--estimates",
        action="store_true",
        help="estimate the error on new samples: the fraction of support vectors, ξα and span (docs/leave_one_out.md)",
    )
    parser.add_argument(
        "--leave-one-out", action="store_true", help="compute the leave-one-out error, too: takes a few trainings"
    )
    add_estimator_options(parser)
    add_table_options(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from maxmargin.interchange import save
    from maxmargin.training.checkpoint_file import remove_checkpoint

    output = Output(options)
    target = Path(options.model or default_model(options.data))
    check_folder(target)
    if options.ranges is not None:
        check_folder(options.ranges)
    if target.is_dir():
        raise ValueError(f"cannot write {target}: it is a folder")
    if not options.resume and target.exists() and Path(options.data).is_file() and target.samefile(options.data):
        raise ValueError(f"{target} is the data file, which the model would replace; choose another name")
    _check_names({"the model": target, "the checkpoint": options.checkpoint, "the range file": options.ranges})
    if is_read_in_blocks(options):
        _check_estimates(options)
        return out_of_core.train(options, output, target, _report)
    if options.convert:
        output.remark("nothing is converted: DATA fit into memory and are read once; --out-of-core reads blocks")
    began = perf_counter()
    with training_progress.spinner(output.errors, f"reading {options.data}", not output.quiet):
        prepared = read_prepared(options, output)
        samples = prepared.samples
        if options.ranges is not None:
            samples = replace(samples, X=ranges_of(options, samples.X, output).apply(samples.X), feature_names=None)
        fingerprint = checksum(samples.X, samples.y, samples.query)
    reading, before = perf_counter() - began, 0.0
    if options.resume:
        model, before = _continue(options, target, samples, fingerprint)
    else:
        model = make_estimator(options, samples, output.remark)
    _check_estimates(options, model)
    _use_checkpoint(model, options, output)
    deadline = Deadline.after(options.max_seconds)
    outcome = training_progress.train(model, samples, output, options.max_seconds)
    _drop_checkpoint(model, options)
    if "warm_start" in model.get_params():
        model.set_params(warm_start=False)
    notes: dict[str, str | int | float] = {
        "data": Path(samples.name).name, "rows": len(samples), "columns": samples.n_features, "checksum": fingerprint,
        "seconds": round(before + outcome.seconds, 3), **prepared.notes(),
    }  # fmt: skip
    if options.ranges is not None:
        notes["ranges"] = str(options.ranges)
    verifying = perf_counter()
    format = format_for(model, target)
    if outcome.interrupted and format == "maxmargin":
        save(prepared.pipeline(model), target, notes)  # at once: a batch system sends SIGKILL soon after SIGTERM
    try:
        with training_progress.spinner(output.errors, "computing the certificate", not output.quiet):
            facts = describe(model, deadline)  # before the model is saved, so that the file contains the certificate
            if format == "maxmargin":
                save(prepared.pipeline(model), target, notes)
            else:
                write_model(model, target, format)
                _warn_about_preparation(prepared, format, output)
    except KeyboardInterrupt:
        kept = outcome.interrupted and format == "maxmargin"
        output.remark(f"interrupted: {target} was {'written without a certificate' if kept else 'not written'}")
        raise
    if options.checkpoint is not None and not (outcome.interrupted or outcome.limited):
        remove_checkpoint(Path(os.path.realpath(options.checkpoint)))
    seconds = {"reading": reading, "training": outcome.seconds, "verifying": perf_counter() - verifying}
    resume = None
    if outcome.interrupted or outcome.limited:
        if options.checkpoint is not None:
            resume = shlex.join(["maxmargin", *options.words])
        elif format == "maxmargin" and "warm_start" in model.get_params():
            resume = resume_command(options.words)
    score = {} if deadline.reached else _training_score(model, samples)
    if (options.estimates or options.leave_one_out) and not outcome.interrupted:
        with training_progress.spinner(output.errors, "estimating the error", not output.quiet):
            score |= _estimates(options, model, deadline, outcome.remarks)
    return _report(output, outcome, samples, facts, seconds, target, resume, score)


def default_model(source: str) -> str:
    """Return the default name of the model file, in the current folder."""
    if source == "-":
        return "model.maxmargin"
    name = source.partition(":")[0]
    return f"{name if name in data.generators() else Path(source).name}.maxmargin"


def _check_names(files: Mapping[str, str | Path | None]) -> None:
    """Raise if two of the files that the command writes have the same name."""
    places = {role: os.path.realpath(file) for role, file in files.items() if file is not None}
    for (one, place), (other, second) in combinations(places.items(), 2):
        if place == second:
            raise ValueError(f"{files[one]} cannot be both {one} and {other}; choose another name")


def _warn_about_preparation(prepared: PreparedData, format: str, output: Output) -> None:
    """Say that other formats do not have the preparation of a table."""
    if prepared.transformer is not None:
        output.remark(f"the format {format} has no preparation of columns: the model expects prepared features")


def _use_checkpoint(model: Any, options: argparse.Namespace, output: Output) -> None:
    """Set the checkpoint of the training, which is kept until the model is written."""
    if options.checkpoint is None:
        return
    if "checkpoint" not in model.get_params():
        raise ValueError(f"{type(model).__name__} has no checkpoints; omit --checkpoint")
    model.set_params(checkpoint=options.checkpoint, checkpoint_seconds=options.checkpoint_seconds)
    model._keeps_checkpoint = True
    if Path(options.checkpoint).exists():
        output.remark(f"resuming from {options.checkpoint}")


def _drop_checkpoint(model: Any, options: argparse.Namespace) -> None:
    """Forget the checkpoint: a model file must not have the name of another file."""
    if options.checkpoint is not None:
        fresh = type(model)().get_params()
        model.set_params(**{name: fresh[name] for name in ("checkpoint", "checkpoint_seconds")})
        del model._keeps_checkpoint


def _continue(options: argparse.Namespace, target: Path, samples: Samples, fingerprint: str) -> tuple[Any, float]:
    """Return the model of an earlier run, prepared to continue, and its training time so far."""
    from maxmargin.interchange import load, read_notes

    if not target.exists():
        raise ValueError(f"there is no file {target} to resume from; omit --resume to start a new training")
    if model_format(target) != "maxmargin":
        raise ValueError(f"{target} is not in the format of maxmargin; only that format can be resumed")
    _, model, _ = parts_of(load(target))
    notes = read_notes(target)
    name = name_of(model)
    if name is None or "warm_start" not in model.get_params():
        raise ValueError(f"{type(model).__name__} cannot resume a training; omit --resume to start a new one")
    if options.estimator not in (None, name):
        raise ValueError(f"{target} is a model of {name}: omit --estimator or --resume")
    if notes.get("checksum") != fingerprint:
        known = f"{notes['data']}, {notes['rows']:,} x {notes['columns']:,}" if "checksum" in notes else "unknown data"
        raise ValueError(
            f"{target} was not trained on these data ({known}; here {len(samples):,} x {samples.n_features:,}), "
            "so it cannot be resumed; omit --resume to start a new training"
        )
    fresh = type(model)().get_params()
    model.set_params(**{parameter: fresh[parameter] for parameter in RUN_PARAMETERS if parameter in fresh})
    model.set_params(**parameters_of(name, options, samples.y), warm_start=True)
    return model, float(notes["seconds"])


def _report(
    output: Output,
    outcome: training_progress.FitOutcome,
    samples: Samples | out_of_core.TableName,
    facts: dict[str, Any],
    seconds: dict[str, float],
    target: Path,
    resume: str | None,
    score: Mapping[str, float] = MappingProxyType({}),
) -> int:
    """Print the description of the model, and how to resume an unfinished training; return the exit code."""
    rows = {
        "data": f"{samples.name}: {len(samples):,} samples, {samples.n_features:,} features",
        **to_text(facts),
        **{name: f"{value:.2%}" if "accuracy" in name else f"{value:.4f}" for name, value in score.items()},
        "seconds": ", ".join(f"{name} {value:.2f}" for name, value in seconds.items()),
        "model": f"{target} ({target.stat().st_size:,} bytes)",
    }
    output.facts(rows)
    for remark in outcome.remarks:
        output.remark(remark)
    if outcome.interrupted or outcome.limited:
        output.remark(f"{'interrupted' if outcome.interrupted else 'limit reached'}: the unfinished model was written")
    if resume is not None:
        output.remark(f"to resume:  {resume}")
    output.result(
        {
            "data": {"name": samples.name, "rows": len(samples), "columns": samples.n_features},
            "model": str(target),
            "status": "interrupted" if outcome.interrupted else "limited" if outcome.limited else "finished",
            **to_json(facts | dict(score)),
            "seconds": seconds,
            "remarks": outcome.remarks,
            "resume": resume,
        }
    )
    return INTERRUPTED if outcome.interrupted else LIMITED if outcome.limited else 0


def _check_estimates(options: argparse.Namespace, model: Any = None) -> None:
    """Raise before the training if the error of a model cannot be estimated."""
    if not (options.estimates or options.leave_one_out):
        return
    from maxmargin.selection.leave_one_out import MACHINES

    if type(model).__name__ not in MACHINES:
        name = "a table that is read in blocks" if model is None else type(model).__name__
        raise ValueError(
            f"--estimates and --leave-one-out are for {', '.join(MACHINES)}, not for {name}; "
            "estimate the error with maxmargin evaluate, on other data or by cross-validation"
        )


def _estimates(options: argparse.Namespace, model: Any, deadline: Deadline, remarks: list[str]) -> dict[str, float]:
    """Return estimates of the error on new samples, by the names of their rows."""
    from maxmargin.selection.error_estimates import error_estimates

    try:
        with deadline.in_force():
            found = error_estimates(model, loo=options.leave_one_out)
    except TimeLimitReachedError:
        remarks.append("no time was left to estimate the error")
        return {}
    what = "outliers" if "outside" in found.measure else "squared error" if "squared" in found.measure else "error"
    named = {
        f"{what} by support vectors": found.support_vectors,
        f"{what} by xi-alpha": found.xi_alpha,
        "recall by xi-alpha": found.xi_alpha_recall,
        "precision by xi-alpha": found.xi_alpha_precision,
        f"{what} by span": found.span,
        f"{what} by leave-one-out": found.leave_one_out,
    }
    return {name: value for name, value in named.items() if value is not None}


def _training_score(model: Any, samples: Samples) -> dict[str, float]:
    """Return the accuracy on the training data, or R² of a regression, if it is cheap to compute."""
    from sklearn.base import is_classifier, is_regressor

    vectors = model.support_vectors_.shape[0] if hasattr(model, "support_vectors_") else 1
    cost = vectors * (samples.X.nnz if samples.is_sparse else samples.X.size)
    if cost > MAX_SCORE_OPERATIONS or not (is_classifier(model) or is_regressor(model)):
        return {}
    X, y = samples.X, samples.y
    if hasattr(model, "labelled"):
        rows = model.labelled(y)
        X, y = X[rows], np.asarray(y)[rows]
    return {"training accuracy" if is_classifier(model) else "training R2": model.score(X, y)}
