"""Trials of a search on a GPU: all samples are copied and prepared once, folds are rows of one table.

Every trial is the fit that it would be by itself, of the same problem to the same tolerance. What trials share is the
table in GPU memory, and its halves for tensor cores, which are the same for every γ. Kernel values are not stored: each
product computes those that it needs.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast

import numpy as np
from sklearn.utils import _safe_indexing

from maxmargin import _sparse as sparse
from maxmargin.cuda.device import cupy, is_available, open_device
from maxmargin.cuda.device_table import DeviceSubset, DeviceTable
from maxmargin.cuda.kernel_values import is_supported
from maxmargin.cuda.samples import data_on_device, fits_on_device
from maxmargin.kernels import Points
from maxmargin.machines.devices import is_worthwhile
from maxmargin.machines.kernel.kernel_estimator import KernelEstimator
from maxmargin.search.fold_scoring import FoldScorer
from maxmargin.search.scored_values import asks_for_values
from maxmargin.training.fit_context import PROBLEMS_ON_DEVICE


@dataclass(frozen=True)
class DeviceFoldScorer(FoldScorer):
    """Folds of samples in the memory of a GPU, which train and predict there.

    Attributes
    ----------
    table : DeviceTable
        All samples.
    """

    table: DeviceTable = field(kw_only=True)

    #: They divide as many problems among them.
    workers = PROBLEMS_ON_DEVICE

    def trained(self, estimator: Any, fold: int) -> Any:
        if estimator.device == "auto" and not estimator._trains_on_a_gpu():  # these parameters are for the CPU
            return self.in_host_memory().trained(estimator, fold)
        return super().trained(estimator, fold)

    def in_host_memory(self) -> FoldScorer:
        """Return the same folds of the samples in host memory."""
        names = (one.name for one in fields(FoldScorer) if one.name != "_copies")
        return FoldScorer(**{name: getattr(self, name) for name in names})

    def split_data(self, fold: int) -> tuple[Any, Any]:
        """Return the training and the test samples of a split; samples are rows of the table on the GPU.

        A scorer of the user gets the test samples in host memory.
        """
        if fold not in self._copies:
            split = self.splits[fold]
            train, test = split.training_rows(self.samples), split.test
            targets = [None if self.y is None else _safe_indexing(self.y, rows) for rows in (train, test)]
            known = asks_for_values(self.scoring.scorer)
            held_out = DeviceSubset(self.table, test) if known else _safe_indexing(self.X, test)
            self._copies[fold] = (DeviceSubset(self.table, train), targets[0]), (held_out, targets[1])
        return self._copies[fold]


class BlockwiseFoldScorer(FoldScorer):
    """Folds of samples that do not fit into the memory of a GPU as a table: each trial is a fit that has it alone."""

    workers = 1


def where_trained(scorer: FoldScorer) -> FoldScorer:
    """Return the folds for the device that trains: on a GPU if it can, and as they are if not.

    ``device="auto"`` that is the CPU for every fold is replaced by that. What is wrong with the data or the device, the
    trials say.
    """
    wanted = getattr(scorer.estimator, "device", "cpu")
    if type(scorer) is not FoldScorer or not isinstance(wanted, str) or wanted == "cpu":
        return scorer
    if wanted == "auto" and _means_the_cpu(scorer):
        estimator = copy(scorer.estimator)
        estimator.device = "cpu"
        return replace(scorer, estimator=estimator)
    try:
        return _on_a_gpu(scorer, wanted)
    except ValueError:
        return scorer


def _on_a_gpu(scorer: FoldScorer, wanted: str) -> FoldScorer:
    """Return the folds for trials on a GPU, as they are if these have nothing there in common."""
    estimator, X = scorer.estimator, scorer.X
    if not isinstance(estimator, KernelEstimator) or not _is_numeric(X):
        return scorer
    if scorer.scoring.train and not asks_for_values(scorer.scoring.scorer):  # which takes training samples as well
        return scorer
    if not _takes_kernel(estimator) or (wanted == "auto" and not all(_pays(scorer))):
        return scorer
    number = open_device("cuda" if wanted == "auto" else wanted)
    points = Points(X)
    with cupy().cuda.Device(number):
        if not fits_on_device(points, number):
            return BlockwiseFoldScorer(**vars(scorer))
        table = DeviceTable(data_on_device(points, number), number).check(None, type(estimator).__name__)
    return DeviceFoldScorer(**vars(scorer) | {"_copies": {}}, table=table)


def _is_numeric(X: Any) -> bool:
    return sparse.issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub")


def _takes_kernel(estimator: KernelEstimator) -> bool:
    """Whether a GPU computes the kernel from samples."""
    kernel = estimator.kernel
    return kernel != "precomputed" if isinstance(kernel, str) else is_supported(kernel)


def _pays(scorer: FoldScorer) -> list[bool]:
    """Whether "auto" chooses a GPU for each fold, if there is one and it can train with the parameters."""
    features = cast(int, scorer.X.shape[1])
    rows = (len(split.training_rows(scorer.samples)) for split in scorer.splits)
    return [is_worthwhile(np.broadcast_to(0.0, (count, features))) for count in rows]


def _means_the_cpu(scorer: FoldScorer) -> bool:
    """Whether "auto" is the CPU for every fold, as far as it is known; what is no kernel estimator knows for itself."""
    estimator = scorer.estimator
    if not isinstance(estimator, KernelEstimator) or len(getattr(scorer.X, "shape", ())) != 2:
        return False
    on_a_gpu = _takes_kernel(estimator) and estimator._trains_on_a_gpu()
    return not (on_a_gpu and any(_pays(scorer)) and is_available())
