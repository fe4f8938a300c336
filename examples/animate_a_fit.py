"""A film of one fit: the margin moves pair by pair. Writes a GIF, or with a path that ends with .html a page."""

import sys
import tempfile
from pathlib import Path

from sklearn.datasets import make_moons

import maxmargin
from maxmargin.plotting import animate

X, y = make_moons(60, noise=0.2, random_state=0)
walk = maxmargin.trace(X, y, gamma=1.0, C=5.0)
print(f"{len(walk) - 1} steps, the last about the samples {walk.working_sets[-1]}")
print(walk.certificate)

path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.gettempdir()) / "maxmargin-fit.gif"
animate(walk, milliseconds=250).save(path)
print(f"{path}: {path.stat().st_size / 1000:.0f} kB")
