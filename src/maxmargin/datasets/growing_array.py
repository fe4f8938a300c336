"""An array that grows at its end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class GrowingArray:
    """An array with room for more: `array` has the entries in front, and what is behind them means nothing.

    Memory that is not written to is not taken from the system, so generous room costs little.
    """

    def __init__(self, dtype: DTypeLike) -> None:
        self.array: NDArray[Any] = np.empty(0, dtype)

    def make_room(self, used: int, more: int, share: float | None = None) -> None:
        """Have room for so many more entries after those that are used, which are about this share of all to come."""
        if used + more > len(self.array):
            expected = int(1.1 * used / share) if share else 0
            length = expected if expected > used + more else max(used + more, 2 * len(self.array))
            self._move(length, self.array.dtype, used)

    def convert(self, dtype: DTypeLike, used: int) -> None:
        """Change the type of the entries."""
        self._move(len(self.array), dtype, used)

    def _move(self, length: int, dtype: DTypeLike, used: int) -> None:
        moved = np.empty(length, dtype)
        moved[:used] = self.array[:used]
        self.array = moved

    def cut(self, used: int) -> NDArray[Any]:
        """Return the entries that are used; the room behind them is given back."""
        self.array.resize(used, refcheck=False)
        return self.array
