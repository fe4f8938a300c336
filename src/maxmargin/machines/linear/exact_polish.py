"""The exact block solver from the dual vector of a machine on landmarks, within a limit on the time.

The bounds on the exact optimum come with a feasible dual vector (`exact_bounds`). From there the block solver continues
on the exact kernel. Its certificate tightens the bounds, and of both functions, that of the landmarks and Σ b_i Φ(x_i),
the one with the smaller objective is kept. So a polish never makes a model worse, however short it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.deadline import Deadline
from maxmargin.formulations.formulation import KernelExpansion
from maxmargin.machines.kernel.svc import LOSSES
from maxmargin.machines.linear.exact_bounds import ExactProblems
from maxmargin.machines.validation.callbacks import reporting
from maxmargin.machines.validation.parameters import check_flag, check_number
from maxmargin.problems import Status
from maxmargin.resources import default_cache_bytes, thread_count
from maxmargin.solvers import BlockSolver, StoppingRule
from maxmargin.solvers.monitor import Interruption, status_of
from maxmargin.training import Session
from maxmargin.training.exact_certificate import BoundedOptimum, ExactCertificate
from maxmargin.training.pipeline import train

#: The fraction of the time left before `max_seconds` that the solvers take; the rest is for the certificates.
SOLVER_FRACTION = 0.5


class Polished(NamedTuple):
    """The exact problem of a class after its polish.

    Attributes
    ----------
    certificate : ExactCertificate
    status : Status
        How the solver ended, or that there was no time for its certificate.
    expansion : KernelExpansion or None
        The function with the smaller objective, over all samples; None if it is that of the landmarks.
    """

    certificate: ExactCertificate
    status: Status
    expansion: KernelExpansion | None


def check_polish(machine: Any) -> bool:
    """Return whether a machine is to be polished, or raise."""
    polish = check_flag("polish", machine.polish)
    if machine.polish_seconds is not None:
        check_number("polish_seconds", machine.polish_seconds, least=0)
    if polish and machine.probability:
        raise ValueError("polish=True needs probability=False: probabilities are those of the landmark function")
    return polish


def polish_models(
    machine: Any, exact: ExactProblems, bounds: Sequence[BoundedOptimum], deadline: Deadline
) -> list[Polished]:
    """Return the exact problem of each class after a polish; the classes share the time."""
    left = deadline.seconds_left()
    limits = [machine.polish_seconds, None if left is None else SOLVER_FRACTION * left]
    own = Deadline.after(min((float(limit) for limit in limits if limit is not None), default=None))
    polished: list[Polished] = []
    with reporting(machine) as callback:
        session = Session.begin(callback, None)
        session.callback.begin(exact.count)
        for number, start in enumerate(bounds):
            if polished and polished[-1].status is Status.INTERRUPTED:
                polished.append(Polished(start.certificate, Status.INTERRUPTED, None))
                continue
            share = own.seconds_left()
            limited = Deadline.after(None if share is None else share / (exact.count - number))
            polished.append(_polish(machine, exact, number, start, replace(session, deadline=limited), deadline))
            session.callback.count_finished()
    return polished


def _polish(
    machine: Any, exact: ExactProblems, number: int, start: BoundedOptimum, session: Session, deadline: Deadline
) -> Polished:
    """Return the exact problem of a class after a polish."""
    if not np.isfinite(start.certificate.model_primal):  # there was no time for the objective of the landmarks
        return Polished(start.certificate, Status.MAX_SECONDS, None)
    problem, formulation = exact.problem(number), LOSSES[machine.loss]
    rule = StoppingRule(check_number("tol", machine.tol, above=0))
    threads = thread_count(machine.n_jobs)
    solver = BlockSolver(stopping=rule, cache_bytes=default_cache_bytes(), threads=threads)
    model = train(problem, solver, np.arange(problem.size), formulation, start.dual, session)
    try:
        with deadline.in_force():
            certificate = model.certificate
    except Interruption as interruption:  # without a certificate, the function of the landmarks is kept
        return Polished(start.certificate, status_of(interruption), None)
    if certificate.indefinite:
        return Polished(start.certificate, model.status, None)
    better = certificate.primal < start.certificate.model_primal
    expansion = formulation.expand(problem, model.dual, certificate.offset) if better else None
    tightened = start.certificate.tightened(certificate, int(np.count_nonzero(model.dual)))
    return Polished(tightened, model.status, expansion)


def joined_expansions(machine: Any, X: Any, polished: Sequence[Polished]) -> tuple[Any, Floats, Floats]:
    """Return points, coefficients and offsets of the functions of all classes.

    The points are the support vectors of the polished ones, after the landmarks if some class keeps their function.
    """
    used = np.zeros(X.shape[0], dtype=bool)
    for one in polished:
        if one.expansion is not None:
            used |= one.expansion.coefficients != 0
    support: Indices = np.flatnonzero(used)
    kept = [one.expansion is None for one in polished]
    landmarks = machine.landmarks_.shape[0] if any(kept) else 0
    coefficients = np.zeros((len(polished), landmarks + len(support)))
    offsets = machine.intercept_.copy()
    for number, one in enumerate(polished):
        if one.expansion is None:
            coefficients[number, :landmarks] = machine.dual_coef_[number]
        else:
            coefficients[number, landmarks:] = one.expansion.coefficients[support]
            offsets[number] = one.expansion.offset
    points = X[support]
    if landmarks:
        stack = sparse.vstack if sparse.issparse(X) else np.concatenate
        points = stack([machine.landmarks_, points])
    return sparse.csr_array(points) if sparse.issparse(X) else points, coefficients, offsets
