from typing import Any

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Longs = NDArray[np.int64]

level: str

def dense_pair_sums(
    term: str, left: _Floats, left_picks: _Longs, right: _Floats, right_picks: _Longs, out: _Floats
) -> None: ...
def sparse_pair_sums(
    term: str,
    left_starts: NDArray[Any],
    left_features: NDArray[Any],
    left_values: _Floats,
    left_picks: _Longs,
    right_starts: NDArray[Any],
    right_features: NDArray[Any],
    right_values: _Floats,
    right_picks: _Longs,
    features: int,
    out: _Floats,
) -> None: ...
def dense_squares(data: _Floats, picks: _Longs, out: _Floats) -> None: ...
def sparse_squares(
    starts: NDArray[Any], features: NDArray[Any], values: _Floats, picks: _Longs, out: _Floats
) -> None: ...
def pairwise_steps(
    dual: _Floats,
    gradient: _Floats,
    lower: _Floats,
    upper: _Floats,
    diagonal: _Floats,
    ridge: _Floats,
    group: NDArray[np.int32],
    bounded_part: _Floats,
    active: int,
    groups: int,
    singles: int,
    storage: _Floats,
    slot: _Longs,
    length: _Longs,
    last_use: _Longs,
    clock: int,
    rule: int,
    memory: _Longs,
    violation: float,
    tolerance: float,
    max_steps: int,
    max_seconds: float,
) -> tuple[int, int, int, int, float, float, int, int]: ...
