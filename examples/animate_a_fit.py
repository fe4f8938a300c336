"""Animate a fit pair step by pair step. Writes a GIF, or a web page if the path ends with .html."""

import sys
import tempfile
from pathlib import Path

from sklearn.datasets import make_moons

import maxmargin
from maxmargin.plotting import animate

X, y = make_moons(60, noise=0.2, random_state=0)
fit_trace = maxmargin.trace(X, y, gamma=1.0, C=5.0)
print(f"{len(fit_trace) - 1} steps, the last working set: {fit_trace.working_sets[-1]}")
print(fit_trace.certificate)

path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.gettempdir()) / "maxmargin-fit.gif"
animate(fit_trace, milliseconds=250).save(path)
print(f"{path}: {path.stat().st_size / 1000:.0f} kB")
