"""
A table on disk, block by block
===============================

A table of 200,000 rows in a file is read in blocks, pass after pass, and never in memory as a whole. The bounds of the
last pass are the certificate.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import LinearSVC, blocks

random = np.random.default_rng(0)
with tempfile.TemporaryDirectory() as folder:
    X = random.normal(size=(200_000, 20)).astype(np.float32)
    np.save(Path(folder, "X.npy"), X)
    np.save(Path(folder, "y.npy"), X[:, 0] + X[:, 1] + random.normal(size=len(X)) > 0)
    table = blocks.open(Path(folder, "X.npy"), y=Path(folder, "y.npy"), block_rows=20_000)
    model = LinearSVC(C=1e-4).fit(table)
    print(f"{model.n_passes_} passes, accuracy {model.score(table):.3f}")
    print(model.certificate_)

figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
ax.bar(range(20), model.coef_[0], color="#0072B2")
ax.set(xlabel="feature", ylabel="weight", title="Two of twenty features decide", xticks=range(20))
