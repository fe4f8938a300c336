"""The settings of one variant of a peer that reach the gaps, found in one process of their own.

    python -m benchmarks.race.linear.search_process job.json

Every rung is written to a file as soon as it is judged. A fit that takes too long is ended by the alarm clock of its
own process, and with it the search: the next setting would only take longer.
"""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from scipy import sparse

from benchmarks.race.fit_process import read_data, tiny, warm_up
from benchmarks.race.leagues import LEAGUES
from benchmarks.race.linear.ladder import climb
from benchmarks.race.linear.referee import primal, relative_gap


def main(path: Path) -> None:
    job = json.loads(path.read_text(encoding="utf-8"))
    try:
        search(job, path.parent)
        answer: dict[str, Any] = {}
    except Exception as error:  # whatever a library throws belongs in the report
        text = " ".join(str(error).split())[:300]
        answer = {"failed": f"{type(error).__name__}: {text}"}
    (path.parent / "answer.json").write_text(json.dumps(answer), encoding="utf-8")


def search(job: dict[str, Any], folder: Path) -> None:
    """Climb the ladder to one gap after the other."""
    league = LEAGUES["linear"]
    make = league.contestants[job["contestant"]]
    parameters = league.parameters(**job["parameters"])
    ladder = make.ladder
    X, codes = read_data(Path(job["data"]))
    first = replace(parameters, setting=ladder[0])
    warm_up(make, first, *tiny(sparse.issparse(X)))
    contestant = make(first)
    contestant.take(X, codes)
    left = job["budget"]

    def gap_at(rung: int) -> float:
        nonlocal left
        contestant.turn(ladder[rung])
        allowed = min(job["max_seconds"], left)
        note(folder, {"rung": rung, "setting": ladder[rung], "allowed": allowed})
        signal.setitimer(signal.ITIMER_REAL, allowed)
        started = perf_counter()
        contestant.fit()
        seconds = perf_counter() - started
        signal.setitimer(signal.ITIMER_REAL, 0)
        left = max(left - seconds, 1e-3)
        gap = relative_gap(primal(X, codes, parameters.C, parameters.loss, contestant.coefficients()), job["bound"])
        note(folder, {"rung": rung, "setting": ladder[rung], "seconds": seconds, "gap": gap})
        return gap

    known: dict[int, float] = {}
    for target in job["targets"]:
        climb(gap_at, len(ladder), target, known)


def note(folder: Path, line: dict[str, Any]) -> None:
    """Append a line to the file of rungs."""
    with (folder / "rungs.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
