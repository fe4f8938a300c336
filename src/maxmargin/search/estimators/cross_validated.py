"""Estimators that choose their parameters by cross-validation while they fit, as scikit-learn's RidgeCV does.

A fit searches a grid with the engine of `grid_search`, trains on all samples with the best parameters, and from then on
predicts with that model, `best_estimator_`, whose fitted attributes are those of the estimator as well. Names, scores,
ranks, ties (the first of the best) and failed trials are as in scikit-learn's `GridSearchCV`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.metaestimators import available_if

from maxmargin._typing import Floats
from maxmargin.blocks.row_blocks import is_blocks
from maxmargin.datasets.samples import checksum
from maxmargin.estimators.array_library import ArrayLibraryMixin
from maxmargin.machines.base import parameter_names
from maxmargin.machines.validation.device_arrays import following_samples, host_array
from maxmargin.machines.validation.parameters import check_count, check_number
from maxmargin.machines.validation.training_data import check_sample_weights
from maxmargin.search.cross_validated_search import TrialRunner
from maxmargin.search.estimators.gradient_choice import (
    BY_FEATURE,
    check_parameters,
    points_of,
    report_limits,
    search_by_gradient,
)
from maxmargin.search.estimators.scorers import Metadata, make_scorer, metric_of, route, score_name
from maxmargin.search.fold_scoring import SCORERS, FoldScorer, Scoring, Split
from maxmargin.search.gradient_search_result import GradientSearchResult
from maxmargin.search.grid import Point
from maxmargin.search.grid_search_result import COMPLETE, INTERRUPTED, STOPPED, GridSearchResult
from maxmargin.search.leave_one_out import LeaveOneOutScorer
from maxmargin.search.parameter_ranges import search_axes
from maxmargin.search.pruning import Pruning, check_prune
from maxmargin.search.search_results import best_index, cv_results, warn_about_scores
from maxmargin.search.trial_threads import StartJobs, TrialThreads
from maxmargin.storage.plain_state import PlainState

#: Parameters that are those of the search, not of the machine that is trained.
OF_THE_SEARCH = ("verbose", "callback", "max_seconds", "checkpoint")

#: The fraction of the time limit for the search if a model is trained afterwards.
SEARCH_FRACTION = 0.75

#: The value of `cv` that stands for leave-one-out cross-validation.
LEAVE_ONE_OUT = "loo"


def _has(name: str) -> Callable[[Any], bool]:
    """Return the check whether the machine has a method, and whether a model is trained after the search."""

    def check(estimator: Any) -> bool:
        if not estimator.refit:
            raise AttributeError(f"{name} needs a model, but refit=False: use best_params_, or set refit=True")
        getattr(estimator.__dict__.get("best_estimator_") or estimator._template(), name)
        return True

    return check


class CrossValidatedEstimator(ArrayLibraryMixin, PlainState, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no type hints
    """Base of the estimators that choose their parameters: search, choice, final fit, delegation to the final model."""

    #: The estimator that is trained, and the parameters that hold what is searched.
    _kind: Any
    _searched: tuple[str, ...]
    _default_scoring: str | None

    # Set by the constructors.
    cv: Any
    scoring: Any
    refit: Any
    refine: Any
    prune: Any
    error_score: Any
    return_train_score: Any
    verbose: Any
    callback: Any
    max_seconds: Any
    n_jobs: Any
    checkpoint: Any

    # Set by fit.
    best_estimator_: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Search for the best parameters, and train with them on all samples.

        Ctrl-C keeps what is known: ``cv_results_`` and, if a point of the grid is finished, ``best_params_``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With ``kernel="precomputed"``, the symmetric matrix of kernel values.
        y : array-like of shape (n_samples,)
            Labels, or targets.
        sample_weight : array-like of shape (n_samples,), optional
            Factors on the cost by sample, in training and in scores that take weights.
        **params
            ``groups`` for the splitter `cv`; with metadata routing, what splitter and scorer request.

        Returns
        -------
        self
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight, params)

    def _fit(self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any], start: StartJobs | None = None) -> Self:
        """Search and train; trials run where `start` starts them, by default in threads."""
        started = perf_counter()
        X, y, sample_weight = (host_array(self, array) for array in (X, y, sample_weight))
        self._check_search_parameters()
        template = self._template()
        if is_blocks(X):
            name = self._kind.__name__
            raise ValueError(
                f"{type(self).__name__} chooses parameters on samples in memory, not on blocks of rows: choose them on "
                f"some of the rows, then fit {name} with best_params_ on all"
            )
        samples, targets = self._check_data(template, X, y)
        weights = check_sample_weights(sample_weight, samples)
        self._check_labels(template, targets, weights)
        scoring = self._chosen_scoring(samples, targets)
        scorer = make_scorer(template, scoring)
        metadata = route(self, scorer, None if sample_weight is None else weights, params)
        data = self._fold_scorer(template, samples, targets, scoring, scorer, metadata)
        pruning = Pruning.of(data, self.prune)
        limit = None if self.max_seconds is None else check_number("max_seconds", self.max_seconds, least=0)
        seconds = None if limit is None else limit * (SEARCH_FRACTION if self.refit else 1.0)
        start = TrialThreads.starter(self.n_jobs) if start is None else start
        with (
            self._observer() as observer,
            TrialRunner(start, data, seconds, started, self.checkpoint, True, observer, pruning) as runner,
        ):
            result = self._search(runner, template, samples, targets, weights)
        self._set_search(result, data, scorer)
        self._report_limits(result)
        if self.refit:
            left = None if limit is None else max(0.0, started + limit - perf_counter())
            self._refit(X, targets, sample_weight, left)
        if self.checkpoint is not None and result.status == COMPLETE:
            Path(self.checkpoint).unlink()
        return self

    def _search(self, runner: TrialRunner, template: Any, X: Any, targets: Any, weights: Floats) -> GridSearchResult:
        """Return the scores of the points of the grid and of its refinements, or of those found by gradients."""
        if self._by_gradient:
            return runner.run(runner.initial_result(), self._gradient_points(runner, template, weights))
        values = {name: getattr(self, name) for name in self._searched}
        return runner.search(search_axes(template, values, X, self._units(targets), weights), self.refine)

    # Before the search.

    def _template(self) -> Any:
        """Return the estimator that is trained, without the parameters that are searched for."""
        own = {name: value for name, value in self.get_params(deep=False).items() if name not in OF_THE_SEARCH}
        return self._kind(**{name: own[name] for name in parameter_names(self._kind) if name in own})

    def _check_search_parameters(self) -> None:
        check_count("refine", self.refine, 0)
        if self._by_gradient:
            check_parameters(self)
        if not isinstance(self.refit, bool | np.bool_ | str) and not callable(self.refit):
            raise ValueError(f"refit must be True, False, the name of a metric or a function, not {self.refit!r}")
        number = isinstance(self.error_score, int | float) and not isinstance(self.error_score, bool)
        if not number and not (isinstance(self.error_score, str) and self.error_score == "raise"):
            raise ValueError(f"error_score must be 'raise' or a number, not {self.error_score!r}")
        if check_prune(self.prune) and callable(self.refit):
            raise ValueError(
                "prune=True keeps the best mean score only; a function refit needs all of them: prune=False"
            )
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback must be a function of one argument, the result so far, not {self.callback!r}")
        if isinstance(self.cv, str) and self.cv != LEAVE_ONE_OUT:
            raise ValueError(f"cv must be a number of folds, a splitter, splits, or 'loo', not {self.cv!r}")
        if isinstance(self.cv, str) and self.return_train_score:
            raise ValueError(
                "cv='loo' has no train scores: every sample is a test sample; use return_train_score=False"
            )

    def _check_data(self, template: Any, X: Any, y: Any) -> tuple[Any, Any]:
        """Return validated samples, and labels or targets."""
        raise NotImplementedError

    def _check_labels(self, template: Any, y: Any, weights: Floats) -> None:
        """Raise if labels are not those of at least two classes."""

    def _units(self, targets: Any) -> Any:
        """Return the targets whose deviation is the unit of C and ε; None if there is none."""
        return None

    def _is_stratified(self, y: Any) -> bool:
        """Whether folds have the same proportions of labels."""
        return False

    def _chosen_scoring(self, X: Any, y: Any) -> Any:
        """Return what points are scored with: `scoring`, or the default."""
        return self._default_scoring if self.scoring is None else self.scoring

    def _fold_scorer(self, template: Any, X: Any, y: Any, wanted: Any, scorer: Any, metadata: Metadata) -> FoldScorer:
        """Return the data of the trials."""
        quick = SCORERS.get(wanted) if isinstance(wanted, str) and not metadata.routed else None
        metric, train = metric_of(scorer, self.refit), bool(self.return_train_score)
        scoring = Scoring(score_name(wanted), quick or scorer, metric, metadata.score, train)
        splits = self._splits(X, y, metadata)
        kind = LeaveOneOutScorer if isinstance(self.cv, str) else FoldScorer
        described = {
            "folds": len(splits),
            "splits": checksum(*(part for split in splits for part in split if part is not None)),
            "train_scores": train,
        }
        error_score = None if self.error_score == "raise" else float(self.error_score)
        trained = clone(template)
        if isinstance(wanted, str) and hasattr(trained, "noise"):
            trained.noise = False  # the predictions are the same, and take half the time
        return kind(trained, X, y, splits, scoring, described, metadata.fit, error_score)

    def _splits(self, X: Any, y: Any, metadata: Metadata) -> tuple[Split, ...]:
        """Return the splits into training and test samples."""
        samples = X.shape[0]
        if isinstance(self.cv, str):
            every = np.arange(samples)
            return (Split(every, every),)
        splitter = check_cv(self.cv, y, classifier=self._is_stratified(y))
        found = splitter.split(X, y, **metadata.split)
        splits = tuple(Split.of(train, test, samples) for train, test in found)
        if not splits:
            raise ValueError(f"cv={self.cv!r} yields no splits into training and test samples")
        return splits

    @property
    def _by_gradient(self) -> bool:
        """Whether parameters are chosen by gradients, not from a grid."""
        gammas = getattr(self, "gammas", None)
        return isinstance(gammas, str) and gammas == BY_FEATURE

    def _gradient_points(self, runner: TrialRunner, template: Any, weights: Floats) -> tuple[Point, ...]:
        """Return the points that a search by gradients has found."""
        names = [str(name) for name in getattr(template, "feature_names_in_", ())]
        options = getattr(self, "random_state", None), runner.deadline.seconds_left(), self.n_jobs, runner.callback
        found = search_by_gradient(runner.scorer, weights, names, *options)
        self.gradient_search_ = found
        report_limits(found, type(self).__name__)
        return points_of(found)

    @contextmanager
    def _observer(self) -> Iterator[Callable[[Any], object] | None]:
        """Yield what is called after every trial: the progress line and the callback of the user."""
        if not self.verbose:
            yield self.callback
            return
        from maxmargin.search.search_progress import SearchProgress  # loads rich

        line, callback = SearchProgress(), self.callback

        def observe(result: GridSearchResult | GradientSearchResult) -> object:
            line(result)
            return None if callback is None else callback(result)

        try:
            yield observe
        finally:
            line.close()

    # After the search.

    def _set_search(self, result: GridSearchResult, data: FoldScorer, scorer: Any) -> None:
        """Set what the search has found, or raise if nothing is known."""
        finished = [trial for trials in result.by_point.values() for trial in trials.values()]
        if finished and all(trial.error is not None for trial in finished):
            first = finished[0]  # the exception itself says most: raise it
            replace(data, error_score=None).trial(data.estimator_for_job(1, data.cache_bytes(), None), *first[:2])
        metrics = [name[len("test_") :] for trial in finished[:1] for name in trial.scores if name.startswith("test_")]
        multimetric = metrics not in ([], ["score"])
        if multimetric and self.refit and not callable(self.refit) and self.refit not in metrics:
            raise ValueError(
                f"with several metrics, refit must name the one that chooses the parameters, one of {metrics}, or be a "
                f"function, or False; not {self.refit!r}"
            )
        for attribute in ("best_estimator_", "best_index_", "best_score_", "best_params_", "refit_time_"):
            self.__dict__.pop(attribute, None)  # of an earlier fit
        self.search_, self.cv_results_, self.n_splits_ = result, cv_results(result), result.folds
        self.scorer_ = dict(scorer._scorers) if hasattr(scorer, "_scorers") else scorer
        self.multimetric_ = multimetric
        if result.scores and (self.refit or not multimetric):
            self._choose(str(self.refit) if multimetric and not callable(self.refit) else "score")

    def _choose(self, metric: str) -> None:
        """Set the best point of the grid by a metric, or by the function `refit` of the user."""
        self.best_index_ = best_index(self.cv_results_, self.refit, metric)
        if not callable(self.refit):
            self.best_score_ = self.cv_results_[f"mean_test_{metric}"][self.best_index_]
        best = self.cv_results_["params"][self.best_index_]
        self.best_params_ = {
            name: np.array(value) if isinstance(value, tuple) else value for name, value in best.items()
        }

    def _report_limits(self, result: GridSearchResult) -> None:
        """Raise after Ctrl-C, warn if a limit ended the search."""
        name, known = type(self).__name__, f"{len(result.scores):,} of {len(result.points):,} points are scored"
        if result.status == INTERRUPTED:
            raise KeyboardInterrupt(f"{name} was interrupted: {known}, see cv_results_; no model was trained")
        if not result.scores:
            raise ValueError(
                f"{name} found no parameters: {result.status} before all splits of a point of the grid were scored "
                f"({len(result.trials):,} of {len(result.points) * result.folds:,} trials); give it more time "
                "(max_seconds), or search a smaller grid"
            )
        warn_about_scores(result, name)
        if result.status != COMPLETE:
            cause = "the callback asked to stop" if result.status == STOPPED else "max_seconds was reached"
            warnings.warn(
                f"{name} stopped the search because {cause}: {known}, and the best of these is used",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _refit(self, X: Any, y: Any, sample_weight: Any, seconds: float | None) -> None:
        """Train with the best parameters on all samples."""
        model = self._template().set_params(**self.best_params_, max_seconds=seconds)
        begin = perf_counter()
        try:
            model.fit(X, y, sample_weight=sample_weight)
        finally:  # an interrupted fit leaves a model, too
            if model.__sklearn_is_fitted__():
                self.best_estimator_ = model.set_params(max_seconds=None)
                self.refit_time_ = perf_counter() - begin

    # The fitted estimator.

    def __sklearn_is_fitted__(self) -> bool:
        return "cv_results_" in self.__dict__

    def __getattr__(self, name: str) -> Any:
        """Return a fitted attribute of the final model, such as ``certificate_`` or ``support_vectors_``."""
        model = self.__dict__.get("best_estimator_")
        if model is None or not name.endswith("_") or name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(model, name)

    def __sklearn_tags__(self) -> Any:
        return get_tags(self._template())

    def get_metadata_routing(self) -> MetadataRouter:
        """Return how metadata are routed: weights to the fit, groups to the splitter, and what the scorer requests."""
        scoring = self._default_scoring if self.scoring is None else self.scoring
        scorer = None if scoring is None else make_scorer(self._template(), scoring)
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        mapping = MethodMapping().add(caller="fit", callee="score").add(caller="score", callee="score")
        return router.add(scorer=scorer, method_mapping=mapping)

    def _final_model(self) -> Any:
        if "best_estimator_" not in self.__dict__:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments before "
                "using this estimator."
            )
        return self.best_estimator_

    @available_if(_has("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Any:
        """Return what the model with the best parameters predicts."""
        return self._final_model().predict(X)

    @available_if(_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """Return the decision values of the model with the best parameters."""
        return self._final_model().decision_function(X)

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the model with the best parameters; needs ``probability=True``."""
        return self._final_model().predict_proba(X)

    @available_if(_has("predict_log_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities."""
        return self._final_model().predict_log_proba(X)

    @available_if(_has("score_samples"))  # type: ignore[untyped-decorator]
    def score_samples(self, X: Any) -> Any:
        """Return the decision values without the offset, of a novelty detector."""
        return self._final_model().score_samples(X)

    @available_if(_has("predict_interval"))  # type: ignore[untyped-decorator]
    def predict_interval(self, X: Any, *arguments: Any, **named: Any) -> Any:
        """Return intervals of the targets; needs ``noise=True``."""
        return self._final_model().predict_interval(X, *arguments, **named)

    @following_samples
    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> float:
        """Return the score that chose the parameters, of the final model on other samples."""
        model = self._final_model()
        scorer = self.scorer_[self.refit] if isinstance(self.scorer_, dict) else self.scorer_
        arguments = route(self, scorer, sample_weight, params, "score").score
        found = scorer(model, X, y, **arguments)
        return float(found[self.refit] if isinstance(found, dict) else found)
