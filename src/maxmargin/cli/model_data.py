"""A model file and the samples to predict, as the model expects them, in blocks if needed.

A model of a table comes with the plan of its columns; other pipelines of scikit-learn transform the samples first.

LIBSVM text omits zeros, so samples may have fewer columns than the model. Features that do not occur in the training
data are dropped. Model files of other programs do not store the number of features; such a model is extended to that
of the samples.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin.cli import data
from maxmargin.cli.model_files import model_format, read_model
from maxmargin.cli.prepared_data import TABLE_NOTE, apply_plan, is_table, read_table
from maxmargin.cli.tables import is_read_in_blocks, open_table
from maxmargin.datasets import Samples, Scaling, iterate_libsvm
from maxmargin.datasets.sample_files import find_format

if TYPE_CHECKING:
    from maxmargin.preparation import TablePlan

#: Bytes of text per block; arrays and predictions need about ten times as much memory.
BLOCK_BYTES = 2**24

#: Prints a remark.
Remark = Callable[[str], None]


def add_ranges_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that scales the samples before the prediction."""
    parser.add_argument(
        "--ranges", metavar="FILE", help="scale DATA by the ranges that `scale --save` or `train --ranges` wrote"
    )


class ModelInput:
    """The model of a command, and the samples of DATA in the form that the model expects.

    Attributes
    ----------
    model : machine
        Without its preparation.
    threshold : float or None
        Decision value from which on the second class is predicted, if it is not 0.
    """

    def __init__(self, options: argparse.Namespace, remark: Remark) -> None:
        from maxmargin.interchange import read_notes

        self.options, self.remark = options, remark
        self.own = model_format(options.model) == "maxmargin"
        self.notes = read_notes(options.model) if self.own else {}
        if self.notes.get("first_index") == 0 and options.first_index == "auto":
            self.options = argparse.Namespace(**{**vars(options), "first_index": "0"})  # as in training
        self.scaling = None if options.ranges is None else Scaling.read(options.ranges)
        self.model: Any = None
        self.transformer: Any = None
        self.threshold: float | None = None
        self.plan = plan_of(self.notes)
        self._remarks: set[str] = set()
        self._read(0)
        ranges = self.notes.get("ranges")
        if ranges is not None and self.scaling is None:
            self._remark_once(f"the model was trained on scaled samples: use --ranges {ranges} unless DATA are scaled")

    def samples(self) -> Samples:
        """Return all samples of DATA."""
        if self.plan is not None:
            return self._prepared()
        n_features = self._width() if self.own and not self._is_libsvm_text() else None
        return self._adapted(data.read_data(self.options, n_features=n_features))

    def blocks(self) -> Iterator[Samples]:
        """Yield the samples of DATA: LIBSVM text and large files in blocks that fit into memory, others at once."""
        options = self.options
        if self.plan is None and options.samples is None and is_read_in_blocks(options):
            for block in open_table(options):
                yield self._adapted(Samples(block.X, block.y, name=options.data))
            return
        if self.plan is not None or options.samples is not None or not self._is_libsvm_text():
            yield self.samples()
            return
        zero_based: Any = data.FIRST_INDICES[options.first_index]
        for X, y, query in iterate_libsvm(
            options.data, block_bytes=BLOCK_BYTES, zero_based=zero_based, return_query_id=True, n_jobs=options.threads
        ):
            yield self._adapted(Samples(X, None if options.label is None else y, query, name=options.data))

    def _prepared(self) -> Samples:
        """Return all samples of a table, prepared as the training data were."""
        assert self.plan is not None
        options = self.options
        if options.ranges is not None:
            raise ValueError(
                "--ranges: the model file has the preparation of its columns already; leave the option out"
            )
        exists = options.data == "-" or Path(options.data).is_file()  # if not, reading says so
        if exists and not is_table(options):
            raise ValueError(
                f"the model was trained on the columns of a table, and {options.data} is none (standard input with "
                "--format csv)"
            )
        plan = self.plan
        if options.label is None:
            plan = replace(plan, label=None)
        elif options.label != "auto":
            plan = replace(plan, label=str(options.label))
        samples = apply_plan(plan, self.transformer, read_table(options, options.data, plan.text), self._remark_once)
        if samples.y is not None:
            self._check_labels(samples)
        return samples

    def _width(self) -> int:
        """Return the number of features that the model, or its first transformer, expects."""
        return int((self.model if self.transformer is None else self.transformer).n_features_in_)

    def _read(self, n_features: int) -> None:
        pipeline = read_model(self.options.model, n_features)
        self.transformer, self.model, self.threshold = parts_of(pipeline)
        self.model.set_params(n_jobs=self.options.threads)
        device = getattr(self.options, "device", None)
        if "device" in self.model.get_params():
            self.model.set_params(device=device or "cpu")
        elif device not in (None, "cpu", "auto"):
            raise ValueError(
                f"--device {device}: {type(self.model).__name__} predicts on the CPU; leave the option out"
            )

    def _is_libsvm_text(self) -> bool:
        """Whether DATA is LIBSVM text; standard input only with --format."""
        source = self.options.data
        if source.partition(":")[0] in data.generators():
            return False
        return bool((self.options.format or (None if source == "-" else find_format(source))) == "libsvm")

    def _adapted(self, samples: Samples) -> Samples:
        """Return samples in the form that the model expects."""
        if self.scaling is not None:
            samples = self._scaled(samples, self.scaling)
        X, width = samples.X, samples.n_features
        if width > self._width() and not self.own:
            self._read(width)
        known = self._width()
        if sparse.issparse(X) and width > known:
            self._remark_once(f"features above {known:,} do not occur in the training data and are ignored")
            X = X[:, :known]
        elif sparse.issparse(X):
            X = sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], known))
        elif width < known and not self.own:
            X = np.hstack([X, np.zeros((len(X), known - width))])
        elif width != known:
            raise ValueError(f"{samples.name} has {width:,} features, but the model was trained with {known:,}")
        if self.transformer is not None:
            X = transformed(self.transformer, X)
        kernel = getattr(self.model, "kernel", None)
        if sparse.issparse(X) and isinstance(kernel, str) and kernel == "precomputed":
            X = X.toarray()
        if samples.y is not None:
            self._check_labels(samples)
        return replace(samples, X=X, feature_names=None)

    def _scaled(self, samples: Samples, scaling: Scaling) -> Samples:
        if scaling.target is not None:
            raise ValueError(f"{self.options.ranges} scales labels, too, which is not undone here; use maxmargin scale")
        if len(scaling.unseen(samples.X)):
            self._remark_once(f"features without a range in {self.options.ranges} become 0")
        return replace(samples, X=scaling.apply(samples.X), feature_names=None)

    def _check_labels(self, samples: Samples) -> None:
        """Raise if the labels are text and the classes numbers, or vice versa."""
        classes = getattr(self.model, "classes_", None)
        numbers = samples.y is not None and samples.y.dtype.kind in "biuf"
        if classes is None and not numbers:
            raise ValueError(f"the labels of {samples.name} are text, but the model predicts numbers")
        if classes is not None and numbers != (classes.dtype.kind in "biuf"):
            kind, names = "numbers" if numbers else "text", data.listed([data.label_name(label) for label in classes])
            raise ValueError(f"the labels of {samples.name} are {kind}, but the classes of the model are {names}")

    def _remark_once(self, text: str) -> None:
        if text not in self._remarks:
            self._remarks.add(text)
            self.remark(text)


