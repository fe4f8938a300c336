"""The problem and the point behind each certificate: what the functions that compute certificates were called with.

A fitted model keeps its dual vector, but not always the problem (linear models) and not all of the primal point (the
weights of a penalised intercept). Inside `recorded_certificates()` the arguments of every certificate are kept, those
of certificates that are computed in native code included.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import maxmargin.comparison  # all modules that certify must be loaded before they are patched
import maxmargin.estimators  # noqa: F401
from maxmargin.problems import Certificate, DualProblem
from maxmargin.problems.certificate import certify
from maxmargin.problems.l1_certificate import certify_l1
from maxmargin.training.linear_certificate import certify_many
from maxmargin.training.small_linear_problems import AscentFit, NewtonFit, RidgedNewtonFit


@dataclass(frozen=True)
class CertifiedPoint:
    """A dual problem, a point, and the certificate of that point.

    Attributes
    ----------
    problem : DualProblem
    dual : float array
    weights : float array or None
        The weights of a primal solver; None where the weights are Σ b_i Φ(x_i).
    certificate : Certificate
    l1_penalty : bool
        Whether the penalty is Σ |w_j| in place of ½‖w‖².
    """

    problem: DualProblem
    dual: Any
    weights: Any
    certificate: Certificate
    l1_penalty: bool


class Records:
    """The certificates computed so far, with their points."""

    def __init__(self) -> None:
        self.points: list[CertifiedPoint] = []

    def of(self, estimator: Any) -> list[CertifiedPoint]:
        """Return the point of every certificate of a fitted estimator; reading them computes them."""
        certificates = estimator.certificate_
        certificates = certificates if isinstance(certificates, list) else [certificates]
        return [self._of(certificate) for certificate in certificates]

    def _of(self, certificate: Certificate) -> CertifiedPoint:
        """Return the point of a certificate, or of the one that it was derived from with another primal point."""
        for point in reversed(self.points):
            if point.certificate is certificate:
                return point
        for point in reversed(self.points):  # where targets were centred, the point is that of the centred problem
            known = point.certificate
            if (known.primal, known.dual, known.gap) == (certificate.primal, certificate.dual, certificate.gap):
                return point
        for point in reversed(self.points):
            if (point.certificate.dual, point.certificate.violation) == (certificate.dual, certificate.violation):
                return replace(point, certificate=certificate)
        raise LookupError("the certificate was not computed while certificates were recorded")


@contextmanager
def recorded_certificates() -> Iterator[Records]:
    """Record the arguments of every certificate that is computed inside, in all threads."""
    records = Records()

    def recording(problem: DualProblem, dual: Any, *arguments: Any, **named: Any) -> Certificate:
        found = certify(problem, dual, *arguments, **named)
        weights = named.get("weights", arguments[0] if arguments else None)
        records.points.append(CertifiedPoint(problem, np.array(dual), weights, found, False))
        return found

    def recording_l1(problem: DualProblem, dual: Any, weights: Any, **named: Any) -> Certificate:
        found = certify_l1(problem, dual, weights, **named)
        records.points.append(CertifiedPoint(problem, np.array(dual), weights, found, True))
        return found

    def recording_many(problem: DualProblem, rows: Any, dual: Any, weights: Any, dual_weights: Any) -> Any:
        found = certify_many(problem, rows, dual, weights, dual_weights)
        if found is not None:
            records.points.append(CertifiedPoint(problem, np.array(dual), np.array(weights), found, False))
        return found

    def recording_fit(kind: Any) -> Any:
        class RecordingFit(kind):
            def __init__(self, problem: DualProblem, *arguments: Any) -> None:
                super().__init__(problem, *arguments)
                if self.certificate is not None:
                    dual, weights = np.array(self.dual), np.array(self.weights)
                    records.points.append(CertifiedPoint(problem, dual, weights, self.certificate, False))

        return RecordingFit

    substitutes = (
        ("certify", certify, recording),
        ("certify_l1", certify_l1, recording_l1),
        ("certify_many", certify_many, recording_many),
        ("NewtonFit", NewtonFit, recording_fit(NewtonFit)),
        ("RidgedNewtonFit", RidgedNewtonFit, recording_fit(RidgedNewtonFit)),
        ("AscentFit", AscentFit, recording_fit(AscentFit)),
    )
    replaced: list[tuple[Any, str, Any]] = []
    for module in [module for name, module in sys.modules.items() if name.startswith("maxmargin")]:
        for name, original, substitute in substitutes:
            if module.__dict__.get(name) is original:
                replaced.append((module, name, original))
                setattr(module, name, substitute)
    try:
        yield records
    finally:
        for module, name, original in replaced:
            setattr(module, name, original)
