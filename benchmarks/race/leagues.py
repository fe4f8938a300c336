"""The leagues of the race: contestants that solve the same kind of problem, with its parameters and its solutions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.race import contestants as kernel
from benchmarks.race.contestants import Contestant
from benchmarks.race.linear import contestants as linear


@dataclass(frozen=True)
class League:
    """Who takes part, and the classes of what they are told and of what they return."""

    name: str
    contestants: dict[str, type[Contestant]]
    parameters: type
    solution: type


LEAGUES = {
    league.name: league
    for league in (
        League("kernel", dict(kernel.CONTESTANTS), kernel.Parameters, kernel.Coefficients),
        League("linear", dict(linear.CONTESTANTS), linear.LinearParameters, linear.Weights),
    )
}


def league_of(parameters: Any) -> League:
    """Return the league whose parameters these are."""
    return next(league for league in LEAGUES.values() if isinstance(parameters, league.parameters))
