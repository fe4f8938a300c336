"""The file of a checkpoint: which fit it belongs to, and the state of each of its problems.

The format is that of model files (`maxmargin.storage`): a JSON header and raw arrays, without code. A file is replaced
atomically, so that a process that is killed at any time leaves the old one or the new one. Everything that is read is
validated; a damaged or crafted file raises `CheckpointError`. Even a valid file is only a start: what is read from it
is verified like the claim of a solver.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats
from maxmargin.problems import Counters, Solution, Status
from maxmargin.storage.array_table import ArrayWriter
from maxmargin.storage.file_format import FileFormat


class CheckpointError(ValueError):
    """A checkpoint belongs to another fit, or cannot be read."""


#: Prefix, header and arrays of the file.
FORMAT = FileFormat(
    "checkpoint",
    b"\x89MXMC\r\n\x1a",
    1,
    CheckpointError,
    max_depth=8,
    advice="delete it to start the fit again",
    version_advice="resume with the version that wrote it, or delete it to start the fit again",
    keys=frozenset(["maxmargin", "estimator", "parameters", "data", "seed", "problems", "arrays"]),
)

#: The arrays of a problem: a start, or the parts of a solution.
ARRAYS = ("start", "dual", "gradient", "weights")

#: The largest number of an array: the squares of larger ones overflow, so that they have no objective value.
MAX_VALUE = 1e154

#: The numbers of a problem, of all runs so far.
NUMBERS = ("iterations", "kernel_evaluations", "seconds")


@dataclass(frozen=True)
class FitIdentity:
    """What makes a fit the same: the estimator, the parameters that define the problem, and the data.

    Attributes
    ----------
    estimator : str
        The name of the class.
    parameters : dict of str to str
        Values in a form that is equal for equal values, such as "1.0" for 1 and 1.0.
    data : dict of str to str
        Checksums of the samples, targets and weights, by name.
    """

    estimator: str
    parameters: Mapping[str, str]
    data: Mapping[str, str]

    def difference(self, other: FitIdentity) -> str | None:
        """Return why a checkpoint of this fit does not belong to another one; None if it does."""
        if self.estimator != other.estimator:
            return f"was written for {self.estimator}, this fit is of {other.estimator}"
        for name in sorted(self.parameters.keys() | other.parameters.keys()):
            mine, yours = (identity.parameters.get(name, "unset") for identity in (self, other))
            if mine != yours:
                return f"was written for {name}={mine}, this fit has {name}={yours}"
        for name in sorted(self.data.keys() | other.data.keys()):
            if self.data.get(name) != other.data.get(name):
                return f"was written for other data: {name} differs"
        return None


@dataclass(frozen=True)
class ProblemState:
    """How far the solve of a problem is: a start for a solver, or a solution that has converged."""

    start: Floats | None
    finished: Solution | None
    counters: Counters


@dataclass
class FitState:
    """The contents of a checkpoint.

    Attributes
    ----------
    identity : FitIdentity
    problems : dict of str to ProblemState
        By the checksum of the problem.
    seed : int, optional
        Of a fit whose ``random_state`` is None.
    """

    identity: FitIdentity
    problems: dict[str, ProblemState] = field(default_factory=dict)
    seed: int | None = None


def write_checkpoint(path: Path, state: FitState) -> None:
    """Replace a checkpoint.

    The temporary name is always the same, so that a process that is killed while writing leaves at most one such file,
    which the next write replaces.
    """
    from importlib.metadata import version  # most programs write no checkpoints

    arrays = ArrayWriter()
    header = {
        "maxmargin": version("maxmargin"),
        "estimator": state.identity.estimator,
        "parameters": dict(state.identity.parameters),
        "data": dict(state.identity.data),
        "seed": state.seed,
        "problems": {key: _encode(problem, arrays) for key, problem in state.problems.items()},
    }
    temporary = temporary_of(path)
    try:
        with open(temporary, "wb") as opened:
            opened.writelines(FORMAT.pieces(header, arrays))
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(temporary, path)
    except OSError:  # a full disk
        with suppress(OSError):
            os.unlink(temporary)
        raise


def warn_of_unwritten(path: Path, error: OSError) -> None:
    """Warn that a checkpoint could not be written: a full disk must not cost what was computed so far."""
    warnings.warn(
        f"the checkpoint {path} could not be written: {error.strerror}. The fit continues; if it is killed, it starts "
        "again from the last checkpoint",
        RuntimeWarning,
        stacklevel=3,
    )


def read_checkpoint(path: Path) -> FitState | None:
    """Return the contents of a checkpoint, None if there is none, or raise `CheckpointError`."""
    try:
        header, arrays = FORMAT.read(path)
        return _decode(header, arrays)
    except FileNotFoundError:
        return None
    except CheckpointError as error:
        raise CheckpointError(f"cannot resume from {path}: {error}") from error


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint, and what a process that was killed while writing it has left."""
    path.unlink(missing_ok=True)
    temporary_of(path).unlink(missing_ok=True)


