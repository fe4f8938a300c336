"""The comparison itself: one solver after the other on the same problem, each judged by the same certificate.

Every solver begins with a matrix of its own that has no values yet, at the simplest feasible point, under the same
stopping rule. Times are those of `solve` alone, without posing the problem, tracing the way and judging the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from maxmargin.comparison.comparison import Comparison
from maxmargin.comparison.contestants import Solvers, contestants
from maxmargin.comparison.run import Run
from maxmargin.estimators import SVC
from maxmargin.estimators.kernel.dual_problem_of import problem_of
from maxmargin.estimators.kernel.kernel_classifier import KernelClassifier
from maxmargin.estimators.validation.parameters import check_number
from maxmargin.problems import Counters, DualProblem, Progress, Status, certify
from maxmargin.resources import blas_thread_limit, default_cache_bytes, thread_count
from maxmargin.solvers import StoppingRule, Trace
from maxmargin.training import Solver

#: The parameters of `SVC` that say which problem it is; the others say how it is solved.
MACHINE = ("C", "kernel", "gamma", "degree", "coef0", "loss", "class_weight", "fit_intercept")

Pose = Callable[[], DualProblem]


class Watch(Protocol):
    """Who watches a comparison while it runs."""

    def begins(self, labels: Sequence[str]) -> None:
        """Hear who takes part."""
        ...

    def started(self, label: str) -> None:
        """Hear that a solver begins."""
        ...

    def progressed(self, label: str, progress: Progress) -> object:
        """Hear where it stands; returning True stops it."""
        ...

    def finished(self, run: Run) -> None:
        """Hear how it ended."""
        ...


def compare(
    problem: DualProblem | tuple[Any, Any],
    solvers: Solvers = None,
    *,
    machine: KernelClassifier | None = None,
    tol: float = 1e-3,
    gap: float | None = None,
    max_seconds: float | None = None,
    max_iter: int | None = None,
    cache_size: float | None = None,
    n_jobs: int | None = None,
    seed: int = 0,
    name: str = "",
    watch: Watch | None = None,
    **parameters: Any,
) -> Comparison:
    """Run several solvers on the same problem and have each answer judged.

    A solver that cannot solve the problem, runs out of memory or into a limit is a line of the result that says so.
    Ctrl-C ends the solver that runs; what there is by then is returned.

    Parameters
    ----------
    problem : DualProblem or tuple (X, y)
        A problem, or samples and labels of two classes.
    solvers : str, list or dict, optional
        Names from `maxmargin.solvers.SOLVERS`, or "all" of them; solver objects, which keep all their options but
        `stopping`; or objects and names by the labels that they shall have. By default a few that suit the problem.
    machine : SVC, NuSVC or LSSVC, optional
        An estimator, not fitted, that says which problem (X, y) make.
    tol : float, default=1e-3
        Largest violation of the optimality criterion that is accepted.
    gap : float, optional
        Duality gap that is accepted even if the violation is larger.
    max_seconds, max_iter : optional
        Limits on the work of each solver. What an iteration is differs from solver to solver.
    cache_size : float, optional
        Megabytes for what a solver given by name may keep of the matrix; by default a quarter of the memory.
    n_jobs : int, optional
        Threads for solvers given by name, and for matrices; None and −1 are all cores.
    seed : int, default=0
        For solvers given by name that draw at random.
    name : str, optional
        What the data are called in tables and pictures.
    watch : Watch, optional
        Is told while the solvers run.
    **parameters
        Of `SVC` in place of a `machine`: C, kernel, gamma, degree, coef0, loss, class_weight, fit_intercept.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from maxmargin import compare
    >>> from maxmargin.datasets import chessboard
    >>> found = compare(chessboard(200), ["pairwise", "block"], C=10, gamma=1.0)
    >>> [run.word for run in found.runs]
    ['converged', 'converged']
    >>> [entry.iteration for entry in found.runs[0].trace][:4]
    [0, 1, 2, 3]
    """
    threads = thread_count(n_jobs)
    rule = StoppingRule(tol, gap, max_iter, max_seconds)
    pose, about = _posed(problem, machine, parameters, threads)
    cache_bytes = (
        default_cache_bytes() if cache_size is None else int(check_number("cache_size", cache_size, above=0) * 2**20)
    )
    taking_part = contestants(solvers, pose(), rule, cache_bytes, threads, seed)
    if watch is not None:
        watch.begins(tuple(taking_part))
    runs: list[Run] = []
    interrupted = False
    with blas_thread_limit(threads):
        for label, solver in taking_part.items():
            run = Run(label, rule) if interrupted else _run(label, solver, pose, watch)
            interrupted = interrupted or run.status is Status.INTERRUPTED
            runs.append(run)
            if watch is not None:
                watch.finished(run)
    return Comparison({"data": name, **about, "threads": threads}, rule, tuple(runs))


def _posed(
    problem: DualProblem | tuple[Any, Any], machine: KernelClassifier | None, parameters: dict[str, Any], threads: int
) -> tuple[Pose, dict[str, Any]]:
    """Return what poses the problem anew for each solver, and what there is to say about it."""
    unknown = [parameter for parameter in parameters if parameter not in MACHINE]
    if unknown:
        raise TypeError(f"compare has no parameter {unknown[0]!r}; those of the machine are {', '.join(MACHINE)}")
    if isinstance(problem, DualProblem):
        if machine is not None or parameters:
            raise ValueError("a DualProblem says by itself what the machine is; a machine and its C go with (X, y)")
        return lambda: problem.with_matrix(problem.matrix.uncached()), _about(problem)
    if not (isinstance(problem, tuple | list) and len(problem) == 2):
        raise ValueError("compare takes a DualProblem, or samples and labels as a pair (X, y)")
    if machine is not None and parameters:
        raise ValueError("give either a machine or its parameters, not both")
    machine = SVC(**parameters) if machine is None else machine
    if not isinstance(machine, KernelClassifier):
        raise ValueError(f"a machine is an SVC, a NuSVC or an LSSVC, not {machine!r}; for others pose a DualProblem")
    X, y = problem
    pose, kernel = problem_of(machine, X, y, threads)
    first = pose()
    about = _about(first)
    about["machine"] = repr(machine).replace("\n", " ")
    about["kernel"] = "precomputed" if kernel is None else repr(kernel)
    about["features"] = X.shape[1] if hasattr(X, "shape") and len(X.shape) == 2 else None
    return pose, about


def _about(problem: DualProblem) -> dict[str, Any]:
    return {"variables": problem.size, "groups": problem.groups, "bounded": problem.bounded}


def _run(label: str, solver: Solver, pose: Pose, watch: Watch | None) -> Run:
    """Return what becomes of one solver."""
    trace = Trace(callback=None if watch is None else lambda progress: watch.progressed(label, progress))
    try:
        if watch is not None:
            watch.started(label)
        problem = pose()
        solution = solver.solve(problem, callback=trace)
        certificate = certify(problem, solution.dual, solution.weights)
    except KeyboardInterrupt:  # where the solver does not hear it: before it begins, or in the judge's time
        return Run(label, solver.stopping, Status.INTERRUPTED, counters=_spent(trace), trace=tuple(trace.entries))
    except Exception as error:  # whatever it is, the others shall have their turn; the line says what it was
        return Run(label, solver.stopping, failure=_sentence(error), trace=tuple(trace.entries))
    return Run(
        label,
        solver.stopping,
        solution.status,
        counters=solution.counters,
        certificate=certificate,
        support_vectors=int(np.count_nonzero(solution.dual)),
        trace=tuple(trace.entries),
    )


def _spent(trace: Trace) -> Counters:
    """Return what the last entry tells of the cost."""
    if not trace.entries:
        return Counters()
    last = trace.entries[-1]
    return Counters(last.iteration, last.kernel_evaluations, seconds=last.seconds)


def _sentence(error: Exception) -> str:
    """Return what an error says; the name of its kind, too, unless it is meant for users."""
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"not enough memory: {text}" if text else "not enough memory"
    return text if text and isinstance(error, ValueError | ImportError) else f"{type(error).__name__}: {text}"
