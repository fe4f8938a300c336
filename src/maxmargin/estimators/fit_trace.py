"""The trace of one fit: the dual vector after every step of the solver.

Every dual vector b determines a model, f(x) = Σ b_i k(x_i, x) + offset, its primal and dual value, and the working set,
the variables that the step has changed (Bottou & Lin 1.6).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.estimators.kernel import SVC
from maxmargin.kernels import Kernel, Points
from maxmargin.machines.kernel.kernel_classifier import dual_problem_of
from maxmargin.problems import Certificate, DualProblem, Progress, Solution, certify
from maxmargin.problems.gradient_extremes import interval_midpoint, offset_bounds
from maxmargin.solvers import PairwiseSolver, Trace


@dataclass(frozen=True)
class FitTrace:
    """The path of a solver to its solution, step by step; returned by `maxmargin.trace`.

    Attributes
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    signs : float array
        +1 for samples of ``classes[1]``, −1 for those of ``classes[0]``.
    classes : array
        The two labels.
    kernel : Kernel, or None if the values were given
    problem : DualProblem
    solution : Solution
        The result.
    entries : tuple of Progress
        Progress reports from the start: ``iteration``, ``primal``, ``dual``, ``violation`` and more.
    """

    X: Any = field(repr=False)
    signs: Floats = field(repr=False)
    classes: Any
    kernel: Kernel | None
    problem: DualProblem = field(repr=False)
    solution: Solution = field(repr=False)
    entries: tuple[Progress, ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.entries)

    @cached_property
    def duals(self) -> Floats:
        """The dual vector b after each step, one above the other; the first is the start."""
        return np.array([entry.point for entry in self.entries])

    @cached_property
    def offsets(self) -> Floats:
        """The offset of the decision function after each step: the midpoint of its interval."""
        everything = np.arange(self.problem.size)
        products = self.duals @ self.problem.matrix.block(everything, everything)
        gradients = self.problem.linear - products - self.problem.ridge * self.duals
        if not self.problem.groups:
            return np.zeros(len(self.entries))
        pairs = zip(self.duals, gradients, strict=True)
        return np.array(
            [interval_midpoint(*offset_bounds(self.problem, dual, gradient))[0] for dual, gradient in pairs]
        )

    @cached_property
    def working_sets(self) -> list[Indices]:
        """The samples whose dual variables each step has changed; of the start none."""
        changed = np.diff(self.duals, axis=0) != 0
        return [np.empty(0, dtype=np.intp), *(np.flatnonzero(row) for row in changed)]

    def values(self, name: str) -> Floats:
        """Return a value of the progress reports, such as "primal", "dual" or "violation", after each step."""
        return np.array([getattr(entry, name) for entry in self.entries], dtype=float)

    def decision_values(self, Z: Any, steps: Any = slice(None)) -> Floats:
        """Return f of each sample of `Z` after each of the steps, by default all; a line for a step."""
        if self.kernel is None:
            raise ValueError("the kernel values were given, so those of other samples are not known")
        block = self.kernel.evaluate(Points.wrap(self.X), Points.wrap(np.ascontiguousarray(Z, dtype=float)))
        return np.asarray(self.duals[steps] @ block + self.offsets[steps][:, None])

    @property
    def certificate(self) -> Certificate:
        """The certificate of the last point."""
        return certify(self.problem, self.solution.dual)


def trace(X: Any, y: Any, *, solver: Any = "pairwise", steps: int = 1, **parameters: Any) -> FitTrace:
    """Fit an `SVC` to two classes and keep the dual vector after every step.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Labels of two classes.
    solver : str or solver object, default="pairwise"
        As in `SVC`. "pairwise" takes pair steps only, without the equations of the free variables that a fit may solve.
    steps : int, default=1
        The largest number of steps between two entries; a larger one takes less memory.
    **parameters
        Others of `SVC`: ``kernel``, ``C``, ``gamma``, ``loss``, ``tol``, ``selection``, …

    Returns
    -------
    FitTrace
        For `maxmargin.plotting.animate` and `maxmargin.plotting.ConvergenceDisplay`.

    Examples
    --------
    >>> import maxmargin
    >>> steps = maxmargin.trace([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], kernel="linear", C=10)
    >>> [pair.tolist() for pair in steps.working_sets]
    [[], [1, 2]]
    >>> steps.values("dual").round(3), steps.values("primal").round(3)
    (array([0., 2.]), array([40.,  2.]))
    """
    model = SVC(solver=solver, **parameters)
    pose, kernel = dual_problem_of(model, X, y)
    problem = pose()
    bounded = bool(np.isfinite(model.C))
    context = model._fit_context(X, kernel, None)
    chosen: Any = context.solver(problem.size, bounded, context.cache_bytes(problem.size), threads=1)
    if isinstance(chosen, PairwiseSolver) and chosen is not solver:
        chosen = replace(chosen, finish_below=0)
    solution = chosen.solve(problem, callback=Trace(steps=steps, points=True))
    if any(entry.point is None for entry in solution.trace) or not solution.trace:
        raise ValueError(f"{type(chosen).__name__} does not report its dual vectors; use solver='pairwise'")
    samples = X if sparse.issparse(X) else np.asarray(X)
    return FitTrace(samples, problem.linear, np.unique(np.asarray(y)), kernel, problem, solution, solution.trace)
