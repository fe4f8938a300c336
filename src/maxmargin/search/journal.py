"""A journal of trials: one line of JSON for each, written as soon as it is known.

The first line says what the trials are about: the data by a checksum, the machine, the folds. A search that is taken up
again must be about the same. A process that is killed may leave half a line at the end; it is dropped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from maxmargin.search.grid import Point

#: The first word of the first line.
FORMAT = "maxmargin grid journal, version 1"


class Trial(NamedTuple):
    """The score of a machine on the samples of a fold that it has not seen."""

    point: Point
    fold: int
    score: float
    seconds: float


class Journal:
    """The file.

    Parameters
    ----------
    path : path
        Created if it is not there.
    about : mapping
        What the trials are about; plain values.
    resume : bool
        Whether trials that are in the file already are taken over; without, the file must not have any.
    """

    def __init__(self, path: str | os.PathLike[str], about: Mapping[str, Any], resume: bool) -> None:
        self.path = Path(path)
        self.known: list[Trial] = []
        about = {"format": FORMAT, **json.loads(json.dumps(about))}
        there = self.path.exists() and self.path.stat().st_size > 0 and not self._has_only_begun()
        if there and not resume:
            raise FileExistsError(
                f"{self.path} is the journal of an earlier search: go on with it (--resume, or resume=True), or remove "
                "it, or name another one"
            )
        whole = self._read(about) if there else 0
        self._file: TextIO = self.path.open("a", encoding="utf-8")
        self._file.truncate(whole)
        if not whole:
            self._write(about)

    def _has_only_begun(self) -> bool:
        """Whether the file is a journal without a trial, left by a search that failed at once."""
        content = self.path.read_bytes()
        return content.startswith(f'{{"format": "{FORMAT}"'.encode()) and content.count(b"\n") == 1

    def add(self, trial: Trial) -> None:
        """Write a trial, so that it is there even if the process is killed next."""
        (C, gamma), fold, score, seconds = trial
        self._write({"C": C, "gamma": gamma, "fold": fold, "score": score, "seconds": round(seconds, 6)})

    def _write(self, record: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()

    def _read(self, about: Mapping[str, Any]) -> int:
        """Take over the trials in the file; return how many bytes of it are whole lines."""
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        lines = whole.splitlines()
        if not lines:
            return 0  # killed while it wrote its first line
        for position, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
                if position == 1:
                    self._compare(record, about)
                else:
                    point = Point(float(record["C"]), None if record["gamma"] is None else float(record["gamma"]))
                    fold, score, seconds = int(record["fold"]), float(record["score"]), float(record["seconds"])
                    self.known.append(Trial(point, fold, score, seconds))
            except (UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
                raise ValueError(f"{self.path}, line {position}: this is no journal of a grid search") from error
        return len(whole)

    def _compare(self, record: Mapping[str, Any], about: Mapping[str, Any]) -> None:
        if record.get("format") != FORMAT:
            raise KeyError("format")
        different = [key for key in about if record.get(key) != about[key]]
        if different:
            key = different[0]
            raise ValueError(
                f"{self.path} is about another search: {key} was {record.get(key)!r} there and is {about[key]!r} now; "
                "remove it, or name another journal"
            )

    def close(self) -> None:
        """Close the file."""
        self._file.close()
