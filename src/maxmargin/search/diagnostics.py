"""What held-out samples say about a chosen estimator, by the functions of scikit-learn.

Cross-validation gives predictions for all samples by models that were trained without them. From these come the
confusion matrix, the calibration of probabilities, the coverage of intervals and the samples that are hardest to
predict. The learning curve says whether more data would help, permutation importance which columns matter.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.calibration import calibration_curve
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.inspection import permutation_importance
from sklearn.metrics import brier_score_loss, confusion_matrix, mean_pinball_loss
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict, cross_validate, learning_curve

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.estimators import QuantileSVR
from maxmargin.search.fold_scoring import draw_subset

#: The most samples on which the chosen estimator is diagnosed.
MAX_SAMPLES = 4_000

#: Fractions of the training samples of the learning curve.
LEARNING_FRACTIONS = (0.1, 0.25, 0.5, 0.75, 1.0)

#: The gain in score from the last quarter of the samples, in standard deviations of a fold, from which on more help.
MIN_GAIN = 0.5

#: Columns of samples up to which their importance is computed, repetitions of each, and samples that are permuted.
MAX_COLUMNS, REPEATS, MAX_PERMUTED = 100, 5, 1_000

#: Coverage of prediction intervals.
COVERAGE = 0.9

#: Values of C of the quantile regressions, as multiples of that of the estimator.
QUANTILE_COSTS = (2.0**-8, 2.0**-4, 1.0)

#: Samples of a class from which on anything can be said about it, by folds that all have some.
MIN_CLASS_SAMPLES = 4

#: Listed samples that are hardest to predict.
HARDEST = 10

#: Times that the steps take, in cross-validations of the estimator.
COSTS = {"held-out predictions": 6.0, "learning curve": 3.0, "importance": 1.0, "quantile intervals": 16.0}


@dataclass
class Diagnostics:
    """What held-out samples say; None for what was not computed, for which `skipped` says why.

    Attributes
    ----------
    rows : int array
        The samples that were held out, of all.
    predicted : array or None
        Held-out predictions for them.
    doubt : float array or None
        Negative distance of decision values from the threshold, or between the two best classes; the absolute error of
        a regression.
    confusion : int array or None
        Held-out confusion matrix; rows are true classes.
    calibration : tuple or None
        Mean predicted probability and observed frequency of the second of two classes in bins, and the Brier score.
    intervals : dict of str to tuple
        Held-out coverage and mean width of prediction intervals by the machine that gives them.
    learning : tuple or None
        Numbers of samples, and mean and standard deviation of scores on training and on held-out samples.
    importance : tuple or None
        Mean and standard deviation of the loss in score when a column is permuted.
    scoring : str
    skipped : list of str
    """

    rows: Indices
    scoring: str
    predicted: Any = None
    doubt: Any = None
    confusion: Any = None
    calibration: tuple[Floats, Floats, float] | None = None
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    learning: tuple[Floats, ...] | None = None
    importance: tuple[Floats, Floats] | None = None
    skipped: list[str] = field(default_factory=list)

    @property
    def hardest(self) -> Indices:
        """Places in `rows` of the samples that are hardest to predict."""
        found: Indices = np.argsort(-self.doubt, kind="stable")[:HARDEST]
        return found

    @property
    def more_data(self) -> str:
        """Whether more data would help, in a sentence."""
        if self.learning is None:
            return ""
        sizes, _, _, means, stds = self.learning
        gain = means[-1] - means[-2]
        shown = f"from {int(sizes[-2]):,} to {int(sizes[-1]):,} samples the score rises by {gain:.3g}"
        if gain > MIN_GAIN * stds[-1] / np.sqrt(2):
            return f"more data would help: {shown}"
        return f"more data of this kind would hardly help: {shown.replace('rises', 'changes')}"


def diagnose(
    X: Any,
    y: Any,
    estimator: Any,
    *,
    classification: bool,
    scoring: Any = None,
    threshold: float | None = None,
    folds: int = 5,
    seed: int = 0,
    max_seconds: float = np.inf,
    fold_seconds: float = 0.0,
    columns: Any = None,
    with_columns: Callable[[Any], Any] | None = None,
) -> Diagnostics:
    """Return what held-out samples say about an estimator.

    Parameters
    ----------
    X, y : arrays
        The features that the estimator takes.
    estimator : estimator
        Not modified.
    classification : bool
    scoring : str or callable, optional
    threshold : float, optional
        Decision value from which on the second of two classes is predicted.
    folds, seed : int
    max_seconds : float
        Steps that are expected to take longer than what is left are skipped.
    fold_seconds : float
        Seconds of a fit of one fold.
    columns : array of shape (n_samples, n_columns), optional
        The columns that are permuted; X by default.
    with_columns : callable, optional
        Returns, for a fitted estimator, a model that predicts from the columns.

    Examples
    --------
    >>> from maxmargin import SVC
    >>> from maxmargin.datasets import bananas
    >>> from maxmargin.search.diagnostics import diagnose
    >>> found = diagnose(*bananas(200), SVC(), classification=True)
    >>> found.confusion.sum(), len(found.hardest)
    (np.int64(200), 10)
    """
    rows = draw_subset(y, MAX_SAMPLES, seed, classification)
    kind = StratifiedKFold if classification else KFold
    scoring = scoring or ("accuracy" if classification else "r2")
    name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
    found = Diagnostics(rows, name)
    least = int(np.unique(np.asarray(y)[rows], return_counts=True)[1].min()) if classification else len(rows)
    if least < MIN_CLASS_SAMPLES:
        found.skipped.append(f"held-out predictions and the rest: a class has fewer than {MIN_CLASS_SAMPLES} samples")
        return found
    folds = min(folds, least)
    work = _Work(
        X[rows], np.asarray(y)[rows], estimator, kind(folds, shuffle=True, random_state=seed), scoring, threshold, found
    )
    values = work.X if columns is None else columns[rows]
    steps: dict[str, Callable[[], None]] = {
        "held-out predictions": work.classify if classification else work.predict,
        "learning curve": work.learn,
        "importance": lambda: work.permute(values, with_columns, seed),
    }
    if not classification:
        steps["quantile intervals"] = work.quantiles
    began = perf_counter()
    for step, compute in steps.items():
        left = max_seconds - (perf_counter() - began)
        if COSTS[step] * folds * fold_seconds > left or left <= 0:
            found.skipped.append(f"{step}: no time was left (--max-seconds)")
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of a fit; the final one reports its own
            warnings.simplefilter("ignore", FitFailedWarning)  # of few samples of the learning curve, of one class
            compute()
    return found


@dataclass
class _Work:
    """The samples and the estimator, and what was found so far."""

    X: Any
    y: Any
    estimator: Any
    cv: Any
    scoring: Any
    threshold: float | None
    found: Diagnostics
    models: list[Any] = field(default_factory=list)
    tests: list[Indices] = field(default_factory=list)

    def _fit_folds(self, **parameters: Any) -> None:
        known = self.estimator.get_params()
        model = clone(self.estimator).set_params(**{k: v for k, v in parameters.items() if k in known})
        result = cross_validate(
            model, self.X, self.y, cv=self.cv, scoring=_no_score, return_estimator=True, return_indices=True
        )
        self.models, self.tests = result["estimator"], result["indices"]["test"]

    def _joined(self, values_of: Callable[[Any, Any], Any]) -> Any:
        """Return held-out values of all samples in their order."""
        parts = [values_of(model, self.X[test]) for model, test in zip(self.models, self.tests, strict=True)]
        order = np.argsort(np.concatenate(self.tests))
        return np.concatenate(parts)[order]

    def classify(self) -> None:
        """Find the confusion matrix, the calibration and the samples near the threshold."""
        classes = np.unique(self.y)
        self._fit_folds(probability=len(classes) == 2)
        decisions = self._joined(lambda model, X: model.decision_function(X))
        if len(classes) == 2:
            threshold = self.threshold or 0.0
            self.found.predicted = classes[(decisions >= threshold).astype(int)]
            self.found.doubt = -np.abs(decisions - threshold)
            if hasattr(self.models[0], "predict_proba"):
                likely = self._joined(lambda model, X: model.predict_proba(X))[:, 1]
                positive = self.y == classes[1]
                observed, predicted = calibration_curve(positive, likely, n_bins=10, strategy="quantile")
                self.found.calibration = predicted, observed, float(brier_score_loss(positive, likely))
        else:
            self.found.predicted = self._joined(lambda model, X: model.predict(X))
            if decisions.ndim == 2 and decisions.shape[1] == len(classes):
                ordered = np.sort(decisions, axis=1)
                self.found.doubt = ordered[:, -2] - ordered[:, -1]
        self.found.confusion = confusion_matrix(self.y, self.found.predicted, labels=classes)

    def predict(self) -> None:
        """Find held-out predictions, and the coverage of the intervals of the noise model."""
        self._fit_folds(noise=True)
        self.found.predicted = self._joined(lambda model, X: model.predict(X))
        self.found.doubt = np.abs(self.y - self.found.predicted)
        if hasattr(self.models[0], "noise_scale_"):
            ends = self._joined(lambda model, X: model.predict_interval(X, COVERAGE))
            self.found.intervals[f"{type(self.estimator).__name__} with a noise model"] = self._coverage(ends)

    def quantiles(self) -> None:
        """Find the coverage of the intervals between two quantile regressions with the same kernel, and the best C."""
        parameters = self.estimator.get_params()
        if "gamma" not in parameters:
            return
        ends = []
        for quantile in ((1 - COVERAGE) / 2, (1 + COVERAGE) / 2):
            tried = []
            for factor in QUANTILE_COSTS:
                model = QuantileSVR(quantile=quantile, C=factor * parameters["C"], gamma=parameters["gamma"])
                predicted = cross_val_predict(model, self.X, self.y, cv=self.cv)
                tried.append((mean_pinball_loss(self.y, predicted, alpha=quantile), predicted))
            ends.append(min(tried, key=lambda one: one[0])[1])
        self.found.intervals["QuantileSVR"] = self._coverage(np.sort(np.column_stack(ends), axis=1))

    def _coverage(self, ends: Floats) -> tuple[float, float]:
        inside = (ends[:, 0] <= self.y) & (self.y <= ends[:, 1])
        return float(inside.mean()), float((ends[:, 1] - ends[:, 0]).mean())

    def learn(self) -> None:
        """Find the learning curve."""
        sizes, train, test = learning_curve(
            self.estimator, self.X, self.y, cv=self.cv, scoring=self.scoring, train_sizes=LEARNING_FRACTIONS,
            shuffle=True, random_state=0, error_score=np.nan,
        )  # fmt: skip
        means = train.mean(axis=1), train.std(axis=1), test.mean(axis=1), test.std(axis=1)
        known = np.isfinite(means[2])
        if known.sum() >= 2:
            self.found.learning = tuple(values[known] for values in (sizes, *means))

    def permute(self, columns: Any, with_columns: Callable[[Any], Any] | None, seed: int) -> None:
        """Find what is lost when a column of held-out samples is permuted."""
        if sparse.issparse(columns) or columns.shape[1] > MAX_COLUMNS:
            self.found.skipped.append(f"importance: for up to {MAX_COLUMNS} columns of dense data")
            return
        if not self.models:
            return
        model, test = self.models[0], self.tests[0][:MAX_PERMUTED]
        result = permutation_importance(
            model if with_columns is None else with_columns(model), columns[test], self.y[test],
            scoring=self.scoring, n_repeats=REPEATS, random_state=seed,
        )  # fmt: skip
        self.found.importance = result.importances_mean, result.importances_std


def _no_score(model: Any, X: Any, y: Any) -> float:
    """Stand for a score: only the fitted models are needed."""
    return 0.0