def temporary_of(path: Path) -> Path:
    """Return the name under which a checkpoint is written until it is complete."""
    return path.with_name(f"{path.name}.part")


def _encode(problem: ProblemState, arrays: ArrayWriter) -> dict[str, Any]:
    counters, finished = problem.counters, problem.finished
    parts: dict[str, Floats | None] = {"start": problem.start}
    if finished is not None:
        parts = {"dual": finished.dual, "gradient": finished.gradient, "weights": finished.weights}
    return {
        **{name: getattr(counters, name) for name in NUMBERS},
        **{name: arrays.add(part) for name, part in parts.items() if part is not None},
    }


def _decode(header: dict[str, Any], arrays: list[NDArray[Any]]) -> FitState:
    """Return the contents of a file, or raise if anything is not as `write_checkpoint` writes it."""
    texts = [header["parameters"], header["data"]]
    if not isinstance(header["estimator"], str) or not all(map(_is_text_by_name, texts)):
        raise CheckpointError("its description of the fit is invalid; delete it to start the fit again")
    seed = header["seed"]
    if seed is not None and not (type(seed) is int and 0 <= seed < 2**32):
        raise CheckpointError("its seed is invalid; delete it to start the fit again")
    if not isinstance(header["problems"], dict):
        raise CheckpointError("its problems are not a JSON object; delete it to start the fit again")
    problems = {key: _decode_problem(entry, arrays) for key, entry in header["problems"].items()}
    return FitState(FitIdentity(header["estimator"], *texts), problems, seed)


def _decode_problem(entry: Any, arrays: list[NDArray[Any]]) -> ProblemState:
    valid = isinstance(entry, dict) and entry.keys() >= set(NUMBERS) and entry.keys() <= {*NUMBERS, *ARRAYS}
    valid = valid and ("start" in entry) != ("dual" in entry) and ("dual" in entry or len(entry) == len(NUMBERS) + 1)
    valid = valid and all(type(entry[name]) is int and 0 <= entry[name] < 2**62 for name in NUMBERS[:2])
    valid = valid and type(entry["seconds"]) in (int, float) and 0 <= entry["seconds"] < 2**62
    if not valid:
        raise CheckpointError("the state of a problem is invalid; delete it to start the fit again")
    parts = {name: _vector(entry[name], arrays) for name in ARRAYS if name in entry}
    counters = Counters(entry["iterations"], entry["kernel_evaluations"], seconds=float(entry["seconds"]))
    if "start" in parts:
        return ProblemState(parts["start"], None, counters)
    finished = Solution(parts["dual"], parts.get("gradient"), Status.CONVERGED, Counters(), parts.get("weights"))
    return ProblemState(None, finished, counters)


def _vector(number: Any, arrays: list[NDArray[Any]]) -> Floats:
    if type(number) is not int or not 0 <= number < len(arrays):
        raise CheckpointError("the state of a problem refers to no array; delete it to start the fit again")
    vector: Floats = arrays[number]
    if vector.dtype != np.float64 or vector.ndim != 1 or not (np.abs(vector) <= MAX_VALUE).all():
        raise CheckpointError("the state of a problem is not a vector of numbers; delete it to start the fit again")
    return vector


def _is_text_by_name(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
