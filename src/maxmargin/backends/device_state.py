"""Dual vector and gradient of all variables in the memory of a device: the state of the block solver on a GPU.

The operations are those of `host_state`, on arrays of another module with NumPy's functions. A `DeviceMatrix` provides kernel
values, a `PairStepper` the steps of a subproblem. Only scalars and what the solver asks for travel to the host. With NumPy as
the array module the same code runs everywhere, which is how it is tested where there is no GPU.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.backends.device_subproblem import DeviceSubproblem, PairStepper
from maxmargin.backends.interface import BlockTuning, KnownProduct, RunningTotals
from maxmargin.backends.optimality import known_gap
from maxmargin.backends.selection import MAX_GROUPS_BY_VARIABLE, largest, select_working_set
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.problems import Counters, DualProblem

#: How many gradients an audit recomputes at each end of the violation, and spread over all variables; on a GPU a few thousand
#: cost hardly more than one.
AUDITED_AT_EACH_END, AUDITED_SPREAD = 256, 1024

#: Groups that pair steps and selection distinguish.
MAX_GROUPS = MAX_GROUPS_BY_VARIABLE

#: Safety factor of the audit, as on the host.
ERROR_SAFETY_FACTOR = 20.0

#: After a failed audit, working sets of up to so many variables are solved in double precision, with their updates.
MAX_PRECISE_SIZE = 512


class DeviceMatrix(Protocol):
    """Kernel values on a device. Index arrays and results are arrays of the device."""

    def product(self, columns: Any, weights: Any) -> Any:
        """Return Σ weights · column for all variables, with values in single precision."""
        ...

    def square(self, variables: Any) -> Any:
        """Return the block between some variables in single precision."""
        ...

    def precise_product(self, rows: Any, columns: Any, weights: Any) -> Any:
        """Return Σ weights · column for some variables, in double precision."""
        ...

    def precise_square(self, variables: Any) -> Any:
        """Return the block between some variables in double precision."""
        ...


class DeviceVariables(NamedTuple):
    """The arrays of a problem on a device; `kink` is None where there is none."""

    linear: Any
    lower: Any
    upper: Any
    ridge: Any
    curvature: Any
    group: Any
    kink: Any

    @classmethod
    def of(cls, problem: DualProblem, xp: Any) -> DeviceVariables:
        """Copy the arrays of a problem to a device."""
        return cls(
            xp.asarray(problem.linear),
            xp.asarray(problem.lower),
            xp.asarray(problem.upper),
            xp.asarray(problem.ridge),
            xp.asarray(problem.curvature),
            xp.asarray(problem.group.astype(np.int8)),
            xp.asarray(problem.kink) if problem.kinked else None,
        )

    def take(self, index: Any) -> DeviceVariables:
        """Return the arrays of some variables."""
        return DeviceVariables(*(None if array is None else array[index] for array in self))


class DeviceState:
    """Dual vector and gradient of a problem on a device, in float64.

    Parameters
    ----------
    problem : DualProblem
        Of at most two groups.
    xp : module
        NumPy, or a module with its functions.
    matrix : DeviceMatrix
    stepper : PairStepper
    tuning : BlockTuning
    """

    def __init__(self, problem: DualProblem, xp: Any, matrix: DeviceMatrix, stepper: PairStepper, tuning: BlockTuning):
        if problem.groups > MAX_GROUPS:
            raise ValueError(
                f"on a GPU problems have at most {MAX_GROUPS} sum constraints, this one has {problem.groups}: "
                "train pairs of classes, or use device='cpu'"
            )
        self.problem, self.xp, self.matrix, self.stepper, self.tuning = problem, xp, matrix, stepper, tuning
        self.linear, self.active, self.groups = problem.linear, problem.size, problem.groups
        self.variables = DeviceVariables.of(problem, xp)
        self.totals, self.violation, self.refreshed = RunningTotals(), np.inf, False
        self.evaluations = 0
        self._open: DeviceSubproblem | None = None
        self._largest_error = 0.0
        self._current = xp.zeros(self.active), self.variables.linear.copy()
        self._up, self._down = xp.zeros(0), xp.zeros(0)

    # ---- start -----------------------------------------------------------------------------------------------------

    @property
    def kernel_evaluations(self) -> int:
        """The number of kernel values computed so far."""
        return self.evaluations

    def counters(self, seconds: float) -> Counters:
        """Return the counters of a solution."""
        totals = self.totals
        return Counters(totals.iterations, self.kernel_evaluations, 0, 0, totals.rounds, seconds)

    def add(self, spent: Counters) -> None:
        """Add what was spent on other problems."""
        self.totals.iterations += spent.iterations
        self.totals.rounds += spent.rounds
        self.evaluations += spent.kernel_evaluations

    def set_dual(self, dual: Floats, with_gradient: bool = True, known: KnownProduct | None = None) -> None:
        """Set all variables and compute their gradient, from a product that is known near the point if it is cheaper."""
        xp = self.xp
        on_device = xp.asarray(dual)
        unknown = xp.where(on_device == self.variables.upper, xp.inf, -xp.inf)
        self._current, self.totals.dual_value = (on_device, unknown), np.nan
        if not with_gradient:
            return
        change, product = dual, None
        if known is not None and np.count_nonzero(dual != known.point) < np.count_nonzero(dual):
            change, product = dual - known.point, xp.asarray(known.product)
        used = xp.asarray(np.flatnonzero(change))
        if len(used):
            added = self._product(used, xp.asarray(change)[used])
            product = added if product is None else product + added
        product = 0.0 if product is None else product
        self._set(on_device, self.variables.linear - product - self.variables.ridge * on_device)

    # ---- rounds ----------------------------------------------------------------------------------------------------

    def find_violation(self) -> float:
        """Compute and return the largest KKT violation."""
        xp, (dual, gradient), box = self.xp, self._current, self.variables
        growing, falling = slopes(xp, dual, gradient, box.kink)
        up = xp.where(dual < box.upper, growing, -xp.inf)
        down = xp.where(dual > box.lower, falling, xp.inf)
        highest, lowest = self._extremes(up, down)
        self._up = up - lowest[box.group]
        self._down = highest[box.group] - down
        worst = xp.maximum(self._up.max(), self._down.max())
        violation, total = _host(xp.stack([worst, gradient.sum()]))
        if not np.isfinite(total):
            raise ValueError(NON_FINITE_MESSAGE)
        self.violation = max(float(violation), 0.0)
        return self.violation

    def _extremes(self, up: Any, down: Any) -> tuple[Any, Any]:
        """Return, per group, the largest slope up and the smallest down; a last 0, for variables in no group."""
        xp, problem = self.xp, self.problem
        if problem.groups == 1 and not problem.ungrouped:
            highest, lowest = [up.max()], [down.min()]
        else:
            members = [self.variables.group == g for g in range(problem.groups)]
            highest = [xp.where(each, up, -xp.inf).max() for each in members]
            lowest = [xp.where(each, down, xp.inf).min() for each in members]
        zero = xp.zeros(())
        return xp.stack([*highest, zero]), xp.stack([*lowest, zero])

    def free(self) -> Any:
        """Return the variables off their bounds and kinks."""
        return self.xp.flatnonzero(is_free(self._current[0], self.variables))

    def count_free(self) -> int:
        """Return the number of variables off their bounds and kinks."""
        return int(is_free(self._current[0], self.variables).sum())

    def select(self, size: int) -> Any:
        """Return a working set of at most `size` variables."""
        return self.xp.sort(select_working_set(self, self._up, self._down, size, self.xp))

    def open_subproblem(self, working_set: Any) -> DeviceSubproblem:
        """Open the subproblem of a working set."""
        self.evaluations += len(working_set) ** 2
        precise = self.refreshed and len(working_set) <= MAX_PRECISE_SIZE
        values = self.matrix.precise_square(working_set) if precise else self.matrix.square(working_set)
        self.totals.rounds += 1
        dual, gradient = self._current
        self._open = DeviceSubproblem(
            self, working_set, values, dual[working_set], gradient[working_set], self.variables.take(working_set)
        )
        return self._open

    def open_whole(self) -> DeviceSubproblem:
        """Open the subproblem of all variables on the whole matrix."""
        return self.open_subproblem(self.xp.arange(self.active))

    def open_stored_rows(self) -> DeviceSubproblem:
        """Rows are computed again instead."""
        raise NotImplementedError("a device stores no rows: its tuning says so")

    def open_shrunk(self, subproblem: DeviceSubproblem) -> None:
        """Return None: a step takes hardly less time without the variables that cannot be selected."""
        return

    def close(self, subproblem: DeviceSubproblem) -> None:
        """Update dual vector and gradient of all variables by the changes of the subproblem."""
        dual, gradient = self._current[0].copy(), self._current[1].copy()
        moved = subproblem.changed()
        at = subproblem.working_set[moved]
        change = subproblem.dual[moved] - dual[at]
        dual[at] = subproblem.dual[moved]
        if len(subproblem.working_set) == self.active:
            gradient[subproblem.working_set] = subproblem.gradient
        elif len(at):
            if subproblem.precise:
                self.evaluations += self.active * len(at)
                gradient -= self.matrix.precise_product(None, at, change)
            else:
                gradient -= self._product(at, change)
            gradient[at] -= self.variables.ridge[at] * change
        self._current = dual, gradient  # both at once: Ctrl-C cannot separate them
        self._open = None

    def _product(self, columns: Any, weights: Any) -> Any:
        self.evaluations += self.active * len(columns)
        return self.matrix.product(columns, weights)

    # ---- convergence checks ----------------------------------------------------------------------------------------

    def gap(self) -> float:
        """Return the duality gap of the current point."""
        return known_gap(self.problem, *self.point())

    def audit(self) -> float:
        """Return an upper estimate of the error of the violation: twice the largest error in a sample."""
        xp, (dual, gradient), box = self.xp, self._current, self.variables
        support = xp.flatnonzero(dual)
        if not len(support):
            return 0.0
        growing, falling = slopes(xp, dual, gradient, box.kink)
        up = xp.where(dual < box.upper, growing, -xp.inf)
        down = xp.where(dual > box.lower, falling, xp.inf)
        ends = [largest(values, AUDITED_AT_EACH_END, -np.inf, xp) for values in (up, -down)]
        spread = xp.arange(0, self.active, max(16, self.active // AUDITED_SPREAD))
        sample = xp.unique(xp.concatenate([*ends, spread]))
        errors = xp.abs(self._precise_gradient(sample, support) - gradient[sample])
        self._largest_error = float(errors.max())
        counted = xp.where(self._could_move(ERROR_SAFETY_FACTOR * errors, sample), errors, 0.0)
        return 2.0 * float(counted.max())

    def refresh(self) -> None:
        """Recompute the gradients in double precision that could let a variable move, after an audit."""
        xp, (dual, gradient) = self.xp, self._current
        near = xp.flatnonzero(self._could_move(ERROR_SAFETY_FACTOR * self._largest_error, slice(None)))
        gradient = gradient.copy()
        gradient[near] = self._precise_gradient(near, xp.flatnonzero(dual))
        self._set(dual, gradient)
        self.refreshed = True

    def refresh_all(self) -> None:
        """Recompute all gradients and the dual objective in double precision."""
        dual = self._current[0]
        self._set(dual, self._precise_gradient(self.xp.arange(self.active), self.xp.flatnonzero(dual)))

    def _precise_gradient(self, variables: Any, support: Any) -> Any:
        self.evaluations += len(variables) * len(support)
        dual = self._current[0]
        product = self.matrix.precise_product(variables, support, dual[support])
        return self.variables.linear[variables] - product - self.variables.ridge[variables] * dual[variables]

    def _could_move(self, error: Any, variables: Any) -> Any:
        """Return which variables could move if their gradients were off by `error`."""
        xp, (dual, gradient), box = self.xp, self._current, self.variables
        growing, falling = slopes(xp, dual, gradient, box.kink)
        up = xp.where(dual < box.upper, growing, -xp.inf)
        down = xp.where(dual > box.lower, falling, xp.inf)
        highest, lowest = self._extremes(up, down)
        group = box.group[variables]
        return (up[variables] + error >= lowest[group]) | (down[variables] - error <= highest[group])

    # ---- the current point -----------------------------------------------------------------------------------------

    @property
    def dual(self) -> Floats:
        """The dual variables, without the changes in an open subproblem, in host memory."""
        return _host(self._current[0])

    @property
    def gradient(self) -> Floats:
        """The gradient at `dual`, in host memory."""
        return _host(self._current[1])

    @property
    def dual_value(self) -> float:
        """The dual objective."""
        return self.totals.dual_value

    @property
    def innermost_size(self) -> int:
        """The number of variables of the open subproblem, or of all if none is open."""
        return self.active if self._open is None else self._open.active

    @property
    def has_full_gradient(self) -> bool:
        """Whether the gradient of all variables is known."""
        return self._open is None or self._open.active == self.active

    def point(self) -> tuple[Floats, Floats]:
        """Return dual vector and gradient with the changes in an open subproblem; unknown gradients are infinite."""
        dual, gradient = self._current
        part = self._open
        if part is not None and len(part.changed()):
            dual = dual.copy()
            dual[part.working_set] = part.dual
            gradient = self.xp.where(dual == self.variables.upper, self.xp.inf, -self.xp.inf)
            gradient[part.working_set] = part.gradient
        return _host(dual), _host(gradient)

    def full_point(self) -> tuple[Floats, Floats]:
        """Return dual vector and gradient like `point`, with the gradient of all variables."""
        return self.point()  # known in full wherever the solver may ask

    def _set(self, dual: Any, gradient: Any) -> None:
        xp, box = self.xp, self.variables
        self._current = dual, gradient
        value = 0.5 * (dual * (box.linear + gradient)).sum()
        if box.kink is not None:
            value -= (box.kink * xp.abs(dual)).sum()
        self.totals.dual_value = float(value)


def slopes(xp: Any, dual: Any, gradient: Any, kink: Any) -> tuple[Any, Any]:
    """Return the slope of the objective along each variable when it increases, and when it decreases."""
    if kink is None:
        return gradient, gradient
    less, more = gradient - kink, gradient + kink
    return xp.where(dual < 0, more, less), xp.where(dual > 0, less, more)


def is_free(dual: Any, box: DeviceVariables) -> Any:
    """Return which variables are strictly between their bounds and not at a kink."""
    inside = (box.lower < dual) & (dual < box.upper)
    return inside if box.kink is None else inside & ((dual != 0) | (box.kink == 0))


def _host(array: Any) -> Indices | Floats | Any:
    return array if isinstance(array, np.ndarray) else array.get()
