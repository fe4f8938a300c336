"""The base of the kernel classifiers: validation, multi-class training, and scikit-learn's fitted attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.formulations import crammer_singer, weston_watkins
from maxmargin.kernels import Kernel, Points
from maxmargin.kernels.points import rows_of
from maxmargin.machines.base import no_solution_message, wants_probabilities, warn_if_unvalidated
from maxmargin.machines.calibration.probabilities import PairwiseProbabilities
from maxmargin.machines.kernel.kernel_estimator import KernelEstimator
from maxmargin.machines.multiclass.all_in_one import AllInOneStrategy
from maxmargin.machines.multiclass.one_versus_one import OneVersusOneStrategy
from maxmargin.machines.multiclass.one_versus_rest import OneVersusRestStrategy
from maxmargin.machines.multiclass.strategy import LabelledData, MulticlassStrategy
from maxmargin.machines.validation.callbacks import reporting
from maxmargin.machines.validation.checkpoints import checkpointing
from maxmargin.machines.validation.device_arrays import following_samples
from maxmargin.machines.validation.parameters import check_choice, check_flag
from maxmargin.machines.validation.training_data import (
    check_sample_weights,
    class_factors,
    number_classes,
    single_class_message,
)
from maxmargin.matrices import KernelMatrix, PrecomputedMatrix, SymmetricMatrix
from maxmargin.models import OneVsOneVote, OneVsRestArgmax
from maxmargin.models.device_blocks import in_host_memory
from maxmargin.problems import DualProblem, Status
from maxmargin.training import TrainedModel
from maxmargin.training.joined_models import iteration_counts, unconverged
from maxmargin.training.small_problems import TwoClassFormulation, TwoClassSamples

#: The multi-class strategies by name.
STRATEGIES: dict[str, MulticlassStrategy] = {
    "ovo": OneVersusOneStrategy(),
    "ovr": OneVersusRestStrategy(),
    "crammer_singer": AllInOneStrategy(crammer_singer),
    "weston_watkins": AllInOneStrategy(weston_watkins),
}


class KernelClassifier(PairwiseProbabilities, KernelEstimator):
    """Base of the kernel classifiers. A subclass defines the two-class formulation."""

    # Set by the constructors of the estimators.
    class_weight: Any
    decision_function_shape: Any
    break_ties: Any
    warm_start: Any
    loss: Any = "hinge"
    fit_intercept: Any
    multi_class: Any = "ovo"  # of classifiers without this parameter

    def _cost(self) -> float:
        """Return the slack cost before weights; parameters of the formulation are checked here."""
        raise NotImplementedError

    def _two_class(self) -> TwoClassFormulation:
        """Return the formulation of two classes, after `_cost` has checked its parameters."""
        raise NotImplementedError

    def _single_class_message(self, label: Any) -> str:
        """Return the error message about data of a single class."""
        return single_class_message(label)

    def _check_feasible(self, classes: Any, costs: list[Floats]) -> None:
        """Raise before any work is done if a pair of classes with these costs has no solution."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Train on samples `X` with labels `y`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With ``kernel="precomputed"``, the symmetric matrix of kernel values; with a function as kernel, samples of
            any kind.
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Factors on C by sample. 0 or less leaves a row out, 2 counts it twice.

        Returns
        -------
        self
            The fitted estimator.
        """
        started = perf_counter()
        self._check_parameters()
        data, factors, weights = self._check_labelled_data(X, y, sample_weight)
        kernel, name = self._make_kernel(data.X, weights), self._strategy_name(data.classes)
        strategy, ended = STRATEGIES[name], Status.CONVERGED
        parts = strategy.parts(data)
        with reporting(self) as callback, checkpointing(self, data.X, data.labels, weights) as checkpoint:
            context = self._fit_context(data.X, kernel, callback, started, checkpoint)
            trained = strategy.train(context, self._two_class(), data, parts, self._starts(data, name, parts))
            self._set_fitted(data, kernel, name, trained.models)
            self.class_weight_, self._sigmoids_ = factors, None
            if wants_probabilities(self):
                ended = self._fit_sigmoids(context, trained, data, weights * factors[data.labels])
        self._warn_if_unconverged(trained.solver.stopping, strategy.each)
        warn_if_unvalidated(self, ended, stacklevel=3)
        return self

    @following_samples
    def decision_function(self, X: Any) -> Floats:
        """Return the decision values of each sample.

        Two classes: one value per sample, positive for ``classes_[1]``. More: one column per class ("ovr"), or one per
        pair of classes ("ovo", only if pairs were trained), positive for the first of the pair.
        """
        samples = self._check_samples(X)
        if len(self.classes_) == 2:
            return self._evaluate(samples).ravel()
        if check_choice("decision_function_shape", self.decision_function_shape, ("ovr", "ovo")) == "ovo":
            self._check_shape(self._multi_class_)
            return self._evaluate(samples)
        return self._scores(samples)

    @following_samples
    def predict(self, X: Any) -> Any:
        """Return the class of each sample; with ``probability=True`` the most probable one."""
        ties = check_flag("break_ties", self.break_ties)
        if ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        if self._knows_probabilities:
            return self.classes_[np.argmax(self.predict_proba(X), axis=1)]
        samples = self._check_samples(X)
        if len(self.classes_) == 2:
            winners = (self._evaluate(samples).ravel() >= 0).astype(np.intp)
        elif ties:
            winners = np.argmax(self._scores(samples), axis=1)
        else:
            threads = self._prediction_threads(samples.shape[0])
            winners = in_host_memory(self._model().classes_of(self._kernel_blocks(samples), threads))
        return self.classes_[winners]

    def _scores(self, samples: Any) -> Floats:
        """Return one score per class for samples that were validated."""
        threads = self._prediction_threads(samples.shape[0])
        scores: Floats = in_host_memory(self._model().scores_of(self._kernel_blocks(samples), threads))
        return scores

    # Validation.

    def _check_parameters(self) -> None:
        if self.probability != "deprecated":  # scikit-learn's default, which means False
            check_flag("probability", self.probability)
        check_flag("warm_start", self.warm_start)
        check_choice("decision_function_shape", self.decision_function_shape, ("ovr", "ovo"))
        name = check_choice("multi_class", self.multi_class, tuple(STRATEGIES))
        self._check_shape(name)
        if not STRATEGIES[name].pairwise and wants_probabilities(self):
            raise ValueError(
                "probability=True needs a model for each pair of classes, which "
                f"multi_class={name!r} does not train: use multi_class='ovo'"
            )
        if isinstance(STRATEGIES[name], AllInOneStrategy):
            self._check_all_in_one(self._cost())

    def _check_shape(self, strategy: str) -> None:
        """Raise if decision values of pairs of classes are asked for where there are no pairs."""
        if self.decision_function_shape == "ovo" and not STRATEGIES[strategy].pairwise:
            raise ValueError(
                "decision_function_shape='ovo' needs a model for each pair of classes; "
                f"multi_class={strategy!r} has one decision function per class: "
                "use decision_function_shape='ovr', or fit with multi_class='ovo'"
            )

    def _check_all_in_one(self, cost: float) -> None:
        """Raise for squared slack and hard margins, which the all-in-one formulations do not have."""
        if self.loss != "hinge":
            raise ValueError(
                f"multi_class={self.multi_class!r} has loss='hinge' only; "
                f"for loss={self.loss!r} use multi_class='ovo' or 'ovr'"
            )
        if not np.isfinite(cost):
            raise ValueError(
                f"multi_class={self.multi_class!r} needs a finite C; for a hard margin use multi_class='ovo' or "
                "'ovr', or a large C"
            )

    def _strategy_name(self, classes: Any) -> str:
        """Return the name of the strategy; with two classes one-vs-rest is a single pair."""
        return "ovo" if len(classes) == 2 and self.multi_class == "ovr" else str(self.multi_class)

    def _check_labelled_data(self, X: Any, y: Any, sample_weight: Any) -> tuple[LabelledData, Floats, Floats]:
        """Return the data, the factor of each class and the weight of each sample, all validated."""
        self._cost()
        return self._labelled(*self._check_training_data(X, y), sample_weight)

    def _labelled(self, X: Any, y: Any, sample_weight: Any) -> tuple[LabelledData, Floats, Floats]:
        """Return the same for samples and labels that were validated; of `X`, only the number of rows is used."""
        cost = self._cost()
        weights = check_sample_weights(sample_weight, X)
        self._validate_labels(y)
        numbered = number_classes(y, weights, self._single_class_message)
        classes, labels, rows = numbered.classes, numbered.numbers, numbered.taking_part
        factors = class_factors(self.class_weight, classes, labels[rows], weights[rows])
        costs = self._costs(cost, factors, labels, weights)
        self._check_feasible(classes, [costs[members] for members in numbered.members])
        bounded = bool(np.isfinite(cost))
        return LabelledData(X, classes, labels, numbered.members, rows, costs, bounded), factors, weights

    def _costs(self, cost: float, factors: Floats, labels: Indices, weights: Floats) -> Floats:
        """Return the cost of slack of each sample: C times the factor of its class times its weight."""
        with np.errstate(over="ignore", invalid="ignore"):  # ∞ · 0 for rows that are left out
            costs: Floats = cost * factors[labels] * weights
        if np.isfinite(cost) and not np.isfinite(costs).all():
            raise ValueError("C times the weights overflows float64; use C=inf for a hard margin")
        return costs

    # Training.

    def _starts(self, data: LabelledData, name: str, parts: Sequence[TwoClassSamples]) -> list[Floats | None]:
        """Return the previous solution as the start of each problem, None if there is none that fits."""
        models: Sequence[TrainedModel] | None = getattr(self, "_models_", None)
        if (
            not self.warm_start
            or models is None
            or self._multi_class_ != name
            or len(data.labels) != self.shape_fit_[0]
            or not np.array_equal(data.classes, self.classes_)
        ):
            return [None] * len(parts)
        starts: list[Floats | None] = []
        for model, part in zip(models, parts, strict=True):
            of_sample = model.dual.reshape(len(model.samples), -1)  # one variable each, or one for each class
            by_sample = np.zeros((len(data.labels), of_sample.shape[1]))
            by_sample[model.samples] = of_sample
            starts.append(by_sample[part.samples].ravel())
        return starts

    def _set_fitted(self, data: LabelledData, kernel: Kernel | None, name: str, models: Sequence[TrainedModel]) -> None:
        """Set the fitted attributes in scikit-learn's layout, or raise if there is no solution."""
        unfinished = unconverged(models)
        if Status.UNBOUNDED in unfinished:
            hard = (
                "the classes cannot be separated by this kernel, at least not with a margin above a millionth of the "
                "extent of the data, so there is no hard margin (C=inf); use a finite C for a soft margin, another "
                "kernel, or scale the features if they differ much in size"
            )
            raise ValueError(no_solution_message(self, hard))
        self.classes_ = data.classes
        self.shape_fit_ = data.X.shape
        self._kernel_ = kernel
        self._multi_class_ = name
        self._models_ = models
        coefficients, self.intercept_ = STRATEGIES[name].lay_out(models, data)
        in_use = np.asarray(coefficients.any(axis=0))
        support = [rows[in_use[rows]] for rows in data.members]
        order = np.concatenate(support)
        self.support_ = order.astype(np.int32)
        self.n_support_ = np.array([len(rows) for rows in support], dtype=np.int32)
        self.dual_coef_: Any = coefficients[:, order]
        threads = self._prediction_threads(len(order))
        self.support_vectors_ = np.empty((0, 0)) if self._kernel_ is None else rows_of(data.X, order, threads)
        if sparse.issparse(data.X):
            self.dual_coef_ = sparse.csr_matrix(self.dual_coef_)
        self.n_iter_ = iteration_counts(models).astype(np.int32)
        self.fit_status_ = int(bool(unfinished))

    def _model(self) -> OneVsOneVote | OneVsRestArgmax:
        coefficients = self.dual_coef_.toarray() if sparse.issparse(self.dual_coef_) else self.dual_coef_
        return STRATEGIES[self._multi_class_].model(coefficients, self.intercept_, self.n_support_)

    def _decide(self, X: Any) -> Floats:
        return self._evaluate(self._check_samples(X))


