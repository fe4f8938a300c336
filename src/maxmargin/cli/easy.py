"""`maxmargin easy`: from a data file to a tested model and a report, with a reason for every decision.

Read, scale, choose an estimator and its parameters, train on all samples, test, write. LIBSVM's easy.py does this for
the Gaussian kernel; here the estimator is chosen, too, parameters of large data are searched on a subset, the time is
limited, and the solution is verified.
"""

from __future__ import annotations

import argparse
import math
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.cli import data, easy_report
from maxmargin.cli.output import Output, add_output_options, check_folder, resume_command
from maxmargin.datasets.samples import are_classes
from maxmargin.deadline import Deadline
from maxmargin.storage.output_files import write_atomically

if TYPE_CHECKING:
    from maxmargin.datasets import Samples, Scaling
    from maxmargin.search import ModelChoice
    from maxmargin.search.data_summary import DataSummary

#: Exit codes if a limit or Ctrl-C ended the computation.
LIMITED, INTERRUPTED = 3, 130

#: Folds of the cross-validation unless an option says otherwise; `advise` checks the data for as many.
FOLDS = 5

#: Fraction of the time limit for the search.
SEARCH_FRACTION = 0.6

#: Fraction of the remaining time for training; the rest is for the certificate and the test.
TRAINING_FRACTION = 0.7

