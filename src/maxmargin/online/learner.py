"""LASVM: online learning with one pass over a stream (Bordes et al. 2005; Glasmachers & Igel 2008).

    for each sample t
        PROCESS     pair t with a partner in memory and optimise the two variables
        REPROCESS   the same with a pair within the memory
        remove      after each step, samples without weight that cannot be part of a violating pair

The steps are native (`native/online_steps.hpp`); this module passes samples and kernel rows to them. `memory` holds the
state, and `budget` removes further samples, by age or to keep within a budget.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.kernels import Kernel
from maxmargin.online.budget import Budget, forget_old_samples
from maxmargin.online.memory import OnlineMemory
from maxmargin.online.sample_constraints import SampleConstraints
from maxmargin.online.sample_store import SlotData

#: Selection rules of a pair by name; the numbers are those of `native/solver_loops.hpp`.
SELECTIONS = {"most_violating_pair": 0, "second_order": 1}

#: Samples whose kernel rows are computed together.
CHUNK_SIZE = 256

#: Samples between two checks of the time limit, Ctrl-C and the callback.
SLICE_SIZE = 32

#: Steps, altogether and per sample, within which the violation must halve at the end; else rounding undoes the steps.
STALL_STEPS, STALL_STEPS_PER_SAMPLE = 200_000, 100

#: The fewest multiplications of steps for which subproblems are distributed over threads.
MIN_MULTIPLICATIONS_FOR_THREADS = 2 * 10**6

#: The return value of a native loop that is done; other values request a kernel row.
DONE = 0


class OnlineLearner(OnlineMemory):
    """LASVM on one or several subproblems that share samples and kernel rows.

    Parameters
    ----------
    kernel, like, bias, tolerance, cache_bytes
        See `OnlineMemory`.
    selection : {"second_order", "most_violating_pair"}
    budget : Budget, optional
        The largest number of samples in memory, and how it is kept.
    forget : int, optional
        The age at which samples are removed. Until then all stay: a sample without weight may become a support vector
        when others are removed.

    Attributes
    ----------
    steps, next_identity : int
        Pair steps taken, and the identity of the next new sample.
    budget_loss : float
        The decrease of the dual objective caused by the budget.
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
        super().__init__(kernel, like, bias=bias, tolerance=tolerance, cache_bytes=cache_bytes)
        self.selection, self.budget, self.forget = selection, budget, forget
        self.steps = self.next_identity = 0
        self.budget_loss = 0.0

    def observe(
        self,
        X: Any,
        labels: Indices,
        costs: Floats,
        identity: Indices,
        stop: Callable[[], bool],
        again: bool = False,
    ) -> int:
        """Process samples one after the other; return how many were processed before `stop` returned True.

        A sample whose identity is in memory is not added again. With `again`, all samples were observed before, and the
        sums of the dual variables include their start values already.
        """
        self.compute_missing_rows()
        taken = 0
        while taken < len(labels) and (taken == 0 or not stop()):
            size = self.table.max_new_samples(min(self._chunk_size, len(labels) - taken))
            part = slice(taken, taken + size)
            constraints = [subproblem.constraints(labels[part], costs[part]) for subproblem in self.subproblems]
            if again:
                constraints = [own._replace(start=np.zeros(len(own.start))) for own in constraints]
            arrived = self.seen + np.arange(len(labels[part]))
            data = SlotData(labels[part], costs[part], identity[part], arrived)
            done = self._observe_chunk(X[part], data, constraints, stop)
            if not done:
                break
            taken += done
        return taken

    def finish(self, stop: Callable[[], bool]) -> None:
        """Take steps within the memory until the violation is within the tolerance."""
        self.compute_missing_rows()
        least, since = np.inf, self.steps
        while (violation := self.max_violation()) > self.tolerance and not stop():
            before = self.steps
            if violation < 0.5 * least:
                least, since = violation, before
            self._reprocess(SLICE_SIZE)
            stalled = before - since > STALL_STEPS + STALL_STEPS_PER_SAMPLE * self.count
            if self.steps == before or stalled:
                break  # the remaining violation is due to rounding errors
        self.remove_unused(self.count)

    @property
    def _chunk_size(self) -> int:
        """The number of samples between two checks of age and budget."""
        limits = [self.forget] if self.forget is not None else []
        limits += [self.budget.max_samples] if self.budget is not None else []
        return max(1, min(CHUNK_SIZE, *(limit // 8 for limit in limits))) if limits else CHUNK_SIZE

    def _observe_chunk(
        self, X: Any, data: SlotData, constraints: list[SampleConstraints], stop: Callable[[], bool]
    ) -> int:
        total, done = len(data.label), 0
        if self.count + total > self.table.width:
            self.remove_unused(0)  # before the capacity grows
        before = self.count
        arrivals = self._assign_slots(X, data, stop)
        if arrivals is None:
            return 0
        while done < total and (done == 0 or not stop()):
            end = min(total, done + SLICE_SIZE)
            length = before + int((arrivals[:done] >= before).sum())
            part = [SampleConstraints(*(array[done:end] for array in own)) for own in constraints]
            self._process(arrivals[done:end], part, length)
            done = end
        self.seen += done
        processed = before + int((arrivals[:done] >= before).sum())
        if processed < self.count:
            self.keep(np.arange(processed))
        removed = 0 if self.forget is None else forget_old_samples(self, self.forget, data.cost[:done])
        if self.budget is not None:
            over_budget, loss = self.budget.apply(self)
            removed, self.budget_loss = removed + over_budget, self.budget_loss + loss
        self._reprocess(removed)  # one more step for each sample that was removed
        self.remove_unused(before)
        return done

    def _assign_slots(self, X: Any, data: SlotData, stop: Callable[[], bool]) -> Indices | None:
        """Append samples that are not in memory; return the slots of all, None if there was no time for more slots."""
        total = len(data.label)
        arrivals, known = np.zeros(total, dtype=np.int64), np.zeros(total, dtype=bool)
        if self.count and data.identity.min() <= self.slots.identity.max():
            order = np.argsort(self.slots.identity, kind="stable")
            place = np.searchsorted(self.slots.identity, data.identity, sorter=order)
            arrivals = order[np.minimum(place, self.count - 1)]
            known = self.slots.identity[arrivals] == data.identity
        new = np.flatnonzero(~known)
        if not self.table.reserve(self.count + len(new), stop):
            return None
        arrivals[new] = self.count + np.arange(len(new))
        self.slots.arrived[arrivals[known]] = data.arrived[known]
        if len(new):
            self.append(X if len(new) == total else X[new], data.take(new))
        return arrivals

    def _process(self, arrivals: Indices, constraints: list[SampleConstraints], length: int) -> None:
        """Process samples in all subproblems, which are independent of one another."""
        indices = range(len(self.subproblems))
        work = len(arrivals) * self.count * len(indices)
        enough_work = work > MIN_MULTIPLICATIONS_FOR_THREADS and self.table.complete
        threads = min(self.threads, len(indices)) if enough_work else 1
        if threads == 1:
            for m in indices:
                self.steps += self._take_steps(m, arrivals, constraints[m], length, self.table.last_use)
            return
        unused = [np.zeros_like(self.table.last_use) for _ in indices]  # all rows are stored, none is replaced
        with ThreadPoolExecutor(threads) as pool:
            self.steps += sum(
                pool.map(lambda m: self._take_steps(m, arrivals, constraints[m], length, unused[m]), indices)
            )

    def _take_steps(
        self, subproblem: int, arrivals: Indices, constraints: SampleConstraints, length: int, last_use: Indices
    ) -> int:
        """Run the native loop on some arrivals in one subproblem; return the number of steps."""
        m, n, table, taken = subproblem, self.count, self.table, 0
        progress = np.array([0, 0, length])
        state = _native.OnlineState(
            dual=self.dual[m, :n],
            gradient=self.gradient[m, :n],
            lower=self.lower[m, :n],
            upper=self.upper[m, :n],
            diagonal=table.diagonal[:n],
        )
        stream = _native.Arrivals(slot=arrivals, **constraints._asdict())
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
        """Take up to this many steps within the memory in each subproblem."""
        nothing, no_constraints = np.full(times, -1), SampleConstraints(*np.zeros((4, times)))
        for m in range(len(self.subproblems) if times else 0):
            self.steps += self._take_steps(m, nothing, no_constraints, self.count, self.table.last_use)
