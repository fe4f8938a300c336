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
FORMAT = "maxmargin grid search journal, version 3"


class Trial(NamedTuple):
    """The scores of an estimator with the parameters of a point, trained without the test samples of a fold.

    Attributes
    ----------
    point : Point
    fold : int
        Number of the fold, or of the split into training and test samples.
    scores : dict of str to float
        "test_score", or "test_" and the name of each metric; the same with "train_" if they were asked for.
    fit_seconds, score_seconds : float
    error : str or None
        The message of the exception that ended the trial; its scores are then those given for such a case.
    """

    point: Point
    fold: int
    scores: dict[str, float]
    fit_seconds: float
    score_seconds: float = 0.0
    error: str | None = None

    @property
    def seconds(self) -> float:
        """The time of the trial."""
        return self.fit_seconds + self.score_seconds


def score_of(trial: Trial, metric: str, error_score: float) -> float:
    """Return the score of a trial by a metric; `error_score` if an exception ended it."""
    if trial.error is not None:
        return error_score
    single = trial.scores.get("test_score")  # with one metric, whatever its name
    return trial.scores[f"test_{metric}"] if single is None else single


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
        """Append a trial and flush the file; not one that an exception ended, which a resumed search repeats."""
        if trial.error is not None:
            return
        scores = {name: None if math.isnan(score) else score for name, score in trial.scores.items()}
        times = {"fit_seconds": round(trial.fit_seconds, 6), "score_seconds": round(trial.score_seconds, 6)}
        self._write({**trial.point.parameters, "fold": trial.fold, "scores": scores, **times})

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
            if repr(same.scores) != repr(trial.scores):  # NaN is not equal to itself
                raise ValueError(
                    f"{self.path}: lines {before} and {position} have different scores of fold {trial.fold + 1} at "
                    f"{trial.point}, {same.scores!r} and {trial.scores!r}; delete the wrong one"
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
    fold, scores, times = record["fold"], record["scores"], (record["fit_seconds"], record["score_seconds"])
    parameters = {name: value for name, value in record.items() if name in Point._fields}
    known = [score for score in scores.values() if score is not None]
    if not scores or not all(_is_number(value) for value in (*parameters.values(), *known, *times)):
        raise ValueError("a value is not a finite number")
    if type(fold) is not int or not 0 <= fold < (fold + 1 if folds is None else folds):
        raise ValueError(f"there is no fold {fold!r}")
    point = Point(**{name: float(value) for name, value in parameters.items()})
    by_name = {name: math.nan if score is None else float(score) for name, score in scores.items()}
    return Trial(point, fold, by_name, float(times[0]), float(times[1]))


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)
