"""Colours and text of scores, for the terminal and for figures.

The colour range covers the upper two thirds of the scores, because the neighbourhood of the best point is what matters
in a grid; lower scores get the darkest colour. The colours are those of cividis (Nuñez, Anderton & Renslow 2018), from
dark blue through grey to yellow, which remain distinguishable with colour vision deficiency.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats

#: Red, green and blue of five equidistant scores, lowest first.
COLOURS = np.array([[0, 34, 78], [66, 78, 108], [124, 123, 120], [187, 175, 105], [254, 232, 56]], dtype=np.float64)

#: Quantile of the scores at the lower end of the colour range.
LOWER_QUANTILE = 1 / 3

#: Scores that are printed as percentages.
PERCENTAGES = ("accuracy", "balanced_accuracy")


def colour_range(means: Floats) -> tuple[float, float]:
    """Return the scores at both ends of the colour range."""
    known = means[np.isfinite(means)]
    return (float(np.quantile(known, LOWER_QUANTILE)), float(known.max())) if len(known) else (0.0, 1.0)


def colour_of(mean: float, low: float, high: float) -> tuple[int, int, int]:
    """Return red, green and blue of a score."""
    fraction = np.clip((mean - low) / (high - low), 0.0, 1.0) if high > low else float(mean >= high)
    position = fraction * (len(COLOURS) - 1)
    red, green, blue = (np.interp(position, np.arange(len(COLOURS)), column) for column in COLOURS.T)
    return round(float(red)), round(float(green)), round(float(blue))


def text_colour_on(mean: float, low: float, high: float) -> str:
    """Return the text colour that is legible on the colour of a score."""
    red, green, blue = colour_of(mean, low, high)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 120 else "white"


def format_score(value: float, scoring: str, short: bool = False) -> str:
    """Return a score as text: accuracies in percent, others as numbers."""
    if scoring in PERCENTAGES:
        return f"{100 * value:.1f}" if short else f"{100 * value:.2f} %"
    if short:
        return f"{value:.3f}" if abs(value) < 10 else f"{value:.3g}"
    return f"{value:.4g}"
