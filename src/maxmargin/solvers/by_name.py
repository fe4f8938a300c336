"""Solvers by name; their classes are imported when they are first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any

#: The name of each solver, and that of its class in `maxmargin.solvers`.
CLASS_NAMES = {
    "pairwise": "PairwiseSolver",
    "block": "BlockSolver",
    "platt": "PlattSolver",
    "gradient_projection": "GradientProjectionSolver",
    "active_set": "ActiveSetSolver",
    "linear_system": "LinearSystemSolver",  # for problems without bounds, such as those of `LSSVC`
    "multiplier_newton": "MultiplierNewtonSolver",  # for rankings
    "quadratic_program": "QuadraticProgramSolver",
    "chunking": "ChunkingSolver",
    "decomposition": "DecompositionSolver",
    "linear": "LinearSolver",  # from here on for the linear kernel
    "dual_coordinate_ascent": "DualCoordinateAscentSolver",
    "semismooth_newton": "SemismoothNewtonSolver",
    "subgradient": "SubgradientSolver",
    "stochastic_subgradient": "StochasticSubgradientSolver",
    "primal_quadratic_program": "PrimalQuadraticProgramSolver",
}


class _SolverClasses(Mapping[str, Any]):
    """The solver classes by name."""

    def __getitem__(self, name: str) -> Any:
        return getattr(import_module("maxmargin.solvers"), CLASS_NAMES[name])

    def __iter__(self) -> Iterator[str]:
        return iter(CLASS_NAMES)

    def __len__(self) -> int:
        return len(CLASS_NAMES)


SOLVERS: Mapping[str, Any] = _SolverClasses()


def make_solver(name: str, **options: Any) -> Any:
    """Return a solver by name, with those of the options that are among its fields."""
    kind = SOLVERS[name]
    known = {field.name for field in fields(kind)}
    return kind(**{key: value for key, value in options.items() if key in known})
