"""`maxmargin demo`: train on a chessboard, show the proof, save a picture."""

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

if TYPE_CHECKING:
    from maxmargin import SVC


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("-n", "--samples", type=int, default=2000, help="training samples [%(default)s]")
    parser.add_argument("-C", type=float, default=100.0, help="cost of slack [%(default)s]")
    parser.add_argument(
        "-g", "--gamma", type=float, default=1.0, help="width parameter of the gaussian kernel [%(default)s]"
    )
    parser.add_argument("--noise", type=float, default=0.02, help="share of wrong labels [%(default)s]")
    parser.add_argument("--seed", type=int, default=0, help="of the data [%(default)s]")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("maxmargin-demo.png"), help="where the picture goes [%(default)s]"
    )
    parser.add_argument("--no-picture", action="store_true", help="leave the picture out")
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Train, report, draw."""
    from maxmargin import SVC

    output = Output(options)
    if not options.no_picture and find_spec("matplotlib") is None:
        raise ImportError("the picture needs matplotlib: pip install 'maxmargin[plot]'; --no-picture does without")
    X, y = chessboard(options.samples, noise=options.noise, seed=options.seed)
    X_test, y_test = chessboard(10_000, seed=options.seed + 1)
    output.line(f"A 4 x 4 chessboard: {options.samples:,} samples, {options.noise:.0%} of the labels wrong.")
    line = ProgressLine(after=0.2)
    started = perf_counter()
    try:
        model = SVC(C=options.C, gamma=options.gamma, callback=None if output.quiet else line).fit(X, y)
    finally:
        line.close()
    seconds = perf_counter() - started
    certificate, geometry = model.certificate_, model.geometry_
    accuracy, steps = model.score(X_test, y_test), int(model.n_iter_[0])
    output.facts(
        {
            "steps": f"{steps:,} in {seconds:.2f} s",
            "accuracy on new points": f"{accuracy:.2%}",
            "primal value": f"{certificate.primal:.9g}",
            "dual value": f"{certificate.dual:.9g}",
            "duality gap": f"{certificate.gap:.3g}  ({certificate.relative_gap:.1g} of the optimum)",
            "largest violation": f"{certificate.violation:.3g}  (tolerance {model.tol:g})",
            "free support vectors": f"{len(geometry.free):,}  on the margin",
            "bounded support vectors": f"{len(geometry.bounded):,}  inside it or on the wrong side",
            "other samples": f"{len(geometry.non_support):,}  beyond it",
            "margin": f"{geometry.margin:.4g}",
        }
    )
    if not options.no_picture:
        _draw(model, X, y, options)
        output.line(f"Picture: {options.output}")
    output.result(
        {
            "steps": steps,
            "seconds": seconds,
            "accuracy": accuracy,
            "primal": certificate.primal,
            "dual": certificate.dual,
            "gap": certificate.gap,
            "violation": certificate.violation,
            "free": len(geometry.free),
            "bounded": len(geometry.bounded),
            "margin": geometry.margin,
            "picture": None if options.no_picture else str(options.output),
        }
    )
    return 0


def _draw(model: SVC, X: Floats, y: np.ndarray, options: argparse.Namespace) -> None:
    from maxmargin.plotting import DecisionRegionsDisplay

    display = DecisionRegionsDisplay.from_estimator(model, X, y)
    display.ax_.set_title(f"Chessboard, gaussian kernel: C = {options.C:g}, gamma = {options.gamma:g}")
    display.figure_.savefig(options.output, dpi=120)
