"""`maxmargin easy`: from a file to a tested model and a report, with every decision told.

Read, look, scale, choose a machine and its parameters, train on all samples, test, write. LIBSVM's easy.py does that
for the gaussian kernel; here the machine is chosen too, large data are searched by samples of them, the time is
limited, and the result is proved and reported.
"""

from __future__ import annotations

import argparse
import math
import shlex
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.cli import data
from maxmargin.cli.output import Output, add_output_options
from maxmargin.datasets.samples import are_classes

if TYPE_CHECKING:
    from maxmargin.datasets import Samples, Scaling
    from maxmargin.search import ModelChoice

#: Exit codes beside 0: a limit or Ctrl-C has ended the work.
LIMITED, INTERRUPTED = 3, 130

#: The part of the time that the search may take.
SEARCH = 0.6

#: The part of what is left then that training may take; the rest is for the proof and the test.
PROOF = 0.7

#: So few samples are trained without a limit: it takes no time worth mentioning, and less without.
QUICK = 2000

#: A class that is so many times smaller than the largest is worth a remark.
UNBALANCED = 10

#: The measures of a test that are told, by name in words.
TOLD = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "macro_f1": "mean F1 of the classes",
    "roc_auc": "area under the ROC curve",
    "r2": "R²",
    "root_mean_squared_error": "root mean squared error",
    "mean_absolute_error": "mean absolute error",
    "correlation": "correlation",
}


