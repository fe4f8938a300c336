"""Run solvers one after another on the same problem and verify each solution by its certificate.

Every solver starts at the same feasible point, with its own empty kernel matrix, under the same stopping rule. Times
are those of `solve` alone, without building the problem, recording the trace and computing the certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from maxmargin.comparison.comparison import Comparison
from maxmargin.comparison.solver_run import SolverRun
from maxmargin.comparison.solver_selection import Solvers, select_solvers
from maxmargin.deadline import Deadline
from maxmargin.estimators import SVC
from maxmargin.machines.kernel.kernel_classifier import KernelClassifier, dual_problem_of
from maxmargin.machines.validation.parameters import check_number
from maxmargin.problems import Counters, DualProblem, Progress, Status, certify
from maxmargin.resources import blas_thread_limit, default_cache_bytes, thread_count
from maxmargin.solvers import StoppingRule, Trace
from maxmargin.solvers.monitor import Interruption, status_of
from maxmargin.training import Solver

#: The parameters of `SVC` that define the problem; the others control how it is solved.
ESTIMATOR_PARAMETERS = ("C", "kernel", "gamma", "degree", "coef0", "loss", "class_weight", "fit_intercept")

#: Returns the problem with an empty kernel matrix.
ProblemFactory = Callable[[], DualProblem]


class ComparisonObserver(Protocol):
    """Is called while a comparison runs."""

    def on_start(self, labels: Sequence[str]) -> None:
        """Take the labels of all solvers, before the first one starts."""
        ...

    def on_solver_start(self, label: str) -> None:
        """Take the label of a solver that starts."""
        ...

    def on_progress(self, label: str, progress: Progress) -> object:
        """Take the progress of a solver; returning True stops it."""
        ...

    def on_solver_end(self, run: SolverRun) -> None:
        """Take the run of a solver that ended."""
        ...


def compare(
    problem: DualProblem | tuple[Any, Any],
    solvers: Solvers = None,
    *,
    estimator: KernelClassifier | None = None,
    tol: float = 1e-3,
    gap: float | None = None,
    max_seconds: float | None = None,
    max_iter: int | None = None,
    cache_size: float | None = None,
    n_jobs: int | None = None,
    seed: int = 0,
    name: str = "",
    observer: ComparisonObserver | None = None,
    **parameters: Any,
) -> Comparison:
    """Run several solvers on the same problem and verify their solutions.

    A solver that fails, runs out of memory or reaches a limit does not end the comparison: its run has the message.
    Ctrl-C stops the running solver and the comparison; the runs so far are returned.

    Parameters
    ----------
    problem : DualProblem or tuple (X, y)
        A problem, or samples and labels of a binary classification.
    solvers : str, list or dict, optional
        Names from `maxmargin.solvers.SOLVERS`, or "all"; solver objects, which keep all their options but `stopping`;
        or a mapping from labels to names and objects. The default depends on the problem.
    estimator : SVC, NuSVC or LSSVC, optional
        An unfitted estimator that defines the problem of (X, y).
    tol : float, default=1e-3
        Tolerance on the KKT violation.
    gap : float, optional
        Tolerance on the duality gap: a smaller gap is accepted even if the violation is larger.
    max_seconds, max_iter : optional
        Limits on each solver. The cost of an iteration differs between solvers.
    cache_size : float, optional
        Size of the kernel cache of solvers given by name, in megabytes; by default a quarter of the memory.
    n_jobs : int, optional
        Number of threads of solvers given by name, and of kernel matrices; None and −1 mean all cores.
    seed : int, default=0
        Seed of randomised solvers given by name.
    name : str, optional
        Name of the data in tables and figures.
    observer : ComparisonObserver, optional
        Is called while the solvers run.
    **parameters
        Of an `SVC`, instead of an `estimator`: C, kernel, gamma, degree, coef0, loss, class_weight, fit_intercept.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from maxmargin import compare
    >>> from maxmargin.datasets import chessboard
    >>> comparison = compare(chessboard(200), ["pairwise", "block"], C=10, gamma=1.0)
    >>> [run.outcome for run in comparison.runs]
    ['converged', 'converged']
    >>> [entry.iteration for entry in comparison.runs[0].trace][:4]
    [0, 1, 2, 3]
    """
    threads = thread_count(n_jobs)
    stopping = StoppingRule(tol, gap, max_iter, max_seconds)
    make_problem, description = _prepare(problem, estimator, parameters, threads)
    cache_bytes = (
        default_cache_bytes() if cache_size is None else int(check_number("cache_size", cache_size, above=0) * 2**20)
    )
    selected = select_solvers(solvers, make_problem(), stopping, cache_bytes, threads, seed)
    if observer is not None:
        observer.on_start(tuple(selected))
    runs: list[SolverRun] = []
    interrupted = False
    with blas_thread_limit(threads):
        for label, solver in selected.items():
            run = SolverRun(label, stopping) if interrupted else _run(label, solver, make_problem, observer)
            interrupted = interrupted or run.status is Status.INTERRUPTED
            runs.append(run)
            if observer is not None:
                observer.on_solver_end(run)
    return Comparison({"data": name, **description, "threads": threads}, stopping, tuple(runs))


def _prepare(
    problem: DualProblem | tuple[Any, Any],
    estimator: KernelClassifier | None,
    parameters: dict[str, Any],
    threads: int,
) -> tuple[ProblemFactory, dict[str, Any]]:
    """Return a function that makes the problem anew for each solver, and the description of the problem."""
    unknown = [parameter for parameter in parameters if parameter not in ESTIMATOR_PARAMETERS]
    if unknown:
        known = ", ".join(ESTIMATOR_PARAMETERS)
        raise TypeError(f"compare has no parameter {unknown[0]!r}; those of the estimator are {known}")
    if isinstance(problem, DualProblem):
        if estimator is not None or parameters:
            raise ValueError("a DualProblem is already complete; an estimator and its parameters are for (X, y)")
        return lambda: problem.with_matrix(problem.matrix.uncached()), _describe(problem)
    if not (isinstance(problem, tuple | list) and len(problem) == 2):
        raise ValueError("compare takes a DualProblem, or samples and labels as a pair (X, y)")
    if estimator is not None and parameters:
        raise ValueError("give either an estimator or its parameters, not both")
    estimator = SVC(**parameters) if estimator is None else estimator
    if not isinstance(estimator, KernelClassifier):
        raise ValueError(f"estimator must be an SVC, NuSVC or LSSVC, not {estimator!r}; or pass a DualProblem")
    X, y = problem
    make_problem, kernel = dual_problem_of(estimator, X, y, threads)
    description = _describe(make_problem())
    description["estimator"] = repr(estimator).replace("\n", " ")
    description["kernel"] = "precomputed" if kernel is None else repr(kernel)
    description["features"] = X.shape[1] if hasattr(X, "shape") and len(X.shape) == 2 else None
    return make_problem, description


def _describe(problem: DualProblem) -> dict[str, Any]:
    return {"variables": problem.size, "groups": problem.groups, "bounded": problem.bounded}


def _run(label: str, solver: Solver, make_problem: ProblemFactory, observer: ComparisonObserver | None) -> SolverRun:
    """Run one solver and verify its solution."""
    trace = Trace(callback=None if observer is None else lambda progress: observer.on_progress(label, progress))
    try:
        if observer is not None:
            observer.on_solver_start(label)
        problem = make_problem()
        with Deadline.after(solver.stopping.max_seconds).in_force():
            solution = solver.solve(problem, callback=trace)
        certificate = certify(problem, solution.dual, solution.weights)
    except Interruption as interruption:  # before the solver started, or while the certificate was computed
        counters, entries = _last_counters(trace), tuple(trace.entries)
        return SolverRun(label, solver.stopping, status_of(interruption), counters=counters, trace=entries)
    except Exception as error:  # any failure of one solver is reported in its run; the others still run
        return SolverRun(label, solver.stopping, failure=_error_message(error), trace=tuple(trace.entries))
    return SolverRun(
        label,
        solver.stopping,
        solution.status,
        counters=solution.counters,
        certificate=certificate,
        support_vectors=int(np.count_nonzero(solution.dual)),
        trace=tuple(trace.entries),
    )


def _last_counters(trace: Trace) -> Counters:
    """Return the counters of the last trace entry."""
    if not trace.entries:
        return Counters()
    last = trace.entries[-1]
    return Counters(last.iteration, last.kernel_evaluations, seconds=last.seconds)


def _error_message(error: Exception) -> str:
    """Return the message of an error, preceded by its class unless the message is written for users."""
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"not enough memory: {text}" if text else "not enough memory"
    return text if text and isinstance(error, ValueError | ImportError) else f"{type(error).__name__}: {text}"
