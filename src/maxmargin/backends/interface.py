"""The interface between the block solver and the backends that compute for it.

A solver holds the control flow and a few scalars. A backend holds the arrays and implements every operation over all
samples or over a working set, so that the arrays may live on another device:

    BlockBackend  opens a state for a problem
    BlockState    dual vector and gradient of all variables: KKT violation, selection of a working set, gradient update
                  by a fused kernel product, double-precision audit, duality gap
    Subproblem    a working set with its square block of the matrix: pair steps and equations of the free variables

Kernel values are float32 (a backend may store or recompute them); dual vector, gradient and sums over samples are
float64 (a backend may add a few in float32). Only `dual`, `gradient`, `point` and `full_point` return arrays, always
NumPy arrays in host memory; solvers call them at the end, for progress reports, and in the rare test for an unbounded
dual.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple, Protocol, TypeVar

from maxmargin._typing import Floats, Indices
from maxmargin.problems import Counters, DualProblem


class StopReason(IntEnum):
    """Why a loop of pair steps has returned; the values are those of the native loop."""

    OPTIMAL = 0
    NEEDS_ROW = 1
    PAUSED = 2
    UNBOUNDED = 3
    PRECISION = 4


@dataclass
class RunningTotals:
    """Pair steps and subproblems so far, and the dual objective, shared by a state and its subproblems."""

    iterations: int = 0
    rounds: int = 0
    dual_value: float = 0.0


class BlockTuning(NamedTuple):
    """Sizes that suit a backend and a problem.

    Attributes
    ----------
    first_size : int
        The size of the first working set, beside free variables.
    min_first_size, max_first_size : int
        The same where support vectors are known to be few, or all variables fit one working set; and the largest that
        pays where support vectors are known to be many.
    solve_whole : bool
        Whether the problem is so small that all its variables are one working set.
    stored_rows : int
        The number of whole rows that fit in memory, 0 if the backend stores none.
    steps_per_check : int
        Pair steps between two checks of limits, shrinking and the equations of the free variables.
    value_credit : float
        The cost of a kernel value beside an operation of the equations of the free variables.
    subproblem_tolerance : float, optional
        A subproblem is solved until its violation is this fraction of the violation among all variables; by default
        that of the solver.
    """

    first_size: int
    min_first_size: int
    max_first_size: int
    solve_whole: bool
    stored_rows: int
    steps_per_check: int
    value_credit: float = 1.0
    subproblem_tolerance: float | None = None


class KnownProduct(NamedTuple):
    """A point and the product of the matrix with it, in host memory."""

    point: Floats
    product: Floats


class BoundStart(NamedTuple):
    """A start with variables at bounds, the product that indicated them, and the number of its kernel values."""

    dual: Floats
    product: Floats
    evaluations: int


class Subproblem(Protocol):
    """The dual problem of a working set with all other variables fixed.

    `violation` is the largest KKT violation among its variables, as of the last step.
    """

    violation: float

    @property
    def active(self) -> int:
        """The number of variables."""
        ...

    def count_free(self) -> int:
        """Return the number of variables off their bounds."""
        ...

    def count_changed(self) -> int:
        """Return the number of variables that have changed since the subproblem was opened."""
        ...

    def pair_steps(self, tolerance: float, max_steps: int, max_seconds: float) -> StopReason:
        """Take pair steps with second-order selection until the violation is within the tolerance, or a limit.

        ``NEEDS_ROW`` means that the subproblem runs on stored rows, and there is no memory for one more.
        """
        ...

    def solve_free(self, max_work: float) -> float:
        """Move the free variables to the solution of their linear equations, or as far as their bounds allow.

        Return the number of multiplications, at most about `max_work`.
        """
        ...


S = TypeVar("S", bound=Subproblem)


class BlockState(Protocol[S]):
    """Dual vector and gradient of all variables, and the open subproblems, each of them a part of the one before.

    `violation` is that of the last call of `find_violation`; `refreshed` says whether gradients were recomputed in
    double precision because single precision did not suffice.
    """

    problem: DualProblem
    linear: Floats
    totals: RunningTotals
    violation: float
    refreshed: bool

    @property
    def tuning(self) -> BlockTuning:
        """Sizes that suit the backend and the problem."""
        ...

    @property
    def kernel_evaluations(self) -> int:
        """The number of kernel values computed so far."""
        ...

    def counters(self, seconds: float) -> Counters:
        """Return the counters of a solution."""
        ...

    def add(self, spent: Counters) -> None:
        """Add what was spent on other problems: iterations, rounds and kernel values."""
        ...

    def set_dual(self, dual: Floats, with_gradient: bool = True, known: KnownProduct | None = None) -> None:
        """Set all variables and compute their gradient; without `with_gradient` it stays unknown.

        A product that is known at a point near the dual vector saves the kernel values of the variables in common.
        """
        ...

    def find_violation(self) -> float:
        """Compute and return the largest KKT violation; raise ValueError if the gradient is not finite."""
        ...

    def count_free(self) -> int:
        """Return the number of variables off their bounds."""
        ...

    def select(self, size: int) -> Any:
        """Return a working set of at most `size` variables by the violations that `find_violation` has computed.

        It contains the most violating pair. Its type is private to the backend: a solver only passes it to
        `open_subproblem`.
        """
        ...

    def open_subproblem(self, working_set: Any) -> S:
        """Open the subproblem of a working set."""
        ...

    def open_whole(self) -> S:
        """Open the subproblem of all variables on the whole matrix."""
        ...

    def open_stored_rows(self) -> S:
        """Open the subproblem of all variables on stored rows, computed as they are needed."""
        ...

    def open_shrunk(self, subproblem: S) -> S | None:
        """Open the part of a subproblem that can still be selected; None if leaving out the rest does not pay."""
        ...

    def close(self, subproblem: S) -> None:
        """Update the subproblem around the innermost one, or all variables, by its changes, and remove it."""
        ...

    def gap(self) -> float:
        """Return the duality gap of the current point; within a subproblem only its variables are known."""
        ...

    def audit(self) -> float:
        """Return an upper estimate of the error of the violation, from gradients recomputed in double precision."""
        ...

    def refresh(self) -> None:
        """Recompute the gradients near the extremes in double precision, after an audit."""
        ...

    def refresh_all(self) -> None:
        """Recompute all gradients and the dual objective in double precision."""
        ...

    @property
    def dual_value(self) -> float:
        """The dual objective."""
        ...

    @property
    def dual(self) -> Floats:
        """The dual variables without the changes in open subproblems, in host memory."""
        ...

    @property
    def gradient(self) -> Floats:
        """The gradient at `dual`, in host memory."""
        ...

    @property
    def innermost_size(self) -> int:
        """The number of variables of the innermost open subproblem, or of all if none is open."""
        ...

    @property
    def has_full_gradient(self) -> bool:
        """Whether `full_point` needs no kernel values that are not in memory."""
        ...

    def point(self) -> tuple[Floats, Floats]:
        """Return dual vector and gradient with the changes in open subproblems, in host memory.

        An unknown gradient is infinite, on the side where it does not violate optimality.
        """
        ...

    def full_point(self) -> tuple[Floats, Floats]:
        """Return dual vector and gradient like `point`, with the gradient of all variables."""
        ...


class BlockBackend(Protocol):
    """An implementation of the operations of the block solver."""

    def scope(self) -> AbstractContextManager[Any]:
        """Return the context in which a solver calls the operations."""
        ...

    def open(self, problem: DualProblem, cache_bytes: int, threads: int) -> BlockState[Any]:
        """Return the state of a problem, at dual = 0, with up to `cache_bytes` for rows of the matrix.

        A solve opens several states: the matrix of a nested sample is a `take` of the whole, on the same data.
        """
        ...

    def start_at_bounds(self, problem: DualProblem, columns: Indices, weights: Floats) -> BoundStart:
        """Return the feasible point with each variable at the bound that its slack indicates.

        The slack is that of the decision function Σ weights · column; within each group variables are at their upper
        bounds from the largest slack down until the sum is right.
        """
        ...
