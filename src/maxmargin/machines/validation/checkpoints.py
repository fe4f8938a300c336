"""The checkpoint of a fit: its parameters, which fit it belongs to, and what happens to the file at the end."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin.kernels.device_rows import DeviceRows
from maxmargin.machines.validation.parameters import check_number
from maxmargin.solvers.monitor import Interruption
from maxmargin.solvers.recorder import ENDED
from maxmargin.training.checkpoint import Checkpoint
from maxmargin.training.checkpoint_file import FitIdentity
from maxmargin.training.joined_models import unconverged

#: Parameters that may differ when a fit is resumed: they do not change the problem, or only what follows its solution.
NEUTRAL_PARAMETERS = frozenset(
    [
        *("tol", "gap_tol", "max_iter", "max_seconds", "solver", "selection", "shrinking", "dual", "cache_size"),
        *("n_jobs", "verbose", "callback", "warm_start", "checkpoint", "checkpoint_seconds", "random_state"),
        *("probability", "noise", "certify", "polish", "polish_seconds", "decision_function_shape", "break_ties"),
    ]
)


@contextmanager
def checkpointing(
    estimator: Any, X: Any, y: Any, sample_weight: Any, also: Sequence[str] = ()
) -> Iterator[Checkpoint | None]:
    """Yield the checkpoint of a fit to validated data, None if the estimator has no file for it.

    The file of a fit that has ended is removed. After a limit or an interruption it is written once more and kept, and
    after an error it is kept as it is. `also` names neutral parameters that define the problem of this estimator.
    """
    seconds = check_number("checkpoint_seconds", estimator.checkpoint_seconds, least=0)
    if estimator.checkpoint is None:
        yield None
        return
    path = Path(os.path.realpath(checked_path(estimator.checkpoint)))
    checkpoint = Checkpoint.open(path, seconds, identity_of(estimator, X, y, sample_weight, also))
    try:
        yield checkpoint
    except Interruption:
        checkpoint.save()
        raise
    ended = checkpoint.complete and all(status in ENDED for status in unconverged(estimator._models_))
    if ended and not getattr(estimator, "_keeps_checkpoint", False):  # else the caller removes it with the model stored
        checkpoint.remove()
    else:
        checkpoint.save()


def checked_path(value: Any) -> str:
    """Return the name of the file of a checkpoint, or raise."""
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise ValueError(f"checkpoint must be the name of a file, or None, not {value!r}")
    return os.fsdecode(value)


def identity_of(estimator: Any, X: Any, y: Any, sample_weight: Any, also: Sequence[str] = ()) -> FitIdentity:
    """Return what makes a fit the same as another one."""
    parameters = {
        name: _text(value)
        for name, value in estimator.get_params(deep=False).items()
        if name not in NEUTRAL_PARAMETERS or name in also
    }
    data = {"X": _checksum(X), "sample_weight": _checksum(sample_weight)}
    if y is not None:
        data["y"] = _checksum(y)
    return FitIdentity(type(estimator).__name__, parameters, data)


def _text(value: Any) -> str:
    """Return a text that is the same for equal values of a parameter, in every process."""
    if value is None or isinstance(value, bool | np.bool_ | str):
        return repr(value if isinstance(value, str) or value is None else bool(value))
    if isinstance(value, Real):
        number = float(value)
        return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)
    if isinstance(value, Mapping):
        return "{" + ", ".join(sorted(f"{_text(key)}: {_text(part)}" for key, part in value.items())) + "}"
    if is_dataclass(value):  # a kernel
        parts = ", ".join(f"{field.name}={_text(getattr(value, field.name))}" for field in fields(value))
        return f"{type(value).__name__}({parts})"
    if isinstance(value, np.random.RandomState):
        state: Any = value.get_state()
        return f"RandomState({_checksum(state[1])}, {state[2]})"
    if isinstance(value, partial):
        return f"partial({_text(value.func)}, {_text(list(value.args))}, {_text(value.keywords)})"
    if callable(value):
        return _function_text(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_text, value)) + "]"
    return f"<{type(value).__name__} {_checksum(value)}>"


def _function_text(function: Any) -> str:
    """Return the name of a function, with a checksum of its instructions."""
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__qualname__)}"
    code = getattr(function, "__code__", None)
    if code is None:
        return name
    constants = [part for part in code.co_consts if part is None or isinstance(part, Real | str)]
    return f"{name} {hashlib.sha256(code.co_code + repr((constants, code.co_names)).encode()).hexdigest()[:8]}"


def _checksum(data: Any) -> str:
    """Return a checksum of data: numbers in an array or a sparse matrix, or a collection of anything."""
    digest = hashlib.sha256()
    data = data.in_host_memory() if isinstance(data, DeviceRows) else data
    if sparse.issparse(data):
        digest.update(repr(("sparse", data.shape, data.dtype.str)).encode())
        for indices in (data.indptr, data.indices):
            digest.update(np.ascontiguousarray(indices, dtype=np.int64).view(np.uint8).data)
        data = data.data
    data = data.to_numpy() if hasattr(data, "to_numpy") else data
    if isinstance(data, np.ndarray) and data.dtype != object:
        digest.update(repr((data.shape, data.dtype.str)).encode())
        if data.size:
            digest.update(np.ascontiguousarray(data).reshape(-1).view(np.uint8).data)
        return digest.hexdigest()
    items = data.ravel() if isinstance(data, np.ndarray) else data
    for position in range(len(items)):
        item = items[position]
        numbers = isinstance(item, str | bytes | bool | int | float)
        digest.update(repr(item).encode() if numbers else _bytes_of(item))
    return digest.hexdigest()


def _bytes_of(item: Any) -> bytes:
    """Return bytes that identify a sample of any kind; nothing is ever read back from them."""
    if isinstance(item, np.ndarray):
        return _checksum(item).encode()
    try:
        return pickle.dumps(item, protocol=5)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise ValueError(
            f"a checkpoint needs samples that can be compared with those of a later fit, and a {type(item).__name__} "
            f"cannot be pickled ({error}); fit without a checkpoint"
        ) from error
