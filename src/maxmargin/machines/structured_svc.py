"""`StructuredSVC`: outputs with a structure, such as sequences and sets of labels."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from time import perf_counter
from typing import Any

import numpy as np

from maxmargin.machines.base import Machine
from maxmargin.machines.validation.callbacks import reporting
from maxmargin.machines.validation.parameters import check_choice, check_count, check_number
from maxmargin.machines.validation.samples import check_random_state
from maxmargin.machines.validation.training_data import check_costs, check_sample_weights
from maxmargin.problems.structured_problem import StructuredProblem
from maxmargin.solvers import StoppingRule
from maxmargin.solvers.structured import BlockCoordinateFrankWolfe, CuttingPlanes
from maxmargin.training.pipeline import Session
from maxmargin.training.structured import StructuredSolver, train_structured


class StructuredSVC(Machine):
    """Predict structured outputs: sequences, sets of labels, or outputs of a kind of your own.

    Minimise ½‖w‖² + C Σ_i max_ŷ (loss(y_i, ŷ) + w·ψ(x_i, ŷ) − w·ψ(x_i, y_i)): the score w·ψ of the right output shall
    exceed that of every other output by its loss (margin rescaling; Tsochantaridis, Joachims, Hofmann & Altun 2005).
    Joint features ψ, loss and the maximisation over outputs are those of a `maxmargin.models.JointModel`. scikit-learn
    has no counterpart.

    Parameters
    ----------
    model : JointModel
        Joint features, loss and maximiser: `maxmargin.models.ChainModel` for sequences of labels,
        `maxmargin.models.MultiLabelModel` for sets of labels, or an object of a class of your own that inherits
        from `maxmargin.models.JointModel`.
    C : float, default=1.0
        Cost of the slack of a sample.
    solver : str or solver object, default="frank_wolfe"
        The algorithm. "frank_wolfe": pairwise block-coordinate Frank–Wolfe steps on one sample at a time.
        "cutting_planes": the one-slack formulation, all samples at once; many more calls of the maximiser, less
        memory. Both reach the same optimum.
    tol : float, default=1e-3
        Tolerance on the relative duality gap: primal − dual ≤ tol · the larger of the two.
    max_iter : int, default=-1
        Limit on the passes over the samples, −1 for none.
    max_seconds : float, default=None
        Limit on the time of the whole fit. The model is then valid, and a warning says that it is not optimal.
    callback : callable, default=None
        Called with the progress (iteration, primal, dual, gap, seconds) up to ten times a second; returning True
        stops the fit with a valid model. It never changes the result otherwise. The gap between two passes is an
        estimate.
    verbose : bool, default=False
        Show a progress line on the terminal for fits longer than a second.
    random_state : int, RandomState or None, default=None
        Order of the samples with "frank_wolfe"; None is the same as 0.

    Attributes
    ----------
    coef_ : float array of shape (n_features,)
        The weights w of the joint features.
    model_ : JointModel
        The model, prepared for the training data.
    certificate_ : Certificate
        ``primal``, ``dual``, ``gap`` and ``violation`` of the solution; ``slack`` and ``residual`` of each sample.
        After a fit that a limit ended, it is computed when first read, by one pass over the samples. It rests on the
        exactness of the model's maximiser.
    status_ : Status
        How the solver ended; ``status_.value`` describes it.
    fit_status_ : int
        0 if the tolerance was reached, 1 otherwise.
    n_iter_ : int
        Passes over the samples with the maximiser.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import StructuredSVC
    >>> from maxmargin.models import ChainModel
    >>> X = [np.eye(2)[[0, 0, 1, 1]], np.eye(2)[[1, 0, 0]]] * 5
    >>> y = [["a", "a", "b", "b"], ["b", "a", "a"]] * 5
    >>> model = StructuredSVC(ChainModel(), C=10).fit(X, y)
    >>> model.predict([np.eye(2)[[0, 1]]])
    [array(['a', 'b'], dtype='<U1')]
    >>> model.certificate_.relative_gap < 1e-3
    True
    """

    _solvers = ("frank_wolfe", "cutting_planes")

    def __init__(
        self,
        model: Any,
        *,
        C: float = 1.0,
        solver: Any = "frank_wolfe",
        tol: float = 1e-3,
        max_iter: int = -1,
        max_seconds: float | None = None,
        callback: Any = None,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.C = C
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> StructuredSVC:
        """Train on samples `X` with structured outputs `y`.

        Parameters
        ----------
        X : sequence of samples
            Of the kind that the model takes.
        y : sequence of outputs
            One for each sample.
        sample_weight : array-like of shape (n_samples,), optional
            Factors on C; 0 leaves a sample out.

        Returns
        -------
        self
            The fitted estimator.
        """
        started = perf_counter()
        cost = check_number("C", self.C, above=0)
        solver = self._make_solver()
        max_seconds = None if self.max_seconds is None else check_number("max_seconds", self.max_seconds, least=0)
        X, y = check_structured(X, "X"), check_structured(y, "y")
        if len(X) != len(y):
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(X), len(y)]}")
        weights = check_sample_weights(sample_weight, np.empty(len(X)))
        used = np.flatnonzero(weights)
        X, y = [X[i] for i in used], [y[i] for i in used]
        model = deepcopy(self._check_model())
        model.prepare(X, y)
        problem = StructuredProblem(model, X, y, check_costs(cost, weights[used]))
        with reporting(self) as callback:
            trained = train_structured(problem, solver, Session.begin(callback, max_seconds, started))
        self._models_ = [trained]
        self.model_ = model
        self.coef_ = trained.weights
        self.n_iter_ = trained.counters.iterations
        self.fit_status_ = 0 if trained.status.converged else 1
        self._warn_if_unconverged(solver.stopping, "problems")
        return self

    def predict(self, X: Any) -> Any:
        """Return the output of the largest score for each sample: a list, or what the model collects them in."""
        self._check_fitted()
        return self.model_.collect([self.model_.predict(self.coef_, x) for x in check_structured(X, "X")])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return 1 − Σ loss / Σ largest loss of the predictions: for `ChainModel`, the fraction of right labels."""
        predicted, y = self.predict(X), check_structured(y, "y")
        if len(predicted) != len(y):
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(predicted), len(y)]}")
        weights = check_sample_weights(sample_weight, np.empty(len(y)))
        losses = [self.model_.loss(right, other) for right, other in zip(y, predicted, strict=True)]
        largest = [self.model_.largest_loss(right) for right in y]
        return 1.0 - float(weights @ losses) / float(weights @ largest)

    def _check_model(self) -> Any:
        methods = ("prepare", "features", "loss", "predict", "most_violated")
        missing = [name for name in methods if not callable(getattr(self.model, name, None))]
        if missing or isinstance(self.model, type):
            raise ValueError(
                f"model must be an object such as ChainModel(), or of a class that inherits from "
                f"maxmargin.models.JointModel, not {self.model!r}"
            )
        return self.model

    def _make_solver(self) -> StructuredSolver:
        if not isinstance(self.solver, str):
            self._check_solver(self.solver)
            solver: StructuredSolver = self.solver
            return solver
        name = check_choice("solver", self.solver, self._solvers)
        limit = check_count("max_iter", self.max_iter, -1)
        tolerance = check_number("tol", self.tol, above=0)
        rule = StoppingRule(relative_gap=tolerance, max_iterations=None if limit == -1 else limit)
        if name == "cutting_planes":
            return CuttingPlanes(rule)
        seed = 0 if self.random_state is None else int(check_random_state(self.random_state).randint(2**31))
        return BlockCoordinateFrankWolfe(rule, seed)

    def _describe(self, rule: StoppingRule, worst: Any, which: str) -> str:
        """Return the sentence about a fit that stopped before the tolerance, without a pass over the samples."""
        name = type(self).__name__
        return f"{name} stopped before the tolerance: {worst.status.value}. certificate_ computes how far it is"


def check_structured(values: Any, name: str) -> Sequence[Any]:
    """Return samples or outputs of any kind as a sequence, or raise."""
    if isinstance(values, str | bytes | dict) or not hasattr(values, "__len__") or not hasattr(values, "__getitem__"):
        raise ValueError(f"{name} must be a sequence such as a list, with one item for each sample, not {values!r}")
    if not len(values):
        raise ValueError(f"{name} is empty: at least one sample is needed")
    sequence: Sequence[Any] = values.to_numpy() if hasattr(values, "to_numpy") else values
    return sequence
