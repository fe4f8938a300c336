"""Structured outputs: a margin to every other output, each as large as its loss (Tsochantaridis et al. 2005).

With a joint feature map ψ and differences φ_iŷ = ψ(x_i, y_i) − ψ(x_i, ŷ), primal (margin rescaling) and dual are

    minimise  P(w) = ½‖w‖² + Σ_i C_i H_i(w),       H_i(w) = max_ŷ (loss(y_i, ŷ) − w·φ_iŷ)
    maximise  D(α) = Σ_iŷ α_iŷ loss(y_i, ŷ) − ½‖Σ_iŷ α_iŷ φ_iŷ‖²,    α ≥ 0,  Σ_ŷ α_iŷ ≤ C_i

There is a dual variable for each sample and each output, of which few are positive: a `StructuredDual` lists those.
The maximum over all outputs is the user's, so the primal value is a bound if the maximiser is exact; a maximiser that
returns less than a known output has, those that are predicted included, is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from maxmargin._typing import Floats
from maxmargin.deadline import check_deadline
from maxmargin.matrices.numerics import inner
from maxmargin.precision import UNIT_ROUNDOFF
from maxmargin.problems.certificate import Certificate
from maxmargin.problems.objective_bounds import SAFETY

#: Differences of values of a maximiser that are rounding, relative to the magnitudes of their terms.
MAXIMISER_ROUNDING = 1e-9

#: Coefficients below this share of the cost of a sample are rounding, and do not count for the violation.
NEGLIGIBLE_SHARE = 1e-9


class StructureModel(Protocol):
    """What the problem needs of a model of structured outputs; see `maxmargin.models.JointModel`."""

    n_features: int

    def features(self, x: Any, y: Any) -> Floats:
        """Return ψ(x, y)."""
        ...

    def loss(self, y: Any, other: Any) -> float:
        """Return the loss of predicting `other` where `y` is right."""
        ...

    def predict(self, weights: Floats, x: Any) -> Any:
        """Return the output of the largest w·ψ(x, ŷ)."""
        ...

    def most_violated(self, weights: Floats, x: Any, y: Any) -> Any:
        """Return the output of the largest loss(y, ŷ) + w·ψ(x, ŷ)."""
        ...


@dataclass(frozen=True)
class Plane:
    """The constraint w·difference ≥ loss − slack of one sample for another output."""

    output: Any
    loss: float
    difference: Floats

    def slack(self, weights: Floats) -> float:
        """Return the slack that the constraint needs."""
        return self.loss - inner(self.difference, weights)

    def magnitude(self, weights: Floats) -> float:
        """Return the sum of the magnitudes of the terms of the slack."""
        return self.loss + inner(np.abs(self.difference), np.abs(weights))


@dataclass(frozen=True)
class StructuredDual:
    """The positive dual variables: for each sample the outputs and their coefficients."""

    outputs: Sequence[Sequence[Any]]
    coefficients: Sequence[Floats]


@dataclass(frozen=True)
class StructuredProblem:
    """Samples with structured outputs.

    Parameters
    ----------
    model : StructureModel
        Joint feature map, loss and maximiser.
    samples, outputs : sequences
    costs : float array
        The cost C_i of the slack of each sample.
    """

    model: StructureModel
    samples: Sequence[Any]
    outputs: Sequence[Any]
    costs: Floats

    @property
    def size(self) -> int:
        """The number of samples."""
        return len(self.samples)

    @property
    def width(self) -> int:
        """The number of joint features."""
        return self.model.n_features

    def plane(self, i: int, output: Any) -> Plane:
        """Return the constraint of sample `i` for another output."""
        x, y = self.samples[i], self.outputs[i]
        loss = float(self.model.loss(y, output))
        if not (np.isfinite(loss) and loss >= 0):
            raise ValueError(f"the loss of an output must be a finite number of at least 0, but loss() returned {loss}")
        return Plane(output, loss, self._features(x, y) - self._features(x, output))

    def worst_plane(self, i: int, weights: Floats) -> Plane:
        """Return the constraint of sample `i` that needs the largest slack."""
        return self.plane(i, self.model.most_violated(weights, self.samples[i], self.outputs[i]))

    def _features(self, x: Any, y: Any) -> Floats:
        features: Floats = np.asarray(self.model.features(x, y), dtype=np.float64)
        if features.shape != (self.width,):
            raise ValueError(
                f"features() must return an array of shape (n_features,) = ({self.width},), not {features.shape}"
            )
        if not np.isfinite(features).all():
            raise ValueError("features() returned NaN or infinity; check the samples for missing values")
        return features

    def weights_of(self, dual: StructuredDual) -> Floats:
        """Return w = Σ α φ."""
        return _DualSums.of(self, dual, None).weights

    def certify(self, dual: StructuredDual, weights: Floats | None = None) -> Certificate:
        """Return the certificate of a dual vector, and of other weights than its own if they are given.

        Slack and residual are by sample. All is computed from the outputs, with bounds on the rounding errors here, and
        as much for those of the maximiser.
        """
        sums = _DualSums.of(self, dual, weights)
        weights = sums.weights if weights is None else weights
        slack, magnitude = np.empty(self.size), np.empty(self.size)
        for i in range(self.size):
            check_deadline()
            predicted = self.plane(i, self.model.predict(weights, self.samples[i]))
            worst = check_maximiser(self.worst_plane(i, weights), predicted, weights)
            if (known := sums.worst[i]) is not None:
                worst = check_maximiser(worst, known, weights)
            slack[i], magnitude[i] = max(0.0, worst.slack(weights)), worst.magnitude(weights)
        unit = (self.width + self.size + 4) * UNIT_ROUNDOFF
        norm, own_norm = inner(weights, weights), inner(sums.weights, sums.weights)
        primal_error = SAFETY * unit * (0.5 * norm + 2.0 * inner(self.costs, magnitude))
        dual_error = SAFETY * (unit * 0.5 * own_norm + sums.loss_error + sums.norm_error)
        apart = weights - sums.weights
        residual = np.maximum(0.0, self.costs * slack - sums.shares)
        gap = float(residual.sum()) + 0.5 * inner(apart, apart) + primal_error + dual_error
        return Certificate(
            primal=0.5 * norm + inner(self.costs, slack) + primal_error,
            dual=sums.loss - 0.5 * own_norm - dual_error,
            gap=gap,
            rounding=primal_error + dual_error,
            violation=float(np.max(slack - sums.least, initial=0.0)),
            infeasibility=sums.infeasibility,
            squared_norm=norm,
            offset=np.zeros(0),
            offset_interval=np.zeros((0, 2)),
            slack=slack,
            residual=residual,
        )


@dataclass(frozen=True)
class _DualSums:
    """What a certificate needs of a dual vector.

    Attributes
    ----------
    weights : float array
        Σ α φ.
    loss : float
        Σ α loss.
    shares : float array
        Σ α (loss − w·φ) of each sample, with the weights of the model.
    worst : list
        The output of the largest slack of each sample, None if there is none.
    least : float array
        The least slack of the outputs of a sample whose coefficient is not negligible, the right one included.
    loss_error, norm_error : float
        Bounds on the rounding errors of `loss`, and of half the squared norm of Σ α φ due to those of the sum.
    infeasibility : float
    """

    weights: Floats
    loss: float
    shares: Floats
    worst: list[Plane | None]
    least: Floats
    loss_error: float
    norm_error: float
    infeasibility: float

    @classmethod
    def of(cls, problem: StructuredProblem, dual: StructuredDual, weights: Floats | None) -> _DualSums:
        planes = [[problem.plane(i, output) for output in outputs] for i, outputs in enumerate(dual.outputs)]
        own, absolute = np.zeros(problem.width), np.zeros(problem.width)
        loss, terms, infeasibility = 0.0, 0, 0.0
        for cost, of_sample, coefficients in zip(problem.costs, planes, dual.coefficients, strict=True):
            terms += len(of_sample)
            infeasibility = max(
                infeasibility, float(np.sum(coefficients)) - cost, -float(np.min(coefficients, initial=0))
            )
            for plane, coefficient in zip(of_sample, coefficients, strict=True):
                own += coefficient * plane.difference
                absolute += coefficient * np.abs(plane.difference)
                loss += coefficient * plane.loss
        weights = own if weights is None else weights
        error = (terms + 4) * UNIT_ROUNDOFF * absolute
        shares, least = np.zeros(problem.size), np.zeros(problem.size)
        worst: list[Plane | None] = []
        for i, (of_sample, coefficients) in enumerate(zip(planes, dual.coefficients, strict=True)):
            slack = np.array([plane.slack(weights) for plane in of_sample])
            shares[i] = inner(np.asarray(coefficients, dtype=np.float64), slack)
            worst.append(of_sample[int(slack.argmax())] if of_sample else None)
            negligible = NEGLIGIBLE_SHARE * problem.costs[i]
            full = float(np.sum(coefficients)) >= problem.costs[i] - negligible
            least[i] = slack[np.asarray(coefficients) > negligible].min(initial=np.inf if full else 0.0)
        norm_error = inner(np.abs(own), error) + 0.5 * inner(error, error)
        loss_error = (terms + 2) * UNIT_ROUNDOFF * loss
        return cls(own, float(loss), shares, worst, least, float(loss_error), norm_error, float(infeasibility))


def check_maximiser(found: Plane, known: Plane, weights: Floats) -> Plane:
    """Return the output of more slack; raise if a known one needs more than that of the maximiser, beyond rounding."""
    found_slack, known_slack = found.slack(weights), known.slack(weights)
    if found_slack >= known_slack:
        return found
    if found_slack < known_slack - MAXIMISER_ROUNDING * max(found.magnitude(weights), known.magnitude(weights)):
        raise ValueError(
            "most_violated() is not exact: the output it returned has loss + score "
            f"{found_slack:.6g} above the right one, a known output {known_slack:.6g}. It must return the output of "
            "the largest loss(y, other) + weights @ features(x, other)"
        )
    return known
