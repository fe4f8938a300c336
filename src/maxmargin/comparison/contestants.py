"""Who takes part in a comparison: from names and objects to solvers with labels and a common rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np

from maxmargin.problems import DualProblem
from maxmargin.solvers import SOLVERS, StoppingRule
from maxmargin.training import Solver

#: What a comparison takes for solvers: a name, "all", names and objects, or objects by their labels.
Solvers: TypeAlias = str | Iterable[Any] | Mapping[str, Any] | None

#: Who takes part if nobody is named: for kernels, for the linear kernel, and for problems without bounds.
USUAL = ("pairwise", "block")
USUAL_LINEAR = ("linear", "dual_coordinate_ascent", "semismooth_newton", *USUAL)
USUAL_UNBOUNDED = ("linear_system", "pairwise")


def contestants(
    solvers: Solvers, problem: DualProblem, rule: StoppingRule, cache_bytes: int, threads: int, seed: int
) -> dict[str, Solver]:
    """Return the solvers by label, all with the same rule; memory, threads and seed are for those given by name."""
    if solvers is None:
        solvers = usual(problem)
    if isinstance(solvers, str):
        solvers = tuple(SOLVERS) if solvers == "all" else (solvers,)
    given = list(solvers.items()) if isinstance(solvers, Mapping) else [(None, one) for one in solvers]
    if not given:
        raise ValueError("there must be at least one solver to compare")
    offered = {"cache_bytes": cache_bytes, "threads": threads, "seed": seed}
    taking_part: dict[str, Solver] = {}
    for label, one in given:
        solver = _named(one, offered) if isinstance(one, str) else _checked(one)
        name = str(label) if label is not None else one if isinstance(one, str) else describe(solver)
        if name in taking_part:
            raise ValueError(f"two solvers are called {name!r}; give them labels: compare(…, {{'label': solver, …}})")
        taking_part[name] = replace(solver, stopping=rule)  # type: ignore[type-var]  # solvers are dataclasses
    return taking_part


def usual(problem: DualProblem) -> tuple[str, ...]:
    """Return the names of solvers that suit a problem."""
    if not (np.isfinite(problem.lower).any() or np.isfinite(problem.upper).any()):
        return USUAL_UNBOUNDED
    return USUAL if problem.matrix.features() is None else USUAL_LINEAR


def describe(solver: Solver) -> str:
    """Return the name of a solver with those of its options that are not the usual ones."""
    names = [name for name, kind in SOLVERS.items() if type(solver) is kind]
    name = names[0] if names else type(solver).__name__
    changed = [
        f"{option.name}={getattr(solver, option.name)!r}"
        for option in fields(cast(Any, solver))
        if option.name != "stopping" and getattr(solver, option.name) != _usual_value(option)
    ]
    return f"{name}({', '.join(changed)})" if changed else name


def _usual_value(option: Field[Any]) -> Any:
    return option.default if option.default_factory is MISSING else option.default_factory()


def _named(name: str, offered: dict[str, int]) -> Solver:
    if name not in SOLVERS:
        raise ValueError(f"unknown solver {name!r}; the names are {', '.join(SOLVERS)}")
    kind: Any = SOLVERS[name]
    known = {option.name for option in fields(kind)}
    return cast(Solver, kind(**{option: value for option, value in offered.items() if option in known}))


def _checked(solver: Any) -> Solver:
    if not is_dataclass(solver) or isinstance(solver, type) or not hasattr(solver, "solve"):
        raise ValueError(
            f"a solver is a name or an object of maxmargin.solvers, such as PairwiseSolver(), not {solver!r}"
        )
    if not hasattr(solver, "stopping"):
        raise ValueError(f"a solver needs a field `stopping` for the rule that is common to all: {solver!r} has none")
    return cast(Solver, solver)
