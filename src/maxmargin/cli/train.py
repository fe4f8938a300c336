"""`maxmargin train`: read data, train a machine, prove how good it is, write the model.

Ctrl-C and limits end the training, not the command: the model so far is written with its certificate, and `--resume`
goes on from its dual variables, if the data are still the same.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from time import perf_counter
from typing import Any

from maxmargin.cli import data
from maxmargin.cli.info_model import describe
from maxmargin.cli.machine_options import (
    add_machine_options,
    choose_machine,
    make_machine,
    name_of,
    parameters_of,
)
from maxmargin.cli.model_files import format_for, model_format, write_model
from maxmargin.cli.model_words import for_programs, in_words
from maxmargin.cli.output import Output, add_output_options
from maxmargin.cli.training_run import Ending, spinner, train_watched
from maxmargin.datasets import Samples
from maxmargin.datasets.samples import checksum

#: Exit codes beside 0: a limit or Ctrl-C has ended the training, and the model so far is written.
LIMITED, INTERRUPTED = 3, 130

#: Training accuracy is told if it takes at most so many multiplications.
CHEAP = 2 * 10**9

#: What is not a part of the model: it is asked for anew when training goes on.
WORK = ("max_iter", "max_seconds", "cache_size", "n_jobs")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("data", metavar="DATA", help=data.DATA_HELP)
    parser.add_argument(
        "model", metavar="MODEL", nargs="?", help="where the model goes [the name of DATA + .maxmargin]"
    )
    parser.add_argument("--resume", action="store_true", help="go on from MODEL, which Ctrl-C or a limit has ended")
    add_machine_options(parser)
    data.add_data_options(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Read, train, write, tell."""
    from maxmargin.interchange import save

    output = Output(options)
    target = Path(options.model or default_model(options.data))
    if not target.absolute().parent.is_dir():
        raise ValueError(f"{target} cannot be written: there is no folder {target.parent}")
    if target.is_dir():
        raise ValueError(f"{target} cannot be written: it is a folder")
    if not options.resume and target.exists() and Path(options.data).is_file() and target.samefile(options.data):
        raise ValueError(f"{target} is the file of the data, which the model would replace; give it another name")
    began = perf_counter()
    with spinner(output.errors, f"reading {options.data}", not output.quiet):
        samples = data.read_data(options)
        fingerprint = checksum(samples.X, samples.y, samples.query)
    reading, before = perf_counter() - began, 0.0
    if options.resume:
        model, before = _continue(options, target, samples, fingerprint)
    else:
        name, why = choose_machine(options, samples.y)
        if why is not None:
            output.remark(why)
        model = make_machine(name, options, samples.y)
    ending = train_watched(model, samples, output, options.max_seconds)
    if "warm_start" in model.get_params():
        model.set_params(warm_start=False)
    notes: dict[str, str | int | float] = {
        "data": Path(samples.name).name, "rows": len(samples), "columns": samples.n_features, "checksum": fingerprint,
        "seconds": round(before + ending.seconds, 3),
    }  # fmt: skip
    if samples.zero_based:
        notes["first_index"] = 0
    proving = perf_counter()
    try:
        with spinner(output.errors, "computing the certificate", not output.quiet):
            format = format_for(model, target)
            if format == "maxmargin":
                save(model, target, notes)
            else:
                write_model(model, target, format)
            facts = describe(model)
    except KeyboardInterrupt:
        output.remark(f"interrupted again: {target} was not written")
        raise
    seconds = {"reading": reading, "training": ending.seconds, "proving": perf_counter() - proving}
    again = None
    if format == "maxmargin" and "warm_start" in model.get_params() and (ending.interrupted or ending.limited):
        again = shlex.join(["maxmargin", *(word for word in options.words if word != "--resume"), "--resume"])
    _tell(output, ending, samples, facts, seconds, target, again, _training_score(model, samples))
    return INTERRUPTED if ending.interrupted else LIMITED if ending.limited else 0


def default_model(source: str) -> str:
    """Return the name of the model of some data, in the folder where the command runs."""
    if source == "-":
        return "model.maxmargin"
    name = source.partition(":")[0]
    return f"{name if name in data.generators() else Path(source).name}.maxmargin"


def _continue(options: argparse.Namespace, target: Path, samples: Samples, fingerprint: str) -> tuple[Any, float]:
    """Return the model of an earlier run, ready to go on, and the seconds it took so far."""
    from maxmargin.interchange import load, read_notes

    if not target.exists():
        raise ValueError(f"there is no {target} to go on from; leave --resume out to begin")
    if model_format(target) != "maxmargin":
        raise ValueError(f"{target} is not of maxmargin's own format, which alone keeps what training goes on from")
    model, notes = load(target), read_notes(target)
    name = name_of(model)
    if name is None or "warm_start" not in model.get_params():
        raise ValueError(f"{type(model).__name__} cannot go on from a model; leave --resume out to begin anew")
    if options.machine not in (None, name):
        raise ValueError(f"{target} is of the machine {name}: leave --machine out, or --resume")
    if notes.get("checksum") != fingerprint:
        known = f"{notes['data']}, {notes['rows']:,} x {notes['columns']:,}" if "checksum" in notes else "unknown data"
        raise ValueError(
            f"{target} was not trained on these data ({known}; here {len(samples):,} x {samples.n_features:,}), "
            "so there is nothing to go on from; leave --resume out to begin anew"
        )
    fresh = type(model)().get_params()
    model.set_params(**{parameter: fresh[parameter] for parameter in WORK if parameter in fresh})
    model.set_params(**parameters_of(name, options, samples.y), warm_start=True)
    return model, float(notes["seconds"])


def _tell(
    output: Output,
    ending: Ending,
    samples: Samples,
    facts: dict[str, Any],
    seconds: dict[str, float],
    target: Path,
    again: str | None,
    score: dict[str, float],
) -> None:
    """Report what was trained, how good it is proved to be, and how to go on if it is not finished."""
    words = {
        "data": f"{samples.name}: {len(samples):,} samples, {samples.n_features:,} features",
        **in_words(facts),
        **{name: f"{value:.2%}" if "accuracy" in name else f"{value:.4f}" for name, value in score.items()},
        "seconds": ", ".join(f"{name} {value:.2f}" for name, value in seconds.items()),
        "model": f"{target} ({target.stat().st_size:,} bytes)",
    }
    output.facts(words)
    for remark in ending.remarks:
        output.remark(remark)
    if ending.interrupted or ending.limited:
        output.remark(f"{'interrupted' if ending.interrupted else 'ended by a limit'}: the model so far is written")
    if again is not None:
        output.remark(f"to go on:  {again}")
    output.result(
        {
            "data": {"name": samples.name, "rows": len(samples), "columns": samples.n_features},
            "model": str(target),
            "status": "interrupted" if ending.interrupted else "limited" if ending.limited else "finished",
            **for_programs(facts | score),
            "seconds": seconds,
            "remarks": ending.remarks,
            "resume": again,
        }
    )


def _training_score(model: Any, samples: Samples) -> dict[str, float]:
    """Return the accuracy on the training data, or R² of a regression, if that takes no time worth mentioning."""
    from sklearn.base import is_classifier, is_regressor

    vectors = model.support_vectors_.shape[0] if hasattr(model, "support_vectors_") else 1
    cost = vectors * (samples.X.nnz if samples.is_sparse else samples.X.size)
    if cost > CHEAP or not (is_classifier(model) or is_regressor(model)):
        return {}
    return {"training accuracy" if is_classifier(model) else "training R2": model.score(samples.X, samples.y)}
