"""Seconds against duality gap: how the way to the optimum looks, not only its end.

maxmargin tells its gap while it runs, so one fit to a fine tolerance gives its curve. The peers do not: they are run
with one tolerance after the other, and the referee says what gap each has reached. So is maxmargin, for comparison.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.race.cases import Case, width
from benchmarks.race.contestants import OURS
from benchmarks.race.fit_process import write_data
from benchmarks.race.launch import launch
from benchmarks.race.pictures import draw_curves
from benchmarks.race.referee import judge
from benchmarks.race.report import write_json
from benchmarks.race.rounds import Settings

TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4)

#: A gap that has become so many times larger is that of another problem.
LEAP = 100.0


def run_curves(case: Case, contestants: list[str], settings: Settings, race: dict[str, Any], output: Path) -> None:
    """Measure the curves of all contestants on a case, and write and draw them."""
    X, labels = case.load()
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) != 2:
        raise SystemExit(f"{case.name} has {len(classes)} classes; a curve needs a case with two")
    gamma, max_seconds = width(case.gamma, X), settings.seconds_for(case)
    curves: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="race-data-") as name:
        folder = Path(name)
        write_data(folder, X, codes)
        for contestant in contestants:
            points, reason = [], ""
            for tolerance in TOLERANCES:
                parameters = settings.parameters(case, gamma, tolerance)
                outcomes = [launch(contestant, parameters, folder, max_seconds) for _ in range(settings.runs)]
                last = outcomes[-1]
                if last.coefficients is None:
                    reason = last.reason
                    break
                verdict = judge(X, codes, case.C, gamma, last.coefficients, tolerance, settings.threads)
                seconds = median(o.measured["seconds"] for o in outcomes if o.coefficients is not None)
                points.append(
                    {
                        "tolerance": tolerance,
                        "seconds": seconds,
                        "violation": verdict.violation,
                        "gap": verdict.gap,
                        "relative_gap": verdict.relative_gap,
                        "primal": verdict.primal,
                    }
                )
            curves[contestant] = {"points": points, "reason": reason}
        if OURS in curves and curves[OURS]["points"]:
            parameters = settings.parameters(case, gamma, TOLERANCES[-1])
            traced = launch(OURS, parameters, folder, max_seconds, trace=True)
            if traced.coefficients is not None:
                verdict = judge(X, codes, case.C, gamma, traced.coefficients, TOLERANCES[-1], settings.threads)
                on_the_way = [(seconds, gap / verdict.primal) for seconds, gap in traced.measured["trace"]]
                end = (traced.measured["seconds"], verdict.relative_gap)
                curves[OURS]["trace"] = [*of_all_samples(on_the_way), end]
    race |= {"case": case.name, "C": case.C, "gamma": gamma, "rows": X.shape[0], "features": X.shape[1]}
    race |= {"curves": curves}
    stem = f"curves-{case.name}"
    write_json(race, output, stem)
    print(draw_curves(race, output, stem))


def of_all_samples(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return a trace from the last time on that its gap leapt up: what was before are nested samples' own gaps."""
    leaps = [k for k in range(1, len(points)) if points[k][1] > LEAP * points[k - 1][1]]
    return points[leaps[-1] :] if leaps else points
