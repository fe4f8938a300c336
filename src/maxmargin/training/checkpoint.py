"""Checkpoints of a running fit: one more observer, which writes the points of all its problems to a file.

A problem is recognised by a checksum of its arrays and training rows. So every problem of a fit, folds of a
cross-validation included, finds its own state in the file, in whatever order and on however many threads the problems
are solved, and other options of the solver do not matter.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.problems import Counters, DualProblem, Solution, Status, feasible_start
from maxmargin.solvers.recorder import ENDED, RecordedCallback, Recorder
from maxmargin.solvers.stopping import Callback
from maxmargin.training.checkpoint_file import (
    CheckpointError,
    FitIdentity,
    FitState,
    ProblemState,
    read_checkpoint,
    remove_checkpoint,
    warn_of_unwritten,
    write_checkpoint,
)

#: The longest fraction of the time that is spent on writing: where a write takes longer, there are fewer.
MAX_WRITING_FRACTION = 0.05


@dataclass
class Checkpoint:
    """The checkpoint of one fit.

    Attributes
    ----------
    path : Path
    seconds : float
        The time between two writes.
    state : FitState
        What is known of its problems: from the file, and from this fit.
    complete : bool
        Whether all problems that were solved have ended, none at a limit.
    writes, writing_seconds : int, float
        How often the file was written, and how long that took.
    """

    path: Path
    seconds: float
    state: FitState
    complete: bool = True
    writes: int = 0
    writing_seconds: float = 0.0
    _saved: float = field(default_factory=perf_counter)
    _not_before: float = 0.0
    _failed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def open(cls, path: Path, seconds: float, identity: FitIdentity) -> Checkpoint:
        """Return the checkpoint of a fit, with the contents of its file if there is one, or raise."""
        if not path.parent.is_dir():
            raise CheckpointError(f"cannot write the checkpoint {path}: the folder {path.parent} does not exist")
        if path.is_dir():
            raise CheckpointError(f"cannot write the checkpoint {path}: it is a folder")
        found = read_checkpoint(path)
        if found is None:
            return cls(path, seconds, FitState(identity))
        if (reason := found.identity.difference(identity)) is not None:
            raise CheckpointError(
                f"the checkpoint {path} {reason}; delete the file or choose another name to start this fit, or fit as "
                "before to resume"
            )
        return cls(path, seconds, found)

    def seed(self) -> int:
        """Return the seed of a fit whose ``random_state`` is None: the same whenever it is resumed."""
        if self.state.seed is None:
            self.state.seed = int(np.random.default_rng().integers(2**31))
        return self.state.seed

    def recorder(self, problem: DualProblem, samples: Indices) -> Recorder:
        """Return the recorder of a problem."""
        return ProblemRecorder(self, checksum(problem, samples))

    def is_due(self, recorded: float) -> bool:
        """Return whether to write, for a problem that was recorded at a time."""
        now = perf_counter()
        return now >= self._not_before and now - min(recorded, self._saved) >= self.seconds

    def put(self, key: str, problem: ProblemState) -> None:
        """Keep the state of a problem for the next write; the states of its parts are no longer needed if it ended."""
        with self._lock:
            if problem.finished is not None:
                for part in [known for known in self.state.problems if known.startswith(f"{key}/")]:
                    del self.state.problems[part]
            self.state.problems[key] = problem

    def save(self) -> None:
        """Write the file. The fit goes on if that is impossible: a full disk must not cost what was computed so far."""
        began = perf_counter()
        with self._lock:
            try:
                write_checkpoint(self.path, self.state)
                self._failed = False
            except OSError as error:
                if not self._failed:
                    warn_of_unwritten(self.path, error)
                self._failed = True
            self.writes += 1
            self._saved = perf_counter()
            self.writing_seconds += self._saved - began
            self._not_before = self._saved + (self._saved - began) / MAX_WRITING_FRACTION

    def remove(self) -> None:
        """Remove the file of a fit that has ended."""
        remove_checkpoint(self.path)


class ProblemRecorder(Recorder):
    """The record of one problem in a checkpoint."""

    def __init__(self, checkpoint: Checkpoint, key: str, is_part: bool = False) -> None:
        self._checkpoint, self._key, self._is_part = checkpoint, key, is_part
        self._recorded = perf_counter()
        known = checkpoint.state.problems.get(key)
        if known is not None:
            self.start, self.finished, self.earlier = known.start, known.finished, known.counters

    def observe(self, callback: Callback) -> Callback:
        """Return the callback for the solver, by which its `Monitor` finds the recorder."""
        return RecordedCallback(callback, self)

    def is_due(self) -> bool:
        """Return whether a point should be recorded now."""
        return self._checkpoint.is_due(self._recorded)

    def record(self, start: Floats, counters: Counters) -> None:
        """Record a point and write the file."""
        self._checkpoint.put(self._key, ProblemState(start, None, self.earlier + counters))
        self._recorded = perf_counter()
        self._checkpoint.save()

    def close(self, solution: Solution, start: Floats) -> None:
        """Record how the solve ended; the file is written if that is due."""
        converged, counters = solution.status is Status.CONVERGED, self.earlier + solution.counters
        finished = None
        if converged:
            known = solution.gradient is not None and np.isfinite(solution.gradient).all()
            gradient = solution.gradient if known else None
            finished = replace(solution, gradient=gradient, trace=(), counters=Counters())
        if converged or solution.counters.iterations:  # else nothing is known that was not known before
            self._checkpoint.put(self._key, ProblemState(None if converged else start, finished, counters))
        if not self._is_part and solution.status not in ENDED:
            self._checkpoint.complete = False
        if self.is_due():
            self._checkpoint.save()

    def part(self, name: str) -> Recorder:
        """Return the recorder of another problem that is solved on the way."""
        return ProblemRecorder(self._checkpoint, f"{self._key}/{name}", is_part=True)


def checksum(problem: DualProblem, samples: Indices) -> str:
    """Return a checksum of everything that defines a problem besides its matrix, which belongs to the samples."""
    digest = hashlib.sha256()
    arrays: list[Any] = [problem.linear, problem.lower, problem.upper, problem.ridge, problem.group, problem.total]
    if problem.kinked:
        arrays.append(problem.kink)
    for array in (*arrays, np.ascontiguousarray(samples, dtype=np.int64)):
        digest.update(len(array).to_bytes(8, "little"))
        digest.update(array.view(np.uint8).data)
    return digest.hexdigest()[:32]


def is_feasible(problem: DualProblem, solution: Solution) -> bool:
    """Return whether a solution from a file is a point of the problem."""
    parts = [part for part in (solution.dual, solution.gradient) if part is not None]
    if any(part.shape != (problem.size,) for part in parts):
        return False
    return np.array_equal(feasible_start(problem, solution.dual), solution.dual)
