"""The result of a solver of structured outputs."""

from __future__ import annotations

from dataclasses import dataclass

from maxmargin._typing import Floats
from maxmargin.problems import Certificate, Counters, Progress, Status
from maxmargin.problems.structured_problem import StructuredDual


@dataclass(frozen=True)
class StructuredSolution:
    """A dual vector, how the solve ended, and its cost.

    `weights` are those of the model if they are better than those of the dual vector. The certificate is known if the
    stopping rule was met.
    """

    dual: StructuredDual
    weights: Floats | None
    certificate: Certificate | None
    status: Status
    counters: Counters
    trace: tuple[Progress, ...] = ()
