"""Everything that is in a LIBSVM model file, and what LIBSVM would predict with it.

    f(x) = Σ_s coefficients_s k(x_s, x) − ρ

for one class and regression, and for each pair of classes i < j in the order of the file. A value above 0 is a vote for
i, any other for j; of the classes with most votes the first in the file wins (Chang & Lin 2011).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from maxmargin._typing import Floats, Indices
from maxmargin.interchange.libsvm.probability import couple_as_libsvm, inside_as_libsvm
from maxmargin.kernels import Gaussian, Kernel, Linear, Points, Polynomial, Sigmoid
from maxmargin.kernels.points import SPARSE_COST_FACTOR
from maxmargin.models import ComputedKernelBlocks, KernelBlocks, KernelExpansions, OneVsOneVote, PrecomputedKernelBlocks
from maxmargin.models.calibration import PlattSigmoid, binary_probabilities
from maxmargin.models.kernel_blocks import MIN_VALUES_FOR_THREADS
from maxmargin.resources import thread_count

#: Which machine it is.
CLASSIFIERS = ("c_svc", "nu_svc")
SVM_TYPES = (*CLASSIFIERS, "one_class", "epsilon_svr", "nu_svr")

#: Kernels and the parameters that a file has of each.
KERNEL_PARAMETERS: dict[str, tuple[str, ...]] = {
    "linear": (),
    "polynomial": ("degree", "gamma", "coef0"),
    "rbf": ("gamma",),
    "sigmoid": ("gamma", "coef0"),
    "precomputed": (),
}

#: Native loops remember something about each column; of more than these, those that are in use are counted first.
MANY_COLUMNS = 2**20


@dataclass(frozen=True, eq=False)
class LibsvmModel:
    """A LIBSVM model.

    Parameters
    ----------
    svm_type : {"c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr"}
    kernel : {"linear", "polynomial", "rbf", "sigmoid", "precomputed"}
    rho : float array
        One for each pair of classes (0, 1), (0, 2), …, (1, 2), …; a single one for other machines.
    coefficients : float array of shape (classes − 1, support vectors), or (1, support vectors)
        Support vectors are sorted by class. Row j − 1 (of those of class i) and row i (of those of class j) hold the
        pair i < j, positive for i.
    support_vectors : CSR matrix
        Column c is the feature with index c + 1, or c if `zero_based`. Of a precomputed kernel the only column is the
        number of the training sample, counted from 1.
    degree : int
    gamma, coef0 : float
    labels : int array, optional
        Of classifiers: the classes in their order.
    counts : int array, optional
        Of classifiers: support vectors of each class.
    probA, probB : float arrays, optional
        Of each pair of classes, P(i) = 1 / (1 + exp(A f + B)). Regression has σ of a Laplace distribution in the first.
    density_marks : float array of 10, optional
        Of one class: decision values at which the probability changes.
    zero_based : bool
        Whether the index 0 occurs.
    """

    svm_type: str
    kernel: str
    rho: Floats
    coefficients: Floats = field(repr=False)
    support_vectors: Any = field(repr=False)
    degree: int = 3
    gamma: float = 0.0
    coef0: float = 0.0
    labels: Indices | None = None
    counts: Indices | None = None
    probA: Floats | None = None  # noqa: N815  # LIBSVM's name
    probB: Floats | None = None  # noqa: N815  # LIBSVM's name
    density_marks: Floats | None = None
    zero_based: bool = False

    @property
    def is_classifier(self) -> bool:
        """Whether it tells classes apart."""
        return self.labels is not None

    @property
    def n_features(self) -> int:
        """How many features, or training samples of a precomputed kernel, the support vectors know of."""
        if self.kernel != "precomputed":
            return int(self.support_vectors.shape[1])
        return int(self.serials.max(initial=-1)) + 1

    @property
    def serials(self) -> Indices:
        """The training samples that are support vectors of a precomputed kernel, counted from 0."""
        return np.asarray(self.support_vectors.toarray()[:, 0]).astype(np.int64) - 1

    @property
    def has_probabilities(self) -> bool:
        """Whether there are probabilities, or of regression a scale of the noise."""
        return self.probA is not None or self.density_marks is not None

    def decision_values(self, X: Any, n_jobs: int | None = None) -> Floats:
        """Return f for each sample: a column for each pair of classes, or a single one.

        Parameters
        ----------
        X : array or sparse matrix
            Features that are missing, in the samples or in the model, are 0. Of a precomputed kernel these are kernel
            values: column c is for the training sample c + 1.
        n_jobs : int, optional
            Threads, by default as many as there are cores.
        """
        if self.labels is not None and len(self.labels) < 2:
            return np.zeros((X.shape[0], 0))
        blocks = self._blocks(X)
        threads = 1 if len(blocks) * self.coefficients.shape[1] < MIN_VALUES_FOR_THREADS else thread_count(n_jobs)
        if self.counts is not None:
            return OneVsOneVote(self.coefficients, -self.rho, self.counts).decision_values(blocks, threads)
        return KernelExpansions(self.coefficients, -self.rho).decision_values(blocks, threads)

    def predict(self, X: Any, n_jobs: int | None = None) -> Any:
        """Return the label of each sample by votes, 1 or −1 for one class, or the value of the function."""
        return self.decide(self.decision_values(X, n_jobs))

    def decide(self, decisions: Floats) -> Any:
        """Return what decision values say: labels by votes, 1 or −1 for one class, or the values."""
        if self.labels is not None and self.counts is not None:
            return self.labels[OneVsOneVote(self.coefficients, -self.rho, self.counts).predicted_class(decisions)]
        return np.where(decisions[:, 0] > 0, 1, -1) if self.svm_type == "one_class" else decisions[:, 0]

    def predict_probability(self, X: Any, n_jobs: int | None = None) -> Floats:
        """Return the probability of each class in the order of the file, or those to be inside and outside.

        The most probable class need not be the one that `predict` returns; LIBSVM's programs return it with ``-b 1``.
        """
        return self.probabilities(self.decision_values(X, n_jobs))

    def probabilities(self, decisions: Floats) -> Floats:
        """Return the probabilities that decision values stand for."""
        if self.density_marks is not None:
            return inside_as_libsvm(decisions[:, 0], self.density_marks)
        if self.labels is None or self.probA is None or self.probB is None:
            raise ValueError("this LIBSVM model has no probabilities of classes; train it with -b 1")
        if len(self.labels) == 1:
            return np.ones((len(decisions), 1))
        sigmoids = [PlattSigmoid(a, b) for a, b in zip(self.probA, self.probB, strict=True)]
        pairs = [binary_probabilities(decisions[:, k], sigmoid)[:, 0] for k, sigmoid in enumerate(sigmoids)]
        return couple_as_libsvm(np.column_stack(pairs), len(self.labels))

    def reordered(self, labels: Any) -> LibsvmModel:
        """Return the same classifier with its classes in another order; only what is equal may be decided otherwise."""
        wanted = np.asarray(labels, dtype=np.int64)
        if self.labels is None or self.counts is None or sorted(wanted) != sorted(self.labels):
            raise ValueError(f"the classes are {self.labels}, and {wanted} is no other order of them")
        order = np.array([int(np.flatnonzero(self.labels == label)[0]) for label in wanted], dtype=np.int64)
        edges = np.concatenate([[0], np.cumsum(self.counts)])
        rows = [np.arange(edges[c], edges[c + 1]) for c in order]
        coefficients = np.empty_like(self.coefficients)
        pair_of = {pair: number for number, pair in enumerate(combinations(range(len(order)), 2))}
        pairs, signs = [], []
        for i, j in pair_of:  # of new numbers; a pair that is turned around changes its sign
            a, b = int(order[i]), int(order[j])
            sign = 1.0 if a < b else -1.0
            coefficients[j - 1, rows[i]] = sign * self.coefficients[b - 1 if a < b else b, rows[i]]
            coefficients[i, rows[j]] = sign * self.coefficients[a if a < b else a - 1, rows[j]]
            pairs.append(pair_of[min(a, b), max(a, b)])
            signs.append(sign)
        vectors = np.concatenate(rows)
        turned = np.array(signs)
        return replace(
            self,
            rho=turned * self.rho[pairs],
            coefficients=coefficients[:, vectors],
            support_vectors=self.support_vectors[vectors],
            labels=wanted,
            counts=self.counts[order],
            probA=None if self.probA is None else self.probA[pairs],
            probB=None if self.probB is None else turned * self.probB[pairs],
        )

    def compact_vectors(self, width: int | None = None) -> Any:
        """Return the support vectors in that form, dense or sparse, in which products take less time."""
        vectors = self.support_vectors
        if width is not None and width > vectors.shape[1]:
            vectors = _widened(vectors, width)
        dense = SPARSE_COST_FACTOR * vectors.nnz >= vectors.shape[0] * vectors.shape[1]
        return vectors.toarray() if dense else vectors

    def make_kernel(self) -> Kernel | None:
        """Return the kernel, or None if it is precomputed."""
        if self.kernel == "precomputed":
            return None
        if self.kernel == "linear":
            return Linear()
        if self.kernel == "polynomial":
            return Polynomial(self.degree, self.gamma, self.coef0)
        return Gaussian(self.gamma) if self.kernel == "rbf" else Sigmoid(self.gamma, self.coef0)

    @cached_property
    def _support(self) -> Any:
        return self.compact_vectors()

    def _blocks(self, X: Any) -> KernelBlocks:
        kernel = self.make_kernel()
        if kernel is None:
            values = X.toarray() if sparse.issparse(X) else np.asarray(X)
            if values.shape[1] < self.n_features:
                raise ValueError(
                    f"there are kernel values with {values.shape[1]} training samples, but the model uses that with "
                    f"sample {self.n_features}"
                )
            return PrecomputedKernelBlocks(values, self.serials)
        width = max(X.shape[1], self.n_features, 1)
        both = [_widened(rows, width) for rows in (X, self._support)]
        if width > MANY_COLUMNS and all(map(sparse.issparse, both)):
            both = _squeezed(both)
        samples, support = both
        return ComputedKernelBlocks(kernel, Points(samples), Points(support))


def _squeezed(tables: list[Any]) -> list[Any]:
    """Return sparse tables without the columns that are empty in all of them."""
    columns = np.unique(np.concatenate([rows.indices for rows in tables]))
    return [
        sparse.csr_matrix(
            (rows.data, np.searchsorted(columns, rows.indices), rows.indptr), (rows.shape[0], max(1, len(columns)))
        )
        for rows in tables
    ]


def _widened(rows: Any, width: int) -> Any:
    """Return rows with columns of zeros added."""
    count, columns = rows.shape
    if columns == width:
        return rows
    if not sparse.issparse(rows) and SPARSE_COST_FACTOR * columns >= width:
        return np.hstack([rows, np.zeros((count, width - columns))])
    rows = sparse.csr_matrix(rows)
    return sparse.csr_matrix((rows.data, rows.indices, rows.indptr), shape=(count, width))
