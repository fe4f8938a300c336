"""The training pipeline: pose a dual problem, solve it, verify the solution, return a trained model.

    solve     a solver returns a dual vector and claims that it meets the stopping rule
    verify    the claim is checked in double precision, independently of the solver
    resume    where it is not confirmed, the solver continues from the same point with a recomputed gradient, up to a
              number of attempts; then the best point is returned with the status PRECISION

All estimators train through `train_problems` (several problems, on threads) or `train` (one). Callbacks, progress and
limits that are not reached never change the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from maxmargin._typing import Floats, Indices
from maxmargin.deadline import Deadline, check_deadline
from maxmargin.formulations.formulation import Formulation
from maxmargin.problems import Certificate, Counters, DualProblem, Solution, Status, recorded_start
from maxmargin.solvers import Callback, PairwiseSolver, SharedCallback, StoppingRule
from maxmargin.solvers.monitor import Interruption, status_of
from maxmargin.solvers.recorder import ENDED, Recorder
from maxmargin.training.checkpoint import Checkpoint
from maxmargin.training.hard_margin_start import hard_margin_start
from maxmargin.training.linear_verification import penalty_of
from maxmargin.training.problem_scale import ProblemScale, check_representable
from maxmargin.training.trained_model import TrainedModel
from maxmargin.training.verification import MAX_VERIFICATION_WORK, KernelVerifier, Verifier

#: Steps without progress after which the pairwise solver stops on a problem of extreme magnitudes.
SCALED_STALL_STEPS = 100_000

#: The cost of a solve that has not begun.
NOTHING_SPENT = Counters()

Model = TypeVar("Model", bound="HasStatus")
Result = TypeVar("Result")


class HasStatus(Protocol):
    """A trained model."""

    @property
    def status(self) -> Status:
        """How the solver ended."""
        ...

    @property
    def certificate(self) -> Certificate:
        """The certificate of optimality."""
        ...


class Solver(Protocol):
    """The interface of all algorithms in `maxmargin.solvers`."""

    @property
    def stopping(self) -> StoppingRule:
        """When to stop."""
        ...

    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of the problem."""
        ...


@dataclass(frozen=True)
class Session:
    """The limits and observers that all problems of one fit share.

    Attributes
    ----------
    callback : SharedCallback
        Receives progress, and passes a request to stop on to all problems.
    deadline : Deadline
        When the fit ends, from its beginning on.
    checkpoint : Checkpoint, optional
        Records the points of all problems.
    """

    callback: SharedCallback = field(default_factory=lambda: SharedCallback(None))
    deadline: Deadline = field(default_factory=Deadline)
    checkpoint: Checkpoint | None = None

    @classmethod
    def begin(
        cls,
        callback: Callback | None,
        max_seconds: float | None,
        started: float | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Session:
        """Return the session of a fit that started at a reading of ``time.perf_counter``, by default now."""
        return cls(SharedCallback(callback), Deadline.after(max_seconds, started), checkpoint)

    def recorder(self, problem: DualProblem, samples: Indices) -> Recorder:
        """Return the recorder of a problem of these training rows, which knows where an earlier fit has left it."""
        return Recorder() if self.checkpoint is None else self.checkpoint.recorder(problem, samples)

    def deadline_before(self, reserve: float) -> Deadline:
        """Return the deadline of a solver that leaves some seconds, at most half of those left, for what follows it."""
        left = self.deadline.seconds_left()
        return self.deadline if left is None else self.deadline.before(min(reserve, 0.5 * left))

    def limit(self, solver: Solver, rule: StoppingRule, iterations: int, deadline: Deadline | None = None) -> Solver:
        """Return the solver with a stopping rule whose limits are what is left of time and iterations.

        The time ends at `deadline`, by default that of the session.
        """
        rule = replace(
            rule,
            max_seconds=(deadline or self.deadline).seconds_left(),
            max_iterations=None if rule.max_iterations is None else max(0, rule.max_iterations - iterations),
        )
        limited: Solver = replace(solver, stopping=rule)  # type: ignore[type-var]  # solvers are dataclasses
        return limited


class MadeWhenRead(Sequence[Any]):
    """A sequence whose items are made when they are read: of a hundred thousand problems, few are needed at a time."""

    def __init__(self, count: int, make: Callable[[int], Any]) -> None:
        self._count, self._make = count, make

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, position: Any) -> Any:  # a number: there are no slices
        if not position < self._count:
            raise IndexError(position)
        return self._make(position)


