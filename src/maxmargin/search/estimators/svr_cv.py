"""`SVRCV`: support vector regression that chooses C, γ and ε itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.estimators import SVR
from maxmargin.search.estimators.regressors import SearchingRegressor


class SVRCV(SearchingRegressor):
    """Fit a support vector regression whose C, γ and ε are chosen by cross-validation while it fits.

    In place of scikit-learn's ``GridSearchCV(SVR(), {"C": Cs, "gamma": gammas, "epsilon": epsilons})``, with the same
    scores, choices and ``cv_results_``. The final model is a `SVR` with its certificate.

    Parameters
    ----------
    Cs : int or list of float, default=5
        Values of C, or how many: from 2⁻⁵ to 2¹¹ at equal ratios, times the standard deviation of the targets (but
        not with the squared loss, where C has no unit).
    gammas : int, list of float or "ard", default=7
        Values of γ, or how many: from 2⁻⁸ to 2⁴ at equal ratios, times 1 / (n_features · variance of X), which is
        ``gamma="scale"``. Kernels without a γ have none, whatever the number. ``"ard"`` chooses a γ for each
        feature, and C and ε with it, by gradients of a held-out loss; see `gradient_search`.
    epsilons : int or list of float, default=3
        Values of ε, half the width of the tube, or how many: from 0.01 to 1 at equal ratios, times the standard
        deviation of the targets.
    cv : int, splitter, iterable of (train, test) or "loo", default=None
        The splits into training and test samples, as in scikit-learn's GridSearchCV: None is 5 folds, stratified
        for classifiers and for labels 1 and −1 of novelty detection; a splitter such as ``GroupKFold()``; or pairs
        of row numbers. ``"loo"`` holds out one sample at a time and computes one score from all predictions, so
        that also R² and ranks are defined.
    scoring : str, callable, list or dict, default=None
        Name of a scikit-learn scorer, or ``f(model, X, y)``; greater is better. Several metrics by a list or a dict
        of these; `refit` then names the one that chooses. None: R².
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
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        The distance from the tube, or its square.
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
    fit_intercept : bool, default=True
        Whether the decision function has an offset b.
    noise : bool, default=False
        Whether to estimate the noise of the targets by cross-validation, for ``predict_interval``. The fit takes
        about twice as long.
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
    best_estimator_ : SVR
        Trained on all samples with these parameters. Its fitted attributes are those of this estimator, too:
        ``certificate_``, ``support_vectors_``, ``dual_coef_`` and the others.
    cv_results_ : dict of arrays
        Scores, ranks and times of all points in the layout of scikit-learn's GridSearchCV, for ``pandas.DataFrame``;
        nan where a limit ended the search before.
    search_ : GridSearchResult
        The same as an object: points, trials, ``status``, and for `plotting.ScoreGridDisplay`.
    gradient_search_ : GradientSearchResult
        Only with ``gammas="ard"``: the steps along gradients, and the relevance of the features, for
        `plotting.FeatureRelevanceDisplay`. The points of ``cv_results_`` are then the best with one γ, in units of
        the features, and the best with a γ for each.
    n_splits_, scorer_, multimetric_, refit_time_
        As in GridSearchCV.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import KFold
    >>> from maxmargin import SVRCV
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = SVRCV(Cs=[1, 10], gammas=[0.01, 1], epsilons=[0.01, 0.5], cv=KFold(3, shuffle=True, random_state=0))
    >>> model.fit(X, np.sin(X[:, 0])).best_params_
    {'C': 10.0, 'epsilon': 0.01, 'gamma': 1.0}
    """

    _kind = SVR
    _searched = ("Cs", "gammas", "epsilons")

    def __init__(
        self,
        *,
        Cs: Any = 5,
        gammas: Any = 7,
        epsilons: Any = 3,
        cv: Any = None,
        scoring: Any = None,
        refit: Any = True,
        refine: int = 0,
        prune: bool = False,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        loss: str = "epsilon_insensitive",
        kernel: Any = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 0.001,
        shrinking: bool = True,
        cache_size: Any = "auto",
        max_iter: int = -1,
        solver: Any = "auto",
        selection: str = "second_order",
        fit_intercept: bool = True,
        noise: bool = False,
        gap_tol: float | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        verbose: Any = False,
        callback: Any = None,
        max_seconds: float | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.epsilons = epsilons
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.refine = refine
        self.prune = prune
        self.error_score = error_score
        self.return_train_score = return_train_score
        self.loss = loss
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.solver = solver
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.noise = noise
        self.gap_tol = gap_tol
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback
        self.max_seconds = max_seconds
        self.checkpoint = checkpoint
