"""The interface between solvers of the dual problem and the backends that compute."""

from __future__ import annotations

from enum import IntEnum


class StopReason(IntEnum):
    """Why a loop of pair steps has returned; the values are those of the native loop."""

    OPTIMAL = 0
    NEEDS_ROW = 1
    PAUSED = 2
    UNBOUNDED = 3
    PRECISION = 4
