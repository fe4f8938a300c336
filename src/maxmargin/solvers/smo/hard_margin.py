"""When a hard margin does not exist: the dual then grows without limit, and no iteration would ever end."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from maxmargin._typing import Floats

#: w of a hard margin is at least (margin · Σ|b|) long. Below this multiple of radius · Σ|b| the margin cannot be
#: told from zero, and the dual grows without limit.
NO_MARGIN = 1e-7


class OpenBox(Protocol):
    """What the test looks at."""

    linear: Floats

    @property
    def dual(self) -> Floats:
        """The variables."""
        ...

    @property
    def dual_value(self) -> float:
        """The dual objective."""
        ...

    @property
    def has_limit(self) -> bool:
        """Whether no variable can grow for ever."""
        ...

    def radius(self) -> float:
        """Return the squared size of the data in feature space."""
        ...


def grows_without_limit(state: OpenBox) -> bool:
    """Whether w has become too short for the dual variables that make it up: there is no margin."""
    if state.has_limit:
        return False
    weight = float(np.abs(state.dual).sum())
    squared_norm = 2.0 * (float(state.linear @ state.dual) - state.dual_value)
    return squared_norm <= NO_MARGIN**2 * weight**2 * state.radius()
