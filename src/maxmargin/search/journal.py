"""A journal of finished trials, one line of JSON each, from which an interrupted grid search resumes.

The first line identifies the search: checksum of the data, estimator, folds, score. A search can only resume from a
journal whose first line is the same. An incomplete last line, which a killed process may leave, is dropped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from maxmargin.search.grid import Point

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
        Identifies the search; values that JSON can hold.
    resume : bool
        Whether to read the trials of an existing file; otherwise a file with trials is an error.
    """

    def __init__(self, path: str | os.PathLike[str], identity: Mapping[str, Any], resume: bool) -> None:
        self.path = Path(path)
        self.known: list[Trial] = []
        identity = {"format": FORMAT, **json.loads(json.dumps(identity))}
        has_trials = self.path.exists() and self.path.stat().st_size > 0 and not self._is_header_only()
        if has_trials and not resume:
            raise FileExistsError(
                f"{self.path} is the journal of an earlier search: resume it (--resume, or resume=True), delete it, or "
                "choose another file"
            )
        length = self._read(identity) if has_trials else 0
        self._file: TextIO = self.path.open("a", encoding="utf-8")
        self._file.truncate(length)
        if not length:
            self._write(identity)

    def _is_header_only(self) -> bool:
        """Whether the file is a journal without trials, left by a search that failed immediately."""
        content = self.path.read_bytes()
        return content.startswith(f'{{"format": "{FORMAT}"'.encode()) and content.count(b"\n") == 1

    def add(self, trial: Trial) -> None:
        """Append a trial and flush the file."""
        (C, gamma), fold, score, seconds = trial
        self._write({"C": C, "gamma": gamma, "fold": fold, "score": score, "seconds": round(seconds, 6)})

    def _write(self, record: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()

    def _read(self, identity: Mapping[str, Any]) -> int:
        """Read the trials of the file; return the number of bytes up to the end of its last complete line."""
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        lines = whole.splitlines()
        if not lines:
            return 0  # the process was killed while it wrote the first line
        for position, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
                if position == 1:
                    self._check_identity(record, identity)
                else:
                    point = Point(float(record["C"]), None if record["gamma"] is None else float(record["gamma"]))
                    fold, score, seconds = int(record["fold"]), float(record["score"]), float(record["seconds"])
                    self.known.append(Trial(point, fold, score, seconds))
            except (UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
                raise ValueError(f"{self.path}, line {position}: this is not a journal of a grid search") from error
        return len(whole)

    def _check_identity(self, record: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
        if record.get("format") != FORMAT:
            raise KeyError("format")
        different = [key for key in identity if record.get(key) != identity[key]]
        if different:
            key = different[0]
            raise ValueError(
                f"{self.path} is the journal of a different search: its {key} is {record.get(key)!r}, here it is "
                f"{identity[key]!r}; delete the file or choose another one"
            )

    def close(self) -> None:
        """Close the file."""
        self._file.close()
