"""Landmark features on a GPU: kernel values in float64, and their product with a factor in the precision of that."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from maxmargin.cuda.block_values import Tile
from maxmargin.cuda.device import cupy, open_device
from maxmargin.cuda.samples import DeviceSamples, dense_rows, free_memory
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.points import Points

#: The fraction of the free memory for the kernel values of a block of samples; samples and features take as much again.
BLOCK_FRACTION = 0.1

#: The most kernel values of a block.
BLOCK_VALUES = 2**26


class DeviceLandmarks:
    """Landmarks and the factor that makes features of kernel values with them, in the memory of a GPU.

    Parameters
    ----------
    kernel : Kernel
        Built-in, or composed of such.
    landmarks : Points
    factor : float array of shape (landmarks, features)
    device : str
    """

    def __init__(self, kernel: Kernel, landmarks: Points, factor: NDArray[Any], device: str) -> None:
        self.kernel, self.number = kernel, open_device(device)
        xp = cupy()
        with xp.cuda.Device(self.number):
            self.landmarks, self.factor = dense_rows(landmarks), xp.asarray(factor)
            width = max(1, len(factor), self.landmarks.shape[1])
            self.rows_per_block = max(1, min(BLOCK_VALUES, int(BLOCK_FRACTION * free_memory()) // 8) // width)

    def fill(self, samples: Points, out: NDArray[Any], least: float) -> None:
        """Write the features of samples; kernel values below `least` count as 0."""
        xp = cupy()
        with xp.cuda.Device(self.number):
            tile = Tile.of(self.kernel, dense_rows(samples), self.landmarks, DeviceSamples.of_table)
            block = tile.values.precise_square(tile.rows, tile.columns)
            block[block < least] = 0.0
            out[:] = (block.astype(self.factor.dtype) @ self.factor).get()
