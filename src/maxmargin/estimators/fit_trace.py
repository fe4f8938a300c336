"""The trace of one fit: the dual vector after every step of the solver.

Every dual vector b determines a model, f(x) = Σ b_i k(x_i, x) + offset, its primal and dual value, and the working set,
the variables that the step has changed (Bottou & Lin 1.6). More than two classes have a trace for each pair.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.estimators.kernel import SVC
from maxmargin.kernels import Kernel, Points
from maxmargin.machines.kernel.kernel_classifier import pair_problem, pair_rows, pairs_of
from maxmargin.machines.multiclass.strategy import LabelledData
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

    @property
    def labels(self) -> Indices:
        """The index of the class of each sample."""
        return (self.signs > 0).astype(np.intp)

    def dual_sizes(self, step: int) -> Floats:
        """Return |b| of each sample after a step."""
        return np.asarray(np.abs(self.duals[step]))

    def working_sets_of(self, step: int) -> list[Indices]:
        """Return the samples that a step has changed: one set, or none."""
        members = self.working_sets[step]
        return [members] if len(members) else []

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


@dataclass(frozen=True)
class MulticlassTrace:
    """The traces of all pairs of classes, side by side; returned by `maxmargin.trace` for more than two classes.

    A step of all is a step of each pair that is not finished yet.

    Attributes
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    labels : int array
        The index of the class of each sample.
    classes : array
    pairs : dict from names to FitTrace
        ``"a and b"``: the trace of the classes a and b on their samples, positive for b.
    rows : list of int arrays
        The samples of each pair.
    """

    X: Any = field(repr=False)
    labels: Indices = field(repr=False)
    classes: Any
    pairs: dict[str, FitTrace] = field(repr=False)
    rows: list[Indices] = field(repr=False)

    def __len__(self) -> int:
        return max(map(len, self.pairs.values()))

    @property
    def kernel(self) -> Kernel | None:
        """The kernel, or None if the values were given."""
        return next(iter(self.pairs.values())).kernel

    def values(self, name: str) -> Floats:
        """Return a value of the progress reports after each step: the sum over the pairs, "violation" the largest."""
        columns = [trace.values(name)[self._entries(trace)] for trace in self.pairs.values()]
        return np.asarray(np.max(columns, axis=0) if name == "violation" else np.sum(columns, axis=0))

    def decision_values(self, Z: Any, steps: Any = slice(None)) -> Floats:
        """Return f of each pair after the steps: an array of steps, samples of `Z`, pairs; positive for the second."""
        parts = [trace.decision_values(Z, self._entries(trace)[steps]) for trace in self.pairs.values()]
        return np.stack(parts, axis=-1)

    def predicted_classes(self, Z: Any, steps: Any = slice(None)) -> Indices:
        """Return the index of the class with most votes after the steps: a line for a step."""
        decisions = self.decision_values(Z, steps)
        votes = np.zeros((*decisions.shape[:2], len(self.classes)), dtype=np.int64)
        for number, (first, second) in enumerate(combinations(range(len(self.classes)), 2)):
            votes[..., first] += decisions[..., number] < 0
            votes[..., second] += decisions[..., number] >= 0
        return np.asarray(votes.argmax(axis=-1))

    def dual_sizes(self, step: int) -> Floats:
        """Return the largest |b| of each sample over its pairs."""
        sizes = np.zeros(len(self.labels))
        for trace, rows in zip(self.pairs.values(), self.rows, strict=True):
            sizes[rows] = np.maximum(sizes[rows], np.abs(trace.duals[self._entries(trace)[step]]))
        return sizes

    def working_sets_of(self, step: int) -> list[Indices]:
        """Return the samples that a step has changed, of each pair that was not finished."""
        pairs = zip(self.pairs.values(), self.rows, strict=True)
        found = [rows[trace.working_sets[step]] for trace, rows in pairs if step < len(trace)]
        return [members for members in found if len(members)]

    def _entries(self, trace: FitTrace) -> Indices:
        """Return the entry of a pair at each step: its last one when it is finished."""
        return np.minimum(np.arange(len(self)), len(trace) - 1)


def trace(X: Any, y: Any, *, solver: Any = "pairwise", steps: int = 1, **parameters: Any) -> FitTrace | MulticlassTrace:
    """Fit an `SVC` and keep the dual vector after every step.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Labels. Of more than two classes, each pair is a problem with a trace.
    solver : str or solver object, default="pairwise"
        As in `SVC`. "pairwise" takes pair steps only, without the equations of the free variables that a fit may solve.
    steps : int, default=1
        The largest number of steps between two entries; a larger one takes less memory.
    **parameters
        Others of `SVC`: ``kernel``, ``C``, ``gamma``, ``loss``, ``tol``, ``selection``, …

    Returns
    -------
    FitTrace or MulticlassTrace
        For `maxmargin.plotting.animate` and `maxmargin.plotting.ConvergenceDisplay`.

    Examples
    --------
    >>> import maxmargin
    >>> steps = maxmargin.trace([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], kernel="linear", C=10)
    >>> [pair.tolist() for pair in steps.working_sets]
    [[], [1, 2]]
    >>> steps.values("dual").round(3), steps.values("primal").round(3)
    (array([0., 2.]), array([40.,  2.]))
    >>> several = maxmargin.trace([[0.0], [1.0], [2.0]], ["a", "b", "c"], kernel="linear", C=10)
    >>> list(several.pairs)
    ['a and b', 'a and c', 'b and c']
    """
    model = SVC(solver=solver, **parameters)
    data, kernel = pairs_of(model, X, y)
    samples = X if sparse.issparse(X) else np.asarray(X)
    if len(data.classes) == 2:
        return _trace_pair(model, samples, data, kernel, (0, 1), steps)
    pairs = list(combinations(range(len(data.classes)), 2))
    traces = {
        f"{data.classes[first]} and {data.classes[second]}": _trace_pair(
            model, samples, data, kernel, (first, second), steps
        )
        for first, second in pairs
    }
    return MulticlassTrace(samples, data.labels, data.classes, traces, [pair_rows(data, pair) for pair in pairs])


def _trace_pair(
    model: SVC, X: Any, data: LabelledData, kernel: Kernel | None, pair: tuple[int, int], steps: int
) -> FitTrace:
    """Return the trace of two classes."""
    problem = pair_problem(model, data, kernel, pair)
    context = model._fit_context(data.X, kernel, None)
    bounded = bool(np.isfinite(model.C))
    chosen: Any = context.solver(problem.size, bounded, context.cache_bytes(problem.size), threads=1)
    if isinstance(chosen, PairwiseSolver) and chosen is not model.solver:
        chosen = replace(chosen, finish_below=0)
    solution = chosen.solve(problem, callback=Trace(steps=steps, points=True))
    if any(entry.point is None for entry in solution.trace) or not solution.trace:
        raise ValueError(f"{type(chosen).__name__} does not report its dual vectors; use solver='pairwise'")
    rows = pair_rows(data, pair)
    return FitTrace(X[rows], problem.linear, data.classes[list(pair)], kernel, problem, solution, solution.trace)
