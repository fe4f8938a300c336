"""A decision function for each class, of which the largest wins; two classes share one, positive for the second."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin._typing import Floats
from maxmargin.models.expansions import Expansions


@dataclass(frozen=True)
class OneVersusRest(Expansions):
    """Decision values of all classes, and the class that they say."""

    def vote(self, decisions: Floats) -> np.ndarray:
        """Return the index of the class with the largest value; the lowest one among equals."""
        return np.asarray(np.argmax(decisions, axis=1))

    def scores(self, decisions: Floats) -> Floats:
        """Return one score per class: its decision value."""
        return decisions
