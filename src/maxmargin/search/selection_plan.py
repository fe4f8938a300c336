"""What a model selection tries, and on how many samples: decided from the summary of the data, before any fit.

- Many features with few nonzeros (text): linear models are as accurate as kernel models and much faster.
- Up to 100,000 samples: the Gaussian kernel, unless a linear model reaches the same cross-validation score.
- Regression with the Gaussian kernel: three machines, with an ε-insensitive, a ν-insensitive and a squared loss.
- Imbalanced classes, or a score such as F1: class weights and a threshold of the decision values.
- More samples: for classification the same kernel, approximated by landmarks (`KernelApproximationSVC`); for regression
  a linear model.

C and γ are searched on a subset of large data, and the best points are scored again on a larger one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from maxmargin.estimators import SVC, SVR, LinearSVC, LinearSVR
from maxmargin.search.class_weighting import Weighting, weighting_for
from maxmargin.search.data_summary import DataSummary
from maxmargin.search.grid import powers

#: Data with more features than this and a smaller fraction of nonzeros are treated as text.
MIN_TEXT_FEATURES, MAX_TEXT_DENSITY = 1000, 0.05

#: Limit on the samples for an exact kernel estimator.
MAX_EXACT_SAMPLES = 100_000

#: Sizes of the subsets: for the search, for the search in one-vs-one training (whose problems are small), for the
#: search of a linear model alone, and for the confirmation. Data of up to `WHOLE_RATIO` times the size are not reduced.
SEARCH_SAMPLES, SEARCH_SAMPLES_ONE_VS_ONE, SEARCH_SAMPLES_LINEAR, CONFIRMATION_SAMPLES = 4_000, 2_500, 50_000, 16_000
WHOLE_RATIO = 1.5

#: ε of a regression, in standard deviations of the targets.
RELATIVE_EPSILON = 0.1

#: Grids: from, to, ratio. γ is relative to `typical_gamma`, C of a regression to the deviation of the targets.
C_RANGE = (2.0**-5, 2.0**11, 16.0)
REGRESSION_C_RANGE = (2.0**-5, 2.0**7, 16.0)
LINEAR_C_RANGE = (2.0**-11, 2.0**9, 16.0)
GAMMA_RANGE = (2.0**-8, 2.0**4, 16.0)


class Candidate(NamedTuple):
    """An estimator, values of C, and values of γ relative to the typical one (None: no γ)."""

    estimator: Any
    Cs: tuple[float, ...]
    relative_gammas: tuple[float, ...] | None


@dataclass(frozen=True)
class SelectionPlan:
    """What a model selection tries.

    Attributes
    ----------
    linear : Candidate
    kernel : Candidate or None
        None where a linear model alone is tried.
    search_samples, confirmation_samples : int
        Samples on which parameters are searched, and on which the best points are scored again if those are not all.
    landmarks : bool
        Whether a kernel is approximated by landmarks in the final fit, because there are too many samples.
    weighting : Weighting
        The score, and whether class weights and thresholds are considered.
    reasons : tuple of str
        Why, in sentences.
    """

    linear: Candidate
    kernel: Candidate | None
    search_samples: int
    confirmation_samples: int
    landmarks: bool
    weighting: Weighting
    reasons: tuple[str, ...]


def plan_selection(summary: DataSummary, scoring: Any = None) -> SelectionPlan:
    """Return the plan for data with this summary, and for the score that is asked for."""
    linear, kernel, reasons = _candidates(summary)
    weighting = weighting_for(summary, scoring)
    if weighting.considered:
        reasons = (weighting.reason, *reasons)
        for candidate in (linear, kernel):
            if candidate is not None:
                candidate.estimator.set_params(class_weight="balanced")
    searched = _subset_size(summary.rows, _search_samples(summary, kernel))
    confirmed = _subset_size(summary.rows, max(CONFIRMATION_SAMPLES, 4 * searched))
    landmarks = kernel is not None and summary.rows > MAX_EXACT_SAMPLES
    return SelectionPlan(linear, kernel, searched, confirmed, landmarks, weighting, reasons)


def _search_samples(summary: DataSummary, kernel: Candidate | None) -> int:
    if kernel is None:
        return SEARCH_SAMPLES_LINEAR
    several_classes = summary.classes is not None and len(summary.classes) > 2
    return SEARCH_SAMPLES_ONE_VS_ONE if several_classes else SEARCH_SAMPLES


def _subset_size(rows: int, count: int) -> int:
    """Return `count`, or the number of rows if there are not many more."""
    return rows if rows <= WHOLE_RATIO * count else count


def _candidates(summary: DataSummary) -> tuple[Candidate, Candidate | None, tuple[str, ...]]:
    """Return a linear estimator, a kernel estimator where that makes sense, and why."""
    linear_costs, widths = powers(*LINEAR_C_RANGE), powers(*GAMMA_RANGE)
    costs = powers(*(C_RANGE if summary.classes is not None else REGRESSION_C_RANGE))
    reasons: list[str] = []
    linear: Any
    kernel: Any
    if summary.classes is not None:
        linear, kernel = LinearSVC(), SVC()
    else:
        scale = summary.target_std or 1.0
        linear, kernel = LinearSVR(epsilon=RELATIVE_EPSILON * scale), SVR(epsilon=RELATIVE_EPSILON * scale)
        # The same trade-off whatever the unit of the targets.
        linear_costs, costs = (tuple(cost * scale for cost in values) for values in (linear_costs, costs))
        reasons.append(f"epsilon is {RELATIVE_EPSILON:g} standard deviations of the targets")
    candidate = Candidate(linear, linear_costs, None)
    if summary.columns > MIN_TEXT_FEATURES and summary.density < MAX_TEXT_DENSITY:
        nonzeros = summary.density * summary.columns
        reasons.append(f"a linear model: {summary.columns:,} features, of which {nonzeros:.0f} per sample are nonzero")
        return candidate, None, tuple(reasons)
    if summary.classes is None and summary.rows > MAX_EXACT_SAMPLES:
        reasons.append(f"a linear model: {summary.rows:,} samples are too many for a regression with a kernel")
        return candidate, None, tuple(reasons)
    return candidate, Candidate(kernel, costs, widths), tuple(reasons)