@dataclass(frozen=True)
class Subproblem:
    """One of the problems of a fit.

    Attributes
    ----------
    pose : callable
        Returns the dual problem.
    samples : int array
        The training rows of its variables.
    start : float array, optional
        A dual vector to start from.
    pose_again : callable, optional
        Poses the problem without kernel values of the fit, for its certificate; by default the posed problem is kept.
    """

    pose: Callable[[], DualProblem]
    samples: Indices
    start: Floats | None = None
    pose_again: Callable[[], DualProblem] | None = None

    @classmethod
    def posed(cls, problem: DualProblem, samples: Indices, start: Floats | None) -> Subproblem:
        """Return a problem that is posed already."""
        return cls(lambda: problem, samples, start)

    def uncached(self, problem: DualProblem) -> DualProblem | Callable[[], DualProblem]:
        """Return the problem, as it was posed, without kernel values of the fit."""
        return self.pose_again or problem.with_matrix(problem.matrix.uncached())


def train_problems(
    subproblems: Sequence[Subproblem],
    solver: Solver,
    formulation: Formulation,
    session: Session,
    workers: int = 1,
) -> list[TrainedModel]:
    """Return the trained kernel model of each problem. The limit on seconds and an interruption hold for all."""
    max_work = MAX_VERIFICATION_WORK / len(subproblems)

    def train_one(position: int) -> TrainedModel:
        one = subproblems[position]
        return train(one.pose(), solver, one.samples, formulation, one.start, session, max_work)

    return train_parallel(train_one, len(subproblems), session, workers)


def train_parallel(
    train_one: Callable[[int], Model],
    count: int,
    session: Session,
    workers: int,
    interrupt: Callable[[Model], Model] | None = None,
    finished: int = 0,
) -> list[Model]:
    """Return ``train_one(0)``, ``train_one(1)``, … on threads; an interruption of one stops and marks them all.

    Observers are told of `finished` more problems, which were solved before.
    """

    def watched(position: int) -> Model:
        model = train_one(position)
        if model.status is Status.INTERRUPTED:
            session.callback.stopped.set()
        return model

    models, interrupted = run_parallel(watched, count, session.callback, workers, finished)
    if interrupted or any(model.status is Status.INTERRUPTED for model in models):
        mark = interrupt or _mark_interrupted
        models = [mark(model) if model.status is Status.STOPPED else model for model in models]
    return models


def _mark_interrupted(model: Any) -> Any:
    model.status = Status.INTERRUPTED
    return model


def train(
    problem: DualProblem,
    solver: Solver,
    samples: Indices,
    formulation: Formulation,
    start: Floats | None = None,
    session: Session | None = None,
    max_work: float = MAX_VERIFICATION_WORK,
    spent: Counters = NOTHING_SPENT,
) -> TrainedModel:
    """Solve one problem and return the verified kernel model.

    Above `max_work` multiplications a solution that its solver has audited in double precision is not verified again.
    `spent` is the cost of earlier attempts.
    """
    session = Session.begin(None, solver.stopping.max_seconds) if session is None else session
    audited = getattr(solver, "audited", False)
    verifier = KernelVerifier(problem, samples, formulation, solver.stopping, audited, max_work)
    recorder = session.recorder(problem, samples)
    hard = not problem.coercive and problem.groups == 1
    fresh = hard and start is None and recorder.finished is None and _recorded_start(verifier, recorder) is None
    if fresh and hasattr(formulation, "pose_hulls"):
        of_hulls = recorder.part("hulls")

        def solve(posed: DualProblem, rule: StoppingRule, from_: Floats | None) -> Solution:
            nonlocal spent
            from_ = recorded_start(posed, of_hulls.start) if from_ is None else from_
            callback = of_hulls.observe(session.callback)
            limited = session.limit(solver, rule, spent.iterations)
            solution = solve_in_units(posed, limited, from_, callback, ProblemScale.of(posed))
            spent = spent + solution.counters
            if solution.status not in ENDED:
                of_hulls.close(solution, solution.dual)
            return replace(solution, counters=spent)

        try:
            with session.deadline.in_force():
                hulls = hard_margin_start(problem, formulation.pose_hulls(problem), solver.stopping, solve)
        except Interruption as interruption:  # between two calls of the solver
            hulls = verifier.initial(None, status_of(interruption))
        if hulls.status not in (Status.CONVERGED, Status.PRECISION):
            return TrainedModel(problem, hulls, samples, formulation)
        start = hulls.dual
    return solve_and_verify(problem, solver, verifier, start, session, spent)


