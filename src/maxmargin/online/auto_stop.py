"""When to stop asking: fresh samples have become unlikely to teach anything.

Two rules, each about a share of recent events. A sample is wrong if the machine, before it learnt the label, predicted
another; a sample is inside the margin if a label could still make it violate the conditions of optimality whatever the
label is, −1 < f(x) < 1. When nothing is left inside the margin, further labels leave the machine as it is unless they
contradict it (Schohn and Cohn 2000; LASVM's auto-active selection, Bordes et al. 2005).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field


def _check(window: int, share: float) -> None:
    if window < 1 or not 0 <= share < 1:
        raise ValueError(
            f"a stop needs a window of at least 1 and a share from 0 to below 1, not {window!r}, {share!r}"
        )


@dataclass(frozen=True)
class SeldomWrong:
    """Stop when at most a share of the last labels contradicted the prediction made just before they were learnt.

    Parameters
    ----------
    window : int
        How many of the latest labels count; there is no stop before there are so many.
    share : float
        The largest share of them that may have been wrong.
    """

    window: int = 100
    share: float = 0.02

    def __post_init__(self) -> None:
        _check(self.window, self.share)


@dataclass(frozen=True)
class OutsideMargin:
    """Stop when at most a share of the samples last looked at were inside the margin. It needs no labels.

    Looked at are the candidates of a strategy, or with "random" the samples asked for.

    Parameters
    ----------
    window : int
        How many of the latest looks count; there is no stop before there are so many.
    share : float
        The largest share of them that may have been inside.
    """

    window: int = 500
    share: float = 0.01

    def __post_init__(self) -> None:
        _check(self.window, self.share)


StopRule = SeldomWrong | OutsideMargin

#: The rules by name.
STOP_RULES: dict[str, StopRule] = {"seldom_wrong": SeldomWrong(), "outside_margin": OutsideMargin()}


@dataclass
class Tally:
    """The events that a rule is about, as many as it wants."""

    rule: StopRule
    events: deque[bool] = field(init=False)

    def __post_init__(self) -> None:
        self.events = deque(maxlen=self.rule.window)

    def add(self, events: Iterable[bool]) -> None:
        """Take new events, which push out the oldest."""
        self.events.extend(events)

    @property
    def complete(self) -> bool:
        """Whether the rule holds."""
        return len(self.events) == self.rule.window and sum(self.events) <= self.rule.share * self.rule.window
