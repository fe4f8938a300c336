"""A journal of finished trials, one line of JSON each, from which an interrupted grid search resumes.

The first line identifies the search: checksum of the data, estimator, folds, score. A search can only resume from a
journal whose first line is the same. An incomplete last line, which a killed process may leave, is dropped. A damaged
journal is an error, and is never changed or deleted.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from maxmargin.search.grid import Point
from maxmargin.storage.output_files import naming

#: The entry "format" of the first line.
FORMAT = "maxmargin grid search journal, version 2"


class Trial(NamedTuple):
    """The score of an estimator with the parameters of a point on a held-out fold."""

    point: Point
    fold: int
    score: float
    seconds: float


class Journal:
    """The journal file.

    Parameters
    ----------
    path : path
        Created if it does not exist.
    identity : mapping
        Identifies the search; values that JSON can hold. Its entry "folds" limits the folds of trials, if there is one.
    resume : bool
        Whether to read the trials of an existing file; otherwise a file with trials is an error.

    Raises
    ------
    ValueError
        If the file is not a journal, is damaged, or belongs to another search. It is left unchanged.
    """

    def __init__(self, path: str | os.PathLike[str], identity: Mapping[str, Any], resume: bool) -> None:
        self.path = Path(path)
        self.known: list[Trial] = []
        identity = {"format": FORMAT, **json.loads(json.dumps(identity))}
        content = self.path.read_bytes() if self.path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if not _without_trials(content, whole, identity):
            if not resume:
                raise FileExistsError(
                    f"{self.path} is the journal of an earlier search, or another file: resume it (--resume, or "
                    "resume=True), delete it, or choose another file"
                )
            self._read(whole, identity)
        length = len(whole) if self.known else 0
        with naming(self.path):
            self._file: TextIO = self.path.open("a", encoding="utf-8")
            self._file.truncate(length)
        if not length:
            self._write(identity)

    def add(self, trial: Trial) -> None:
        """Append a trial and flush the file."""
        (C, gamma), fold, score, seconds = trial
        self._write({"C": C, "gamma": gamma, "fold": fold, "score": score, "seconds": round(seconds, 6)})

    def _write(self, record: Mapping[str, Any]) -> None:
        with naming(self.path):
            self._file.write(json.dumps(record) + "\n")
            self._file.flush()

    def _read(self, whole: bytes, identity: Mapping[str, Any]) -> None:
        """Read the trials of the complete lines of the file; a trial that occurs twice with one score counts once."""
        found: dict[tuple[Point, int], tuple[int, Trial]] = {}
        for position, line in enumerate(whole.splitlines() or [b""], 1):
            try:
                record = json.loads(line)
                if position == 1:
                    different = _difference(record, identity)
                else:
                    trial = _trial(record, identity.get("folds"))
            except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
                raise ValueError(
                    f"{self.path}, line {position}: this is not a journal of a grid search, or a damaged one; "
                    "correct it, or choose another file"
                ) from error
            if position == 1:
                if different is not None:
                    raise ValueError(f"{self.path} is the journal of a different search: {different}; "
                                     "delete the file or choose another one")  # fmt: skip
                continue
            before, same = found.setdefault((trial.point, trial.fold), (position, trial))
            if same.score != trial.score:
                raise ValueError(
                    f"{self.path}: lines {before} and {position} have different scores of fold {trial.fold + 1} at "
                    f"{trial.point}, {same.score!r} and {trial.score!r}; delete the wrong one"
                )
        self.known = [trial for _, trial in found.values()]

    def close(self) -> None:
        """Close the file."""
        with naming(self.path):
            self._file.close()


def _without_trials(content: bytes, whole: bytes, identity: Mapping[str, Any]) -> bool:
    """Whether a file is empty, or a journal without trials: its search failed or was killed immediately."""
    if whole:
        return whole.startswith(f'{{"format": "{FORMAT}"'.encode()) and whole.count(b"\n") == 1
    return json.dumps(identity).encode().startswith(content)  # killed while it wrote the first line


def _difference(record: Mapping[str, Any], identity: Mapping[str, Any]) -> str | None:
    """Return how the search of a first line differs from this one, None if it is the same."""
    if record["format"] != FORMAT:
        raise KeyError("format")
    for key, value in identity.items():
        if record.get(key) != value:
            return f"its {key} is {record.get(key)!r}, here it is {value!r}"
    return None


def _trial(record: Mapping[str, Any], folds: int | None) -> Trial:
    """Return the trial of a line; raise if a value is not what a search writes."""
    C, gamma, fold, score, seconds = (record[key] for key in ("C", "gamma", "fold", "score", "seconds"))
    numbers = [C, score, seconds] + ([] if gamma is None else [gamma])
    if not all(type(value) in (int, float) and math.isfinite(value) for value in numbers):
        raise ValueError("a value is not a finite number")
    if type(fold) is not int or not 0 <= fold < (fold + 1 if folds is None else folds):
        raise ValueError(f"there is no fold {fold!r}")
    return Trial(Point(float(C), None if gamma is None else float(gamma)), fold, float(score), float(seconds))
