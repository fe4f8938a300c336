"""Colours and words of scores, the same on the terminal and in pictures.

What matters in a grid is the neighbourhood of the best point. So colours are spent on the better part of the scores:
all below their lower third are as dark as that. The scale goes from dark blue to yellow by way of grey, and can be told
apart with any kind of colour blindness (the ends and the middle of cividis; Nuñez, Anderton & Renslow 2018).
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats

#: From bad to good.
SCALE = np.array([[0, 34, 78], [66, 78, 108], [124, 123, 120], [187, 175, 105], [254, 232, 56]], dtype=np.float64)

#: The scores below this part of all are as dark as that.
DARK = 1 / 3

#: Scores that are shares, which are told in percent.
SHARES = ("accuracy", "balanced_accuracy")


def limits(means: Floats) -> tuple[float, float]:
    """Return the scores at the ends of the scale."""
    known = means[np.isfinite(means)]
    return (float(np.quantile(known, DARK)), float(known.max())) if len(known) else (0.0, 1.0)


def shade(mean: float, low: float, high: float) -> tuple[int, int, int]:
    """Return red, green and blue for a score."""
    part = np.clip((mean - low) / (high - low), 0.0, 1.0) if high > low else float(mean >= high)
    position = part * (len(SCALE) - 1)
    red, green, blue = (np.interp(position, np.arange(len(SCALE)), column) for column in SCALE.T)
    return round(float(red)), round(float(green)), round(float(blue))


def ink_on(mean: float, low: float, high: float) -> str:
    """Return the colour of text that can be read on the shade of a score."""
    red, green, blue = shade(mean, low, high)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 120 else "white"


def words(value: float, scoring: str, short: bool = False) -> str:
    """Return a score for people: shares in percent, others as they are."""
    if scoring in SHARES:
        return f"{100 * value:.1f}" if short else f"{100 * value:.2f} %"
    if short:
        return f"{value:.3f}" if abs(value) < 10 else f"{value:.3g}"
    return f"{value:.4g}"
