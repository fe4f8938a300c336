"""`RankSVC`: scores that put samples in order, learned from pairs."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

import maxmargin.solvers.ranking.multiplier_newton  # noqa: F401  # the solver: imported here, not in the first fit
from maxmargin._typing import Floats, Indices
from maxmargin.formulations import pairwise_ranking
from maxmargin.kernels import Linear, Points
from maxmargin.machines.kernel.function_estimator import FunctionEstimator
from maxmargin.machines.kernel.kernel_estimator import KernelEstimator
from maxmargin.machines.validation.callbacks import reporting
from maxmargin.machines.validation.checkpoints import checkpointing
from maxmargin.machines.validation.device_arrays import following_samples
from maxmargin.machines.validation.parameters import check_flag, check_number
from maxmargin.machines.validation.samples import check_vector
from maxmargin.machines.validation.training_data import check_costs, check_sample_weights
from maxmargin.matrices import KernelMatrix, SymmetricMatrix
from maxmargin.models.concordance import concordance
from maxmargin.problems import DualProblem
from maxmargin.problems.order_ranking import OrderRanking
from maxmargin.resources import default_cache_bytes, thread_count
from maxmargin.training.order_ranking import train_by_order

#: The approximate memory of a fit per pair in bytes, without kernel values.
PAIR_BYTES = 320

#: Above this number of pairs, those of the linear kernel are not listed.
MAX_LISTED_PAIRS = 10**6


class RankSVC(FunctionEstimator):
    """Rank samples: of two of one query, the one with the larger target shall have the larger score.

    Minimise ½‖w‖² + C Σ ξ_ij subject to w·(Φ(x_i) − Φ(x_j)) ≥ 1 − ξ_ij for all pairs of one query with y_i > y_j
    (Joachims 2002; SVMlight's ``qid``). Only the order of the targets counts, not their size. scikit-learn has no
    counterpart.

    The number of pairs grows with the square of the size of a query, but the fit solves for one score per sample: by
    Newton steps on the list of pairs, or, with the linear kernel and more than a million pairs, without a list, from
    the order of the scores (O(n log n) per step; Lee & Lin 2014). If a list would take more memory than ``cache_size``
    allows, ``fit`` says so before it begins.

    Parameters
    ----------
    C : float, default=1.0
        Cost of the slack of a pair.
    kernel : str, Kernel or callable, default="rbf"
        ``"linear"``, ``"poly"``, ``"rbf"`` (also ``"gaussian"``), ``"sigmoid"``, ``"laplacian"``,
        ``"chi_squared"``, ``"precomputed"``; a kernel object such as ``Gaussian(0.5) + Linear()``; or a function
        ``k(X, Z)`` that returns the block of values of the rows of X and Z.
    degree : int, default=3
        Degree of the polynomial kernel.
    gamma : {"scale", "auto"}, float or array-like of shape (n_features,), default="scale"
        Coefficient of the kernels other than "linear". ``"scale"`` is 1 / (n_features · variance of X, by sample
        weights), ``"auto"`` is 1 / n_features. An array has one for each feature, for "rbf", "laplacian" and
        "chi_squared": 0 ignores a feature.
    coef0 : float, default=0.0
        Constant term of the polynomial and sigmoid kernels.
    tol : float, default=1e-3
        Tolerance on the violation of the optimality conditions.
    shrinking : bool, default=True
        Leave variables that are likely to stay at a bound out of the iterations; all are checked before the end.
    cache_size : float or "auto", default="auto"
        Megabytes for kernel values; "auto" is a quarter of the memory available to the process. Only what is needed
        is allocated. Less memory makes the fit slower; the result differs only within the tolerance.
    verbose : bool, default=False
        Show a progress line on the terminal for fits longer than a second.
    max_iter : int, default=-1
        Limit on the Newton steps, −1 for none.
    solver : str or solver object, default="auto"
        The algorithm: "auto" is "multiplier_newton" or, with the linear kernel and more than a million pairs,
        Newton steps without a list of the pairs. "pairwise" and "block" take steps by pair. Classical algorithms
        for comparison: "quadratic_program", "chunking", "decomposition", "gradient_projection", "active_set",
        "platt", and with the linear kernel "primal_quadratic_program". A solver object has its own tolerance, cache
        and limits.
    selection : {"second_order", "most_violating_pair", "maximum_gain"}, default="second_order"
        Working-set selection of the pairwise solver.
    max_seconds : float, default=None
        Limit on the time of the whole fit, within a tenth of it or half a second. The model is then valid, and a
        warning says how far it is. See docs/fitting.md.
    gap_tol : float, default=None
        Duality gap at which to stop even if the violation is above ``tol``. Small problems that are solved in a
        batch always reach ``tol``.
    callback : callable, default=None
        Called with the progress (iteration, violation, primal, dual, gap, active, seconds) up to ten times a
        second; returning True stops the fit with a valid model. It never changes the result otherwise.
    warm_start : bool, default=False
        Start from the solution of the previous fit, if it had the same shape and number of pairs.
    n_jobs : int, default=None
        Threads for training and prediction. None: the cores available to the process, or fewer if BLAS is limited
        (``OMP_NUM_THREADS``, threadpoolctl, workers of joblib and Dask). The result does not depend on it.
    checkpoint : path, default=None
        A file in which the state of the fit is stored every ``checkpoint_seconds``. If the process is killed, the
        next fit with the same data and parameters resumes from the file; a file of another fit is an error. A fit
        that ends removes it; one that a limit or an interruption ends keeps it. See docs/checkpoints.md.
    checkpoint_seconds : float, default=60.0
        The time between two writes of the checkpoint: the most that is lost.

    Attributes
    ----------
    certificate_ : Certificate
        ``primal``, ``dual``, ``gap`` and ``violation`` of the solution, and each pair's share of the gap.
        Computed when first read; an error if the training data were changed since.
    geometry_ : RankGeometry or RankSummary
        The pairs, their slack, which of them decide, ‖w‖². Where pairs are not listed, a summary: numbers of pairs, and
        sums by sample; those in ``certificate_`` are by sample, too.
    status_ : Status
        How the solver ended; ``status_.value`` describes it.
    n_pairs_ : int
        The number of pairs.
    intercept_ : array of one 0
        A score has no offset.
    support_, support_vectors_, n_support_, dual_coef_, coef_, fit_status_, n_iter_, shape_fit_, n_features_in_,
    feature_names_in_
        As in scikit-learn's ``SVR``: by sample, not by pair.

    Examples
    --------
    >>> from maxmargin import RankSVC
    >>> X, y, qid = [[1.0, 5.0], [2.0, 1.0], [3.0, 3.0], [1.5, 2.0], [4.0, 9.0]], [1, 2, 3, 1, 2], [7, 7, 7, 8, 8]
    >>> model = RankSVC(kernel="linear", C=10).fit(X, y, qid)
    >>> model.predict([[0.0, 0.0], [5.0, 0.0]]).argmax()
    np.int64(1)
    >>> model.score(X, y, qid)
    1.0
    """

    _solvers = ("multiplier_newton", *KernelEstimator._solvers)
    _auto_solver = "multiplier_newton"

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        shrinking: bool = True,
        cache_size: Any = "auto",
        verbose: bool = False,
        max_iter: int = -1,
        solver: Any = "auto",
        selection: str = "second_order",
        max_seconds: float | None = None,
        gap_tol: float | None = None,
        callback: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        checkpoint: Any = None,
        checkpoint_seconds: float = 60.0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.solver = solver
        self.selection = selection
        self.max_seconds = max_seconds
        self.gap_tol = gap_tol
        self.callback = callback
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.checkpoint_seconds = checkpoint_seconds

    def fit(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> RankSVC:
        """Train on samples `X` with targets `y`, in queries.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With ``kernel="precomputed"``, the symmetric matrix of kernel values; with a function as kernel, samples of
            any kind.
        y : array-like of shape (n_samples,)
            Numbers: the larger, the higher in the order. Only samples of the same query are compared.
        qid : array-like of shape (n_samples,), optional
            The query of each sample, of any type and in any order; by default all belong to one.
        sample_weight : array-like of shape (n_samples,), optional
            The cost of a pair is C times the product of the weights of its two samples. So 0 leaves a row out and 2
            counts it twice, with all its pairs.

        Returns
        -------
        self
            The fitted estimator.
        """
        started = perf_counter()
        cost = check_number("C", self.C, above=0)
        X, targets = self._check_training_data(X, y, y_numeric=True)
        targets = np.asarray(targets, dtype=np.float64)
        queries = check_queries(qid, X)
        weights = check_sample_weights(sample_weight, X)
        rows = np.flatnonzero(weights > 0)
        count = pairwise_ranking.count_pairs(targets[rows], queries[rows])
        if not count:
            raise ValueError(
                "training needs two samples of one query that differ in y and have a weight, but of these "
                f"n_samples={X.shape[0]} no two do"
            )
        compared = np.column_stack([targets, queries])
        self.n_pairs_ = count
        if self._lists_no_pairs(count):
            self._fit_by_order(X, targets, queries, weights, cost, started)
            return self
        self._check_count(count)
        first, second = pairwise_ranking.list_pairs(targets[rows], queries[rows])
        with np.errstate(over="ignore"):  # infinite costs are refused
            of_pairs = weights[rows[first]] * weights[rows[second]]
        costs = check_costs(cost, of_pairs)

        def pose(matrix: SymmetricMatrix, rows: Indices, output: int) -> DualProblem:
            return pairwise_ranking.pose(matrix, first, second, costs)

        per_sample = -(-count // len(rows))
        self._fit_outputs(X, weights, pose, pairwise_ranking, per_sample, y=compared, started=started)
        return self

    def _lists_no_pairs(self, count: int) -> bool:
        """Whether there are so many pairs that they are not listed, which takes the linear kernel."""
        linear = isinstance(self.kernel, Linear) or (isinstance(self.kernel, str) and self.kernel == "linear")
        return linear and isinstance(self.solver, str) and self.solver == "auto" and count > MAX_LISTED_PAIRS

    def _fit_by_order(
        self, X: Any, targets: Floats, queries: Indices, weights: Floats, cost: float, started: float
    ) -> None:
        """Train without a list of the pairs."""
        check_flag("warm_start", self.warm_start)
        rows = np.flatnonzero(weights > 0)
        check_costs(cost, np.array([weights[rows].min(), weights[rows].max()]) ** 2)
        kernel = self._make_kernel(X, weights)
        compared = np.column_stack([targets, queries])
        with reporting(self) as callback, checkpointing(self, X, compared, weights) as checkpoint:
            context = self._fit_context(X, kernel, callback, started, checkpoint)
            matrix = KernelMatrix(Linear(), Points.wrap(X).take(rows), thread_count(self.n_jobs))
            problem = OrderRanking(matrix, targets[rows], queries[rows], weights[rows], cost)
            starts = FunctionEstimator._starts(self, rows, X.shape, None)
            start = starts[0] if starts is not None and len(starts[0]) == len(rows) else None
            rule = context.options.stopping
            self._set_fitted(X, kernel, [train_by_order(problem, rows, rule, start, context.session)], None)
        self._warn_if_unconverged(rule, "outputs", stacklevel=4)

    @following_samples
    def decision_function(self, X: Any) -> Floats:
        """Return the score of each sample: the higher, the higher in the order."""
        return np.asarray(self._decide(X))

    @following_samples
    def predict(self, X: Any) -> Floats:
        """Return the score of each sample: the higher, the higher in the order."""
        scores: Floats = self.decision_function(X)
        return scores

    @following_samples
    def score(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> float:
        """Return the fraction of pairs within queries that are ordered correctly; equal scores count half.

        1 is a perfect order, ½ that of chance. It is (τ + 1)/2 with Kendall's τ over the pairs of different targets,
        and with two targets the area under the ROC curve.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples to be ranked.
        y : array-like of shape (n_samples,)
            Numbers: the larger, the higher in the order.
        qid : array-like of shape (n_samples,), optional
            The query of each sample; by default all belong to one.
        sample_weight : array-like of shape (n_samples,), optional
            A pair counts as often as the product of the weights of its samples.

        Returns
        -------
        float
            Between 0 and 1.
        """
        scores = self.decision_function(X)
        targets = np.asarray(check_vector(y, len(scores)), dtype=np.float64)
        weights = check_sample_weights(sample_weight, scores[:, None])
        right, total = concordance(scores, targets, check_queries(qid, scores), weights)
        if not total > 0:
            raise ValueError("there is nothing to score: no two samples of one query differ in y")
        return right / total

    def _check_count(self, count: int) -> None:
        """Raise if there are too many pairs for the memory."""
        budget = self._cache_budget() or default_cache_bytes()
        if count * PAIR_BYTES > budget:
            raise ValueError(
                f"{count:,} pairs take about {count * PAIR_BYTES / 2**20:,.0f} MB, more than the "
                f"{budget / 2**20:,.0f} MB that cache_size={self.cache_size!r} allows; divide the samples into smaller "
                "queries (qid), use kernel='linear', fewer samples or fewer targets, or set a larger cache_size"
            )

    def _starts(self, rows: Indices, shape: tuple[int, ...], outputs: int | None) -> list[Floats] | None:
        starts = super()._starts(rows, shape, outputs)
        return starts if starts is not None and len(starts[0]) == self.n_pairs_ else None


def check_queries(qid: Any, samples: Any) -> Indices:
    """Return the query of each sample as a number, 0 for all by default."""
    if qid is None:
        return np.zeros(samples.shape[0], dtype=np.int64)
    values = check_vector(qid, samples.shape[0], "qid")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError("qid must name a query for each sample, but some of its entries are not finite numbers")
    return np.unique(values, return_inverse=True)[1].astype(np.int64)
