"""`maxmargin demo`: train on a generated chessboard, print the certificate, save a plot."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from maxmargin._typing import Floats
from maxmargin.cli.output import Output, add_output_options
from maxmargin.datasets import chessboard
from maxmargin.progress import ProgressLine
from maxmargin.storage.output_files import atomic_path

if TYPE_CHECKING:
    from maxmargin import SVC


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("-n", "--samples", type=int, default=2000, help="training samples [%(default)s]")
    parser.add_argument("-C", type=float, default=100.0, help="penalty of slack [%(default)s]")
    parser.add_argument(
        "-g", "--gamma", type=float, default=1.0, help="coefficient of the Gaussian kernel [%(default)s]"
    )
    parser.add_argument("--noise", type=float, default=0.02, help="fraction of wrong labels [%(default)s]")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the data [%(default)s]")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("maxmargin-demo.png"), help="file of the plot [%(default)s]"
    )
    parser.add_argument("--no-plot", action="store_true", help="do not draw a plot")
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from maxmargin import SVC

    output = Output(options)
    if not options.no_plot and find_spec("matplotlib") is None:
        raise ImportError("the plot needs matplotlib: pip install 'maxmargin[plot]', or use --no-plot")
    X, y = chessboard(options.samples, noise=options.noise, seed=options.seed)
    X_test, y_test = chessboard(10_000, seed=options.seed + 1)
    output.line(f"4 x 4 chessboard: {options.samples:,} samples, {options.noise:.0%} of the labels are wrong.")
    progress = ProgressLine(delay=0.2)
    started = perf_counter()
    try:
        model = SVC(C=options.C, gamma=options.gamma, callback=None if output.quiet else progress).fit(X, y)
    finally:
        progress.close()
    seconds = perf_counter() - started
    certificate, geometry = model.certificate_, model.geometry_
    accuracy, iterations = model.score(X_test, y_test), int(model.n_iter_[0])
    output.facts(
        {
            "iterations": f"{iterations:,} in {seconds:.2f} s",
            "test accuracy": f"{accuracy:.2%}",
            "primal objective": f"{certificate.primal:.9g}",
            "dual objective": f"{certificate.dual:.9g}",
            "duality gap": f"{certificate.gap:.3g}  (relative gap {certificate.relative_gap:.1g})",
            "KKT violation": f"{certificate.violation:.3g}  (tolerance {model.tol:g})",
            "free support vectors": f"{len(geometry.free):,}  on the margin",
            "bounded support vectors": f"{len(geometry.bounded):,}  within the margin or misclassified",
            "non-support vectors": f"{len(geometry.non_support):,}  outside the margin",
            "margin": f"{geometry.margin:.4g}",
        }
    )
    if not options.no_plot:
        _draw(model, X, y, options)
        output.line(f"Plot: {options.output}")
    output.result(
        {
            "iterations": iterations,
            "seconds": seconds,
            "accuracy": accuracy,
            "primal": certificate.primal,
            "dual": certificate.dual,
            "gap": certificate.gap,
            "violation": certificate.violation,
            "free": len(geometry.free),
            "bounded": len(geometry.bounded),
            "margin": geometry.margin,
            "plot": None if options.no_plot else str(options.output),
        }
    )
    return 0


def _draw(model: SVC, X: Floats, y: np.ndarray, options: argparse.Namespace) -> None:
    from maxmargin.plotting import DecisionRegionsDisplay

    display = DecisionRegionsDisplay.from_estimator(model, X, y)
    display.ax_.set_title(f"Chessboard, Gaussian kernel: C = {options.C:g}, gamma = {options.gamma:g}")
    with atomic_path(options.output) as path:
        display.figure_.savefig(path, dpi=120)
