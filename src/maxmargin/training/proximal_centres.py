"""The proximal centres of problems that are trained by passes: a number for each sample, in a file if they are many.

A smoothed loss has a centre c and responses β of all samples (`solvers.linear.pass_sums`). Any centre is valid, so they
are kept in single precision.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats
from maxmargin.solvers.linear.pass_sums import PassPoint
from maxmargin.storage.output_files import naming

#: Arrays of more bytes than this are in a file.
MAX_BYTES_IN_MEMORY = 2**27


class ProximalCentres:
    """The centre and the last responses of each problem with a smoothed loss.

    Parameters
    ----------
    rows : int
        The number of samples.
    """

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._arrays: dict[int, list[NDArray[np.float32]]] = {}

    def begin(self, number: int, point: PassPoint) -> None:
        """Prepare a pass at a point of a problem: its last responses become the centre if the point says so."""
        if point.sigma > 0 and number not in self._arrays:
            self._arrays[number] = [self._zeros(f"{number}.{name}") for name in ("centre", "responses")]
        if point.recentre:
            self._arrays[number].reverse()

    def centre(self, number: int, at: slice) -> NDArray[np.float32] | None:
        """Return the centre of some samples, None for 0."""
        arrays = self._arrays.get(number)
        return None if arrays is None else np.asarray(arrays[0][at])

    def keep(self, number: int, at: slice, responses: Floats) -> None:
        """Keep the responses of some samples."""
        if number in self._arrays:
            kept, single = self._arrays[number][1], np.finfo(np.float32)
            try:
                with np.errstate(over="raise"):
                    kept[at] = responses
            except FloatingPointError:  # any centre is valid
                kept[at] = np.clip(responses, single.min, single.max)

    def _zeros(self, name: str) -> NDArray[np.float32]:
        if 4 * self.rows <= MAX_BYTES_IN_MEMORY:
            return np.zeros(self.rows, dtype=np.float32)
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="maxmargin-")  # is removed with this object
        path = Path(self._folder.name) / name
        with naming(path), path.open("wb") as file:
            file.truncate(4 * self.rows)
        return np.memmap(path, np.float32, "r+", shape=(self.rows,))
