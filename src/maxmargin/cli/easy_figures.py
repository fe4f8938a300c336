"""The pictures of the report of `maxmargin easy`: what held-out samples say about the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.plotting.style import COLOURS, GREY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from maxmargin.search.diagnostics import Diagnostics

#: Columns whose importance is drawn.
MAX_DRAWN_COLUMNS = 20


def _axes(width: float, height: float) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def learning_curve(found: Diagnostics) -> Figure:
    """Draw the scores on training and held-out samples against the number of training samples."""
    assert found.learning is not None
    sizes, train, train_std, test, test_std = found.learning
    figure, axes = _axes(6.4, 3.4)
    for number, (label, means, stds) in enumerate((("training", train, train_std), ("held out", test, test_std))):
        axes.fill_between(sizes, means - stds, means + stds, color=COLOURS[number], alpha=0.15, linewidth=0)
        axes.plot(sizes, means, marker="os"[number], color=COLOURS[number], label=label)
    axes.set(xlabel="training samples", ylabel=found.scoring.replace("_", " "))
    axes.legend(frameon=False)
    return figure


def importance(found: Diagnostics, names: Sequence[str]) -> Figure:
    """Draw the loss in score when a column is permuted, the most important one at the top."""
    assert found.importance is not None
    means, stds = found.importance
    order = np.argsort(means)[-MAX_DRAWN_COLUMNS:]
    figure, axes = _axes(6.4, 0.8 + 0.27 * len(order))
    axes.barh([names[place] for place in order], means[order], xerr=stds[order], color=COLOURS[0], ecolor=GREY)
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.set_xlabel(f"loss in {found.scoring.replace('_', ' ')} when the column is permuted")
    return figure


def calibration(found: Diagnostics, label: str) -> Figure:
    """Draw observed frequencies against predicted probabilities."""
    assert found.calibration is not None
    predicted, observed, _ = found.calibration
    figure, axes = _axes(4.2, 4.0)
    axes.plot([0, 1], [0, 1], color=GREY, linestyle=":", label="perfect")
    axes.plot(predicted, observed, marker="o", color=COLOURS[0], label="held out")
    axes.set(xlabel=f"predicted probability of {label}", ylabel="observed frequency", xlim=(-0.02, 1.02))
    axes.set(ylim=(-0.02, 1.02), aspect="equal")
    axes.legend(frameon=False, loc="upper left")
    return figure


def predictions(found: Diagnostics, y: Any) -> Figure:
    """Draw held-out predictions of a regression against the targets."""
    figure, axes = _axes(4.6, 4.2)
    axes.plot(y, found.predicted, ".", color=COLOURS[0], alpha=0.5, markeredgewidth=0)
    low, high = float(min(y.min(), found.predicted.min())), float(max(y.max(), found.predicted.max()))
    axes.plot([low, high], [low, high], color=GREY, linestyle=":")
    axes.set(xlabel="target", ylabel="held-out prediction")
    return figure
