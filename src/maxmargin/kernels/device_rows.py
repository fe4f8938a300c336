"""Samples in the memory of a device, as kernels, certificates and estimators in host memory see them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats, Indices


class DeviceRows:
    """Base of dense tables of samples in the memory of a device: float64 or float32, finite, C-ordered.

    What the host needs of all samples are numbers for each; rows are copied when they are asked for.

    Attributes
    ----------
    memo : dict
        Results about the samples, for all `Points` of them.
    """

    ndim = 2
    memo: dict[Any, Any]

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of samples and features."""
        raise NotImplementedError

    @property
    def dtype(self) -> Any:
        """The type of the numbers, as in NumPy."""
        raise NotImplementedError

    @property
    def nbytes(self) -> int:
        """The memory of the table."""
        return int(self.shape[0] * self.shape[1] * self.dtype.itemsize)

    @property
    def size(self) -> int:
        """The number of values."""
        return self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        """Return a copy of some rows in host memory: a slice, or row numbers."""
        raise NotImplementedError

    def origin(self) -> tuple[DeviceRows, Indices]:
        """Return the table that these are rows of, whose preparation they share, and their numbers in it."""
        return self, np.arange(len(self), dtype=np.int64)

    def in_host_memory(self) -> NDArray[Any]:
        """Return a copy of all rows in host memory, which is made once."""
        raise NotImplementedError

    def row_sums(self, squares: bool, factors: Floats | None) -> Floats:
        """Return Σ (factor x)² or Σ |factor x| over the features of each sample, in float64."""
        raise NotImplementedError

    def extremes(self) -> NDArray[Any]:
        """Return the least and the largest value of each feature, as two rows."""
        raise NotImplementedError

    def variance(self, share: Floats) -> float:
        """Return the variance of all values, those of each row weighted by its share; the shares of values add to 1."""
        raise NotImplementedError

    def decisions(self, weights: Floats, index: Indices | None) -> Floats:
        """Return the inner product of each row with weights in float64; all rows if there is no index."""
        raise NotImplementedError

    def combination(self, factors: Floats, index: Indices | None) -> Floats:
        """Return the sum of the rows times factors in float64."""
        raise NotImplementedError

    def moments(self, factors: Floats, origin: Floats | None, index: Indices | None) -> tuple[Floats, Floats]:
        """Return the sums of factor (x − origin) and of factor (x − origin)(x − origin)ᵀ in float64.

        Of the second the lower triangle is set.
        """
        raise NotImplementedError
