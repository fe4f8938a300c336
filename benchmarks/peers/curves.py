"""Time against duality gap.

maxmargin reports its gap during a fit, so that one fit to a small tolerance yields its curve. Peers do not: they run
with decreasing tolerances, and the gap of each solution is verified. So is maxmargin, for comparison.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.peers.cases import Case
from benchmarks.peers.fit_process import write_data
from benchmarks.peers.launch import launch
from benchmarks.peers.libraries import OURS
from benchmarks.peers.plots import draw_curves
from benchmarks.peers.report import write_json
from benchmarks.peers.run_case import Settings
from benchmarks.peers.verification import verify

TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4)

#: A gap that grows by more than this factor belongs to a new problem (nested samples precede the whole problem).
NEW_PROBLEM_FACTOR = 100.0


def run_curves(case: Case, libraries: list[str], settings: Settings, benchmark: dict[str, Any], output: Path) -> None:
    """Measure the curves of all libraries on a case, and write and draw them."""
    X, labels = case.load()
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) != 2:
        raise SystemExit(f"{case.name} has {len(classes)} classes; a curve needs a case with two")
    max_seconds = settings.seconds_for(case)
    curves: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="benchmark-data-") as name:
        folder = Path(name)
        write_data(folder, X, codes)
        for library in libraries:
            points, reason = [], ""
            for tolerance in TOLERANCES:
                parameters = settings.parameters(case, X, tolerance)
                outcomes = [
                    launch(library, parameters, folder, max_seconds, once_above=settings.once_above)
                    for _ in range(settings.runs)
                ]
                last = outcomes[-1]
                if last.coefficients is None:
                    reason = last.reason
                    break
                result = verify(X, codes, parameters, last.coefficients)
                seconds = median(o.measured["seconds"] for o in outcomes if o.coefficients is not None)
                points.append(
                    {
                        "tolerance": tolerance,
                        "seconds": seconds,
                        "violation": result.violation,
                        "gap": result.gap,
                        "relative_gap": result.relative_gap,
                        "primal": result.primal,
                    }
                )
            curves[library] = {"points": points, "reason": reason}
        if OURS in curves and curves[OURS]["points"]:
            parameters = settings.parameters(case, X, TOLERANCES[-1])
            traced = launch(OURS, parameters, folder, max_seconds, trace=True)
            if traced.coefficients is not None:
                result = verify(X, codes, parameters, traced.coefficients)
                trace = [(seconds, gap / result.primal) for seconds, gap in traced.measured["trace"]]
                end = (traced.measured["seconds"], result.relative_gap)
                curves[OURS]["trace"] = [*of_all_samples(trace), end]
    gamma = settings.parameters(case, X).gamma
    benchmark |= {"case": case.name, "C": case.C, "gamma": gamma, "rows": X.shape[0], "features": X.shape[1]}
    benchmark |= {"curves": curves}
    stem = f"curves-{case.name}"
    write_json(benchmark, output, stem)
    print(draw_curves(benchmark, output, stem))


def of_all_samples(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the part of a trace that belongs to the whole problem, after the nested samples."""
    starts = [k for k in range(1, len(points)) if points[k][1] > NEW_PROBLEM_FACTOR * points[k - 1][1]]
    return points[starts[-1] :] if starts else points
