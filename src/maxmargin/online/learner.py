"""LASVM: machines that learn from a stream, and the samples that they share (Bordes et al. 2005).

    observe a sample t
        PROCESS     pair t with a partner in the memory, solve the problem of the two
        REPROCESS   the same with a pair within the memory
        remove      after each step, who supports nothing and could not be part of a violating pair

The memory holds *slots*, a sample in each, in the order of arrival. One or several machines share slots and kernel
values; each has a dual variable, its gradient and a box for every slot. An empty box means that the machine has no use
for the sample; a slot that no machine uses is given up. Memory is that of the support vectors, however long the stream.

The steps are native (`native/online_steps.hpp`); here are the chunks of samples, the rows of kernel values, and what
comes and goes. `maintenance` has what else makes samples leave: age, and a budget.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.kernels import Kernel
from maxmargin.matrices import KernelMatrix
from maxmargin.online.kernel_table import KernelTable
from maxmargin.online.maintenance import Budget, forget_the_old
from maxmargin.online.sample_constraints import Novelty, Part, Role
from maxmargin.online.sample_store import SampleStore
from maxmargin.online.slots import Slots
from maxmargin.problems import DualProblem
from maxmargin.problems.gradient_extremes import offset_between

#: How a pair is chosen; the numbers are those of `native/loops.hpp`.
SELECTIONS = {"most_violating_pair": 0, "second_order": 1}

#: Samples whose kernel rows are computed together.
CHUNK = 256

#: Samples between two looks at the clock, at Ctrl-C and at the callback.
SLICE = 32

#: Slots out of use are given up when there are more of them than this part of all, and more than a few.
DEAD_PART, DEAD_COUNT = 0.25, 64

#: About how many multiplications of steps are worth a thread.
WORTH_A_THREAD = 2 * 10**6

#: Why the native loop comes back; otherwise it wants a row.
DONE = 0

#: The arrays of each machine and slot.
STATE = ("dual", "gradient", "lower", "upper")


class OnlineLearner:
    """The memory, and the machines that learn from it.

    Parameters
    ----------
    kernel : Kernel
    like : array or CSR matrix
        Samples like those to come.
    bias : bool
        Whether the dual variables of a machine have a constant sum.
    selection : {"second_order", "most_violating_pair"}
    tolerance : float
        The violation from which on a pair takes a step.
    cache_bytes : int
        For rows of kernel values.
    budget : Budget, optional
        How many samples are kept at most, and what happens to the others.
    forget : int, optional
        The age at which samples leave. Until then all stay: one that is of no use today may be needed when others
        leave.

    Attributes
    ----------
    roles : list of Role
        What each machine is about.
    dual, gradient, lower, upper : float arrays of shape (machines, room)
        Of each machine and slot.
    slots : Slots
        Label, cost, identity and time of arrival of the sample in each slot.
    seen, steps, next_identity : int
        Samples observed, pair steps taken, and a number that no sample has had.
    budget_loss : float
        What the budget has cost in dual value.
    """

    def __init__(
        self,
        kernel: Kernel,
        like: Any,
        *,
        bias: bool,
        selection: str,
        tolerance: float,
        cache_bytes: int,
        budget: Budget | None = None,
        forget: int | None = None,
    ) -> None:
        self.kernel, self.bias, self.selection, self.tolerance = kernel, bias, selection, tolerance
        self.budget, self.forget = budget, forget
        self.samples = SampleStore(like)
        self.table = KernelTable(kernel, cache_bytes)
        self.slots = Slots.empty()
        self.roles: list[Role] = []
        self.dual, self.gradient, self.lower, self.upper = (np.zeros((0, self.table.width)) for _ in range(4))
        self.seen = self.steps = self.next_identity = 0
        self.budget_loss = 0.0
        self.recent: Floats = np.empty(0)  # costs of the samples that are not too old
        self.threads = 1

    # What is there.

    @property
    def count(self) -> int:
        """The number of slots."""
        return self.samples.count

    def used(self) -> Indices:
        """Return the slots that some machine has use for."""
        n = self.count
        return np.flatnonzero((self.lower[:, :n] < self.upper[:, :n]).any(axis=0))

    def row(self, slot: int) -> Floats:
        """Return the kernel values of a slot with all, as a copy in double precision."""
        return np.array(self.table.fetch(self.samples, slot, self.threads), dtype=np.float64)

    def offset(self, machine: int) -> float:
        """Return the bias of a machine.

        In the middle of a stream the two ends of the interval that gradients leave are outliers that have just come. So
        a classifier takes the bias of the least loss in memory: from the largest gradient down, so many variables take
        their upper bounds until the sum is 0. In novelty detection, whose memory has seen all but the inside, it is the
        middle between the ends.
        """
        if not self.bias:
            return 0.0
        if isinstance(self.roles[machine], Novelty):
            low, high = self._ends(machine)
            return float(offset_between(np.array([low]), np.array([high]))[0])
        lower, upper = self.lower[machine, : self.count], self.upper[machine, : self.count]
        inside = np.flatnonzero(lower < upper)
        if not len(inside):
            return 0.0
        order = inside[np.argsort(-self.gradient[machine, inside], kind="stable")]
        level, reached = self.gradient[machine, order], np.cumsum(upper[order] - lower[order])
        wanted = -float(lower[inside].sum())
        last = min(int(np.searchsorted(reached, wanted * (1.0 - 1e-12))), len(order) - 1)
        if wanted > 0 and reached[last] <= wanted * (1.0 + 1e-12) and last + 1 < len(order):
            return 0.5 * float(level[last] + level[last + 1])  # all between the two are equally good
        return float(level[last])

    def violation(self, machine: int) -> float:
        """Return the largest violation in the memory of a machine."""
        low, high = self._ends(machine)
        return max(0.0, low - high) if self.bias else max(0.0, low, -high)

    def _ends(self, machine: int) -> tuple[float, float]:
        """Return the largest gradient that may grow and the smallest that may fall."""
        n = self.count
        b, g = self.dual[machine, :n], self.gradient[machine, :n]
        low = np.where(b < self.upper[machine, :n], g, -np.inf).max(initial=-np.inf)
        high = np.where(b > self.lower[machine, :n], g, np.inf).min(initial=np.inf)
        return float(low), float(high)

    def linear(self, machine: int) -> Floats:
        """Return the linear term of all slots."""
        return self.roles[machine].part(self.slots.label, self.slots.cost).linear

    def dual_value(self) -> float:
        """Return Σ D over the machines, by the gradients that are kept."""
        n = self.count
        return sum(
            0.5 * float(self.dual[m, :n] @ (self.linear(m) + self.gradient[m, :n])) for m in range(len(self.roles))
        )

    def primal_value(self) -> float:
        """Return what the decision functions cost on the samples in memory, Σ over the machines."""
        n, value = self.count, self.dual_value()
        for m in range(len(self.roles)):
            slack = self.gradient[m, :n] - self.offset(m)
            loss = np.maximum(self.upper[m, :n] * slack, self.lower[m, :n] * slack)
            value += float((loss - slack * self.dual[m, :n]).sum())
        return value

    def problem(self, machine: int, sign: float = 1.0) -> tuple[DualProblem, Floats]:
        """Return the problem of the samples in memory, with the boxes that they came with, and the dual vector.

        A `sign` of −1 turns the sides of a machine round.
        """
        used = self.used()
        part = self.roles[machine].part(self.slots.label[used], self.slots.cost[used])
        lower, upper = (part.lower, part.upper) if sign > 0 else (-part.upper, -part.lower)
        dual = sign * self.dual[machine, used]
        total = np.array([dual.sum() if isinstance(self.roles[machine], Novelty) else 0.0])
        return DualProblem(
            KernelMatrix(self.kernel, self.samples.points.take(used), self.threads),
            sign * part.linear,
            lower,
            upper,
            group=np.full(len(used), 0 if self.bias else -1, dtype=np.int32),
            total=total if self.bias else np.empty(0),
        ), dual

    # What comes.

    def add_role(self, role: Role, opposite_of: int | None = None) -> None:
        """Add a machine. It knows the memory, with dual variables of 0; or it is the opposite of another machine."""
        self.give_up_slots(0)
        n, m = self.count, opposite_of
        rows = np.zeros((4, self.dual.shape[1]))
        if m is not None:
            rows[:] = -self.dual[m], -self.gradient[m], -self.upper[m], -self.lower[m]
        else:
            rows[1:, :n] = role.part(self.slots.label, self.slots.cost)[:3]
        for name, row in zip(STATE, rows, strict=True):
            setattr(self, name, np.vstack([getattr(self, name), row[None]]))
        self.roles.append(role)

    def observe(
        self,
        X: Any,
        labels: Indices,
        costs: Floats,
        identity: Indices,
        stop: Callable[[], bool],
        again: bool = False,
    ) -> int:
        """Show samples to the machines, one after the other; return how many were taken before `stop` said so.

        A sample whose identity is in memory already is not taken in again. If samples come `again`, the sums of the
        machines have counted them.
        """
        self._compute_what_is_missing()
        taken = 0
        while taken < len(labels) and (taken == 0 or not stop()):
            wanted = min(self._chunk, len(labels) - taken)
            part = slice(taken, taken + self.table.most_at_once(wanted))
            parts = [role.part(labels[part], costs[part]) for role in self.roles]
            if again:
                parts = [own._replace(start=np.zeros(len(own.start))) for own in parts]
            about = Slots(labels[part], costs[part], identity[part], self.seen + np.arange(len(labels[part])))
            taken += self._observe_chunk(X[part], about, parts, stop)
        return taken

    def load(self, X: Any, about: Slots, dual: Floats, gradient: Floats) -> None:
        """Replace the memory by these samples, of which dual variables and gradients are known for each machine."""
        self.samples, self.table = SampleStore(X), KernelTable(self.kernel, self.table.budget)
        self.samples.append(X)
        self.slots = about
        self.dual, self.gradient = dual.copy(), gradient.copy()
        parts = [role.part(about.label, about.cost) for role in self.roles]
        self.lower, self.upper = np.array([p.lower for p in parts]), np.array([p.upper for p in parts])

    def finish(self, stop: Callable[[], bool]) -> None:
        """Take steps within the memory until no pair violates optimality by more than the tolerance."""
        self._compute_what_is_missing()
        while max(self.violation(m) for m in range(len(self.roles))) > self.tolerance and not stop():
            before = self.steps
            self._reprocess(SLICE)
            if self.steps == before:
                break  # rounding
        self.give_up_slots(self.count)

    @property
    def _chunk(self) -> int:
        """How many samples come before age and budget are looked at."""
        limits = [self.forget] if self.forget is not None else []
        limits += [self.budget.most] if self.budget is not None else []
        return max(1, min(CHUNK, *(limit // 8 for limit in limits))) if limits else CHUNK

    def _observe_chunk(self, X: Any, about: Slots, parts: list[Part], stop: Callable[[], bool]) -> int:
        total, done = len(about.label), 0
        if self.count + total > self.table.width:
            self.give_up_slots(0)  # before there is more room than needed
        before = self.count
        arrivals = self._admit(X, about)
        while done < total and (done == 0 or not stop()):
            end = min(total, done + SLICE)
            length = before + int((arrivals[:done] >= before).sum())
            self._show(arrivals[done:end], [Part(*(a[done:end] for a in part)) for part in parts], length)
            done = end
        self.seen += done
        shown = before + int((arrivals[:done] >= before).sum())
        if shown < self.count:
            self._keep(np.arange(shown))
        left = 0 if self.forget is None else forget_the_old(self, self.forget, about.cost[:done])
        if self.budget is not None:
            gone, loss = self.budget.apply(self)
            left, self.budget_loss = left + gone, self.budget_loss + loss
        self._reprocess(left)  # a step for each that came, and one for each that left
        self.give_up_slots(before)
        return done

    def _admit(self, X: Any, about: Slots) -> Indices:
        """Give a slot to every sample that has none; return the slots of all."""
        total = len(about.label)
        arrivals, there = np.zeros(total, dtype=np.int64), np.zeros(total, dtype=bool)
        if self.count and about.identity.min() <= self.slots.identity.max():
            known = np.argsort(self.slots.identity, kind="stable")
            place = np.searchsorted(self.slots.identity, about.identity, sorter=known)
            arrivals = known[np.minimum(place, self.count - 1)]
            there = self.slots.identity[arrivals] == about.identity
        fresh = np.flatnonzero(~there)
        arrivals[fresh] = self.count + np.arange(len(fresh))
        self.slots.arrived[arrivals[there]] = about.arrived[there]
        if len(fresh):
            self.append(X if len(fresh) == total else X[fresh], about.take(fresh))
        return arrivals

    def append(self, X: Any, about: Slots) -> None:
        """Put samples into new slots, with no part in any machine so far, or raise if kernel values are no numbers."""
        before = self.count
        self.samples.append(X)
        try:
            self._append_values(max(self.slots.cost.max(initial=0.0), about.cost.max(initial=0.0)))
        except BaseException:
            self.samples.count = before
            if self.table.count != before:
                self.table.restart(self.samples, self.table.dtype, self.threads)
            self._make_room()
            raise
        self.slots = self.slots.extended(about)
        self._make_room()

    def _append_values(self, cost: float) -> None:
        """Compute the kernel values of new samples, in the precision that they need."""
        try:
            self.table.append_all(self.samples, self.threads)
        except ValueError:
            if self.table.dtype == np.float64:
                raise
        else:
            largest = float(np.abs(self.table.diagonal[: self.count]).max(initial=0.0))
            if not self.table.wants_precision(cost * largest):
                return
        known = len(self.slots.label)
        self.table.restart(self.samples, np.float64, self.threads)
        for m in range(len(self.roles)):  # double precision all the way
            gradient = self.linear(m)
            for slot in np.flatnonzero(self.dual[m, :known]):
                gradient -= self.dual[m, slot] * self.row(int(slot))[:known]
            self.gradient[m, :known] = gradient

    def _compute_what_is_missing(self) -> None:
        """Compute the kernel values of a memory that was loaded or stored."""
        self.table.revive(self.samples, self.threads)
        if self.table.count < self.count:
            self._append_values(self.slots.cost.max(initial=0.0))
            self._make_room()

    def _make_room(self) -> None:
        room, n = self.table.width, self.count
        for name in STATE:
            array = getattr(self, name)
            if array.shape[1] != room:
                larger = np.zeros((len(self.roles), room))
                larger[:, : min(n, array.shape[1])] = array[:, : min(n, array.shape[1])]
                setattr(self, name, larger)

    def _show(self, arrivals: Indices, parts: list[Part], length: int) -> None:
        """Show samples to all machines, of which none depends on another."""
        everyone = range(len(self.roles))
        work = len(arrivals) * self.count * len(self.roles)
        threads = min(self.threads, len(self.roles)) if work > WORTH_A_THREAD and self.table.complete else 1
        if threads == 1:
            for m in everyone:
                self.steps += self._run(m, arrivals, parts[m], length, self.table.last_use)
            return
        nowhere = [np.zeros_like(self.table.last_use) for _ in everyone]  # no row will be wanted
        with ThreadPoolExecutor(threads) as pool:
            self.steps += sum(pool.map(lambda m: self._run(m, arrivals, parts[m], length, nowhere[m]), everyone))

    def _run(self, machine: int, arrivals: Indices, part: Part, length: int, last_use: Indices) -> int:
        """Let one machine see some arrivals; return the number of steps."""
        m, n, table, taken = machine, self.count, self.table, 0
        progress = np.array([0, 0, length])
        state = _native.OnlineState(
            dual=self.dual[m, :n],
            gradient=self.gradient[m, :n],
            lower=self.lower[m, :n],
            upper=self.upper[m, :n],
            diagonal=table.diagonal[:n],
        )
        stream = _native.Arrivals(
            slot=arrivals, linear=part.linear, lower=part.lower, upper=part.upper, start=part.start
        )
        options = _native.OnlineOptions(
            rule=SELECTIONS[self.selection], grouped=self.bias, selective=self.forget is None
        )
        while True:
            rows = _native.CachedRows(
                storage=table.storage, slot=table.row_of[:n], last_use=last_use, clock=table.clock
            )
            result = _native.online_steps(state, rows, stream, options, progress, self.tolerance, np.inf)
            taken += result.steps
            if last_use is table.last_use:
                table.clock = result.clock
            if result.reason == DONE:
                return taken
            table.fetch(self.samples, result.row, self.threads)

    def _reprocess(self, times: int) -> None:
        """Take up to so many steps within the memory of each machine."""
        nobody, no_part = np.full(times, -1), Part(*np.zeros((4, times)))
        for m in range(len(self.roles) if times else 0):
            self.steps += self._run(m, nobody, no_part, self.count, self.table.last_use)

    # What goes.

    def give_up_slots(self, settled: int) -> None:
        """Give up slots that no machine has use for; the first `settled` ones only if they are many."""
        used = np.zeros(self.count, dtype=bool)
        used[self.used()] = True
        dead = int(settled - used[:settled].sum())
        if dead <= max(DEAD_COUNT, DEAD_PART * settled):
            used[:settled] = True
        if not used.all():
            self._keep(np.flatnonzero(used))

    def _keep(self, slots: Indices) -> None:
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
            larger = np.zeros((len(self.roles), max(self.count, len(self.table.row_of))))
            larger[:, : self.count] = getattr(self, name)
            setattr(self, name, larger)
