"""Classifiers with kernels: data are checked, a strategy trains machines, and attributes are read off them."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin

from maxmargin._typing import Floats, Indices
from maxmargin.estimators.calibration.cross_validation import warn_of_limit
from maxmargin.estimators.calibration.probabilities import PairwiseProbabilities
from maxmargin.estimators.kernel.kernel_estimator import KernelMachine
from maxmargin.estimators.multiclass.all_in_one import AllInOneStrategy
from maxmargin.estimators.multiclass.one_versus_one import PairStrategy
from maxmargin.estimators.multiclass.one_versus_rest import RestStrategy
from maxmargin.estimators.multiclass.small_problems import BoxFormulation
from maxmargin.estimators.multiclass.strategy import LabelledData, Strategy
from maxmargin.estimators.validation.callbacks import reporting
from maxmargin.estimators.validation.labels import lone_class, number_classes
from maxmargin.estimators.validation.parameters import check_choice, check_flag
from maxmargin.estimators.validation.weights import check_sample_weights, class_factors
from maxmargin.formulations import crammer_singer, weston_watkins
from maxmargin.formulations.formulation import Formulation
from maxmargin.kernels import Kernel
from maxmargin.kernels.points import rows_of
from maxmargin.matrices import SymmetricMatrix
from maxmargin.models import OneVsOneVote, OneVsRestArgmax
from maxmargin.problems import DualProblem, Status
from maxmargin.training import Machine, Solver

#: The names that ``multi_class`` knows.
STRATEGIES: dict[str, Strategy] = {
    "ovo": PairStrategy(),
    "ovr": RestStrategy(),
    "crammer_singer": AllInOneStrategy(crammer_singer),
    "weston_watkins": AllInOneStrategy(weston_watkins),
}


class KernelClassifier(PairwiseProbabilities, ClassifierMixin, KernelMachine):  # type: ignore[misc]  # no type hints
    """Base of the kernel classifiers. They say what one pair of classes is; strategies do the rest."""

    # Set by the constructors of the estimators.
    class_weight: Any
    decision_function_shape: Any
    break_ties: Any
    warm_start: Any
    callback: Any
    verbose: Any
    loss: Any
    fit_intercept: Any
    multi_class: Any = "ovo"  # of a classifier that does not ask

    @property
    def _formulation(self) -> Formulation:
        """How a solution is read."""
        raise NotImplementedError

    def _cost(self) -> float:
        """Return the cost of slack before weights; parameters of the formulation are checked here."""
        raise NotImplementedError

    def _pose(self, matrix: SymmetricMatrix, signs: Floats, costs: Floats) -> DualProblem:
        """Return the problem of two classes."""
        raise NotImplementedError

    def _lone_class(self, label: Any) -> str:
        """Return the sentence about data of a single class."""
        return lone_class(label)

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
        kernel = self._make_kernel(data.X, weights)
        name = self._name_strategy(data.classes)
        with reporting(self) as report:
            trained = STRATEGIES[name].train(self, data, kernel, report)
            self._keep(data, kernel, name, trained.machines)
            self.class_weight_ = factors
            ended = self._fit_sigmoids(trained, data, weights * factors[data.labels], report, started)
        self._speak_up(trained.solver.stopping.violation, self._strategy.each)
        warn_of_limit(self, ended, stacklevel=3)
        return self

    def _keep(self, data: LabelledData, kernel: Kernel | None, name: str, machines: list[Machine]) -> None:
        """Take over what was trained, if there is a solution."""
        if any(machine.status is Status.UNBOUNDED for machine in machines):
            raise ValueError(
                "the classes cannot be separated by this kernel, at least not with a margin above a millionth of the "
                "extent of the data, so there is no hard margin (C=inf) to find; use a finite C for a soft margin, "
                "another kernel, or scale the features if they differ much in size"
            )
        self.classes_ = data.classes
        self.shape_fit_ = data.X.shape
        self._kernel_ = kernel
        self._multi_class_ = name
        self._machines_ = machines
        self._collect(data)

    def decision_function(self, X: Any) -> Floats:
        """Return how far each sample is on the side of each class.

        Two classes: one value per sample, positive for ``classes_[1]``. More: one column per class ("ovr"), or one per
        pair of classes ("ovo", only if pairs were trained), positive for the first of the pair.
        """
        decisions = self._decide(X)
        if len(self.classes_) == 2:
            return decisions.ravel()
        if check_choice("decision_function_shape", self.decision_function_shape, ("ovr", "ovo")) == "ovo":
            self._strategy.check(self)
            return decisions
        return self._model().scores(decisions)

    def predict(self, X: Any) -> Any:
        """Return the class of each sample; with ``probability=True`` the one that is most probable."""
        ties = check_flag("break_ties", self.break_ties)
        if ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        if self._knows_probabilities:
            return self.classes_[np.argmax(self.predict_proba(X), axis=1)]
        decisions = self._decide(X)
        if len(self.classes_) == 2:
            winners = (decisions.ravel() >= 0).astype(np.intp)
        elif ties:
            winners = np.argmax(self._model().scores(decisions), axis=1)
        else:
            winners = self._model().predicted_class(decisions)
        return self.classes_[winners]

    @property
    def certificate_(self) -> Any:
        """What is proved about the solution: one certificate, or a list with one per machine."""
        return self._per_machine([machine.certificate for machine in self._trained("certificate_")])

    @property
    def geometry_(self) -> Any:
        """Support vectors, slacks and margin: one, or a list with one per machine."""
        return self._per_machine([machine.geometry for machine in self._trained("geometry_")])

    @property
    def status_(self) -> Any:
        """How the solver ended: one, or a list with one per machine."""
        return self._per_machine([machine.status for machine in self._trained("status_")])

    @property
    def coef_(self) -> Any:
        """The weight vector w of each decision function; only for a linear kernel."""
        self._check_fitted("coef_")
        if not self._is_linear:
            raise AttributeError("coef_ is only available with a linear kernel")
        weights = self._model().weights(self.support_vectors_)
        weights.flags.writeable = False
        return sparse.csr_matrix(weights) if sparse.issparse(self.support_vectors_) else weights

    # What happens inside.

    @property
    def _box_formulation(self) -> BoxFormulation | None:
        """The formulation, if small problems of it can be solved in one native call."""
        return None

    def _may_be_solved_at_once(self, solver: Solver) -> bool:
        """Whether nobody wants to choose the algorithm or to stop before the end."""
        rule = solver.stopping
        unlimited = rule.gap is None and rule.max_iterations is None and rule.max_seconds is None
        as_it_comes = isinstance(self.solver, str) and self.solver == "auto" and self.selection == "second_order"
        return as_it_comes and unlimited

    def _check_parameters(self) -> None:
        if self.probability != "deprecated":  # scikit-learn's default, which means False
            check_flag("probability", self.probability)
        check_flag("warm_start", self.warm_start)
        check_choice("decision_function_shape", self.decision_function_shape, ("ovr", "ovo"))
        STRATEGIES[check_choice("multi_class", self.multi_class, tuple(STRATEGIES))].check(self)

    def _name_strategy(self, classes: Any) -> str:
        """Return which strategy it is: one of two classes against the rest is a single pair."""
        return "ovo" if len(classes) == 2 and self.multi_class == "ovr" else str(self.multi_class)

    def _check_labelled_data(self, X: Any, y: Any, sample_weight: Any) -> tuple[LabelledData, Floats, Floats]:
        """Return the data, the factor of each class and the weight of each sample, all checked."""
        cost = self._cost()
        X, y = self._check_training_data(X, y)
        weights = check_sample_weights(sample_weight, X)
        numbered = number_classes(y, weights, self._lone_class)
        classes, labels, taking_part = numbered.classes, numbered.numbers, numbered.taking_part
        factors = class_factors(self.class_weight, classes, labels[taking_part], weights[taking_part])
        costs = self._costs(cost, factors, labels, weights)
        self._check_feasible(classes, [costs[rows] for rows in numbered.members])
        bounded = bool(np.isfinite(cost))
        return LabelledData(X, classes, labels, numbered.members, taking_part, costs, bounded), factors, weights

    def _costs(self, cost: float, factors: Floats, labels: Indices, weights: Floats) -> Floats:
        """Return the cost of slack of each sample: C times the factor of its class times its weight."""
        with np.errstate(over="ignore", invalid="ignore"):  # ∞ · 0 for rows that are left out
            costs: Floats = cost * factors[labels] * weights
        if np.isfinite(cost) and not np.isfinite(costs).all():
            raise ValueError("C times the weights is too large for a number; use C=inf for a hard margin")
        return costs

    def _starts(self, data: LabelledData, samples: list[Indices]) -> list[Floats] | None:
        """Return the previous solution as a start for the machine of each of `samples`, if there is one that fits."""
        machines: list[Machine] | None = getattr(self, "_machines_", None)
        if not self.warm_start or machines is None or self._multi_class_ != self._name_strategy(data.classes):
            return None
        if len(data.labels) != self.shape_fit_[0] or not np.array_equal(data.classes, self.classes_):
            return None
        starts = []
        for machine, rows in zip(machines, samples, strict=True):
            of_sample = machine.dual.reshape(len(machine.samples), -1)  # one variable each, or one for each class
            by_sample = np.zeros((len(data.labels), of_sample.shape[1]))
            by_sample[machine.samples] = of_sample
            starts.append(by_sample[rows].ravel())
        return starts

    def _collect(self, data: LabelledData) -> None:
        """Gather the machines into scikit-learn's arrays."""
        machines = self._machines_
        coefficients, self.intercept_ = self._strategy.lay_out(machines, data)
        in_use = np.asarray(coefficients.any(axis=0))
        support = [rows[in_use[rows]] for rows in data.members]
        order = np.concatenate(support)
        self.support_ = order.astype(np.int32)
        self.n_support_ = np.array([len(rows) for rows in support], dtype=np.int32)
        self.dual_coef_: Any = coefficients[:, order]
        self.support_vectors_ = np.empty((0, 0)) if self._kernel_ is None else rows_of(data.X, order)
        if sparse.issparse(data.X):
            self.dual_coef_ = sparse.csr_matrix(self.dual_coef_)
        self.n_iter_ = np.array([machine.counters.iterations for machine in machines], dtype=np.int32)
        self.fit_status_ = int(not all(machine.status.converged for machine in machines))

    @property
    def _strategy(self) -> Strategy:
        """How the classes were told apart in ``fit``."""
        return STRATEGIES[self._multi_class_]

    def _model(self) -> OneVsOneVote | OneVsRestArgmax:
        coefficients = self.dual_coef_.toarray() if sparse.issparse(self.dual_coef_) else self.dual_coef_
        return self._strategy.model(coefficients, self.intercept_, self.n_support_)

    def _decide(self, X: Any) -> Floats:
        X = self._check_samples(X)
        return self._model().decision_values(self._make_blocks(X), self._prediction_threads(X.shape[0]))

    @staticmethod
    def _per_machine(values: list[Any]) -> Any:
        return values[0] if len(values) == 1 else values
