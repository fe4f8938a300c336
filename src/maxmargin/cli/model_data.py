"""A model from a file, and samples for it: with the features that it knows, all at once or block by block.

LIBSVM text leaves zeros out, so that samples may seem to have fewer features than the model. Features beyond those of
the training data are left out. A file of another program does not say how many there were, and its kernels count
whatever comes: such a model is as wide as the samples that it meets.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from maxmargin.cli import data
from maxmargin.cli.model_files import model_format, read_model
from maxmargin.datasets import Samples, Scaling, iterate_libsvm
from maxmargin.datasets.sample_files import find_format

#: Bytes of text in a block: with its numbers and answers it takes ten times as many.
BLOCK = 2**24

#: Says something beside the result.
Remark = Callable[[str], None]


def add_ranges_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that scales the samples a model is asked about."""
    parser.add_argument("--ranges", metavar="FILE", help="scale DATA first, by ranges that scale or easy has kept")


class GivenModel:
    """A model that a command was given, and its way to read DATA."""

    def __init__(self, options: argparse.Namespace, remark: Remark) -> None:
        from maxmargin.interchange import read_notes

        self.options, self.remark = options, remark
        self.own = model_format(options.model) == "maxmargin"
        self.notes = read_notes(options.model) if self.own else {}
        if self.notes.get("first_index") == 0 and options.first_index == "auto":
            self.options = argparse.Namespace(**{**vars(options), "first_index": "0"})  # as in the training data
        self.scaling = None if options.ranges is None else Scaling.read(options.ranges)
        self.model: Any = None
        self._said: set[str] = set()
        self._read(0)
        self._remind_of_ranges()

    def samples(self) -> Samples:
        """Return all samples of DATA."""
        known = self.own and not self._is_libsvm_text()  # then a table with just so many columns has no labels
        return self._fitted(data.read_data(self.options, n_features=int(self.model.n_features_in_) if known else None))

    def blocks(self) -> Iterator[Samples]:
        """Yield the samples of DATA: LIBSVM text in blocks that fit into memory, others as a whole."""
        options = self.options
        if options.samples is not None or not self._is_libsvm_text():
            yield self.samples()
            return
        zero_based: Any = data.FIRST_INDICES[options.first_index]
        for X, y, query in iterate_libsvm(
            options.data, block_bytes=BLOCK, zero_based=zero_based, return_query_id=True, n_jobs=options.threads
        ):
            yield self._fitted(Samples(X, None if options.label is None else y, query, name=options.data))

    def _read(self, n_features: int) -> None:
        self.model = read_model(self.options.model, n_features)
        self.model.set_params(n_jobs=self.options.threads)

    def _remind_of_ranges(self) -> None:
        ranges = self.notes.get("ranges")
        if ranges is not None and self.scaling is None:
            self._say(f"the model was trained on scaled samples: --ranges {ranges} scales DATA, unless they are")

    def _is_libsvm_text(self) -> bool:
        """Whether DATA is LIBSVM text; of standard input --format says it."""
        word = self.options.data
        if word.partition(":")[0] in data.generators():
            return False
        found = self.options.format or (None if word == "-" else find_format(word))
        return bool(found == "libsvm")

    def _fitted(self, samples: Samples) -> Samples:
        """Return samples in the form that the model takes."""
        if self.scaling is not None:
            samples = self._scaled(samples, self.scaling)
        X, width = samples.X, samples.n_features
        if width > self.model.n_features_in_ and not self.own:
            self._read(width)
        known = int(self.model.n_features_in_)
        if sparse.issparse(X) and width > known:
            self._say(f"features above {known:,} were never seen in training and are left out")
            X = X[:, :known]
        elif sparse.issparse(X):
            X = sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], known))
        elif width < known and not self.own:
            X = np.hstack([X, np.zeros((len(X), known - width))])
        elif width != known:
            raise ValueError(f"{samples.name} has {width:,} features, and the model knows {known:,}")
        kernel = getattr(self.model, "kernel", None)
        if sparse.issparse(X) and isinstance(kernel, str) and kernel == "precomputed":
            X = X.toarray()
        if samples.y is not None:
            self._check_labels(samples)
        return replace(samples, X=X, feature_names=None)

    def _scaled(self, samples: Samples, scaling: Scaling) -> Samples:
        if scaling.target is not None:
            raise ValueError(f"{self.options.ranges} scales labels too, which a model cannot undo; use maxmargin scale")
        if len(scaling.unseen(samples.X)):
            self._say(f"features that have no range in {self.options.ranges} become 0")
        return replace(samples, X=scaling.apply(samples.X), feature_names=None)

    def _check_labels(self, samples: Samples) -> None:
        """Raise if the labels are words and the classes numbers, or the other way round."""
        classes = getattr(self.model, "classes_", None)
        numbers = samples.y is not None and samples.y.dtype.kind in "biuf"
        if classes is None and not numbers:
            raise ValueError(f"the labels of {samples.name} are words, and the answers of the model are numbers")
        if classes is not None and numbers != (classes.dtype.kind in "biuf"):
            kind, shown = "numbers" if numbers else "words", ", ".join(map(data.label_name, classes[:4]))
            raise ValueError(f"the labels of {samples.name} are {kind}, and the classes of the model are {shown}")

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self.remark(text)
