"""`SVC`: support vector classification in place of `sklearn.svm.SVC`."""

from __future__ import annotations

from functools import partial
from typing import Any

from maxmargin.formulations import c_classification, squared_hinge
from maxmargin.machines.kernel.kernel_classifier import KernelClassifier
from maxmargin.machines.validation.parameters import check_choice, check_flag, check_number
from maxmargin.training.small_problems import TwoClassFormulation

LOSSES: dict[str, Any] = {"hinge": c_classification, "squared_hinge": squared_hinge}


class SVC(KernelClassifier):
    """Classify with the widest margin: minimise ½‖w‖² + C Σ ξ_i subject to y_i (w·Φ(x_i) + b) ≥ 1 − ξ_i.

    A drop-in for ``sklearn.svm.SVC``: same parameters, attributes, signs and shapes. Every fit comes with
    ``certificate_``, a proof of how close to the optimum it is, computed independently of the solver.

    Parameters
    ----------
    C : float, default=1.0
        Cost of slack. ``C=inf`` is the hard margin, an error if the classes cannot be separated. (Classes that
        overlap under a wide Gaussian kernel are separable in theory only: set ``max_seconds``, or use a large C.)
    loss : {"hinge", "squared_hinge"}, default="hinge"
        Σ C ξ_i or Σ C ξ_i².
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
    verbose : bool, default=False
        Show a progress line on the terminal for fits longer than a second.
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
        Start from the solution of the previous fit, if it had the same number of samples and the same classes.
    n_jobs : int, default=None
        Threads for training and prediction. None: the cores available to the process, or fewer if BLAS is limited
        (``OMP_NUM_THREADS``, threadpoolctl, workers of joblib and Dask). The result does not depend on it.
    checkpoint : path, default=None
        A file in which the state of the fit is stored every ``checkpoint_seconds``. If the process is killed, the
        next fit with the same data and parameters resumes from the file; a file of another fit is an error. A fit
        that ends removes it; one that a limit or an interruption ends keeps it. See docs/checkpoints.md.
    checkpoint_seconds : float, default=60.0
        The time between two writes of the checkpoint: the most that is lost.
    device : str, default="cpu"
        Where kernel values are computed and problems are solved: ``"cpu"``, ``"cuda"`` or ``"cuda:1"`` (an NVIDIA
        GPU; ``pip install 'maxmargin[cuda13]'``), or ``"auto"``, which takes the GPU where it pays. The tolerance
        and the certificate are the same; see docs/gpu.md.

    Attributes
    ----------
    certificate_ : Certificate, or a list with one per pair of classes ("ovo") or class ("ovr")
        ``primal``, ``dual``, ``gap`` and ``violation`` of the solution, and each sample's share of the gap.
        Computed when first read; an error if the training data were changed since.
    geometry_ : MarginGeometry, or a list of them; ClassGeometry of an all-in-one problem
        Free and bounded support vectors, slack of every sample, margin, ‖w‖², offset and its interval.
    status_ : Status, or a list
        How the solver ended; ``status_.value`` describes it.
    dual_coef_, intercept_, coef_
        As in scikit-learn's SVC for "ovo" and for two classes; else a line, or a number, for each class.
    probA_, probB_ : arrays with a number for each pair of classes
        With ``probability=True``: the probability of the first class of a pair is 1 / (1 + exp(A f + B)), with f its
        decision value, positive for the first (the negative of the decision function if there are only two classes).
        Else empty, as in scikit-learn.
    classes_, support_, support_vectors_, n_support_, class_weight_, fit_status_, n_iter_, shape_fit_,
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from maxmargin import SVC
    >>> model = SVC(kernel="linear", C=10).fit([[0, 0], [1, 1], [2, 0], [3, 1]], [0, 0, 1, 1])
    >>> model.predict([[0.5, 0], [2.5, 0]])
    array([0, 1])
    >>> model.certificate_.violation < 1e-3
    True
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        loss: str = "hinge",
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = False,
        tol: float = 1e-3,
        cache_size: Any = "auto",
        class_weight: Any = None,
        verbose: bool = False,
        max_iter: int = -1,
        multi_class: str = "ovo",
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        solver: Any = "auto",
        selection: str = "second_order",
        fit_intercept: bool = True,
        max_seconds: float | None = None,
        gap_tol: float | None = None,
        callback: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        checkpoint: Any = None,
        checkpoint_seconds: float = 60.0,
        device: str = "cpu",
    ) -> None:
        self.C = C
        self.loss = loss
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.solver = solver
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.max_seconds = max_seconds
        self.gap_tol = gap_tol
        self.callback = callback
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.checkpoint_seconds = checkpoint_seconds
        self.device = device

    def _cost(self) -> float:
        check_flag("fit_intercept", self.fit_intercept)
        check_choice("loss", self.loss, tuple(LOSSES))
        return check_number("C", self.C, above=0, infinite=True)

    def _two_class(self) -> TwoClassFormulation:
        loss = LOSSES[self.loss]
        pose = partial(loss.pose, fit_intercept=self.fit_intercept)
        return TwoClassFormulation(loss, pose, self.fit_intercept, elementwise=True)
