"""Selection of the solvers of a comparison: from names and objects to labelled solvers with a common stopping rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np

from maxmargin.problems import DualProblem
from maxmargin.solvers import SOLVERS, StoppingRule
from maxmargin.training import Solver

#: The parameter `solvers` of `compare`: a name, "all", names and objects, or a mapping from labels to these.
Solvers: TypeAlias = str | Iterable[Any] | Mapping[str, Any] | None

#: Default solvers: in general, for the linear kernel, and for problems without bounds.
DEFAULT_SOLVERS = ("pairwise", "block")
DEFAULT_LINEAR_SOLVERS = ("linear", "dual_coordinate_ascent", "semismooth_newton", *DEFAULT_SOLVERS)
DEFAULT_UNBOUNDED_SOLVERS = ("linear_system", "pairwise")


def select_solvers(
    solvers: Solvers, problem: DualProblem, stopping: StoppingRule, cache_bytes: int, threads: int, seed: int
) -> dict[str, Solver]:
    """Return the solvers by label; cache size, threads and seed apply to solvers given by name."""
    if solvers is None:
        solvers = default_solvers(problem)
    if isinstance(solvers, str):
        solvers = tuple(SOLVERS) if solvers == "all" else (solvers,)
    given = list(solvers.items()) if isinstance(solvers, Mapping) else [(None, entry) for entry in solvers]
    if not given:
        raise ValueError("compare needs at least one solver")
    options = {"cache_bytes": cache_bytes, "threads": threads, "seed": seed}
    selected: dict[str, Solver] = {}
    for label, entry in given:
        solver = _by_name(entry, options) if isinstance(entry, str) else _check_solver(entry)
        name = str(label) if label is not None else entry if isinstance(entry, str) else label_of(solver)
        if name in selected:
            raise ValueError(f"two solvers have the label {name!r}; choose labels: compare(…, {{'label': solver, …}})")
        selected[name] = replace(solver, stopping=stopping)  # type: ignore[type-var]  # solvers are dataclasses
    return selected


def default_solvers(problem: DualProblem) -> tuple[str, ...]:
    """Return the names of the solvers to compare by default."""
    if not (np.isfinite(problem.lower).any() or np.isfinite(problem.upper).any()):
        return DEFAULT_UNBOUNDED_SOLVERS
    return DEFAULT_SOLVERS if problem.matrix.features() is None else DEFAULT_LINEAR_SOLVERS


def label_of(solver: Solver) -> str:
    """Return the name of a solver, followed by the options that differ from their defaults."""
    names = [name for name, kind in SOLVERS.items() if type(solver) is kind]
    name = names[0] if names else type(solver).__name__
    changed = [
        f"{option.name}={getattr(solver, option.name)!r}"
        for option in fields(cast(Any, solver))
        if option.name != "stopping" and getattr(solver, option.name) != _default_of(option)
    ]
    return f"{name}({', '.join(changed)})" if changed else name


def _default_of(option: Field[Any]) -> Any:
    return option.default if option.default_factory is MISSING else option.default_factory()


def _by_name(name: str, options: dict[str, int]) -> Solver:
    if name not in SOLVERS:
        raise ValueError(f"unknown solver {name!r}; choose from {', '.join(SOLVERS)}")
    kind: Any = SOLVERS[name]
    known = {option.name for option in fields(kind)}
    return cast(Solver, kind(**{option: value for option, value in options.items() if option in known}))


def _check_solver(solver: Any) -> Solver:
    if not is_dataclass(solver) or isinstance(solver, type) or not hasattr(solver, "solve"):
        raise ValueError(f"a solver must be a name or an object such as PairwiseSolver(), not {solver!r}")
    if not hasattr(solver, "stopping"):
        raise ValueError(f"a solver needs a field `stopping` for the common stopping rule; {solver!r} has none")
    return cast(Solver, solver)
