"""The two kinds of problem, kernel and linear: their libraries, parameters and solutions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.peers import libraries as kernel
from benchmarks.peers.libraries import Library
from benchmarks.peers.linear import libraries as linear


@dataclass(frozen=True)
class ProblemKind:
    """The libraries that solve a kind of problem, and the classes of its parameters and solutions."""

    name: str
    libraries: dict[str, type[Library]]
    parameters: type
    solution: type


PROBLEM_KINDS = {
    kind.name: kind
    for kind in (
        ProblemKind("kernel", dict(kernel.LIBRARIES), kernel.Parameters, kernel.Coefficients),
        ProblemKind("linear", dict(linear.LIBRARIES), linear.LinearParameters, linear.Weights),
    )
}


def kind_of(parameters: Any) -> ProblemKind:
    """Return the kind of problem that has parameters of this class."""
    return next(kind for kind in PROBLEM_KINDS.values() if isinstance(parameters, kind.parameters))
