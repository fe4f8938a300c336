"""`TransductiveSVC`: classification from few labels and many samples without one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from time import perf_counter
from typing import Any, NoReturn

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.formulation import Formulation
from maxmargin.machines.kernel.kernel_classifier import KernelClassifier
from maxmargin.machines.kernel.kernel_estimator import CLASSICAL_SOLVERS
from maxmargin.machines.multiclass.strategy import LabelledData
from maxmargin.machines.validation.callbacks import reporting
from maxmargin.machines.validation.parameters import check_choice, check_number
from maxmargin.machines.validation.training_data import check_costs, check_sample_weights, number_classes
from maxmargin.problems import DualProblem
from maxmargin.training import Subproblem, TrainedModel
from maxmargin.training.fit_context import FitContext
from maxmargin.training.transduction import PartlyLabelled, Transduction, concave_convex, switch_labels

#: How far the fractions of several classes may be from a sum of 1.
MAX_FRACTION_ERROR = 1e-6


class TransductiveSVC(KernelClassifier):
    """Classify from few labelled and many unlabelled samples: the boundary avoids regions where samples are dense.

    Minimise ½‖w‖² + C Σ ξ_i + C_unlabeled Σ ξ_u over w, b and the unknown labels (Joachims 1999): the widest margin
    between samples of which most have no label. Where classes are clusters, as in texts, a few labels are enough. The
    problem is not convex. The certificate is that of the last of a sequence of convex problems, and the status
    STATIONARY says that no step of the method improves the solution, not that it is the best. Several classes are
    trained one-vs-rest. scikit-learn has no counterpart; its semi-supervised estimators take the same data.

    Parameters
    ----------
    C : float, default=1.0
        Cost of slack.
    C_unlabeled : float, default=None
        Cost of slack of samples without a label; None is `C`.
    positive_fraction : float or dict, default=None
        The fraction of unlabelled samples in the class ``classes_[1]``, above 0 and below 1; of several classes, a
        dict from each label to its fraction. None takes the fractions of the labelled samples, by weight: then they
        should be drawn at random. The option ``-p`` of SVMlight.
    method : {"label_switching", "concave_convex"}, default="label_switching"
        Joachims' label switching, which gives exactly this fraction of the unlabelled samples the label
        ``classes_[1]`` while their cost grows; or the concave–convex procedure of Collobert et al., which solves
        fewer problems, and in which the mean decision value of unlabelled samples is 2 · fraction − 1.
    ramp : float, default=-0.3
        Where y f(x) is below this number, above −1 and below 1, the loss of an unlabelled sample in
        ``method="concave_convex"`` is constant.
    unlabeled_label : int, str or other label, default=-1
        The label of samples without one: −1 as in ``sklearn.semi_supervised``, in an array of text the text
        ``"-1"``. Where −1 is a class, choose another, for example 0 as in SVMlight's files.
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
    tol : float, default=1e-3
        Tolerance on the violation of the optimality conditions.
    cache_size : float or "auto", default="auto"
        Megabytes for kernel values; "auto" is a quarter of the memory available to the process. Only what is needed
        is allocated. Less memory makes the fit slower; the result differs only within the tolerance.
    verbose : bool, default=False
        Show a progress line on the terminal for fits longer than a second.
    max_iter : int, default=-1
        Limit on the iterations of each problem, −1 for none.
    solver : str or solver object, default="auto"
        The algorithm. "auto": up to 2,048 samples all problems in one batch of sequential minimal optimisation;
        problems that take many steps, and larger data, "pairwise" up to 500 variables, else "block". Classical
        algorithms for comparison: "quadratic_program", "chunking", "decomposition", "gradient_projection",
        "active_set", "platt", and with the linear kernel "primal_quadratic_program". A solver object has its own
        tolerance, cache and limits.
    max_seconds : float, default=None
        Limit on the time of the whole fit, within a tenth of it or half a second. The model is then valid, and a
        warning says how far it is. See docs/fitting.md.
    callback : callable, default=None
        Called with the progress (iteration, violation, primal, dual, gap, active, seconds) up to ten times a
        second; returning True stops the fit with a valid model. It never changes the result otherwise.
    n_jobs : int, default=None
        Threads for training and prediction. None: the cores available to the process, or fewer if BLAS is limited
        (``OMP_NUM_THREADS``, threadpoolctl, workers of joblib and Dask). The result does not depend on it.

    Attributes
    ----------
    transduction_ : array of shape (n_samples,)
        The label of each training sample: as given, or as found.
    label_distributions_ : array of shape (n_samples, n_classes)
        1 for the label of the transduction, else 0: the labels of a support vector machine are certain.
    class_fractions_ : array of shape (n_classes,)
        The fraction of each class among the unlabelled samples that the fit was to find.
    n_problems_ : int array
        How many convex problems were solved: one number, or one for each class.
    certificate_ : Certificate, or a list with one per class
        ``primal``, ``dual``, ``gap`` and ``violation`` of the last convex problem, and each sample's share of the gap.
        Computed when first read; an error if the training data were changed since.
    geometry_ : MarginGeometry, or a list of them
        Free and bounded support vectors, slack of every sample, margin, ‖w‖², offset.
    status_ : Status, or a list
        How the fit ended; ``status_.value`` describes it.
    classes_, support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, fit_status_, n_iter_, shape_fit_,
    n_features_in_, feature_names_in_
        As in `SVC` with ``multi_class="ovr"``.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import TransductiveSVC
    >>> X = np.array([[0.0], [0.1], [0.2], [0.3], [0.4], [0.9], [1.0]])
    >>> y = [0, -1, -1, -1, -1, -1, 1]
    >>> TransductiveSVC(kernel="linear", C=100, positive_fraction=0.2).fit(X, y).transduction_
    array([0, 0, 0, 0, 0, 1, 1])
    """

    #: Not parameters, but attributes of every kernel classifier.
    probability = False
    multi_class = "ovr"
    decision_function_shape = "ovr"
    break_ties = False
    warm_start = False
    class_weight = None
    gap_tol = None

    _solvers = ("pairwise", "block", *CLASSICAL_SOLVERS)

    def __init__(
        self,
        *,
        C: float = 1.0,
        C_unlabeled: float | None = None,
        positive_fraction: Any = None,
        method: str = "label_switching",
        ramp: float = -0.3,
        unlabeled_label: Any = -1,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: Any = "auto",
        verbose: bool = False,
        max_iter: int = -1,
        solver: Any = "auto",
        max_seconds: float | None = None,
        callback: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.C_unlabeled = C_unlabeled
        self.positive_fraction = positive_fraction
        self.method = method
        self.ramp = ramp
        self.unlabeled_label = unlabeled_label
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.solver = solver
        self.max_seconds = max_seconds
        self.callback = callback
        self.n_jobs = n_jobs

    @property
    def transduction_(self) -> Any:
        """The label of each training sample: as given, or as found."""
        return self.classes_[self._transduced("transduction_")]

    @property
    def label_distributions_(self) -> Floats:
        """1 for the label of the transduction of each training sample, else 0."""
        return np.eye(len(self.classes_))[self._transduced("label_distributions_")]

    def labelled(self, y: Any) -> Any:
        """Return which of the labels `y` stand for a class; in an array of text, `unlabeled_label` is a text, too."""
        y, label = np.asarray(y), self.unlabeled_label
        if y.dtype.kind in "US":
            label = np.asarray(str(label)).astype(y.dtype.kind)
        return np.broadcast_to(y != label, y.shape)

    def _transduced(self, attribute: str) -> Indices:
        if "_transduction_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {attribute!r} before fit")
        labels: Indices = self._transduction_
        return labels

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TransductiveSVC:
        """Train on samples `X` with labels `y`, of which some are missing.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With ``kernel="precomputed"``, the symmetric matrix of kernel values; with a function as kernel, samples of
            any kind.
        y : array-like of shape (n_samples,)
            Labels of any type; `unlabeled_label`, −1 by default, for samples without one.
        sample_weight : array-like of shape (n_samples,), optional
            Factors on C and C_unlabeled by sample. 0 or less leaves a row out.

        Returns
        -------
        self
            The fitted estimator.
        """
        started = perf_counter()
        cost = self._cost()
        X, y = self._check_training_data(X, y)
        self._validate_labels(y)
        unlabelled = ~self.labelled(y)
        weights = check_sample_weights(sample_weight, X)
        if not (weights[~unlabelled] > 0).any():
            raise ValueError(
                f"no sample with a positive weight has a label: all are {self.unlabeled_label!r} (unlabeled_label); "
                "training needs at least one labelled sample of each of two classes"
            )
        labelled = number_classes(y, np.where(unlabelled, 0.0, weights), self._single_class_message)
        of_unlabelled = cost if self.C_unlabeled is None else check_number("C_unlabeled", self.C_unlabeled, above=0)
        costs = np.where(unlabelled, check_costs(of_unlabelled, weights), check_costs(cost, weights))
        fractions = self._fractions(labelled.classes, labelled.numbers, weights)
        rows, kernel = np.flatnonzero(weights > 0), self._make_kernel(X, weights)
        with reporting(self) as callback:
            context = self._fit_context(X, kernel, callback, started)
            found = self._transduce(context, X, rows, labelled, costs, weights, fractions)
            models = [each.model for each in found]
            transduced = _assign(labelled.numbers, rows, found)
            members = [np.flatnonzero(transduced == number) for number in range(len(labelled.classes))]
            data = LabelledData(X, labelled.classes, transduced, members, rows, costs, True)
            self._set_fitted(data, kernel, "ovo" if len(found) == 1 else "ovr", models)
        self.class_weight_, self._sigmoids_ = np.ones(len(labelled.classes)), None
        if len(left := np.flatnonzero(transduced == -1)):  # rows without weight
            transduced[left] = np.searchsorted(self.classes_, self.predict(X[left]))
        self.class_fractions_ = fractions
        self._transduction_: Any = transduced.astype(np.int32)
        self.n_problems_ = np.array([each.problems for each in found], dtype=np.int32)
        self._warn_if_unconverged(context.options.stopping, "classes")
        return self

    def _transduce(
        self,
        context: FitContext,
        X: Any,
        rows: Indices,
        labelled: Any,
        costs: Floats,
        weights: Floats,
        fractions: Floats,
    ) -> list[Transduction]:
        """Return the result of each class against the rest, of two classes that of the second one."""
        _, threads = context.divide_threads(X, 1)
        solver = context.solver(X.shape[0], True, context.cache_bytes(X.shape[0]), threads)
        solver, matrix = context.shared_matrix(X, rows, solver, 2, 1, threads)

        def train(problem: DualProblem, formulation: Formulation, start: Floats | None) -> TrainedModel:
            return context.train([Subproblem.posed(problem, rows, start)], solver, formulation)[0]

        method = switch_labels if self.method == "label_switching" else partial(concave_convex, ramp=self.ramp)
        numbers, classes = labelled.numbers[rows], range(len(labelled.classes))
        found = []
        for number in classes if len(classes) > 2 else [1]:
            signs = np.where(numbers == -1, 0.0, np.where(numbers == number, 1.0, -1.0))
            data = PartlyLabelled(
                matrix, signs, costs[rows], weights[rows], float(fractions[number]), solver.stopping.violation
            )
            found.append(method(data, train))
        return found

    def _cost(self) -> float:
        check_choice("method", self.method, ("label_switching", "concave_convex"))
        ramp = check_number("ramp", self.ramp)
        if not -1.0 < ramp < 1.0:
            raise ValueError(f"ramp must be a number above -1 and below 1, not {self.ramp!r}")
        return check_number("C", self.C, above=0)

    def _two_class(self) -> NoReturn:
        raise ValueError("TransductiveSVC solves a sequence of problems, of which none is that of SVC; use SVC")

    def _single_class_message(self, label: Any) -> str:
        return (
            "Invalid input - all labelled samples with positive weights belong to the same class: training needs at "
            f"least two classes, but there is only one class, {label!r}. The label {self.unlabeled_label!r} means that "
            "a sample has none; if it is a class, choose another unlabeled_label"
        )

    def _fractions(self, classes: Any, numbers: Indices, weights: Floats) -> Floats:
        """Return the fraction of each class among unlabelled samples: as given, or that among labelled ones."""
        given, labels = self.positive_fraction, classes.tolist()
        if given is None:
            known = numbers >= 0
            counts = np.bincount(numbers[known], weights=weights[known], minlength=len(labels))
            return np.asarray(counts / counts.sum())
        if isinstance(given, Mapping):
            if set(given) != set(labels):
                raise ValueError(f"positive_fraction must have one number for each of the classes {labels}")
            fractions = np.array([_check_fraction(given[label]) for label in labels])
            if abs(fractions.sum() - 1.0) > MAX_FRACTION_ERROR:
                raise ValueError(f"the numbers of positive_fraction must have the sum 1, not {fractions.sum():g}")
            return fractions
        if len(labels) > 2:
            raise ValueError(
                f"with the {len(labels)} classes {labels}, positive_fraction must be a dict of their fractions, or None"
            )
        fraction = _check_fraction(given)
        return np.array([1.0 - fraction, fraction])


def _check_fraction(value: Any) -> float:
    fraction = check_number("positive_fraction", value, above=0)
    if not fraction < 1:
        raise ValueError(f"positive_fraction must be a number above 0 and below 1, not {value!r}")
    return fraction


def _assign(numbers: Indices, rows: Indices, found: list[Transduction]) -> Indices:
    """Return the class number of each of the rows: as given, as found for two classes, or that of the largest value."""
    best = found[0].signs > 0 if len(found) == 1 else np.argmax([each.values for each in found], axis=0)
    transduced = numbers.copy()
    transduced[rows] = np.where(numbers[rows] == -1, best, numbers[rows])
    return transduced