def solve_and_verify(
    problem: DualProblem,
    solver: Solver,
    verifier: Verifier[Model],
    start: Floats | None,
    session: Session,
    spent: Counters | None = None,
) -> Model:
    """Solve until the verifier accepts; return the accepted solution, or the best one with the status PRECISION."""
    spent = Counters() if spent is None else spent
    rule, best, stalled = solver.stopping, None, 0
    recorder = session.recorder(problem, verifier.samples)
    if (restored := _restore(verifier, recorder, session)) is not None:
        return restored
    recorded = _recorded_start(verifier, recorder)
    start = start if recorded is None else recorded
    callback = recorder.observe(session.callback)
    units = ProblemScale.of(problem, penalty_of(solver) == "l1")
    for attempt in range(verifier.max_attempts):
        try:
            deadline = session.deadline_before(verifier.finishing_seconds)
            with deadline.in_force():
                check_deadline()  # before a solver prepares its data
                limited = session.limit(solver, rule, spent.iterations, deadline)
                solution = solve_in_units(problem, limited, start, callback, units)
        except Interruption as interruption:  # between two convergence checks of the solver
            status = status_of(interruption)
            if best is not None:
                break
            solution = verifier.initial(start, status)
        spent = spent + solution.counters
        status = solution.status
        try:
            with session.deadline.in_force():
                checked = verifier.verify(solution)
        except Interruption as interruption:
            if not verifier.required:
                raise
            checked, status = verifier.unverified(solution), status_of(interruption)
        if best is None or checked.accepted or checked.merit > best.merit:
            best = checked
        if status in (Status.CONVERGED, Status.PRECISION):
            status = Status.CONVERGED if checked.accepted else Status.PRECISION
        stalled += solution.status is Status.PRECISION
        if status is not Status.PRECISION or stalled >= (verifier.max_stalled if units is None else 1):
            break
        start = solution.dual
        if verifier.tightening != 1.0:
            rule = replace(
                solver.stopping, violation=solver.stopping.violation * verifier.tightening ** (attempt + 1), gap=None
            )
    assert best is not None
    recorder.close(replace(best.solution, status=status, counters=spent), verifier.start_of(best.solution))
    spent = recorder.earlier + spent
    try:
        with session.deadline.in_force():
            model = verifier.finish(best, status, spent)
            if units is not None and model.status in ENDED:
                check_representable(problem, model.certificate)
    except Interruption as interruption:
        return verifier.finish(best, status_of(interruption), spent)
    return model


def solve_in_units(
    problem: DualProblem, solver: Solver, start: Floats | None, callback: Callback, units: ProblemScale | None
) -> Solution:
    """Call the solver; a problem of extreme magnitudes is solved in `units`."""
    if units is None:
        return solver.solve(problem, start, callback)
    scaled = units.problem(problem)
    options: dict[str, Any] = {"stopping": units.rule(solver.stopping, scaled)}
    if isinstance(solver, PairwiseSolver):
        options["stall_steps"] = SCALED_STALL_STEPS
    solver = replace(solver, **options)  # type: ignore[type-var]  # solvers are dataclasses
    return units.solution(solver.solve(scaled, units.start(start), units.observe(callback)), problem)


def _recorded_start(verifier: Verifier[Any], recorder: Recorder) -> Floats | None:
    """Return the start in a checkpoint; None if there is none that is worth starting from."""
    return None if recorder.start is None else verifier.checked_start(recorder.start)


def _restore(verifier: Verifier[Model], recorder: Recorder, session: Session) -> Model | None:
    """Return the model of a solve that had ended when its fit was killed; None if there is none that is verified.

    A solution from a checkpoint is verified like that of a solver. An unaccepted one, for example because the tolerance
    is smaller now, is the start of another solve.
    """
    finished = recorder.finished
    if finished is None:
        return None
    try:
        with session.deadline.in_force():
            checked = verifier.verify(finished) if verifier.confirms(finished) else None
    except Interruption as interruption:
        return verifier.finish(verifier.unverified(finished), status_of(interruption), recorder.earlier)
    if checked is not None and checked.accepted:
        return verifier.finish(checked, Status.CONVERGED, recorder.earlier)
    recorder.start = verifier.start_of(finished)
    return None


def run_parallel(
    task: Callable[[int], Result], count: int, callback: SharedCallback, workers: int, finished: int = 0
) -> tuple[list[Result], bool]:
    """Return the results of ``task(0)`` to ``task(count - 1)``, and whether Ctrl-C was pressed.

    Observers are told of `finished` more problems, which were solved before.
    Tasks must end soon after ``callback.stopped`` is set: only the calling thread receives Ctrl-C.
    """
    callback.begin(count + finished, finished)

    def counted(position: int) -> Result:
        result = task(position)
        callback.count_finished()
        return result

    if workers == 1 or count == 1:
        return [counted(position) for position in range(count)], False
    interrupted = False
    with ThreadPoolExecutor(min(workers, count)) as pool:
        futures = [pool.submit(counted, position) for position in range(count)]
        while True:
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
                break
            except KeyboardInterrupt:
                interrupted = True
                callback.stopped.set()
        if any(future.done() and future.exception() for future in futures):
            callback.stopped.set()  # an error in one task: the others need not continue
    return [future.result() for future in futures], interrupted
