"""scikit-learn's array API dispatch: whether results are arrays of the library of the samples.

The conversion of arguments and results is that of `maxmargin.machines.validation.device_arrays`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import get_config


class ArrayLibraryMixin:
    """Mixin of estimators whose results follow the library of the samples with ``array_api_dispatch=True``."""

    def _follows_library(self, array: Any) -> bool:
        if isinstance(array, np.ndarray | np.generic) or not get_config()["array_api_dispatch"]:
            return False
        # torch has no namespace of the standard
        return hasattr(array, "__array_namespace__") or type(array).__module__.partition(".")[0] == "torch"
