from typing import Any

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Values = NDArray[Any]  # float32 or float64, all alike in one call
_Longs = NDArray[np.int64]
_Ints = NDArray[np.int32]
_Indices = NDArray[Any]  # int32 or int64, both alike in one call

level: str
strip: int
single_panel: int
double_panel: int
sparse_panel: int

def pack(
    data: _Floats, picks: _Longs, width: int, shift: _Floats, out: _Values, half_norms: _Values, threads: int
) -> None: ...
def dense_block(
    term: int,
    function: int,
    gamma: float,
    coef0: float,
    degree: int,
    rows: _Values,
    row_norms: _Values,
    columns: _Values,
    column_norms: _Values,
    column_count: int,
    features: int,
    out: _Values,
    slots: _Longs,
    threads: int,
) -> None: ...
def dense_square(
    term: int,
    function: int,
    gamma: float,
    coef0: float,
    degree: int,
    rows: _Values,
    row_norms: _Values,
    columns: _Values,
    column_norms: _Values,
    features: int,
    out: _Values,
    slots: _Longs,
    threads: int,
) -> None: ...
def dense_combination(
    term: int,
    function: int,
    gamma: float,
    coef0: float,
    degree: int,
    rows: _Values,
    row_norms: _Values,
    columns: _Values,
    column_norms: _Values,
    features: int,
    weights: _Values,
    out: _Values,
    threads: int,
) -> None: ...
def sparse_alone(
    term: int, starts: _Longs, features: _Ints, values: _Values, picks: _Longs, count: int, out: _Values
) -> None: ...
def sparse_block(
    term: int,
    function: int,
    gamma: float,
    coef0: float,
    degree: int,
    row_starts: _Longs,
    row_features: _Ints,
    row_values: _Values,
    row_picks: _Longs,
    row_alone: _Values,
    column_starts: _Longs,
    column_features: _Ints,
    column_values: _Values,
    column_picks: _Longs,
    column_alone: _Values,
    features: int,
    out: _Values,
    slots: _Longs,
    threads: int,
) -> None: ...
def sparse_combination(
    term: int,
    function: int,
    gamma: float,
    coef0: float,
    degree: int,
    row_starts: _Longs,
    row_features: _Ints,
    row_values: _Values,
    row_picks: _Longs,
    row_alone: _Values,
    column_starts: _Longs,
    column_features: _Ints,
    column_values: _Values,
    column_picks: _Longs,
    column_alone: _Values,
    features: int,
    weights: _Values,
    out: _Floats,
    threads: int,
) -> None: ...
def count_stored(data: _Values, counts: _Longs, threads: int) -> None: ...
def compress(data: _Values, starts: _Longs, features: _Ints, values: _Values, threads: int) -> None: ...
def gather(
    storage: NDArray[np.float32], slots: _Longs, columns: _Longs, out: NDArray[np.float32], threads: int
) -> None: ...
def mirror(table: _Values, first: int, last: int, threads: int) -> None: ...
def subtract_rows(
    gradient: _Floats, storage: NDArray[np.float32], slots: _Longs, change: _Floats, count: int, threads: int
) -> None: ...
def pairwise_steps(
    dual: _Floats,
    gradient: _Floats,
    lower: _Floats,
    upper: _Floats,
    diagonal: _Floats,
    ridge: _Floats,
    group: _Ints,
    bounded_part: _Floats,
    active: int,
    groups: int,
    singles: int,
    storage: _Values,
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
def violations(
    dual: _Floats,
    gradient: _Floats,
    lower: _Floats,
    upper: _Floats,
    group: _Ints,
    groups: int,
    up: _Floats,
    down: _Floats,
) -> None: ...
def can_matter(
    dual: _Floats,
    gradient: _Floats,
    lower: _Floats,
    upper: _Floats,
    group: _Ints,
    groups: int,
    keep: NDArray[np.bool_],
) -> None: ...
def solve_free(
    block: _Floats,
    group: _Ints,
    groups: int,
    lower: _Floats,
    upper: _Floats,
    dual: _Floats,
    gradient: _Floats,
    accuracy: float,
    most_work: float,
) -> float: ...
def solve_whole_problems(
    values: _Floats,
    picks: _Longs,
    edges: _Longs,
    linear: _Floats,
    lower: _Floats,
    upper: _Floats,
    ridge: _Floats,
    grouped: bool,
    dual: _Floats,
    gradient: _Floats,
    outcomes: _Longs,
    tolerance: float,
    max_steps: int,
    most_free: int,
    max_seconds: float,
    threads: int,
) -> None: ...
def online_steps(
    dual: _Floats,
    gradient: _Floats,
    lower: _Floats,
    upper: _Floats,
    diagonal: _Floats,
    grouped: bool,
    selective: bool,
    storage: _Values,
    slot: _Longs,
    last_use: _Longs,
    clock: int,
    arrivals: _Longs,
    new_linear: _Floats,
    new_lower: _Floats,
    new_upper: _Floats,
    start: _Floats,
    rule: int,
    progress: _Longs,
    tolerance: float,
    max_seconds: float,
) -> tuple[int, int, int, float, float, int]: ...
def row_decisions(
    values: _Values,
    starts: _Indices,
    features: _Indices,
    picks: _Longs,
    all: bool,
    weights: _Floats,
    out: _Floats,
    threads: int,
) -> None: ...
def combine_rows(
    values: _Values,
    starts: _Indices,
    features: _Indices,
    picks: _Longs,
    all: bool,
    dual: _Floats,
    out: _Floats,
    threads: int,
) -> None: ...
def row_squared_norms(
    values: _Values,
    starts: _Indices,
    features: _Indices,
    width: int,
    picks: _Longs,
    all: bool,
    out: _Floats,
    threads: int,
) -> None: ...
def sum_squares(
    values: _Values,
    starts: _Indices,
    features: _Indices,
    picks: _Longs,
    all: bool,
    factors: _Floats,
    origin: _Floats,
    sums: _Floats,
    square: _Floats,
    threads: int,
) -> None: ...
def shuffle(order: _Longs, seed: int) -> None: ...
def ascend(
    values: _Values,
    starts: _Indices,
    features: _Indices,
    of: _Longs,
    all: bool,
    dual: _Floats,
    weights: _Floats,
    linear: _Floats,
    lower: _Floats,
    upper: _Floats,
    ridge: _Floats,
    squared_norm: _Floats,
    group: _Ints,
    offset: _Floats,
    excess: _Floats,
    stiffness: _Floats,
    constant: float,
    order: _Longs,
    begin: int,
    end: int,
    leave_above: float,
    leave_below: float,
    damping: float,
    threads: int,
) -> tuple[int, int, float, float, float]: ...
def descend(
    values: _Values,
    starts: _Indices,
    features: _Indices,
    of: _Longs,
    all: bool,
    direction: _Floats,
    sums: _Floats,
    offset: _Floats,
    offset_sums: _Floats,
    numbers: _Floats,
    steps: int,
    linear: _Floats,
    lower: _Floats,
    upper: _Floats,
    ridge: _Floats,
    group: _Ints,
    share: _Floats,
    answers: _Floats,
    visits: _Floats,
    order: _Longs,
    begin: int,
    end: int,
    batch: int,
    constant: float,
    samples: float,
    numerator: float,
    growth: float,
    delay: float,
    offset_rate: float,
    radius: float,
    growing: bool,
) -> int: ...
def respond(
    linear: _Floats,
    lower: _Floats,
    upper: _Floats,
    ridge: _Floats,
    centre: _Floats,
    group: _Ints,
    offset: _Floats,
    sigma: float,
    slack: _Floats,
    response: _Floats,
    group_sums: _Floats,
    image: _Floats,
    threads: int,
) -> tuple[float, float, float, float]: ...
def respond_rows(
    values: _Values,
    starts: _Indices,
    features: _Indices,
    picks: _Longs,
    all: bool,
    linear: _Floats,
    lower: _Floats,
    upper: _Floats,
    ridge: _Floats,
    centre: _Floats,
    group: _Ints,
    offset: _Floats,
    sigma: float,
    slack: _Floats,
    response: _Floats,
    group_sums: _Floats,
    weights: _Floats,
    constant: float,
    image: _Floats,
    own: _Floats,
    threads: int,
) -> tuple[float, float, float, float]: ...
def total_loss(slack: _Floats, lower: _Floats, upper: _Floats, ridge: _Floats, threads: int) -> float: ...
def loss_slope(
    slack: _Floats, lower: _Floats, upper: _Floats, ridge: _Floats, direction: _Floats, t: float, threads: int
) -> tuple[float, float]: ...
def descend_columns(
    values: _Values,
    starts: _Indices,
    samples: _Indices,
    weights: _Floats,
    slack: _Floats,
    inverse: _Floats,
    lower: _Floats,
    upper: _Floats,
    curvature: _Floats,
    order: _Longs,
    begin: int,
    end: int,
) -> float: ...
def descend_model(square: _Floats, weights: _Floats, slope: _Floats, tolerance: float, passes: int) -> float: ...

text_margin: int

def count_text(text: NDArray[np.uint8], length: int, chunks: _Longs, threads: int) -> int: ...
def first_query(text: NDArray[np.uint8], length: int) -> int: ...
def odd_lines(
    text: NDArray[np.uint8],
    length: int,
    begin: int,
    has_queries: bool,
    returns: bool,
    comments: bool,
    odd: _Longs,
) -> tuple[int, int, int, int, int]: ...
def read_text(
    text: NDArray[np.uint8],
    length: int,
    chunks: _Longs,
    base: int,
    zero_allowed: bool,
    limit: int,
    has_queries: bool,
    labels: _Floats,
    starts: _Longs,
    queries: _Longs,
    features: _Indices,
    values: _Values,
    row: int,
    stored: int,
    threads: int,
) -> tuple[int, int, int, int, int, int, int]: ...
def write_text(
    labels: _Floats,
    starts: _Longs,
    features: _Indices,
    values: _Floats,
    queries: _Longs,
    base: int,
    digits: int,
    threads: int,
) -> bytes: ...
