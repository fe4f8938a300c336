"""`OneClassSVMCV`: novelty detection that chooses ν and γ itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.estimators import OneClassSVM
from maxmargin.search.estimators.detectors import SearchingDetector


class OneClassSVMCV(SearchingDetector):
    """Detect novelties with a one-class machine whose ν and γ are chosen by cross-validation while it fits.

    Labels are not needed: a point is scored by the fraction of held-out samples inside the region, minus the fraction
    of artificial background samples inside, which stands for the volume of the region. With labels 1 (normal) and −1
    (novel), the score is the balanced accuracy; they are for scores only, and all samples are trained on.

    Parameters
    ----------
    nus : int or list of float, default=5
        Values of ν, above 0 and at most 1, or how many: from 0.01 to 0.5, at equal ratios.
    gammas : int or list of float, default=7
        Values of γ, or how many: from 2⁻⁸ to 2⁴ at equal ratios, times 1 / (n_features · variance of X), which is
        ``gamma="scale"``. Kernels without a γ have none, whatever the number.
    cv : int, splitter, iterable of (train, test) or "loo", default=None
        The splits into training and test samples, as in scikit-learn's GridSearchCV: None is 5 folds, stratified
        for classifiers and for labels 1 and −1 of novelty detection; a splitter such as ``GroupKFold()``; or pairs
        of row numbers. ``"loo"`` holds out one sample at a time and computes one score from all predictions, so
        that also R² and ranks are defined.
    scoring : str, callable, list or dict, default=None
        Name of a scikit-learn scorer, or ``f(model, X, y)``; greater is better. Several metrics by a list or a dict
        of these; `refit` then names the one that chooses. None: balanced accuracy if y has the labels 1 (normal)
        and −1 (novel); otherwise y is ignored, and the score is the fraction of held-out samples inside minus the
        fraction of background samples inside, see docs/model_selection.md.
    refit : bool, str or callable, default=True
        Whether to train on all samples with the best parameters, needed for predictions; the name of the metric
        that chooses them; or a function from ``cv_results_`` to the index of a point.
    refine : int, default=0
        Number of refinements of the grid. Each adds the neighbours of the best point at half the distance (in
        logarithms), diagonals included.
    prune : bool, default=False
        Whether to skip the other folds of points whose mean score cannot be the best any more, even if these folds
        have the largest possible score. What is chosen is the same; ``cv_results_`` has nan scores for such points,
        and says in ``pruned`` which ones. It needs a score whose maximum is known, such as accuracy or R².
    error_score : "raise" or float, default=np.nan
        The score of a trial that fails, with a warning. If all fail, their error is raised.
    return_train_score : bool, default=False
        Whether to score the training samples as well.
    kernel : str, Kernel or callable, default="rbf"
        ``"linear"``, ``"poly"``, ``"rbf"`` (also ``"gaussian"``), ``"sigmoid"``, ``"laplacian"``,
        ``"chi_squared"``, ``"precomputed"``; a kernel object such as ``Gaussian(0.5) + Linear()``; or a function
        ``k(X, Z)`` that returns the block of values of the rows of X and Z.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=0.0
        Constant term of the polynomial and sigmoid kernels.
    tol : float, default=1e-3
        Tolerance on the violation of the optimality conditions.
    shrinking : bool, default=True
        Leave variables that are likely to stay at a bound out of the iterations; all are checked before the end.
    cache_size : float or "auto", default="auto"
        Megabytes for kernel values; "auto" is a quarter of the memory available to the process. Only what is needed
        is allocated. Less memory makes the fit slower; the result differs only within the tolerance.
    max_iter : int, default=-1
        Limit on the iterations of each problem, −1 for none.
    solver : str or solver object, default="auto"
        The algorithm. "auto": up to 2,048 samples all problems in one batch of sequential minimal optimisation;
        problems that take many steps, and larger data, "pairwise" up to 500 variables, else "block". Classical
        algorithms for comparison: "quadratic_program", "chunking", "decomposition", "gradient_projection",
        "active_set", "platt", and with the linear kernel "primal_quadratic_program". A solver object has its own
        tolerance, cache and limits.
    selection : {"second_order", "most_violating_pair", "maximum_gain"}, default="second_order"
        Working-set selection of the pairwise solver.
    probability : bool, default=False
        Whether to fit probabilities for ``predict_proba``; this takes little time.
    gap_tol : float, default=None
        Duality gap at which to stop even if the violation is above ``tol``. Small problems that are solved in a
        batch always reach ``tol``.
    device : str, default="cpu"
        Where kernel values are computed and problems are solved: ``"cpu"``, ``"cuda"`` or ``"cuda:1"`` (an NVIDIA
        GPU; ``pip install 'maxmargin[cuda13]'``), or ``"auto"``, which takes the GPU where it pays. The tolerance
        and the certificate are the same; see docs/gpu.md.
    n_jobs : int, default=None
        Threads: trials that run at the same time, then for the final fit and predictions. None: the cores available
        to the process, or fewer if BLAS is limited (``OMP_NUM_THREADS``, threadpoolctl, workers of joblib and
        Dask). The result does not depend on it.
    verbose : bool, default=False
        Show a progress line on the terminal for searches longer than a second.
    callback : callable, default=None
        Called with the result so far, a `GridSearchResult`, after every trial; returning True stops the search, and
        the best of the finished points is used.
    max_seconds : float, default=None
        Limit on the time of the whole fit. The search ends after three quarters of it with the best of the finished
        points, and a warning; the rest is for the final fit, which is limited in the same way.
    checkpoint : path, default=None
        A file of the finished trials. If the process is killed, the next fit with the same data and parameters
        resumes from the file; a file of another search is an error. A fit that ends removes it; one that a limit or
        an interruption ends keeps it.

    Attributes
    ----------
    best_params_ : dict
        The values with the best mean score over the splits; the first of them, in the order of ``cv_results_``, if
        several are as good.
    best_score_, best_index_ : float, int
        Its mean score, and its place in ``cv_results_``.
    best_estimator_ : OneClassSVM
        Trained on all samples with these parameters. Its fitted attributes are those of this estimator, too:
        ``certificate_``, ``support_vectors_``, ``offset_`` and the others.
    cv_results_ : dict of arrays
        Scores, ranks and times of all points in the layout of scikit-learn's GridSearchCV, for ``pandas.DataFrame``;
        nan where a limit ended the search before.
    search_ : GridSearchResult
        The same as an object: points, trials, ``status``, and for `plotting.ScoreGridDisplay`.
    n_splits_, scorer_, multimetric_, refit_time_
        As in GridSearchCV.

    Examples
    --------
    >>> from maxmargin import OneClassSVMCV
    >>> from sklearn.datasets import make_moons
    >>> X, _ = make_moons(300, noise=0.05, random_state=0)
    >>> model = OneClassSVMCV(nus=[0.05], gammas=[0.01, 10, 10_000]).fit(X)
    >>> model.best_params_
    {'gamma': 10.0, 'nu': 0.05}
    >>> model.predict([X[0], [9, 9]])
    array([ 1, -1])
    """

    _kind = OneClassSVM
    _searched = ("nus", "gammas")

    def __init__(
        self,
        *,
        nus: Any = 5,
        gammas: Any = 7,
        cv: Any = None,
        scoring: Any = None,
        refit: Any = True,
        refine: int = 0,
        prune: bool = False,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        kernel: Any = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 0.001,
        shrinking: bool = True,
        cache_size: Any = "auto",
        max_iter: int = -1,
        solver: Any = "auto",
        selection: str = "second_order",
        probability: bool = False,
        gap_tol: float | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        verbose: Any = False,
        callback: Any = None,
        max_seconds: float | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.nus = nus
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.refine = refine
        self.prune = prune
        self.error_score = error_score
        self.return_train_score = return_train_score
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.solver = solver
        self.selection = selection
        self.probability = probability
        self.gap_tol = gap_tol
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback
        self.max_seconds = max_seconds
        self.checkpoint = checkpoint
