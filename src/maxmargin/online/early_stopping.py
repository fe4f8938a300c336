"""Stopping rules of active learning: further labels are unlikely to change the model.

Each rule is about the fraction of recent events. An error is a label that contradicts the prediction made before it was
learned. A sample is inside the margin if −1 < f(x) < 1: it would violate the optimality conditions whatever its label.
When the margin is exhausted, further labels change the model only if they contradict it (Schohn and Cohn 2000; LASVM's
auto-active selection, Bordes et al. 2005).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field


def _check(window: int, fraction: float) -> None:
    if window < 1 or not 0 <= fraction < 1:
        raise ValueError(
            f"a stopping rule needs a window of at least 1 and a fraction from 0 to below 1, not {window!r}, "
            f"{fraction!r}"
        )


@dataclass(frozen=True)
class LowErrorRate:
    """Stop when at most a fraction of the last labels contradicted the predictions made before they were learned.

    Parameters
    ----------
    window : int
        The number of labels; the rule does not hold before as many are known.
    fraction : float
        The largest fraction of errors among them.
    """

    window: int = 100
    fraction: float = 0.02

    def __post_init__(self) -> None:
        _check(self.window, self.fraction)


@dataclass(frozen=True)
class MarginExhausted:
    """Stop when at most a fraction of the last evaluated samples were inside the margin; needs no labels.

    The candidates of a strategy are evaluated; with "random" the queried samples.

    Parameters
    ----------
    window : int
        The number of samples; the rule does not hold before as many have been evaluated.
    fraction : float
        The largest fraction of them inside the margin.
    """

    window: int = 500
    fraction: float = 0.01

    def __post_init__(self) -> None:
        _check(self.window, self.fraction)


ActiveStoppingRule = LowErrorRate | MarginExhausted

#: The rules by name.
STOPPING_RULES: dict[str, ActiveStoppingRule] = {
    "low_error_rate": LowErrorRate(),
    "margin_exhausted": MarginExhausted(),
}


@dataclass
class EventWindow:
    """The last events that a rule is about, as many as its window."""

    rule: ActiveStoppingRule
    events: deque[bool] = field(init=False)

    def __post_init__(self) -> None:
        self.events = deque(maxlen=self.rule.window)

    def add(self, events: Iterable[bool]) -> None:
        """Append events, which replace the oldest."""
        self.events.extend(events)

    @property
    def rule_holds(self) -> bool:
        """Whether the rule holds."""
        return len(self.events) == self.rule.window and sum(self.events) <= self.rule.fraction * self.rule.window
