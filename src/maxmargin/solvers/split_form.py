"""Problems with kinks for solvers of quadratic objectives: they solve the split form, two variables in place of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar, cast

from maxmargin._typing import Floats
from maxmargin.problems import DualProblem, Progress, Solution
from maxmargin.problems.split_problem import SplitProblem
from maxmargin.solvers.stopping import Callback
from maxmargin.solvers.translated_callback import translated

Solve = TypeVar("Solve", bound=Callable[..., Solution])


def in_split_form(solve: Solve) -> Solve:
    """Decorate the method `solve` of a solver without kinks, so that it solves the split form of problems with kinks.

    Start, observers and solution are those of the problem that was given.
    """

    @wraps(solve)
    def solve_split(
        solver: Any, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None
    ) -> Solution:
        if not problem.kinked:
            return solve(solver, problem, start, callback)
        split = SplitProblem.of(problem)

        def combined(progress: Progress) -> Progress:
            point = progress.point
            return progress if point is None else replace(progress, point=split.combined_dual(point))

        split_start = None if start is None else split.dual(start)
        observer = None if callback is None else translated(callback, combined, split.combined_dual)
        solution = solve(solver, split.problem, split_start, observer)
        gradient = solution.gradient
        if gradient is not None:
            gradient = split.combined_gradient(solution.dual, gradient)
        return replace(solution, dual=split.combined_dual(solution.dual), gradient=gradient)

    return cast(Solve, solve_split)
