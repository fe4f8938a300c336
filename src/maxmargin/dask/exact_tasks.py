"""Bounds on the exact kernel optimum of a machine on landmarks, on a cluster: sums of partitions, and kernel values.

Each task takes one thread. The rows with a variable are gathered on one worker; the kernel values among them, nearly
all of the work, are divided among all workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from maxmargin._typing import Floats
from maxmargin.dask.partitions import Partition
from maxmargin.dask.placement import await_tasks
from maxmargin.machines.linear.exact_sums import (
    ExactSums,
    add_up,
    bounds_of_problem,
    exact_sums,
    problem_of_support,
)
from maxmargin.matrices.group_forms import equal_shares, group_form_rows, symmetric_forms
from maxmargin.problems import DualProblem
from maxmargin.training.adapted_dual import AdaptedDual, GroupedDual, grouped_dual, with_best_factors
from maxmargin.training.exact_certificate import ExactCertificate

#: Sums that a task adds up.
SUMS_OF_A_TASK = 8

#: Parts of the kernel values, at most. Their number does not depend on the workers, so that results do not, either.
SHARES = 64


class Support(NamedTuple):
    """The problem of the rows with a variable, and their groups; None without such rows."""

    problem: DualProblem
    grouped: GroupedDual | None


def bound_exactly(client: Any, parts: Sequence[Any], machine: Any, name: str) -> list[ExactCertificate]:
    """Return the bounds on the optimum of each problem of a machine.

    Parameters
    ----------
    client : distributed.Client
    parts : sequence of futures
        The prepared partitions.
    machine : KernelApproximationSVC
        Fitted, of a single machine, with ``n_jobs=1``.
    name : str
        Of the data, for messages.
    """
    on_workers = client.submit(_itself, machine, pure=False)  # once, not with each task
    sums = [client.submit(partition_sums, part, on_workers, name, pure=False) for part in parts]
    await_tasks(client, sums)  # errors of the data
    while len(sums) > 1:
        groups = [sums[first : first + SUMS_OF_A_TASK] for first in range(0, len(sums), SUMS_OF_A_TASK)]
        sums = [client.submit(add_up, group, pure=False) for group in groups]
    found = []
    for number in range(len(machine.dual_coef_)):
        support = client.submit(support_of, on_workers, sums[0], number, pure=False)
        ranges = client.submit(shares_of, support, pure=False)
        await_tasks(client, [ranges])
        forms = [client.submit(form_rows, support, *share, pure=False) for share in ranges.result()]
        found.append(client.submit(finish, on_workers, sums[0], number, support, forms, pure=False))
        await_tasks(client, found)
    certificates: list[ExactCertificate] = client.gather(found)
    return certificates


def partition_sums(part: Partition, machine: Any, name: str) -> ExactSums:
    """Return the sums of a partition; those without rows that take part are empty."""
    rows = np.flatnonzero(part.weights > 0)
    if not len(rows):
        return ExactSums([], [])
    return exact_sums(machine, part.X[rows], part.y[rows], part.weights[rows], part.number, name)


def support_of(machine: Any, sums: ExactSums, number: int) -> Support:
    """Return the rows with a variable in a problem, by groups."""
    problem, dual = problem_of_support(machine, sums.support[number], number)
    return Support(problem, grouped_dual(problem, dual) if dual.any() else None)


def shares_of(support: Support) -> list[tuple[int, int]]:
    """Return the groups of each task."""
    grouped = support.grouped
    return [] if grouped is None else equal_shares(grouped.starts, len(grouped.used), SHARES)


def form_rows(support: Support, first: int, last: int) -> Floats:
    """Return a share of the sums of kernel values."""
    problem, grouped = support
    assert grouped is not None
    return group_form_rows(problem.matrix.take(grouped.used), grouped.values, grouped.starts, first, last)


def finish(machine: Any, sums: ExactSums, number: int, support: Support, forms: Sequence[Floats]) -> ExactCertificate:
    """Return the bounds of a problem from the sums of all workers."""

    def adapt(problem: DualProblem, _: Floats) -> AdaptedDual:
        assert support.grouped is not None
        return with_best_factors(problem, support.grouped, symmetric_forms(np.concatenate(forms)))

    return bounds_of_problem(machine, sums, number, adapt)


def _itself(machine: Any) -> Any:
    return machine
