"""Seconds of a fit and of its certificate against the number of rows, on a GPU and on the CPU beside it.

    python -m benchmarks.gpu.growth --data FOLDER --output growth.json
    python -m benchmarks.gpu.growth --draw growth.json        # writes growth.png; needs matplotlib

Rows are those of the forest cover types; more than there are of them are copies with noise.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.peers import loading

#: Numbers of rows, and the most that the CPU fits.
ROWS, MOST_ON_CPU = (10_000, 20_000, 50_000, 100_000, 200_000, 581_012, 1_000_000), 100_000

#: Rows of the data set, and the deviation of the noise of copies, in those of the features.
AVAILABLE, NOISE = 581_012, 0.05

#: Warm fits on a GPU of which the median counts.
FITS = 3


def rows_of(everything: loading.Data, count: int) -> loading.Data:
    """Return standardised rows: the first, then copies with noise."""
    X, y = everything
    if count > len(X):
        copied = np.arange(count - len(X))
        noise = np.random.default_rng(0).normal(scale=NOISE, size=(len(copied), X.shape[1]))
        X, y = np.concatenate([X, X[copied] + noise]), np.concatenate([y, y[copied]])
    return np.ascontiguousarray(X[:count]), y[:count]


def measure(X: Any, y: Any, device: str, fits: int) -> dict[str, Any]:
    """Return the median time of fits, the time of the certificate, and what it says."""
    from maxmargin import SVC

    times = []
    for _ in range(fits):
        model = SVC(device=device)
        began = perf_counter()
        model.fit(X, y)
        times.append(perf_counter() - began)
    began = perf_counter()
    certificate = model.certificate_
    return {
        "device": device, "rows": len(X), "support": len(model.support_), "fit": median(times),
        "certificate": perf_counter() - began, "violation": certificate.violation,
    }  # fmt: skip


def draw(path: Path) -> Path:
    """Draw the results in a JSON file; return the file of the picture."""
    from matplotlib import pyplot as plt

    report = json.loads(path.read_text(encoding="utf-8"))
    figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
    lines = [("cpu", "fit", "o-", "CPU", "0.45"), ("cuda", "fit", "o-", "GPU", "tab:blue"),
             ("cuda", "certificate", "s--", "certificate on the GPU", "tab:orange")]  # fmt: skip
    for device, key, style, label, colour in lines:
        shown = [one for one in report["results"] if one["device"] == device]
        axes.plot([one["rows"] for one in shown], [one[key] for one in shown], style, color=colour, label=label)
    rows = sorted({one["rows"] for one in report["results"]})
    axes.set(xscale="log", yscale="log", xlabel="rows of covtype", ylabel="seconds", title=report["computer"])
    axes.set_xticks(rows, [f"{count:,}" for count in rows], rotation=30)
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path.with_suffix(".png"), dpi=150)
    return path.with_suffix(".png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the data set")
    parser.add_argument("--output", type=Path, help="file for the results")
    parser.add_argument("--draw", type=Path, help="draw the results in this file instead")
    parser.add_argument("--computer", default="", help="name of card and CPU, for the title of the picture")
    options = parser.parse_args()
    if options.draw is not None:
        print(draw(options.draw))
        return
    everything, results = loading.standardised(loading.covtype(options.data, AVAILABLE)), []
    for count in ROWS:
        X, y = rows_of(everything, count)
        for device in ("cuda", "cpu"):
            if device == "cuda" or count <= MOST_ON_CPU:
                if count == ROWS[0]:
                    measure(X, y, device, 1)  # start of the GPU, threads, compiled kernels
                results.append(measure(X, y, device, FITS if device == "cuda" else 1))
                print(json.dumps(results[-1]), flush=True)
    text = json.dumps({"computer": options.computer, "results": results}, indent=1)
    options.output.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