@dataclass
class Work:
    """What was done, for the report.

    Attributes
    ----------
    name : str
        Of the training data.
    choice : ModelChoice
    decisions : list of str
        Sentences: what was found and decided, in order.
    model : estimator
        Fitted.
    facts : dict
        What there is to know of the model, its certificate among it.
    measures : dict
        Of the test, empty without one.
    tested_on : str
    seconds : dict of str to float
    files : dict of str to Path
    reading : list of str
        Options that new data must be read with, too.
    zero_based : bool
        Whether the indices of the training data count from 0.
    limited : bool
        Whether the time was up before the tolerance was reached.
    """

    name: str
    choice: ModelChoice
    decisions: list[str]
    model: Any = None
    facts: dict[str, Any] = field(default_factory=dict)
    measures: dict[str, Any] = field(default_factory=dict)
    tested_on: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)
    reading: list[str] = field(default_factory=list)
    zero_based: bool = False
    limited: bool = False
    interrupted: bool = False


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("data", metavar="TRAIN", help=data.DATA_HELP)
    parser.add_argument("test", metavar="TEST", nargs="?", help="samples to test on, with labels")
    work = parser.add_argument_group("the work")
    work.add_argument("--task", choices=["classification", "regression"], help="[by the labels]")
    work.add_argument("--score", metavar="NAME", help="a scorer of scikit-learn, by name [accuracy, or r2]")
    work.add_argument("--folds", type=int, default=5, help="of cross-validation [%(default)s]")
    work.add_argument("--max-seconds", type=float, default=600.0, metavar="S", help="for everything [%(default)g]")
    work.add_argument("--threads", type=int, metavar="N", help="[all cores]")
    work.add_argument("--seed", type=int, default=0, help="of folds and samples [%(default)s]")
    work.add_argument("-o", "--output", metavar="NAME", help="files are called NAME.maxmargin and so on [as TRAIN]")
    work.add_argument("--no-report", action="store_true", help="leave the page NAME.html out")
    data.add_data_options(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Do it all."""
    output = Output(options)
    files = _files(options)
    started = perf_counter()
    if not 0 < options.max_seconds < math.inf:
        raise ValueError(f"--max-seconds must be a number above 0, not {options.max_seconds:g}")
    samples = data.read_data(options, need_labels=True)
    everything = argparse.Namespace(**{**vars(options), "samples": None})  # of the test; --samples is about training
    if samples.zero_based:
        everything.first_index = "0"  # also where no index of the test is 0
    test = None if options.test is None else data.read_data(everything, options.test, need_labels=True)
    reading = perf_counter() - started
    classification = _is_classification(options, samples)
    samples, test, scaling, decisions = _prepare(samples, test, classification)
    for sentence in decisions:
        output.remark(sentence)
    choice = _choose(options, output, samples, classification, SEARCH * options.max_seconds)
    for sentence in choice.reasons:
        output.remark(sentence)
    if choice.interrupted:
        output.remark(f"interrupted; the best machine so far: {' '.join(repr(choice.estimator).split())}")
        return INTERRUPTED
    work = Work(Path(samples.name).name, choice, [*decisions, *choice.reasons])
    work.reading = [] if options.one_hot is None else ["--one-hot", str(options.one_hot)]
    work.zero_based = samples.zero_based
    work.seconds = {"reading": reading, "choosing": perf_counter() - started - reading}
    _train(work, samples, options, output, started)
    _test(work, test)
    _write(work, files, scaling)
    _tell(work, output)
    return INTERRUPTED if work.interrupted else LIMITED if work.limited else 0


def _files(options: argparse.Namespace) -> dict[str, Path]:
    """Return where the results go, after it is clear that they can."""
    stem = options.output or ("samples" if options.data == "-" else Path(options.data).name)
    found = {"model": Path(f"{stem}.maxmargin"), "ranges": Path(f"{stem}.range")}
    if not options.no_report:
        if find_spec("matplotlib") is None:  # which is better known now than in the end
            raise ImportError("the report needs matplotlib: pip install 'maxmargin[plot]'; --no-report does without")
        found["report"] = Path(f"{stem}.html")
    folder = found["model"].absolute().parent
    if not folder.is_dir():
        raise ValueError(f"{found['model']} cannot be written: there is no folder {folder}")
    return found


def _is_classification(options: argparse.Namespace, samples: Samples) -> bool:
    if options.task == "regression" and samples.y is not None and samples.y.dtype.kind not in "fiu":
        raise ValueError("the labels are words, and regression is about numbers")
    assert samples.y is not None
    return are_classes(samples.y) if options.task is None else options.task == "classification"


def _prepare(
    samples: Samples, test: Samples | None, classification: bool
) -> tuple[Samples, Samples | None, Scaling | None, list[str]]:
    """Return samples and test scaled alike, the scaling if there is one, and what was found."""
    from dataclasses import replace

    from maxmargin.datasets import Scaling
    from maxmargin.search.data_summary import choose_range, densify, summarize

    X = densify(samples.X)
    look = summarize(X, samples.y, classification)
    limits, why = choose_range(look)
    decisions = [_describe(look), why]
    if look.classes is not None and UNBALANCED * look.counts.min() < look.counts.max():
        rare = data.label_name(look.classes[int(np.argmin(look.counts))])
        decisions.append(
            f"class {rare} has only {look.smallest_class_fraction:.1%} of the samples: accuracy says little about it; "
            "--score balanced_accuracy gives all classes equal weight"
        )
    scaling = None if limits is None else Scaling.fit(X, *limits)
    samples = replace(samples, X=X if scaling is None else scaling.apply(X))
    if test is not None:
        test = _like(samples, test)
        X = densify(test.X) if not hasattr(samples.X, "nnz") else test.X
        test = replace(test, X=X if scaling is None else scaling.apply(X))
    return samples, test, scaling, decisions


def _like(samples: Samples, test: Samples) -> Samples:
    """Return the test with as many columns as the training data: LIBSVM text leaves out those that are 0 throughout."""
    from dataclasses import replace

    from scipy import sparse

    columns = samples.X.shape[1]
    if test.X.shape[1] == columns or not sparse.issparse(test.X):
        if test.X.shape[1] != columns:
            raise ValueError(f"{test.name} has {test.X.shape[1]} features, but {samples.name} has {columns}")
        return test
    if test.X.shape[1] > columns:  # what was never seen in training has no weight
        return replace(test, X=test.X[:, :columns], feature_names=None)
    X = sparse.csr_matrix((test.X.data, test.X.indices, test.X.indptr), shape=(test.X.shape[0], columns))
    return replace(test, X=X, feature_names=None)


def _describe(look: Any) -> str:
    size = f"{look.rows:,} samples, {look.columns:,} features"
    sparsity = f" ({look.density:.2%} not 0)" if look.density < 0.5 else ""
    if look.classes is None:
        return f"{size}{sparsity}; targets are numbers with a standard deviation of {look.target_std:.4g}: a regression"
    names = [f"{data.label_name(label)} ({count:,})" for label, count in zip(look.classes, look.counts, strict=True)]
    listed = ", ".join(names[: data.LISTED]) + (", …" if len(names) > data.LISTED else "")
    return f"{size}{sparsity}, {len(names)} classes: {listed}"


def _choose(
    options: argparse.Namespace, output: Output, samples: Samples, classification: bool, seconds: float
) -> ModelChoice:
    from maxmargin.cli.heat_map import LiveMap
    from maxmargin.search import choose_estimator

    with LiveMap(output.errors, not output.quiet) as shown:
        return choose_estimator(
            samples.X,
            samples.y,
            classification=classification,
            scoring=options.score,
            folds=options.folds,
            max_seconds=seconds,
            train_seconds=PROOF * (options.max_seconds - seconds),
            seed=options.seed,
            n_jobs=options.threads,
            callback=shown.show,
        )


def _train(work: Work, samples: Samples, options: argparse.Namespace, output: Output, started: float) -> None:
    """Train the chosen machine on all samples, in the time that is left."""
    from maxmargin.cli.training_run import train_watched

    left = max(1.0, PROOF * (options.max_seconds - (perf_counter() - started)))
    model = work.choice.estimator.set_params(n_jobs=options.threads)
    if len(samples) > QUICK:
        model.set_params(max_seconds=left)
    ending = train_watched(model, samples, output, left)
    model.set_params(max_seconds=None)
    for remark in ending.remarks:
        output.remark(remark)
    work.model, work.limited, work.interrupted = model, ending.limited, ending.interrupted
    work.seconds["training"] = ending.seconds


def _test(work: Work, test: Samples | None) -> None:
    """Measure the model on samples that nothing has seen so far."""
    from maxmargin.cli import evaluate
    from maxmargin.cli.machine_options import purpose_of

    if test is None:
        return
    began = perf_counter()
    work.measures = evaluate.measure(purpose_of(work.model), test, evaluate.predict(work.model, test.X))
    work.tested_on = Path(test.name).name
    work.seconds["testing"] = perf_counter() - began


def _write(work: Work, files: dict[str, Path], scaling: Scaling | None) -> None:
    """Write the model, the ranges if there are any, and the page."""
    from maxmargin.cli.info_model import describe
    from maxmargin.interchange import save

    began = perf_counter()
    work.facts = describe(work.model)
    notes: dict[str, str | int | float] = {"data": work.name, "rows": work.choice.summary.rows}
    if work.zero_based:
        notes["first_index"] = 0
    work.files["model"] = files["model"]
    if scaling is not None:
        scaling.write(files["ranges"])
        work.files["ranges"] = files["ranges"]
        notes["ranges"] = str(files["ranges"])
    save(work.model, files["model"], notes)
    work.seconds["proving and writing"] = perf_counter() - began
    if "report" in files:
        from maxmargin.cli.easy_report import page

        work.files["report"] = files["report"]
        files["report"].write_text(page(work), encoding="utf-8")


def usage(work: Work) -> str:
    """Return the command line that uses the model on new data."""
    scaled = ["--ranges", str(work.files["ranges"])] if "ranges" in work.files else []
    return shlex.join(["maxmargin", "predict", "NEW", str(work.files["model"]), *scaled, *work.reading])


def summary(work: Work) -> dict[str, str]:
    """Return the machine and how good it is, in words."""
    found = {"machine": " ".join(repr(work.model).split())}
    if work.choice.score is not None:
        found["in cross-validation"] = score_in_words(work)
    return {**found, **told(work), "seconds": ", ".join(f"{name} {value:.1f}" for name, value in work.seconds.items())}


def _tell(work: Work, output: Output) -> None:
    """Report what came of it, and how to use it."""
    from maxmargin.cli.model_words import for_programs, in_words

    words = in_words(work.facts)
    kept = {name: text for name, text in words.items() if name in ("support vectors", "duality gap", "ended")}
    output.facts({**summary(work), **kept, **{name: str(path) for name, path in work.files.items()}})
    output.remark(f"to use it:  {usage(work)}")
    score = work.choice.score
    output.result(
        {
            "data": work.name,
            "decisions": work.decisions,
            "cross_validation": None if score is None else {"mean": score.mean, "std": score.std},
            "test": work.measures or None,
            "model": for_programs(work.facts),
            "limited": work.limited,
            "seconds": work.seconds,
            "files": {name: str(path) for name, path in work.files.items()},
        }
    )


def score_in_words(work: Work) -> str:
    """Return what the machine reached in cross-validation."""
    from maxmargin.search.score_colormap import format_score

    score, scoring = work.choice.score, next(iter(work.choice.searches.values())).scoring
    assert score is not None
    return f"{scoring} {format_score(score.mean, scoring)} ± {format_score(score.std, scoring)}"


def told(work: Work) -> dict[str, str]:
    """Return the measures of the test in words, if there was one."""
    shares = ("accuracy", "balanced_accuracy", "macro_f1")
    found = {"tested on": work.tested_on} if work.measures else {}
    for name, title in TOLD.items():
        if name in work.measures:
            value = work.measures[name]
            found[title] = f"{value:.2%}" if name in shares else f"{value:.4g}"
            if name == "accuracy":
                found[title] += f" ({work.measures['correct']:,} of {work.measures['samples']:,})"
    return found
