"""The names of ``scipy.sparse``, which is imported when one of them is first needed.

The import takes longer than a small fit, and programs that train on dense data do without it.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def issparse(values: Any) -> bool:
    """Return whether values are a sparse matrix or array: none exist before scipy.sparse is imported."""
    if type(values) is np.ndarray:  # a small fit asks a dozen times
        return False
    module = sys.modules.get("scipy.sparse")
    return module is not None and bool(module.issparse(values))


def __getattr__(name: str) -> Any:
    from scipy import sparse

    found = globals()[name] = getattr(sparse, name)
    return found
