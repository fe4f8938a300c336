"""Dual vector and gradient of all variables in the memory of a device: the state of the block solver on a GPU.

A `DeviceMatrix` provides kernel values, `ArrayOperations` what is done with all variables between two rounds, a
`PairStepper` the steps of a subproblem. Only scalars and what the solver asks for travel to the host. With NumPy's
arrays the same code runs everywhere, which is how it is tested where there is no GPU.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from maxmargin._typing import Floats
from maxmargin.backends.array_operations import ArrayOperations, DeviceVariables, Violations, to_host
from maxmargin.backends.device_subproblem import DeviceSubproblem, PairStepper
from maxmargin.backends.interface import BlockTuning, KnownProduct, RunningTotals
from maxmargin.backends.optimality import known_gap
from maxmargin.backends.selection import MAX_GROUPS_BY_VARIABLE
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.problems import Counters, DualProblem

#: How many gradients an audit recomputes at each end of the violation, and spread over all variables.
AUDITED_AT_EACH_END, AUDITED_SPREAD = 256, 1024

#: Groups that pair steps and selection distinguish.
MAX_GROUPS = MAX_GROUPS_BY_VARIABLE

#: Safety factor of the audit, as on the host.
ERROR_SAFETY_FACTOR = 20.0

#: After a failed audit, working sets of up to so many variables are solved in double precision, with their updates.
MAX_PRECISE_SIZE = 512


class DeviceMatrix(Protocol):
    """Kernel values on a device. Index arrays and results are arrays of the device."""

    def product_parts(self, columns: Any, weights: Any) -> Any:
        """Return rows whose sum is Σ weights · column for all variables, with values in single precision."""
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


class DeviceState:
    """Dual vector and gradient of a problem on a device, in float64.

    Parameters
    ----------
    problem : DualProblem
        Of at most two groups.
    operations : ArrayOperations
    matrix : DeviceMatrix
    stepper : PairStepper
    tuning : BlockTuning
    """

    def __init__(
        self,
        problem: DualProblem,
        operations: ArrayOperations,
        matrix: DeviceMatrix,
        stepper: PairStepper,
        tuning: BlockTuning,
    ) -> None:
        if problem.groups > MAX_GROUPS:
            raise ValueError(
                f"on a GPU problems have at most {MAX_GROUPS} sum constraints, this one has {problem.groups}: "
                "train pairs of classes, or use device='cpu'"
            )
        xp = operations.xp
        self.problem, self.operations, self.xp, self.tuning = problem, operations, xp, tuning
        self.matrix, self.stepper = matrix, stepper
        self.linear, self.active, self.groups = problem.linear, problem.size, problem.groups
        self.variables = DeviceVariables.of(problem, xp)
        self.totals, self.violation, self.refreshed = RunningTotals(), np.inf, False
        self.evaluations = 0
        self._open: DeviceSubproblem | None = None
        self._largest_error = 0.0
        self._current = xp.zeros(self.active), self.variables.linear.copy()
        self._violations: Violations | None = None

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
        """Set all variables and compute their gradient, from a product that is known near it if cheaper."""
        xp = self.xp
        on_device = xp.asarray(dual)
        unknown = xp.where(on_device == self.variables.upper, xp.inf, -xp.inf)
        self._move(on_device, unknown)
        self.totals.dual_value = np.nan
        if not with_gradient:
            return
        change, product = dual, None
        if known is not None and np.count_nonzero(dual != known.point) < np.count_nonzero(dual):
            change, product = dual - known.point, xp.asarray(known.product)
        used = xp.asarray(np.flatnonzero(change))
        if len(used):
            added = self._product_parts(used, xp.asarray(change)[used]).sum(axis=0)
            product = added if product is None else product + added
        product = 0.0 if product is None else product
        self._set(on_device, self.variables.linear - product - self.variables.ridge * on_device)

    # ---- rounds ----------------------------------------------------------------------------------------------------

    def find_violation(self) -> float:
        """Compute and return the largest KKT violation."""
        self._violations = self.operations.find_violations(self.variables, *self._current)
        if not np.isfinite(self._violations.gradient_sum):
            raise ValueError(NON_FINITE_MESSAGE)
        self.violation = self._violations.largest
        return self.violation

    def count_free(self) -> int:
        """Return the number of variables off their bounds and kinks."""
        if self._violations is None:
            return int(self.variables.is_free(self._current[0]).sum())
        return self._violations.free

    def select(self, size: int) -> Any:
        """Return a working set of at most `size` variables."""
        assert self._violations is not None
        return self.operations.select(self._violations, size)

    def open_subproblem(self, working_set: Any) -> DeviceSubproblem:
        """Open the subproblem of a working set."""
        self.evaluations += len(working_set) ** 2
        precise = self.refreshed and len(working_set) <= MAX_PRECISE_SIZE
        values = self.matrix.precise_square(working_set) if precise else self.matrix.square(working_set)
        self.totals.rounds += 1
        part = self.operations.gather(self.variables, *self._current, working_set)
        middles = (0.0,) * self.groups if self._violations is None else self._violations.middles
        self._open = DeviceSubproblem(self, working_set, values, part, middles)
        return self._open

    def open_whole(self) -> DeviceSubproblem:
        """Open the subproblem of all variables on the whole matrix."""
        return self.open_subproblem(self.xp.arange(self.active, dtype=np.int32))

    def open_stored_rows(self) -> DeviceSubproblem:
        """Rows are computed again instead."""
        raise NotImplementedError("a device stores no rows: its tuning says so")

    def open_shrunk(self, subproblem: DeviceSubproblem) -> None:
        """Return None: a step takes hardly less time without the variables that cannot be selected."""
        return

    def close(self, subproblem: DeviceSubproblem) -> None:
        """Update dual vector and gradient of all variables by the changes of the subproblem."""
        part, count = subproblem, subproblem.count_changed()
        if part.active == self.active:
            dual, gradient = self._current[0].copy(), self._current[1].copy()
            dual[part.working_set], gradient[part.working_set] = part.dual, part.gradient
            self._move(dual, gradient)
        elif count:
            at, change = changes = self.operations.changes(part.working_set, part.start, part.dual, count)
            if part.precise:
                self.evaluations += self.active * count
                parts = self.matrix.precise_product(None, at, change)[None]
            else:
                parts = self._product_parts(at, change)
            point = self.operations.updated(
                self.variables, self._current, (part.working_set, part.dual), changes, parts
            )
            self._move(*point)
        self._open = None

    def _move(self, dual: Any, gradient: Any) -> None:
        self._current, self._violations = (dual, gradient), None  # both at once: Ctrl-C cannot separate them

    def _product_parts(self, columns: Any, weights: Any) -> Any:
        self.evaluations += self.active * len(columns)
        return self.matrix.product_parts(columns, weights)

    # ---- convergence checks ----------------------------------------------------------------------------------------

    def gap(self) -> float:
        """Return the duality gap of the current point."""
        return known_gap(self.problem, *self.point())

    def audit(self) -> float:
        """Return an upper estimate of the error of the violation: twice the largest error in a sample."""
        xp, (dual, gradient) = self.xp, self._current
        support = xp.flatnonzero(dual)
        if not len(support):
            return 0.0
        every = max(16, self.active // AUDITED_SPREAD)
        sample = self.operations.sample(self.variables, dual, gradient, AUDITED_AT_EACH_END, every)
        product = self._precise_product(sample, support)
        self._largest_error, counted = self.operations.errors(
            self.variables, self._current, sample, product, ERROR_SAFETY_FACTOR
        )
        return 2.0 * counted

    def refresh(self) -> None:
        """Recompute the gradients in double precision that could let a variable move, after an audit."""
        xp, (dual, gradient) = self.xp, self._current
        error = ERROR_SAFETY_FACTOR * self._largest_error
        near = xp.flatnonzero(self.operations.could_move(self.variables, dual, gradient, error, slice(None)))
        gradient = gradient.copy()
        gradient[near] = self._precise_gradient(near, xp.flatnonzero(dual))
        self._set(dual, gradient)
        self.refreshed = True

    def refresh_all(self) -> None:
        """Recompute all gradients and the dual objective in double precision."""
        dual = self._current[0]
        self._set(dual, self._precise_gradient(self.xp.arange(self.active), self.xp.flatnonzero(dual)))

    def _precise_gradient(self, variables: Any, support: Any) -> Any:
        dual, product = self._current[0], self._precise_product(variables, support)
        return self.variables.linear[variables] - product - self.variables.ridge[variables] * dual[variables]

    def _precise_product(self, variables: Any, support: Any) -> Any:
        self.evaluations += len(variables) * len(support)
        return self.matrix.precise_product(variables, support, self._current[0][support])

    # ---- the current point -----------------------------------------------------------------------------------------

    @property
    def dual(self) -> Floats:
        """The dual variables, without the changes in an open subproblem, in host memory."""
        return to_host(self._current[0])

    @property
    def gradient(self) -> Floats:
        """The gradient at `dual`, in host memory."""
        return to_host(self._current[1])

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
        if part is not None and part.count_changed():
            dual = dual.copy()
            dual[part.working_set] = part.dual
            gradient = self.xp.where(dual == self.variables.upper, self.xp.inf, -self.xp.inf)
            gradient[part.working_set] = part.gradient
        return to_host(dual), to_host(gradient)

    def full_point(self) -> tuple[Floats, Floats]:
        """Return dual vector and gradient like `point`, with the gradient of all variables."""
        return self.point()  # known in full wherever the solver may ask

    def _set(self, dual: Any, gradient: Any) -> None:
        xp, box = self.xp, self.variables
        self._move(dual, gradient)
        value = 0.5 * (dual * (box.linear + gradient)).sum()
        if box.kink is not None:
            value -= (box.kink * xp.abs(dual)).sum()
        self.totals.dual_value = float(value)
