"""Types of arrays that all packages use."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Values in double precision.
Floats: TypeAlias = NDArray[np.float64]

#: Values in single precision.
Singles: TypeAlias = NDArray[np.float32]

#: Indices of samples, variables or rows.
Indices: TypeAlias = NDArray[np.int64]
