"""`SVCCV`: support vector classification that chooses C and γ itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.estimators import SVC
from maxmargin.search.estimators.classifiers import SearchingClassifier


class SVCCV(SearchingClassifier):
    """Classify with a support vector machine whose C and γ are chosen by cross-validation while it fits.

    In place of scikit-learn's ``GridSearchCV(SVC(), {"C": Cs, "gamma": gammas})``, with the same scores, choices and
    ``cv_results_``, and trials in threads that share the data. The final model is a `SVC` with its certificate.

    Parameters
    ----------
    Cs : int or list of float, default=5
        Values of C, or how many: from 2⁻⁵ to 2¹¹, at equal ratios.
    gammas : int, list of float or "ard", default=7
        Values of γ, or how many: from 2⁻⁸ to 2⁴ at equal ratios, times 1 / (n_features · variance of X), which is
        ``gamma="scale"``. Kernels without a γ have none, whatever the number. ``"ard"`` chooses a γ for each
        feature, and C and ε with it, by gradients of a held-out loss; see `gradient_search`.
    cv : int, splitter, iterable of (train, test) or "loo", default=None
        The splits into training and test samples, as in scikit-learn's GridSearchCV: None is 5 folds, stratified
        for classifiers and for labels 1 and −1 of novelty detection; a splitter such as ``GroupKFold()``; or pairs
        of row numbers. ``"loo"`` holds out one sample at a time and computes one score from all predictions, so
        that also R² and ranks are defined.
    scoring : str, callable, list or dict, default=None
        Name of a scikit-learn scorer, or ``f(model, X, y)``; greater is better. Several metrics by a list or a dict
        of these; `refit` then names the one that chooses. None: accuracy.
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
    loss : {"hinge", "squared_hinge"}, default="hinge"
        Σ C ξ_i or Σ C ξ_i².
    kernel : str, Kernel or callable, default="rbf"
        ``"linear"``, ``"poly"``, ``"rbf"`` (also ``"gaussian"``), ``"sigmoid"``, ``"laplacian"``,
        ``"chi_squared"``, ``"precomputed"``; a kernel object such as ``Gaussian(0.5) + Linear()``; or a function
        ``k(X, Z)`` that returns the block of values of the rows of X and Z.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=0.0
        Constant term of the polynomial and sigmoid kernels.
    shrinking : bool, default=True
        Leave variables that are likely to stay at a bound out of the iterations; all are checked before the end.
    probability : bool, default=False
        Whether to fit class probabilities by cross-validation, for ``predict_proba``. ``predict`` then returns the
        most probable class. The fit takes about twice as long. Two classes are equally probable close to, but not
        exactly at, decision value 0, so that a few labels near the boundary differ from those without
        probabilities; ``break_ties`` has no effect. Sample and class weights count samples.
    tol : float, default=1e-3
        Tolerance on the violation of the optimality conditions.
    cache_size : float or "auto", default="auto"
        Megabytes for kernel values; "auto" is a quarter of the memory available to the process. Only what is needed
        is allocated. Less memory makes the fit slower; the result differs only within the tolerance.
    class_weight : dict or "balanced", default=None
        Factors on C by class. "balanced" counts samples by their weight.
    max_iter : int, default=-1
        Limit on the iterations of each problem, −1 for none.
    multi_class : {"ovo", "ovr", "crammer_singer", "weston_watkins"}, default="ovo"
        Multi-class strategy: a model for each pair of classes, as in scikit-learn; a model for each class against
        the rest; or one problem for all classes, where a sample has slack with respect to the closest other class
        (Crammer–Singer) or to every other class (Weston–Watkins), with the hinge loss and a finite C. The offsets
        of the last two are regularised like the weights.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Shape of ``decision_function`` with more than two classes; "ovo" needs ``multi_class="ovo"``.
    break_ties : bool, default=False
        Whether the decision values break ties between classes with equal votes (with "ovr").
    random_state : int, RandomState or None, default=None
        The folds of the cross-validation with ``probability=True``; None always gives the same folds. Nothing else
        is random.
    solver : str or solver object, default="auto"
        The algorithm. "auto": up to 2,048 samples all pairs of classes in one batch of sequential minimal
        optimisation; problems that take many steps, and larger data, "block"; up to 500 samples (all-in-one: 2,048
        variables) and for hard margins "pairwise". Classical algorithms for comparison: "quadratic_program",
        "chunking", "decomposition", "gradient_projection", "active_set", "platt", and with the linear kernel
        "primal_quadratic_program". A solver object has its own tolerance, cache and limits.
    selection : {"second_order", "most_violating_pair", "maximum_gain"}, default="second_order"
        Working-set selection of the pairwise solver.
    fit_intercept : bool, default=True
        Whether the decision function has an offset b.
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
    best_estimator_ : SVC
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
    >>> from maxmargin import SVCCV
    >>> from maxmargin.datasets import chessboard
    >>> X, y = chessboard(400, noise=0.0)
    >>> model = SVCCV(Cs=[1, 100], gammas=[0.01, 1, 100], cv=3).fit(X, y)
    >>> model.best_params_
    {'C': 100.0, 'gamma': 1.0}
    >>> model.predict([[0.5, 0.5]]).shape, model.certificate_.violation < 1e-3
    ((1,), True)
    """

    _kind = SVC
    _searched = ("Cs", "gammas")

    def __init__(
        self,
        *,
        Cs: Any = 5,
        gammas: Any = 7,
        cv: Any = None,
        scoring: Any = None,
        refit: Any = True,
        refine: int = 0,
        prune: bool = False,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        loss: str = "hinge",
        kernel: Any = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = False,
        tol: float = 0.001,
        cache_size: Any = "auto",
        class_weight: Any = None,
        max_iter: int = -1,
        multi_class: str = "ovo",
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        solver: Any = "auto",
        selection: str = "second_order",
        fit_intercept: bool = True,
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
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.solver = solver
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.gap_tol = gap_tol
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback
        self.max_seconds = max_seconds
        self.checkpoint = checkpoint
