"""`maxmargin easy`: from a data file to a tested model and a report, with a reason for every decision.

Read, prepare, choose an estimator and its parameters, train on all samples, test, write, diagnose. LIBSVM's easy.py
does this for the Gaussian kernel; here the estimator is chosen, too, parameters of large data are searched on a subset,
the time is limited, the solution is verified, and one file has all that `maxmargin predict` needs.
"""

from __future__ import annotations

import argparse
import math
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from maxmargin.cli import data, easy_report
from maxmargin.cli.output import Output, add_output_options, check_folder, resume_command
from maxmargin.cli.prepared_data import PreparedData, add_table_options, apply_plan, is_table, read_prepared, read_table
from maxmargin.datasets.samples import are_classes
from maxmargin.deadline import Deadline
from maxmargin.storage.output_files import write_atomically

if TYPE_CHECKING:
    from maxmargin.datasets import Samples
    from maxmargin.search import ModelChoice
    from maxmargin.search.data_summary import DataSummary

#: Exit codes if a limit or Ctrl-C ended the computation.
LIMITED, INTERRUPTED = 3, 130

#: Folds of the cross-validation unless an option says otherwise; `advise` checks the data for as many.
FOLDS = 5

#: Fraction of the time limit for the search.
SEARCH_FRACTION = 0.6

#: Fraction of the remaining time for training; the rest is for the certificate, the test and the diagnostics.
TRAINING_FRACTION = 0.5

#: The most samples with which probabilities and prediction intervals are calibrated, by a further cross-validation.
MAX_CALIBRATED_SAMPLES = 20_000


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("data", metavar="TRAIN", help=data.DATA_HELP)
    parser.add_argument("test", metavar="TEST", nargs="?", help="labelled test data")
    work = parser.add_argument_group("training")
    work.add_argument("--task", choices=["classification", "regression"], help="[depending on the labels]")
    work.add_argument(
        "--score",
        metavar="NAME",
        help="name of a scikit-learn scorer [accuracy, balanced_accuracy of imbalanced classes, or r2]",
    )
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
        help="stem of the output files: NAME.maxmargin, NAME.html [the name of TRAIN]",
    )
    work.add_argument("--prune", action="store_true", help="skip folds of points that cannot be the best any more")
    work.add_argument("--resume", action="store_true", help="continue a model selection that Ctrl-C ended")
    work.add_argument("--no-report", action="store_true", help="do not write NAME.html")
    add_table_options(parser)
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
    prepared = read_prepared(options, output, need_labels=True)
    classification = is_classification(options, prepared.samples)
    prepared, decisions = prepare(prepared, classification)
    test = None if options.test is None else read_test(options, prepared, output)
    reading = perf_counter() - started
    for sentence in decisions:
        output.remark(sentence)
    stem = files["model"].with_suffix("")
    samples = prepared.samples
    choice = _choose(options, output, samples, classification, SEARCH_FRACTION * options.max_seconds, stem)
    for sentence in choice.reasons:
        output.remark(sentence)
    if choice.interrupted:
        output.remark(f"interrupted; the best estimator so far: {' '.join(repr(choice.estimator).split())}")
        return _interrupted(options, output, files)
    work = easy_report.EasyRun(Path(samples.name).name, choice, [*decisions, *choice.reasons], prepared)
    work.threshold = choice.threshold
    work.reading_options = easy_report.reading_options(options.words, prepared.plan is not None)
    work.seconds = {"reading": reading, "model selection": perf_counter() - started - reading}
    _train(work, samples, options, output, started)
    _test(work, test)
    _write(work, files, Deadline.after(options.max_seconds, started))
    for journal in _journals(files):
        journal.unlink(missing_ok=True)
    if "report" in files:
        _diagnose(work, options, output, started)
        work.files["report"] = files["report"]
        write_atomically(files["report"], [easy_report.page(work).encode()])
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
    files = {"model": Path(f"{stem}.maxmargin")}
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


def prepare(prepared: PreparedData, classification: bool) -> tuple[PreparedData, list[str]]:
    """Return the training data with scaled features, and the decisions; those of a table are prepared already."""
    from dataclasses import replace

    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler

    from maxmargin.search.data_summary import choose_range, densify, summarize

    X = densify(prepared.samples.X)
    summary = summarize(X, prepared.samples.y, classification)
    if prepared.plan is not None:
        return replace(prepared, samples=replace(prepared.samples, X=X)), [_describe(summary)]
    limits, reason = choose_range(summary)
    scaler = None
    if limits is not None:
        scaler = MinMaxScaler(limits) if limits[0] < 0 else MaxAbsScaler()
        if hasattr(X, "nnz") and limits[0] < 0:
            X = X.toarray()
    values, X = X, X if scaler is None else scaler.fit_transform(X)
    samples = replace(prepared.samples, X=X)
    return PreparedData(samples, None, scaler, values), [_describe(summary), reason]