#: Ratio of class sizes from which on classes are called imbalanced.
MAX_CLASS_RATIO = 10


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("data", metavar="TRAIN", help=data.DATA_HELP)
    parser.add_argument("test", metavar="TEST", nargs="?", help="labelled test data")
    work = parser.add_argument_group("training")
    work.add_argument("--task", choices=["classification", "regression"], help="[depending on the labels]")
    work.add_argument("--score", metavar="NAME", help="name of a scikit-learn scorer [accuracy, or r2]")
    work.add_argument("--folds", type=int, default=FOLDS, help="number of folds of the cross-validation [%(default)s]")
    work.add_argument(
        "--max-seconds", type=float, default=600.0, metavar="S", help="time limit of the command [%(default)g]"
    )
    work.add_argument("--threads", type=int, metavar="N", help="number of threads [all cores]")
    work.add_argument("--seed", type=int, default=0, help="random seed of folds and subsets [%(default)s]")
    work.add_argument(
        "-o",
        "--output",
        metavar="NAME",
        help="stem of the output files: NAME.maxmargin, NAME.range, NAME.html [the name of TRAIN]",
    )
    work.add_argument("--prune", action="store_true", help="skip folds of points that cannot be the best any more")
    work.add_argument("--resume", action="store_true", help="continue a model selection that Ctrl-C ended")
    work.add_argument("--no-report", action="store_true", help="do not write NAME.html")
    data.add_data_options(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    output = Output(options)
    files = _output_files(options)
    try:
        return _select_train_and_write(options, output, files)
    except KeyboardInterrupt:
        # A search returns what it has scored; this is Ctrl-C between two searches, or after them.
        if not any(path.exists() for path in _journals(files)):
            raise
        output.remark("interrupted")
        return _interrupted(options, output, files)


def _select_train_and_write(options: argparse.Namespace, output: Output, files: dict[str, Path]) -> int:
    started = perf_counter()
    if not 0 < options.max_seconds < math.inf:
        raise ValueError(f"--max-seconds must be a number above 0, not {options.max_seconds:g}")
    samples = data.read_data(options, need_labels=True)
    test_options = argparse.Namespace(**{**vars(options), "samples": None})  # --samples is for the training data
    if samples.zero_based:
        test_options.first_index = "0"  # even if no index of the test data is 0
    test = None if options.test is None else data.read_data(test_options, options.test, need_labels=True)
    reading = perf_counter() - started
    classification = is_classification(options, samples)
    samples, test, scaling, decisions = prepare(samples, test, classification)
    for sentence in decisions:
        output.remark(sentence)
    stem = files["model"].with_suffix("")
    choice = _choose(options, output, samples, classification, SEARCH_FRACTION * options.max_seconds, stem)
    for sentence in choice.reasons:
        output.remark(sentence)
    if choice.interrupted:
        output.remark(f"interrupted; the best estimator so far: {' '.join(repr(choice.estimator).split())}")
        return _interrupted(options, output, files)
    work = easy_report.EasyRun(Path(samples.name).name, choice, [*decisions, *choice.reasons])
    work.reading_options = [] if options.one_hot is None else ["--one-hot", str(options.one_hot)]
    work.zero_based = samples.zero_based
    work.seconds = {"reading": reading, "model selection": perf_counter() - started - reading}
    _train(work, samples, options, output, started)
    _test(work, test)
    _write(work, files, scaling, Deadline.after(options.max_seconds, started))
    for journal in _journals(files):
        journal.unlink(missing_ok=True)
    _report(work, output)
    return INTERRUPTED if work.interrupted else LIMITED if work.limited else 0


def _interrupted(options: argparse.Namespace, output: Output, files: dict[str, Path]) -> int:
    """Print how to resume, and which journals have the scores so far."""
    output.remark(f"to resume:  {resume_command(options.words)}")
    output.result({"status": "interrupted", "journals": [str(path) for path in _journals(files) if path.exists()]})
    return INTERRUPTED


def _output_files(options: argparse.Namespace) -> dict[str, Path]:
    """Return the paths of the output files; raise if they cannot be written."""
    stem = options.output or ("samples" if options.data == "-" else Path(options.data).name)
    files = {"model": Path(f"{stem}.maxmargin"), "ranges": Path(f"{stem}.range")}
    if not options.no_report:
        if find_spec("matplotlib") is None:
            raise ImportError("the report needs matplotlib: pip install 'maxmargin[plot]', or use --no-report")
        files["report"] = Path(f"{stem}.html")
    check_folder(files["model"])
    for journal in () if options.resume else _journals(files):
        if journal.exists():
            raise ValueError(
                f"{journal} is the journal of a model selection that was interrupted: resume it with --resume, delete "
                "it, or choose another name with --output"
            )
    return files


def _journals(files: dict[str, Path]) -> list[Path]:
    """Return the journals of the searches, which are kept until the model is written."""
    from maxmargin.search.model_selection import journals

    return [Path(path) for path in journals(files["model"].with_suffix("")).values()]


def is_classification(options: argparse.Namespace, samples: Samples) -> bool:
    """Return whether the task is classification, by the option or by the labels."""
    if options.task == "regression" and samples.y is not None and samples.y.dtype.kind not in "fiu":
        raise ValueError("the labels are text, and regression needs numbers")
    assert samples.y is not None
    return are_classes(samples.y) if options.task is None else options.task == "classification"


def prepare(
    samples: Samples, test: Samples | None, classification: bool
) -> tuple[Samples, Samples | None, Scaling | None, list[str]]:
    """Return the scaled training and test samples, the scaling (None if not needed), and the decisions."""
    from dataclasses import replace

    from maxmargin.datasets import Scaling
    from maxmargin.search.data_summary import choose_range, densify, summarize

    X = densify(samples.X)
    summary = summarize(X, samples.y, classification)
    limits, reason = choose_range(summary)
    decisions = [_describe(summary), reason]
    if summary.classes is not None and MAX_CLASS_RATIO * summary.counts.min() < summary.counts.max():
        rare = data.label_name(summary.classes[int(np.argmin(summary.counts))])
        decisions.append(
            f"class {rare} has only {summary.smallest_class_fraction:.1%} of the samples: accuracy is misleading; "
            "--score balanced_accuracy gives all classes equal weight"
        )
    scaling = None if limits is None else Scaling.fit(X, *limits)
    samples = replace(samples, X=X if scaling is None else scaling.apply(X))
    if test is not None:
        test = _match_features(samples, test)
        X = densify(test.X) if not hasattr(samples.X, "nnz") else test.X
        test = replace(test, X=X if scaling is None else scaling.apply(X))
    return samples, test, scaling, decisions


def _match_features(samples: Samples, test: Samples) -> Samples:
    """Return the test data with the columns of the training data: LIBSVM text omits trailing zero columns."""
    from dataclasses import replace

    from scipy import sparse

    columns = samples.X.shape[1]
    if test.X.shape[1] == columns or not sparse.issparse(test.X):
        if test.X.shape[1] != columns:
            raise ValueError(f"{test.name} has {test.X.shape[1]} features, but {samples.name} has {columns}")
        return test
    if test.X.shape[1] > columns:  # features that do not occur in the training data have no weight
        return replace(test, X=test.X[:, :columns], feature_names=None)
    X = sparse.csr_matrix((test.X.data, test.X.indices, test.X.indptr), shape=(test.X.shape[0], columns))
    return replace(test, X=X, feature_names=None)


def _describe(summary: DataSummary) -> str:
    size = f"{summary.rows:,} samples, {summary.columns:,} features"
    sparsity = f" ({summary.density:.2%} nonzeros)" if summary.density < 0.5 else ""
    if summary.classes is None:
        return f"{size}{sparsity}; regression of targets with a standard deviation of {summary.target_std:.4g}"
    names = [
        f"{data.label_name(label)} ({count:,})" for label, count in zip(summary.classes, summary.counts, strict=True)
    ]
    return f"{size}{sparsity}, {len(names)} classes: {data.listed(names)}"


def _choose(
    options: argparse.Namespace, output: Output, samples: Samples, classification: bool, seconds: float, stem: Path
) -> ModelChoice:
    from maxmargin.cli.heat_map import LiveHeatMap
    from maxmargin.search import choose_estimator

    with LiveHeatMap(output.errors, not output.quiet) as live_map:
        return choose_estimator(
            samples.X,
            samples.y,
            classification=classification,
            scoring=options.score,
            folds=options.folds,
            max_seconds=seconds,
            train_seconds=TRAINING_FRACTION * (options.max_seconds - seconds),
            seed=options.seed,
            n_jobs=options.threads,
            journal=stem,
            resume=options.resume,
            callback=live_map.show,
            prune=options.prune,
        )


def _train(
    work: easy_report.EasyRun, samples: Samples, options: argparse.Namespace, output: Output, started: float
) -> None:
    """Train the chosen estimator on all samples, within the remaining time."""
    from maxmargin.cli import training_progress

    left = max(1.0, TRAINING_FRACTION * (options.max_seconds - (perf_counter() - started)))
    model = work.choice.estimator.set_params(n_jobs=options.threads, max_seconds=left)
    outcome = training_progress.train(model, samples, output, left)
    model.set_params(max_seconds=None)
    for remark in outcome.remarks:
        output.remark(remark)
    work.model, work.limited, work.interrupted = model, outcome.limited, outcome.interrupted
    work.seconds["training"] = outcome.seconds


def _test(work: easy_report.EasyRun, test: Samples | None) -> None:
    """Compute the metrics of the model on the test data."""
    from maxmargin.cli import evaluate
    from maxmargin.cli.estimator_options import task_of

    if test is None:
        return
    began = perf_counter()
    work.metrics = evaluate.compute_metrics(task_of(work.model), test, evaluate.predict(work.model, test.X))
    work.tested_on = Path(test.name).name
    work.seconds["testing"] = perf_counter() - began


def _write(work: easy_report.EasyRun, files: dict[str, Path], scaling: Scaling | None, deadline: Deadline) -> None:
    """Write the model, the ranges and the report."""
    from maxmargin.cli.model_report import describe
    from maxmargin.interchange import save

    began = perf_counter()
    work.facts = describe(work.model, deadline)
    notes: dict[str, str | int | float] = {"data": work.name, "rows": work.choice.summary.rows}
    if work.zero_based:
        notes["first_index"] = 0
    work.files["model"] = files["model"]
    if scaling is not None:
        scaling.write(files["ranges"])
        work.files["ranges"] = files["ranges"]
        notes["ranges"] = str(files["ranges"])
    save(work.model, files["model"], notes)
    work.seconds["verifying and writing"] = perf_counter() - began
    if "report" in files:
        work.files["report"] = files["report"]
        write_atomically(files["report"], [easy_report.page(work).encode()])


def _report(work: easy_report.EasyRun, output: Output) -> None:
    """Print the results, and how to use the model."""
    from maxmargin.cli.model_report import to_json, to_text

    rows = to_text(work.facts)
    kept = {name: text for name, text in rows.items() if name in ("support vectors", "duality gap", "status")}
    output.facts({**easy_report.summary(work), **kept, **{name: str(path) for name, path in work.files.items()}})
    output.remark(f"to use the model:  {easy_report.usage(work)}")
    score = work.choice.score
    output.result(
        {
            "data": work.name,
            "decisions": work.decisions,
            "cross_validation": None if score is None else {"mean": score.mean, "std": score.std},
            "test": work.metrics or None,
            "model": to_json(work.facts),
            "limited": work.limited,
            "seconds": work.seconds,
            "files": {name: str(path) for name, path in work.files.items()},
        }
    )