def dual_problem_of(
    classifier: KernelClassifier, X: Any, y: Any, threads: int = 1
) -> tuple[Callable[[], DualProblem], Kernel | None]:
    """Return a function that poses the problem which ``classifier.fit(X, y)`` solves, and the kernel if it has one.

    Each call makes a new matrix without cached values.
    """
    data, kernel = pairs_of(classifier, X, y)
    if len(data.classes) > 2:
        raise ValueError(
            f"the labels have {len(data.classes)} classes, which are several problems; "
            "choose one class against the rest, for example with y == label"
        )
    return lambda: pair_problem(classifier, data, kernel, (0, 1), threads), kernel


def pairs_of(classifier: KernelClassifier, X: Any, y: Any) -> tuple[LabelledData, Kernel | None]:
    """Return the data of a one-vs-one fit, validated, and its kernel, which is that of all samples."""
    classifier._check_parameters()
    data, _, weights = classifier._check_labelled_data(X, y, None)
    if classifier._strategy_name(data.classes) != "ovo":
        raise ValueError(
            f"multi_class={classifier.multi_class!r} is a different problem even for two classes; use multi_class='ovo'"
        )
    return data, classifier._make_kernel(data.X, weights)


def pair_problem(
    classifier: KernelClassifier, data: LabelledData, kernel: Kernel | None, pair: tuple[int, int], threads: int = 1
) -> DualProblem:
    """Return the problem of a pair of classes on `pair_rows`; the second class is the positive one."""
    rows = pair_rows(data, pair)
    signs = np.where(data.labels[rows] == pair[0], -1.0, 1.0)
    if kernel is None:
        matrix: SymmetricMatrix = PrecomputedMatrix(data.X if len(data.classes) == 2 else data.X[np.ix_(rows, rows)])
    else:
        points = Points.wrap(data.X)
        matrix = KernelMatrix(kernel, points if len(data.classes) == 2 else points.take(rows), threads)
    return classifier._two_class().pose(matrix, signs, data.costs[rows])


def pair_rows(data: LabelledData, pair: tuple[int, int]) -> Indices:
    """Return the samples of two classes, in the order of the data."""
    return np.flatnonzero(np.isin(data.labels, pair))