def read_test(options: argparse.Namespace, prepared: PreparedData, output: Output) -> Samples:
    """Return the samples of TEST, prepared as the training data were."""
    from dataclasses import replace

    from maxmargin.cli.model_data import transformed

    given = argparse.Namespace(**{**vars(options), "samples": None})  # --samples is for the training data
    if prepared.plan is not None:
        if not is_table(given, options.test):
            raise ValueError(f"{options.test} is no table (CSV, TSV, Parquet, Arrow), unlike {options.data}")
        table = read_table(given, options.test, prepared.plan.text)
        test = apply_plan(prepared.plan, prepared.transformer, table, output.remark)
        if test.y is None:
            raise ValueError(f"{options.test} has no complete labels in a column {prepared.plan.label!r}")
        return test
    if prepared.samples.zero_based:
        given.first_index = "0"  # even if no index of the test data is 0
    test = _match_features(prepared.samples, data.read_data(given, options.test, need_labels=True))
    if hasattr(test.X, "nnz") and not hasattr(prepared.samples.X, "nnz"):
        test = replace(test, X=test.X.toarray())
    return test if prepared.transformer is None else replace(test, X=transformed(prepared.transformer, test.X))


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
    _calibrate(work, model, samples)
    outcome = training_progress.train(model, samples, output, left)
    model.set_params(max_seconds=None)
    for remark in outcome.remarks:
        output.remark(remark)
    work.model, work.limited, work.interrupted = model, outcome.limited, outcome.interrupted
    work.seconds["training"] = outcome.seconds


def _calibrate(work: easy_report.EasyRun, model: Any, samples: Samples) -> None:
    """Let a classifier of two classes have probabilities, and a regression prediction intervals, if there is time.

    Classes are predicted by the decision values all the same.
    """
    known, classes = model.get_params(), work.choice.summary.classes
    if len(samples) > MAX_CALIBRATED_SAMPLES or work.choice.score is None:
        return
    if classes is None and "noise" in known:
        model.set_params(noise=True)
    elif classes is not None and len(classes) == 2 and "probability" in known:
        model.set_params(probability=True)
        work.threshold = work.threshold or 0.0


def _test(work: easy_report.EasyRun, test: Samples | None) -> None:
    """Compute the metrics of the model on the test data."""
    from maxmargin.cli import evaluate
    from maxmargin.cli.estimator_options import task_of

    if test is None:
        return
    began = perf_counter()
    work.metrics = evaluate.compute_metrics(
        task_of(work.model), test, evaluate.predict(work.model, test.X, work.threshold)
    )
    work.tested_on = Path(test.name).name
    work.seconds["testing"] = perf_counter() - began


def _write(work: easy_report.EasyRun, files: dict[str, Path], deadline: Deadline) -> None:
    """Write the model with its preparation and threshold."""
    from maxmargin.cli.model_report import describe
    from maxmargin.interchange import save

    began = perf_counter()
    work.facts = describe(work.model, deadline)
    notes = {"data": work.name, "rows": work.choice.summary.rows, **work.prepared.notes()}
    work.files["model"] = files["model"]
    save(work.prepared.pipeline(work.model, work.threshold), files["model"], notes)
    work.seconds["verifying and writing"] = perf_counter() - began


def _diagnose(work: easy_report.EasyRun, options: argparse.Namespace, output: Output, started: float) -> None:
    """Find out what held-out samples say about the estimator, for the report."""
    from maxmargin.cli import training_progress
    from maxmargin.search.diagnostics import diagnose

    prepared, score, began = work.prepared, work.choice.score, perf_counter()
    samples = prepared.samples
    if score is None or samples.y is None:
        return
    estimator = type(work.model)(**work.model.get_params(deep=False)).set_params(
        **{name: False for name in ("probability", "noise") if name in work.model.get_params()}
    )
    try:
        with training_progress.spinner(output.errors, "diagnosing by held-out samples", not output.quiet):
            work.diagnostics = diagnose(
                samples.X, samples.y, estimator, classification=work.choice.summary.classes is not None,
                scoring=work.choice.scoring, threshold=work.threshold, folds=options.folds, seed=options.seed,
                max_seconds=options.max_seconds - (began - started), fold_seconds=score.seconds / options.folds,
                columns=prepared.values if prepared.transformer is not None else None,
                with_columns=lambda model: prepared.pipeline(model, work.threshold),
            )  # fmt: skip
    except KeyboardInterrupt:
        output.remark("interrupted: the model was written, and the report has no diagnostics")
        work.interrupted = True
    work.seconds["diagnosing"] = perf_counter() - began
    if work.diagnostics is not None:
        for sentence in easy_report.findings(work):
            output.remark(sentence)


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
            "threshold": work.threshold,
            "model": to_json(work.facts),
            "limited": work.limited,
            "seconds": work.seconds,
            "files": {name: str(path) for name, path in work.files.items()},
        }
    )
