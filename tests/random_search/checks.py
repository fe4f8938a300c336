"""What a fit must satisfy, whatever the data: each check yields sentences about what is wrong."""

from __future__ import annotations

import re
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import maxmargin as mm
from maxmargin.problems.dual_problem import InfeasibleProblemError

from .cases import Case
from .exact_values import verify_certificate
from .optimum import check_optimum
from .recorder import recorded_certificates

#: Errors for parameters or data that cannot be used.
CLEAR_ERRORS = (ValueError, MemoryError, NotFittedError, InfeasibleProblemError)

#: What no message about finite data should say.
UNCLEAR = re.compile(r"\bnan\b|-inf\b|not inf\b|numerical result|singular matrix|did not converge|^\W*$", re.IGNORECASE)


@dataclass
class Report:
    """The result of one case.

    Attributes
    ----------
    findings : list of (kind, sentence)
    refused : str
        The message of a clear error, empty if the fit succeeded.
    certificates, multiple : int
        How many certificates were compared with exact values, and how many of them in multiple precision.
    wall : float
        Seconds.
    """

    findings: list[tuple[str, str]] = field(default_factory=list)
    refused: str = ""
    certificates: int = 0
    multiple: int = 0
    wall: float = 0.0

    def add(self, kind: str, sentence: str) -> None:
        """Add a finding."""
        self.findings.append((kind, sentence))


def examine(
    case: Case, only_enclosure: bool = False, limit: Callable[[], AbstractContextManager[Any]] = nullcontext
) -> Report:
    """Fit a case and check everything; with `only_enclosure` only that the certificates are confirmed.

    The fit with its predictions is inside a context that `limit` returns.
    """
    report, started = Report(), time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, recorded_certificates() as records:
        warnings.simplefilter("always")
        try:
            with limit():
                model = case.fit()
                points = records.of(model)
                results = list(_predictions(case, model))
        except Exception as error:
            model, report.refused = None, str(error) or type(error).__name__
            for sentence in _unclear_error(error):
                report.add("error", sentence)
    if not only_enclosure:
        for sentence in _leaked_warnings(caught):
            report.add("warning", sentence)
    if model is not None:
        for point in points:
            with np.errstate(all="ignore"):
                verdict = verify_certificate(point, half_diagonal=isinstance(model, mm.SVDD) and not model._precomputed)
            report.certificates += 1
            report.multiple += verdict.multiple
            if not verdict.confirmed:
                report.add("refuted" if verdict.refuted else "unconfirmed", str(verdict))
        if not only_enclosure:
            _check_model(report, model, points, results, caught)
            for point in points:
                for sentence in check_optimum(point):
                    report.add("optimum", sentence)
    report.wall = time.perf_counter() - started
    return report


def _predictions(case: Case, model: Any) -> Iterator[tuple[str, Any]]:
    """Yield the predictions of a model for its training samples."""
    for name in ("predict", "decision_function", "predict_proba", "predict_std", "score_samples"):
        if hasattr(model, name):
            yield name, np.asarray(getattr(model, name)(case.X))


def _unclear_error(error: Exception) -> Iterator[str]:
    """Yield what is wrong with an error: its type, its words, or that it comes from inside another library."""
    name, text = type(error).__name__, str(error)
    if type(error) not in CLEAR_ERRORS:
        yield f"{name}: {text or 'without a message'}"
        return
    if UNCLEAR.search(text) or len(text.split()) < 5:
        yield f"unclear {name}: {text}"
    origin = traceback.extract_tb(error.__traceback__)[-1].filename
    if "maxmargin" not in origin and "sklearn" not in origin:
        yield f"{name} from {origin.rsplit('site-packages/', 1)[-1]}: {text}"


def _leaked_warnings(caught: list[warnings.WarningMessage]) -> Iterator[str]:
    """Yield warnings other than those about convergence."""
    seen = set()
    for one in caught:
        place = one.filename.rsplit("maxmargin/", 1)[-1]
        if not issubclass(one.category, ConvergenceWarning) and (place, one.lineno) not in seen:
            seen.add((place, one.lineno))
            yield f"{one.category.__name__} in {place}:{one.lineno}: {one.message}"


def _far_from_optimal(certificate: Any, model: Any) -> bool:
    """Whether neither the violation nor the gap is near its tolerance."""
    if type(model).__name__ in (
        "LinearOneClassSVM",
        "LinearSVR",
    ):  # whose optimum may be 0: a size of their own decides
        return False
    size = max(abs(certificate.primal), abs(certificate.dual))
    gap_tolerance = max(10 * model.tol * size, getattr(model, "gap_tol", None) or 0.0)
    return bool(certificate.violation > 10 * model.tol and certificate.gap > gap_tolerance)


def _check_model(report: Report, model: Any, points: list[Any], results: list[Any], caught: list[Any]) -> None:
    """Add what is wrong with numbers and statuses of a fitted model."""
    statuses = getattr(model, "status_", None) if hasattr(model, "fit_status_") else None
    statuses = statuses if isinstance(statuses, list) else [statuses]
    for point, status in zip(points, statuses if len(statuses) == len(points) else [None] * len(points), strict=True):
        certificate = point.certificate
        numbers = [certificate.primal, certificate.dual, certificate.gap, certificate.violation]
        if np.isnan(numbers).any() or any(np.isnan(v).any() for v in (certificate.slack, certificate.residual)):
            report.add(
                "not finite", f"not a number in the certificate of a fit with status {getattr(status, 'name', None)}"
            )
        elif status is not None and status.converged and not np.isfinite(numbers).all():
            report.add("not finite", f"an infinite certificate with status CONVERGED: {certificate}")
        elif status is not None and status.converged and _far_from_optimal(certificate, model):
            report.add("status", f"CONVERGED with a tolerance of {model.tol:g}: {certificate}")
    for name, values in results:
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            report.add("not finite", f"{name} returns numbers that are not finite")
    for name in ("dual_coef_", "intercept_", "coef_", "noise_scale_"):
        values = getattr(model, name, None) if name in model.__dict__ else None
        values = values.data if sparse.issparse(values) else values
        if values is not None and not np.isfinite(np.asarray(values, dtype=np.float64)).all():
            report.add("not finite", f"{name} has numbers that are not finite")
    warned = any(issubclass(one.category, ConvergenceWarning) for one in caught)
    unfinished = [status.name for status in statuses if status is not None and not status.converged]
    if unfinished and not warned:
        report.add("status", f"status {unfinished[0]} without a warning")