def parts_of(model: Any) -> tuple[Any, Any, float | None]:
    """Return the transformer of a model (None without one), its machine, and the threshold of its decision values."""
    transformer, threshold = None, None
    if type(model).__name__ == "Pipeline":
        transformer, model = model[0] if len(model.steps) == 2 else model[:-1], model[-1]
    if type(model).__name__ == "FixedThresholdClassifier":
        if model.response_method != "decision_function" or model.pos_label != model.estimator_.classes_[1]:
            raise ValueError(
                "the threshold of the model is not one of decision values for its second class; predict with "
                "maxmargin.load in Python"
            )
        threshold, model = float(model.threshold), model.estimator_
    return transformer, model, threshold


def transformed(transformer: Any, X: Any) -> Any:
    """Return transformed samples; as an array if the transformer does not take sparse ones."""
    from sklearn.utils import get_tags

    first = transformer[0] if type(transformer).__name__ == "Pipeline" else transformer
    if sparse.issparse(X) and not get_tags(first).input_tags.sparse:
        X = X.toarray()
    return transformer.transform(X)


def plan_of(notes: Mapping[str, Any]) -> TablePlan | None:
    """Return the plan of the columns of a table that a model file has in its notes."""
    if TABLE_NOTE not in notes:
        return None
    from maxmargin.preparation import TablePlan

    return TablePlan.from_json(str(notes[TABLE_NOTE]))
