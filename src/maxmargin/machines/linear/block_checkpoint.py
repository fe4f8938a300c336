"""The checkpoint of a fit on blocks of rows: the point that the next pass evaluates, of each problem."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.machines.validation.checkpoints import checked_path, identity_of
from maxmargin.machines.validation.parameters import check_number
from maxmargin.problems import Counters
from maxmargin.solvers.linear.newton_by_passes import NewtonByPasses
from maxmargin.solvers.linear.pass_sums import PassPoint
from maxmargin.solvers.recorder import ENDED
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


def checkpoint_options(estimator: Any) -> tuple[Path, float]:
    """Return the file and the interval of an estimator, or raise before anything is computed."""
    seconds = check_number("checkpoint_seconds", estimator.checkpoint_seconds, least=0)
    path = Path(os.path.realpath(checked_path(estimator.checkpoint)))
    if not path.parent.is_dir():
        raise ValueError(f"cannot write the checkpoint {path}: there is no folder {path.parent}")
    return path, seconds


class BlockCheckpoint:
    """The file of a fit on blocks, which is written after a pass if that is due.

    Parameters
    ----------
    estimator : LinearEstimator
        With ``checkpoint`` and ``checkpoint_seconds``.
    numbers : float array
        What a first pass has found about the data: another fit finds the same on the same data.
    """

    def __init__(self, estimator: Any, numbers: Floats) -> None:
        self.path, self.seconds = checkpoint_options(estimator)
        self._keep = getattr(estimator, "_keeps_checkpoint", False)
        digest = hashlib.sha256(np.ascontiguousarray(numbers).tobytes()).hexdigest()
        identity = identity_of(estimator, np.empty(0), None, np.empty(0))
        self.identity: FitIdentity = replace(identity, data={"blocks": digest})
        self._written, self._failed = perf_counter(), False
        self._state = read_checkpoint(self.path)
        different = None if self._state is None else self._state.identity.difference(self.identity)
        if different is not None:
            raise CheckpointError(f"{self.path} {different}; delete it to start the fit again, or choose another file")

    def start(self, number: int, dimension: int, groups: int) -> PassPoint | None:
        """Return where an earlier fit has left a problem, None if there was none."""
        state = None if self._state is None else self._state.problems.get(str(number))
        if state is None:
            return None
        values = state.start
        if values is None or values.shape != (dimension + groups + 1,) or not values[-1] >= 0:
            raise CheckpointError(f"cannot resume from {self.path}: it has no weights of {dimension - 1} features")
        return PassPoint(values[:dimension], values[dimension:-1], float(values[-1]))

    def save(self, runs: Sequence[NewtonByPasses], now: bool = False) -> None:
        """Write the points of all problems if the time has come, or `now`."""
        if not now and perf_counter() - self._written < self.seconds:
            return
        problems = {str(number): _state_of(run) for number, run in enumerate(runs)}
        try:
            write_checkpoint(self.path, FitState(self.identity, problems))
            self._failed = False
        except OSError as error:
            if not self._failed:
                warn_of_unwritten(self.path, error)
            self._failed = True
        self._written = perf_counter()

    def finish(self, runs: Sequence[NewtonByPasses]) -> None:
        """Remove the file of a fit that has ended; write that of another once more."""
        ended = all(run.status in ENDED for run in runs)
        if ended and not self._keep:  # else the caller removes it with the model stored
            remove_checkpoint(self.path)
        else:
            self.save(runs, now=True)


def _state_of(run: NewtonByPasses) -> ProblemState:
    point = run.point if run.status is None else PassPoint(run.weights, run.offset, run.point.sigma)
    values = np.concatenate([point.weights, point.offset, [point.sigma]])
    return ProblemState(values, None, Counters(iterations=run.passes))
