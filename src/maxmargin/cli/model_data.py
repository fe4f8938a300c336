"""A model file and the samples to predict, with the number of features that the model expects, in blocks if needed.

LIBSVM text omits zeros, so samples may have fewer columns than the model. Features that do not occur in the training
data are dropped. Model files of other programs do not store the number of features; such a model is extended to that
of the samples.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin.cli import data
from maxmargin.cli.model_files import model_format, read_model
from maxmargin.cli.tables import is_read_in_blocks, open_table
from maxmargin.datasets import Samples, Scaling, iterate_libsvm
from maxmargin.datasets.sample_files import find_format

#: Bytes of text per block; arrays and predictions need about ten times as much memory.
BLOCK_BYTES = 2**24

#: Prints a remark.
Remark = Callable[[str], None]


def add_ranges_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that scales the samples before the prediction."""
    parser.add_argument("--ranges", metavar="FILE", help="scale DATA by the ranges that `scale --save` or `easy` wrote")


class ModelInput:
    """The model of a command, and the samples of DATA in the form that the model expects."""

    def __init__(self, options: argparse.Namespace, remark: Remark) -> None:
        from maxmargin.interchange import read_notes

        self.options, self.remark = options, remark
        self.own = model_format(options.model) == "maxmargin"
        self.notes = read_notes(options.model) if self.own else {}
        if self.notes.get("first_index") == 0 and options.first_index == "auto":
            self.options = argparse.Namespace(**{**vars(options), "first_index": "0"})  # as in training
        self.scaling = None if options.ranges is None else Scaling.read(options.ranges)
        self.model: Any = None
        self._remarks: set[str] = set()
        self._read(0)
        ranges = self.notes.get("ranges")
        if ranges is not None and self.scaling is None:
            self._remark_once(f"the model was trained on scaled samples: use --ranges {ranges} unless DATA are scaled")

    def samples(self) -> Samples:
        """Return all samples of DATA."""
        n_features = int(self.model.n_features_in_) if self.own and not self._is_libsvm_text() else None
        return self._adapted(data.read_data(self.options, n_features=n_features))

    def blocks(self) -> Iterator[Samples]:
        """Yield the samples of DATA: LIBSVM text and large files in blocks that fit into memory, others at once."""
        options = self.options
        if options.samples is None and is_read_in_blocks(options):
            for block in open_table(options):
                yield self._adapted(Samples(block.X, block.y, name=options.data))
            return
        if options.samples is not None or not self._is_libsvm_text():
            yield self.samples()
            return
        zero_based: Any = data.FIRST_INDICES[options.first_index]
        for X, y, query in iterate_libsvm(
            options.data, block_bytes=BLOCK_BYTES, zero_based=zero_based, return_query_id=True, n_jobs=options.threads
        ):
            yield self._adapted(Samples(X, None if options.label is None else y, query, name=options.data))

    def _read(self, n_features: int) -> None:
        self.model = read_model(self.options.model, n_features)
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
        if width > self.model.n_features_in_ and not self.own:
            self._read(width)
        known = int(self.model.n_features_in_)
        if sparse.issparse(X) and width > known:
            self._remark_once(f"features above {known:,} do not occur in the training data and are ignored")
            X = X[:, :known]
        elif sparse.issparse(X):
            X = sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], known))
        elif width < known and not self.own:
            X = np.hstack([X, np.zeros((len(X), known - width))])
        elif width != known:
            raise ValueError(f"{samples.name} has {width:,} features, but the model was trained with {known:,}")
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
