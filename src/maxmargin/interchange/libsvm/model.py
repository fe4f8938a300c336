"""The content of a LIBSVM model file, and LIBSVM's predictions with it.

    f(x) = Σ_s coefficients_s k(x_s, x) − ρ

for one-class models and regressions, and for each pair of classes i < j in the order of the file. A positive value is a
vote for i, otherwise for j; among classes with equally many votes the first in the file wins (Chang & Lin 2011).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.interchange.libsvm.probability import couple_as_libsvm, inside_as_libsvm
from maxmargin.kernels import Gaussian, Kernel, Linear, Points, Polynomial, Sigmoid
from maxmargin.kernels.points import SPARSE_COST_FACTOR
from maxmargin.models import ComputedKernelBlocks, KernelBlocks, KernelExpansions, OneVsOneVote, PrecomputedKernelBlocks
from maxmargin.models.calibration import PlattSigmoid, binary_probabilities
from maxmargin.models.kernel_blocks import MIN_VALUES_FOR_THREADS
from maxmargin.resources import thread_count

#: LIBSVM's types of models.
CLASSIFIERS = ("c_svc", "nu_svc")
SVM_TYPES = (*CLASSIFIERS, "one_class", "epsilon_svr", "nu_svr")

#: Parameters of each kernel in a file.
KERNEL_PARAMETERS: dict[str, tuple[str, ...]] = {
    "linear": (),
    "polynomial": ("degree", "gamma", "coef0"),
    "rbf": ("gamma",),
    "sigmoid": ("gamma", "coef0"),
    "precomputed": (),
}

#: With more columns, empty columns are removed first, because the native loops use memory for each column.
MAX_COLUMNS = 2**20


@dataclass(frozen=True, eq=False)
class LibsvmModel:
    """A LIBSVM model.

    Parameters
    ----------
    svm_type : {"c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr"}
    kernel : {"linear", "polynomial", "rbf", "sigmoid", "precomputed"}
    rho : float array
        One for each pair of classes (0, 1), (0, 2), …, (1, 2), …; a single one for other models.
    coefficients : float array of shape (classes − 1, support vectors), or (1, support vectors)
        Support vectors are sorted by class. The coefficients of the pair i < j, positive for i, are in row j − 1 for
        support vectors of class i and in row i for those of class j.
    support_vectors : CSR matrix or array
        Column c is the feature with index c + 1, or c if `zero_based`. For a precomputed kernel the only column is
        the number of the training sample, from 1.
    degree : int
    gamma, coef0 : float
    labels : int array, optional
        Classes in the order of the file, for classifiers.
    counts : int array, optional
        Number of support vectors of each class, for classifiers.
    probA, probB : float arrays, optional
        For each pair of classes, P(i) = 1 / (1 + exp(A f + B)). For regressions probA is the scale of Laplace noise.
    density_marks : float array of 10, optional
        For one-class models, the decision values at which the probability changes.
    zero_based : bool
        Whether index 0 occurs.
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
        """Whether the model is a classifier."""
        return self.labels is not None

    @property
    def n_features(self) -> int:
        """Largest feature number of the support vectors; for a precomputed kernel, largest sample number."""
        if self.kernel != "precomputed":
            return int(self.support_vectors.shape[1])
        return int(self.sample_indices.max(initial=-1)) + 1

    @property
    def sample_indices(self) -> Indices:
        """Indices of the training samples that are support vectors, from 0, for a precomputed kernel."""
        return np.asarray(_dense(self.support_vectors)[:, 0]).astype(np.int64) - 1

    @property
    def has_probabilities(self) -> bool:
        """Whether the model has probabilities or, for a regression, a noise scale."""
        return self.probA is not None or self.density_marks is not None

    def decision_values(self, X: Any, n_jobs: int | None = None) -> Floats:
        """Return the decision values of each sample: a column for each pair of classes, or a single one.

        Parameters
        ----------
        X : array or sparse matrix
            Features that are missing in the samples or in the model are 0. For a precomputed kernel, column c
            contains the kernel values with training sample c + 1.
        n_jobs : int, optional
            Number of threads; by default all cores.
        """
        if self.labels is not None and len(self.labels) < 2:
            return np.zeros((X.shape[0], 0))
        blocks = self._blocks(X)
        threads = 1 if len(blocks) * self.coefficients.shape[1] < MIN_VALUES_FOR_THREADS else thread_count(n_jobs)
        if self.counts is not None:
            return OneVsOneVote(self.coefficients, -self.rho, self.counts).decision_values(blocks, threads)
        return KernelExpansions(self.coefficients, -self.rho).decision_values(blocks, threads)

    def predict(self, X: Any, n_jobs: int | None = None) -> Any:
        """Return the label of each sample by votes, ±1 for a one-class model, or the value of a regression."""
        return self.decide(self.decision_values(X, n_jobs))

    def decide(self, decisions: Floats) -> Any:
        """Return the predictions for decision values: labels by votes, ±1 for a one-class model, or the values."""
        if self.labels is not None and self.counts is not None:
            return self.labels[OneVsOneVote(self.coefficients, -self.rho, self.counts).predicted_class(decisions)]
        return np.where(decisions[:, 0] > 0, 1, -1) if self.svm_type == "one_class" else decisions[:, 0]

    def predict_probability(self, X: Any, n_jobs: int | None = None) -> Floats:
        """Return the probability of each class in the order of the file, or of inlier and outlier.

        The most probable class may differ from that of `predict`; LIBSVM's programs return it with ``-b 1``.
        """
        return self.probabilities(self.decision_values(X, n_jobs))

    def probabilities(self, decisions: Floats) -> Floats:
        """Return the probabilities for decision values."""
        if self.density_marks is not None:
            return inside_as_libsvm(decisions[:, 0], self.density_marks)
        if self.labels is None or self.probA is None or self.probB is None:
            raise ValueError("this LIBSVM model has no class probabilities; train it with -b 1")
        if len(self.labels) == 1:
            return np.ones((len(decisions), 1))
        sigmoids = [PlattSigmoid(a, b) for a, b in zip(self.probA, self.probB, strict=True)]
        pairs = [binary_probabilities(decisions[:, k], sigmoid)[:, 0] for k, sigmoid in enumerate(sigmoids)]
        return couple_as_libsvm(np.column_stack(pairs), len(self.labels))

    def reordered(self, labels: Any) -> LibsvmModel:
        """Return the same classifier with its classes in another order; only ties may be decided differently."""
        ordered = np.asarray(labels, dtype=np.int64)
        if self.labels is None or self.counts is None or sorted(ordered) != sorted(self.labels):
            raise ValueError(f"labels must be a permutation of the classes {self.labels}, not {ordered}")
        order = np.array([int(np.flatnonzero(self.labels == label)[0]) for label in ordered], dtype=np.int64)
        edges = np.concatenate([[0], np.cumsum(self.counts)])
        rows = [np.arange(edges[c], edges[c + 1]) for c in order]
        coefficients = np.empty_like(self.coefficients)
        pair_of = {pair: number for number, pair in enumerate(combinations(range(len(order)), 2))}
        pairs, signs = [], []
        for i, j in pair_of:  # new class numbers; a reversed pair changes its sign
            a, b = int(order[i]), int(order[j])
            sign = 1.0 if a < b else -1.0
            coefficients[j - 1, rows[i]] = sign * self.coefficients[b - 1 if a < b else b, rows[i]]
            coefficients[i, rows[j]] = sign * self.coefficients[a if a < b else a - 1, rows[j]]
            pairs.append(pair_of[min(a, b), max(a, b)])
            signs.append(sign)
        vectors = np.concatenate(rows)
        sign_of_pair = np.array(signs)
        return replace(
            self,
            rho=sign_of_pair * self.rho[pairs],
            coefficients=coefficients[:, vectors],
            support_vectors=self.support_vectors[vectors],
            labels=ordered,
            counts=self.counts[order],
            probA=None if self.probA is None else self.probA[pairs],
            probB=None if self.probB is None else sign_of_pair * self.probB[pairs],
        )

    def compact_vectors(self, width: int | None = None) -> Any:
        """Return the support vectors as a dense or sparse matrix, whichever has faster products."""
        vectors = self.support_vectors
        if width is not None and width > vectors.shape[1]:
            vectors = _widened(vectors, width)
        stored = vectors.nnz if sparse.issparse(vectors) else np.count_nonzero(vectors)
        dense = SPARSE_COST_FACTOR * stored >= vectors.shape[0] * vectors.shape[1]
        return _dense(vectors) if dense else sparse.csr_matrix(vectors)

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
            values = _dense(X)
            if values.shape[1] < self.n_features:
                raise ValueError(
                    f"X has kernel values with {values.shape[1]} training samples, but the model uses training sample "
                    f"{self.n_features}"
                )
            return PrecomputedKernelBlocks(values, self.sample_indices)
        width = max(X.shape[1], self.n_features, 1)
        both = [_widened(rows, width) for rows in (X, self._support)]
        if width > MAX_COLUMNS and all(map(sparse.issparse, both)):
            both = _without_empty_columns(both)
        samples, support = both
        return ComputedKernelBlocks(kernel, Points(samples), Points(support))


def _dense(rows: Any) -> Any:
    """Return rows as an array."""
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows)


def _without_empty_columns(tables: list[Any]) -> list[Any]:
    """Return sparse matrices without the columns that are empty in all of them."""
    columns = np.unique(np.concatenate([rows.indices for rows in tables]))
    return [
        sparse.csr_matrix(
            (rows.data, np.searchsorted(columns, rows.indices), rows.indptr), (rows.shape[0], max(1, len(columns)))
        )
        for rows in tables
    ]


def _widened(rows: Any, width: int) -> Any:
    """Return rows with additional columns of zeros."""
    count, columns = rows.shape
    if columns == width:
        return rows
    if not sparse.issparse(rows) and SPARSE_COST_FACTOR * columns >= width:
        return np.hstack([rows, np.zeros((count, width - columns))])
    rows = sparse.csr_matrix(rows)
    return sparse.csr_matrix((rows.data, rows.indices, rows.indptr), shape=(count, width))
