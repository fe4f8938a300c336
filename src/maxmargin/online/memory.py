"""The memory of online learning: samples, kernel rows, and the dual variables of the subproblems that share them.

Each slot holds a sample. Every subproblem has a dual variable, its gradient and bounds for each slot. Equal bounds
exclude the sample from the subproblem; a slot excluded from all subproblems is removed. The memory therefore grows with
the number of support vectors, not with the length of the stream.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.kernels import Kernel
from maxmargin.matrices import KernelMatrix
from maxmargin.online.kernel_table import KernelTable
from maxmargin.online.sample_constraints import NoveltyDetection, StreamSubproblem
from maxmargin.online.sample_store import SampleStore, SlotData
from maxmargin.problems import DualProblem
from maxmargin.problems.gradient_extremes import interval_midpoint

#: Unused slots are removed together when they exceed this fraction of all slots, and this number.
MAX_UNUSED_FRACTION, MAX_UNUSED_SLOTS = 0.25, 64

#: The arrays with an entry for each subproblem and slot.
STATE = ("dual", "gradient", "lower", "upper")


class OnlineMemory:
    """Samples and the dual variables of the subproblems that share them.

    Parameters
    ----------
    kernel : Kernel
    like : array or CSR matrix
        Determines the storage format of the samples.
    bias : bool
        Whether the dual variables of a subproblem have a constant sum.
    tolerance : float
        The violation from which on a pair is optimised.
    cache_bytes : int
        Memory for kernel rows.

    Attributes
    ----------
    subproblems : list of StreamSubproblem
    dual, gradient, lower, upper : float arrays of shape (subproblems, capacity)
    slots : SlotData
        Label, cost, identity and time of arrival of the sample in each slot.
    seen : int
        The number of samples observed.
    recent_costs : float array
        The costs of the samples within the maximum age.
    """

    def __init__(self, kernel: Kernel, like: Any, *, bias: bool, tolerance: float, cache_bytes: int) -> None:
        self.kernel, self.bias, self.tolerance = kernel, bias, tolerance
        self.samples = SampleStore(like)
        self.table = KernelTable(kernel, cache_bytes)
        self.slots = SlotData.empty()
        self.subproblems: list[StreamSubproblem] = []
        self.dual, self.gradient, self.lower, self.upper = (np.zeros((0, self.table.width)) for _ in range(4))
        self.seen = 0
        self.recent_costs: Floats = np.empty(0)
        self.threads = 1

    @property
    def count(self) -> int:
        """The number of slots."""
        return self.samples.count

    def used(self) -> Indices:
        """Return the slots that take part in a subproblem."""
        n = self.count
        return np.flatnonzero((self.lower[:, :n] < self.upper[:, :n]).any(axis=0))

    def row(self, slot: int) -> Floats:
        """Return a copy of the kernel row of a slot in double precision."""
        return np.array(self.table.fetch(self.samples, slot, self.threads), dtype=np.float64)

    def offset(self, subproblem: int) -> float:
        """Return the bias of a subproblem.

        During a stream the ends of the interval of admissible offsets are determined by recent outliers. Classification
        therefore uses the offset with the least loss in memory: variables take their upper bounds in the order of
        decreasing gradients until their sum is 0. Novelty detection, whose memory lacks the samples far inside the
        region, uses the middle of the interval.
        """
        if not self.bias:
            return 0.0
        if isinstance(self.subproblems[subproblem], NoveltyDetection):
            low, high = self._gradient_extremes(subproblem)
            return float(interval_midpoint(np.array([low]), np.array([high]))[0])
        lower, upper = self.lower[subproblem, : self.count], self.upper[subproblem, : self.count]
        members = np.flatnonzero(lower < upper)
        if not len(members):
            return 0.0
        order = members[np.argsort(-self.gradient[subproblem, members], kind="stable")]
        sorted_gradient, reached = self.gradient[subproblem, order], np.cumsum(upper[order] - lower[order])
        target = -float(lower[members].sum())
        last = min(int(np.searchsorted(reached, target * (1.0 - 1e-12))), len(order) - 1)
        if target > 0 and reached[last] <= target * (1.0 + 1e-12) and last + 1 < len(order):
            return 0.5 * float(sorted_gradient[last] + sorted_gradient[last + 1])  # the middle of all optimal offsets
        return float(sorted_gradient[last])

    def violation(self, subproblem: int) -> float:
        """Return the largest KKT violation of a subproblem in memory."""
        low, high = self._gradient_extremes(subproblem)
        return max(0.0, low - high) if self.bias else max(0.0, low, -high)

    def max_violation(self) -> float:
        """Return the largest KKT violation of all subproblems in memory."""
        return max(self.violation(m) for m in range(len(self.subproblems)))

    def _gradient_extremes(self, subproblem: int) -> tuple[float, float]:
        """Return the largest gradient that can increase and the smallest that can decrease."""
        n = self.count
        b, g = self.dual[subproblem, :n], self.gradient[subproblem, :n]
        low = np.where(b < self.upper[subproblem, :n], g, -np.inf).max(initial=-np.inf)
        high = np.where(b > self.lower[subproblem, :n], g, np.inf).min(initial=np.inf)
        return float(low), float(high)

    def linear(self, subproblem: int) -> Floats:
        """Return the linear term of all slots."""
        return self.subproblems[subproblem].constraints(self.slots.label, self.slots.cost).linear

    def dual_value(self) -> float:
        """Return the sum of the dual objectives, computed from the stored gradients."""
        n = self.count
        return sum(
            0.5 * float(self.dual[m, :n] @ (self.linear(m) + self.gradient[m, :n]))
            for m in range(len(self.subproblems))
        )

    def primal_value(self) -> float:
        """Return the sum of the primal objectives on the samples in memory."""
        n, value = self.count, self.dual_value()
        for m in range(len(self.subproblems)):
            slack = self.gradient[m, :n] - self.offset(m)
            loss = np.maximum(self.upper[m, :n] * slack, self.lower[m, :n] * slack)
            value += float((loss - slack * self.dual[m, :n]).sum())
        return value

    def dual_problem(self, subproblem: int, sign: float = 1.0) -> tuple[DualProblem, Floats]:
        """Return the dual problem of the samples in memory, with their original bounds, and the dual vector.

        A `sign` of −1 exchanges the two classes.
        """
        used = self.used()
        constraints = self.subproblems[subproblem].constraints(self.slots.label[used], self.slots.cost[used])
        lower, upper = constraints.lower, constraints.upper
        lower, upper = (lower, upper) if sign > 0 else (-upper, -lower)
        dual = sign * self.dual[subproblem, used]
        novelty = isinstance(self.subproblems[subproblem], NoveltyDetection)
        total = np.array([dual.sum() if novelty else 0.0])
        return DualProblem(
            KernelMatrix(self.kernel, self.samples.points.take(used), self.threads),
            sign * constraints.linear,
            lower,
            upper,
            group=np.full(len(used), 0 if self.bias else -1, dtype=np.int32),
            total=total if self.bias else np.empty(0),
        ), dual

    def add_subproblem(self, subproblem: StreamSubproblem, negated: int | None = None) -> None:
        """Add a subproblem with dual variables of 0 for the samples in memory, or with those of another one negated."""
        self.remove_unused(0)
        n, m = self.count, negated
        rows = np.zeros((4, self.dual.shape[1]))
        if m is not None:
            rows[:] = -self.dual[m], -self.gradient[m], -self.upper[m], -self.lower[m]
        else:
            rows[1:, :n] = subproblem.constraints(self.slots.label, self.slots.cost)[:3]
        for name, row in zip(STATE, rows, strict=True):
            setattr(self, name, np.vstack([getattr(self, name), row[None]]))
        self.subproblems.append(subproblem)

    def set_bounds(self, slot: int) -> None:
        """Set the bounds of a slot from its label and cost."""
        for m, subproblem in enumerate(self.subproblems):
            constraints = subproblem.constraints(self.slots.label[[slot]], self.slots.cost[[slot]])
            self.lower[m, slot], self.upper[m, slot] = constraints.lower[0], constraints.upper[0]

    def load(self, X: Any, data: SlotData, dual: Floats, gradient: Floats) -> None:
        """Replace the memory by these samples with known dual variables and gradients."""
        self.samples, self.table = SampleStore(X), KernelTable(self.kernel, self.table.budget)
        self.samples.append(X)
        self.slots = data
        self.dual, self.gradient = dual.copy(), gradient.copy()
        constraints = [subproblem.constraints(data.label, data.cost) for subproblem in self.subproblems]
        self.lower, self.upper = np.array([c.lower for c in constraints]), np.array([c.upper for c in constraints])

    def append(self, X: Any, data: SlotData) -> None:
        """Append samples without bounds in any subproblem, or raise if kernel values are not finite."""
        before = self.count
        self.samples.append(X)
        try:
            self._append_rows(float(max(self.slots.cost.max(initial=0.0), data.cost.max(initial=0.0))))
        except BaseException:
            self.samples.count = before
            if self.table.count != before:
                self.table.restart(self.samples, self.table.dtype, self.threads)
            self._resize()
            raise
        self.slots = self.slots.extended(data)
        self._resize()

    def _append_rows(self, cost: float) -> None:
        """Compute the kernel rows of new samples; switch to double precision if it is needed."""
        try:
            self.table.append_all(self.samples, self.threads)
        except ValueError:
            if self.table.dtype == np.float64:
                raise
        else:
            largest = float(np.abs(self.table.diagonal[: self.count]).max(initial=0.0))
            if not self.table.needs_double_precision(cost * largest):
                return
        known = len(self.slots.label)
        self.table.restart(self.samples, np.float64, self.threads)
        for m in range(len(self.subproblems)):  # recompute the gradients in double precision
            gradient = self.linear(m)
            for slot in np.flatnonzero(self.dual[m, :known]):
                gradient -= self.dual[m, slot] * self.row(int(slot))[:known]
            self.gradient[m, :known] = gradient

    def compute_missing_rows(self) -> None:
        """Compute the kernel rows of a memory that was loaded or unpickled."""
        self.table.restore(self.samples, self.threads)
        if self.table.count < self.count:
            self._append_rows(float(self.slots.cost.max(initial=0.0)))
            self._resize()

    def _resize(self) -> None:
        capacity, n = self.table.width, self.count
        for name in STATE:
            array = getattr(self, name)
            if array.shape[1] != capacity:
                larger = np.zeros((len(self.subproblems), capacity))
                larger[:, : min(n, array.shape[1])] = array[:, : min(n, array.shape[1])]
                setattr(self, name, larger)

    def remove_unused(self, settled: int) -> None:
        """Remove slots that take part in no subproblem; among the first `settled` slots only if many are unused."""
        used = np.zeros(self.count, dtype=bool)
        used[self.used()] = True
        unused = int(settled - used[:settled].sum())
        if unused <= max(MAX_UNUSED_SLOTS, MAX_UNUSED_FRACTION * settled):
            used[:settled] = True
        if not used.all():
            self.keep(np.flatnonzero(used))

    def keep(self, slots: Indices) -> None:
        """Keep some slots, given in increasing order, and remove the others."""
        n = self.count
        for name in STATE:
            array = getattr(self, name)
            array[:, : len(slots)] = array[:, slots]
            array[:, len(slots) : n] = 0.0
        self.table.keep(slots)
        self.samples.keep(slots)
        self.slots = self.slots.take(slots)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, **{name: getattr(self, name)[:, : self.count].copy() for name in STATE}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in STATE:
            larger = np.zeros((len(self.subproblems), max(self.count, len(self.table.row_of))))
            larger[:, : self.count] = getattr(self, name)
            setattr(self, name, larger)
