"""`LinearSVRCV`: linear regression that chooses C and ε itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.estimators import LinearSVR
from maxmargin.search.estimators.regressors import SearchingRegressor


class LinearSVRCV(SearchingRegressor):
    """Fit a linear regression with a tube whose C and ε are chosen by cross-validation while it fits.

    Of each split and ε, the values of C are trained from small to large, each from the solution of the one before
    (small problems, which take milliseconds, from zero).
    The final model is a `LinearSVR` with its certificate.

    Parameters
    ----------
    Cs : int or list of float, default=6
        Values of C, or how many: from 2⁻¹¹ to 2⁹ at equal ratios, times the standard deviation of the targets (but
        not with the squared loss, where C has no unit).
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
    tol : float, default=1e-4
        Tolerance on the relative duality gap: primal − dual ≤ tol · the larger of the two. The optimum may be 0:
        then a gap that is negligible next to the objective without a model is accepted.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        The distance from the tube, or its square.
    fit_intercept : bool, default=True
        Whether the decision function has an offset b.
    intercept_scaling : float, default=None
        None: the offset b is not regularised. A number: b is regularised, as the weight of a constant feature of
        this value; scikit-learn's default is 1.
    dual : "auto" or bool, default="auto"
        The algorithm of ``solver="auto"``: True is coordinate ascent on the dual, False is Newton's method on the
        primal; "auto" chooses by cost. Both solve both losses.
    random_state : int, RandomState or None, default=None
        Accepted for compatibility with scikit-learn; the result does not depend on it.
    max_iter : int, default=None
        Limit on the iterations of each problem: passes over the samples, or Newton steps. None for no limit.
    solver : str or solver object, default="auto"
        The algorithm: "dual_coordinate_ascent", "semismooth_newton", "subgradient", "stochastic_subgradient",
        "pairwise", "primal_quadratic_program", or "auto", which chooses by cost. A solver object has its own
        tolerance and limits.
    noise : bool, default=False
        Whether to estimate the noise of the targets by cross-validation, for ``predict_interval``. The fit takes
        about twice as long.
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
    best_estimator_ : LinearSVR
        Trained on all samples with these parameters. Its fitted attributes are those of this estimator, too:
        ``certificate_``, ``coef_``, ``intercept_`` and the others.
    cv_results_ : dict of arrays
        Scores, ranks and times of all points in the layout of scikit-learn's GridSearchCV, for ``pandas.DataFrame``;
        nan where a limit ended the search before.
    search_ : GridSearchResult
        The same as an object: points, trials, ``status``, and for `plotting.ScoreGridDisplay`.
    n_splits_, scorer_, multimetric_, refit_time_
        As in GridSearchCV.

    Examples
    --------
    >>> from maxmargin import LinearSVRCV
    >>> from sklearn.datasets import make_regression
    >>> X, y = make_regression(200, 5, noise=10.0, random_state=0)
    >>> model = LinearSVRCV(Cs=[0.001, 1], epsilons=[0.0, 5.0]).fit(X, y)
    >>> model.best_params_["C"], bool(model.best_score_ > 0.8)
    (1.0, True)
    """

    _kind = LinearSVR
    _searched = ("Cs", "epsilons")

    def __init__(
        self,
        *,
        Cs: Any = 6,
        epsilons: Any = 3,
        cv: Any = None,
        scoring: Any = None,
        refit: Any = True,
        refine: int = 0,
        prune: bool = False,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        tol: float = 0.0001,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        dual: Any = "auto",
        random_state: Any = None,
        max_iter: int | None = None,
        solver: Any = "auto",
        noise: bool = False,
        n_jobs: int | None = None,
        verbose: Any = False,
        callback: Any = None,
        max_seconds: float | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.Cs = Cs
        self.epsilons = epsilons
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.refine = refine
        self.prune = prune
        self.error_score = error_score
        self.return_train_score = return_train_score
        self.tol = tol
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.noise = noise
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback
        self.max_seconds = max_seconds
        self.checkpoint = checkpoint
