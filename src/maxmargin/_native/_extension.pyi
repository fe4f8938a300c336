from typing import Any

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Singles = NDArray[np.float32]
_Values = NDArray[Any]  # float32 or float64, all alike in one call
_Longs = NDArray[np.int64]
_Ints = NDArray[np.int32]
_Indices = NDArray[Any]  # int32 or int64, both alike in one call
_Text = NDArray[np.uint8]

level: str
strip: int
single_panel: int
double_panel: int
max_product_exponent: float
sparse_panel: int
text_padding: int

# Arguments that belong together: arrays are kept alive, types and shapes are checked.

class BoxProblem:
    def __init__(
        self,
        *,
        lower: _Floats,
        upper: _Floats,
        group: _Ints,
        groups: int,
        linear: _Floats | None = None,
        ridge: _Floats | None = None,
        kink: _Floats | None = None,
    ) -> None: ...

class CachedRows:
    def __init__(
        self, *, storage: _Values, slot: _Longs, last_use: _Longs, clock: int, valid: _Longs | None = None
    ) -> None: ...

class StepLimits:
    def __init__(self, *, tolerance: float, max_steps: int, max_seconds: float, threads: int = 1) -> None: ...

# Folds on one matrix

class FoldProblem:
    def __init__(
        self,
        *,
        columns: _Longs,
        linear: _Floats,
        group: _Ints,
        groups: int,
        lower: _Floats,
        upper: _Floats,
        ridge: _Floats,
        kink: _Floats,
        outside: _Longs,
    ) -> None: ...

class FoldStart:
    def __init__(
        self, *, dual: _Floats, gradient: _Floats, before: _Floats, factor: float, must_scale: bool
    ) -> None: ...

class FoldResults:
    def __init__(self, *, offsets: _Floats, outside: _Floats, outcome: _Longs) -> None: ...

class FoldMemory:
    def __init__(self, *, values: _Values, free: _Floats, max_free: int) -> None: ...

def doubles_of_free_equations(count: int) -> int: ...
def solve_fold_problem(
    matrix: _Floats,
    problem: FoldProblem,
    start: FoldStart,
    results: FoldResults,
    limits: StepLimits,
    memory: FoldMemory,
    cancelled: _Ints,
) -> None: ...

class RemovalTable:
    def __init__(
        self,
        *,
        columns: _Floats,
        dual: _Floats,
        slack: _Floats,
        lower: _Floats,
        upper: _Floats,
        group: _Ints,
        groups: int,
        curvature: float,
    ) -> None: ...

class Removals:
    def __init__(
        self,
        *,
        place: _Longs,
        twin: _Longs,
        own_columns: _Floats,
        response: _Floats,
        dual: _Floats,
        slack: _Floats,
        linear: _Floats,
        ridge: _Floats,
        gain: _Floats,
        margin: float,
        missing: _Floats,
    ) -> None: ...

class RemovalResults:
    def __init__(self, *, outcome: _Longs, numbers: _Floats, changes: _Floats, slacks: _Floats) -> None: ...

def remove_samples(
    table: RemovalTable,
    samples: Removals,
    results: RemovalResults,
    goal: int,
    max_exchanges: int,
    max_seconds: float,
    threads: int,
) -> None: ...
def function_of_sums(formula: Formula, sums: _Floats, out: _Floats, threads: int) -> None: ...

# Blocks of kernel values

class Formula:
    def __init__(self, *, term: int, function: int, gamma: float, coef0: float, degree: int) -> None: ...

class PackedSamples:
    def __init__(self, *, values: _Values, half_norms: _Values, count: int, features: int) -> None: ...

class SparseSamples:
    def __init__(
        self,
        *,
        starts: _Longs,
        features: _Ints,
        values: _Values,
        indices: _Longs,
        width: int,
        separate_sums: _Values | None = None,
    ) -> None: ...

def pack(
    data: _Values,
    indices: _Longs,
    width: int,
    shift: _Floats,
    scale: _Floats,
    out: _Values,
    half_norms: _Values,
    threads: int,
) -> None: ...
def dense_matrix(formula: Formula, data: _Values, indices: _Longs, out: _Floats, threads: int) -> None: ...
def dense_block(
    formula: Formula, rows: PackedSamples, columns: PackedSamples, out: _Values, slots: _Longs, threads: int
) -> None: ...
def dense_square(
    formula: Formula,
    rows: PackedSamples,
    columns: PackedSamples,
    out: _Values,
    slots: _Longs,
    first_panel: int,
    last_panel: int,
    threads: int,
) -> None: ...
def dense_diagonal(formula: Formula, data: _Floats, indices: _Longs, out: _Floats) -> None: ...
def dense_combination(
    formula: Formula,
    data: _Values,
    indices: _Longs,
    shift: _Floats,
    scale: _Floats,
    columns: PackedSamples,
    weights: _Values,
    out: _Floats,
    threads: int,
) -> None: ...
def sparse_separate_sums(term: int, samples: SparseSamples, out: _Values) -> None: ...
def sparse_block(
    formula: Formula, rows: SparseSamples, columns: SparseSamples, out: _Values, slots: _Longs, threads: int
) -> None: ...
def sparse_diagonal(formula: Formula, samples: SparseSamples, out: _Floats) -> None: ...
def sparse_combination(
    formula: Formula, rows: SparseSamples, columns: SparseSamples, weights: _Values, out: _Floats, threads: int
) -> None: ...

# Operations on stored rows

def copy_rows(data: _Values, indices: _Longs, out: _Values, threads: int) -> None: ...
def largest_absolute(values: _Values, threads: int) -> float: ...
def all_finite(values: _Values, threads: int) -> bool: ...
def count_nonzeros(data: _Values, counts: _Longs, threads: int) -> None: ...
def compress(data: _Values, starts: _Longs, features: _Ints, values: _Values, threads: int) -> None: ...
def product_asymmetry(table: _Floats, vector: _Floats, threads: int) -> tuple[float, float]: ...
def asymmetry(table: _Values, threads: int) -> tuple[float, float]: ...
def gather(storage: _Values, slots: _Longs, columns: _Longs, out: _Values, threads: int) -> None: ...
def mirror(table: _Values, first: int, last: int, threads: int) -> None: ...
def subtract_rows(
    gradient: _Floats, storage: _Singles, slots: _Longs, change: _Floats, count: int, threads: int
) -> None: ...

# Pair steps, free variables and small problems of the dual

class PairwiseState:
    def __init__(
        self,
        *,
        dual: _Floats,
        gradient: _Floats,
        diagonal: _Floats,
        active: int,
        bounded_product: _Floats | None = None,
    ) -> None: ...

class PairSelection:
    def __init__(self, *, rule: int, memory: _Longs, violation: float) -> None: ...

class PairwiseResult:
    reason: int
    steps: int
    row: int
    row_length: int
    violation: float
    gain: float
    clock: int
    requests: int

class KernelSamples:
    def __init__(
        self, *, formula: Formula, columns: PackedSamples, memory: _Floats, large: int, max_rows: int
    ) -> None: ...

class ProblemBatch:
    def __init__(
        self,
        *,
        matrix: _Floats,
        indices: _Longs,
        edges: _Longs,
        linear: _Floats,
        lower: _Floats,
        upper: _Floats,
        ridge: _Floats,
        groups: int,
        group: _Ints,
        kink: _Floats,
        samples: KernelSamples | None = None,
    ) -> None: ...

def weighted_sums(table: _Values, weights: _Floats, centre: float, threads: int) -> tuple[float, float]: ...
def move_to_bounds(order: _Longs, bounds: _Floats, dual: _Floats, missing: float) -> bool: ...
def problem_facts(
    linear: _Floats, lower: _Floats, upper: _Floats, ridge: _Floats, kink: _Floats, group: _Ints, total: _Floats
) -> tuple[bool, bool, bool, bool, bool, bool, int, float, float, float, float, float, float]: ...
def pairwise_steps(
    problem: BoxProblem, state: PairwiseState, rows: CachedRows, selection: PairSelection, limits: StepLimits
) -> PairwiseResult: ...
def kkt_violations(
    problem: BoxProblem, dual: _Floats, gradient: _Floats, increasing: _Floats, decreasing: _Floats
) -> None: ...
def can_be_selected(problem: BoxProblem, dual: _Floats, gradient: _Floats, keep: NDArray[np.bool_]) -> None: ...
def solve_free_variables(
    block: _Floats,
    problem: BoxProblem,
    dual: _Floats,
    gradient: _Floats,
    accuracy: float,
    max_work: float,
    max_seconds: float = ...,
) -> float: ...
def one_vs_one_votes(
    block: _Floats,
    columns: _Floats,
    edges: _Longs,
    offsets: _Floats,
    zero_is_first: bool,
    limit: float,
    votes: _Floats,
    confidence: _Floats,
) -> bool: ...
def solve_small_problems(
    batch: ProblemBatch,
    dual: _Floats,
    gradient: _Floats,
    outcomes: _Longs,
    offsets: _Floats,
    limits: StepLimits,
    max_free: int,
    threads: int,
) -> None: ...

# Online learning

class OnlineState:
    def __init__(
        self, *, dual: _Floats, gradient: _Floats, lower: _Floats, upper: _Floats, diagonal: _Floats
    ) -> None: ...

class Arrivals:
    def __init__(self, *, slot: _Longs, linear: _Floats, lower: _Floats, upper: _Floats, start: _Floats) -> None: ...

class OnlineOptions:
    def __init__(self, *, rule: int, grouped: bool, selective: bool) -> None: ...

class OnlineResult:
    reason: int
    steps: int
    row: int
    violation: float
    gain: float
    clock: int

def online_steps(
    state: OnlineState,
    rows: CachedRows,
    arrivals: Arrivals,
    options: OnlineOptions,
    progress: _Longs,
    tolerance: float,
    max_seconds: float,
) -> OnlineResult: ...

# Rows of features: dual coordinate ascent and stochastic subgradient steps

class DataRows:
    def __init__(
        self,
        *,
        values: _Values,
        width: int,
        starts: _Indices | None = None,
        features: _Indices | None = None,
        indices: _Longs | None = None,
    ) -> None: ...

class AscentState:
    def __init__(
        self,
        *,
        dual: _Floats,
        weights: _Floats,
        squared_norms: _Floats,
        offset: _Floats,
        excess: _Floats,
        penalty: _Floats,
    ) -> None: ...

class AscentOptions:
    def __init__(self, *, constant: float, shrink_above: float, shrink_below: float, damping: float) -> None: ...

class AscentResult:
    steps: int
    remaining: int
    highest: float
    lowest: float
    gap: float

class AveragedWeights:
    def __init__(
        self,
        *,
        direction: _Floats,
        sums: _Floats,
        offset: _Floats,
        offset_sums: _Floats,
        numbers: _Floats,
        steps: int,
    ) -> None: ...

class SubgradientOptions:
    def __init__(
        self,
        *,
        constant: float,
        samples: float,
        share: _Floats,
        numerator: float,
        growth: float,
        delay: float,
        offset_rate: float,
        radius: float,
        growing: bool,
    ) -> None: ...

def row_decisions(rows: DataRows, weights: _Floats, out: _Floats, threads: int) -> None: ...
def combine_rows(rows: DataRows, dual: _Floats, out: _Floats, threads: int) -> None: ...
def row_squared_norms(rows: DataRows, out: _Floats, threads: int) -> None: ...
def row_moments(
    rows: DataRows,
    factors: _Floats,
    origin: _Floats,
    sums: _Floats,
    square: _Floats,
    threads: int,
    max_seconds: float = ...,
) -> bool: ...
def shuffle(order: _Longs, seed: int) -> None: ...
def extended_block(
    formula: Formula,
    rows: PackedSamples,
    columns: PackedSamples,
    weights: _Floats,
    high: _Floats,
    low: _Floats,
    threads: int,
) -> None: ...
def extended_decisions(
    rows: DataRows, weights: _Floats, weights_low: _Floats | None, high: _Floats, low: _Floats, threads: int
) -> None: ...
def extended_combination(
    rows: DataRows, dual: _Floats, dual_low: _Floats | None, high: _Floats, low: _Floats
) -> None: ...
def extended_table_product(
    table: _Floats,
    table_low: _Floats | None,
    vector: _Floats,
    vector_low: _Floats | None,
    high: _Floats,
    low: _Floats,
    threads: int,
) -> None: ...
def coordinate_ascent(
    rows: DataRows, problem: BoxProblem, state: AscentState, options: AscentOptions, order: _Longs, threads: int
) -> AscentResult: ...
def subgradient_steps(
    rows: DataRows,
    problem: BoxProblem,
    weights: AveragedWeights,
    options: SubgradientOptions,
    order: _Longs,
    batch: int,
    responses: _Floats,
    visits: _Floats,
) -> int: ...

# Primal methods for linear models

class SmoothedArrays:
    def __init__(
        self,
        *,
        centre: _Floats,
        offset: _Floats,
        sigma: float,
        slack: _Floats,
        response: _Floats,
        group_sums: _Floats,
    ) -> None: ...

class ResponseSums:
    loss: float
    linear: float
    ridge: float
    absolute_sum: float

class SmallLinearOptions:
    def __init__(
        self, *, constant: float, relative_gap: float, gap: float, max_steps: int, compressed: bool
    ) -> None: ...

class SmallAscentOptions:
    def __init__(
        self, *, constant: float, relative_gap: float, gap: float, max_remaining: float, max_passes: int
    ) -> None: ...

class RidgedNewtonOptions:
    def __init__(
        self, *, constant: float, relative_gap: float, gap: float, max_steps: int, max_seconds: float, threads: int
    ) -> None: ...

class SmallLinearArrays:
    def __init__(self, *, dual: _Floats, weights: _Floats, slack: _Floats, residual: _Floats) -> None: ...

class SmallLinearResult:
    converged: bool
    steps: int
    rounds: int
    conclusive: bool
    bounds: tuple[float, float, float, float, float, float, float]
    offsets: tuple[float, float, float]

class CertificateArrays:
    def __init__(
        self,
        *,
        dual: _Floats,
        weights: _Floats,
        dual_weights: _Floats,
        decisions: _Floats,
        product: _Floats,
        squared_norms: _Floats,
        offset: _Floats,
        slack: _Floats,
        residual: _Floats,
    ) -> None: ...

def certify_linear(
    problem: BoxProblem, arrays: CertificateArrays, constant: float, longest_row: int
) -> SmallLinearResult: ...
def solve_small_linear(
    rows: DataRows, problem: BoxProblem, arrays: SmallLinearArrays, options: SmallLinearOptions
) -> SmallLinearResult: ...
def solve_ridged(
    rows: DataRows,
    problem: BoxProblem,
    arrays: SmallLinearArrays,
    squared_norms: _Floats,
    options: RidgedNewtonOptions,
) -> SmallLinearResult: ...
def solve_small_by_ascent(
    rows: DataRows,
    problem: BoxProblem,
    arrays: SmallLinearArrays,
    squared_norms: _Floats,
    options: SmallAscentOptions,
) -> SmallLinearResult: ...

class ColumnState:
    def __init__(
        self,
        *,
        weights: _Floats,
        slack: _Floats,
        inverse_ridge: _Floats,
        lower: _Floats,
        upper: _Floats,
        curvature: _Floats,
    ) -> None: ...

def responses(problem: BoxProblem, smoothed: SmoothedArrays, decisions: _Floats, threads: int) -> ResponseSums: ...
def responses_of_rows(
    rows: DataRows,
    problem: BoxProblem,
    smoothed: SmoothedArrays,
    weights: _Floats,
    constant: float,
    decisions: _Floats,
    dual_weights: _Floats,
    threads: int,
) -> ResponseSums: ...

class MappedFile:
    """A file of a size, mapped into memory until no array is in it; on systems other than Windows."""

    def __init__(self, descriptor: int, size: int) -> None: ...
    @property
    def lost(self) -> bool: ...
    def bytes(self, first: int, count: int) -> NDArray[np.uint8]: ...

class PassArrays:
    def __init__(
        self,
        *,
        linear: _Floats,
        lower: _Floats,
        upper: _Floats,
        ridge: _Floats,
        kink: _Floats,
        kinds: _Ints | None = None,
        centre: _Singles | None = None,
        response: _Floats,
        free: NDArray[np.bool_],
    ) -> None: ...

class PassTotals:
    loss: float
    slack_square: float
    size: float
    free: int
    linear: tuple[float, float]
    ridge: tuple[float, float]
    total: tuple[float, float]

def pass_sums(
    rows: DataRows,
    arrays: PassArrays,
    weights: _Floats,
    constant: float,
    offset: float,
    sigma: float,
    slack_error: float,
    dual_weights: _Floats,
    threads: int,
) -> PassTotals: ...
def total_loss(slack: _Floats, lower: _Floats, upper: _Floats, ridge: _Floats, threads: int) -> float: ...
def slack_changes(
    after: _Floats, before: _Floats, shift: float, change: _Floats, decrease: _Floats, threads: int
) -> None: ...
def strictly_between(values: _Floats, lower: _Floats, upper: _Floats, out: NDArray[np.bool_], threads: int) -> int: ...
def squared_distance(left: _Floats, right: _Floats, threads: int) -> float: ...
def repair_sum(
    dual: _Floats, lower: _Floats, upper: _Floats, total: float, rounding: float, threads: int
) -> tuple[float, float]: ...
def loss_derivatives(
    slack: _Floats,
    lower: _Floats,
    upper: _Floats,
    ridge: _Floats,
    direction: _Floats,
    t: float,
    threads: int,
    sigma: float = 0.0,
) -> tuple[float, float]: ...
def coordinate_descent(columns: DataRows, state: ColumnState, order: _Longs) -> float: ...
def descend_quadratic_model(
    square: _Floats, weights: _Floats, slope: _Floats, tolerance: float, max_passes: int
) -> float: ...

# LIBSVM's text format

class TextRules:
    def __init__(self, *, base: int, zero_allowed: bool, limit: int, has_queries: bool) -> None: ...

class TextArrays:
    def __init__(
        self,
        *,
        labels: _Floats,
        starts: _Longs,
        queries: _Longs,
        features: _Indices,
        values: _Values,
        row: int,
        stored: int,
    ) -> None: ...

class TextResult:
    status: int
    line: int
    rows: int
    stored: int
    largest: int
    largest_line: int
    zero_line: int

class IrregularLines:
    count: int
    next: int
    rows: int
    rows_with_zero: int
    zero_line: int

def count_text(text: _Text, size: int, chunks: _Longs, threads: int) -> int: ...
def has_query_ids(text: _Text, size: int) -> int: ...
def read_text(
    text: _Text, size: int, chunks: _Longs, rules: TextRules, target: TextArrays, threads: int
) -> TextResult: ...
def find_irregular_lines(
    text: _Text,
    size: int,
    begin: int,
    has_queries: bool,
    accept_returns: bool,
    accept_comments: bool,
    out: _Longs,
) -> IrregularLines: ...
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

# Platt's sigmoid: loss, derivatives by slope and shift, second derivatives by slope, both, and shift

def sigmoid_loss(
    values: _Floats, targets: _Floats, weights: _Floats, slope: float, shift: float
) -> tuple[float, float, float, float, float, float]: ...

# For tests: raises RuntimeError in a worker thread.

def _raise_in_thread(threads: int) -> None: ...

# Sums over the pairs of a ranking

class PairArrays:
    def __init__(self, *, first: _Longs, second: _Longs, centre: _Floats, upper: _Floats, stiffness: float) -> None: ...

class OrderArrays:
    def __init__(self, *, order: _Longs, starts: _Longs, level: _Ints, scores: _Floats) -> None: ...

def pair_responses(pairs: PairArrays, scores: _Floats, responses: _Floats, coefficients: _Floats) -> None: ...
def pair_slope(pairs: PairArrays, scores: _Floats, direction: _Floats, t: float, threads: int) -> float: ...
def partner_sums(
    samples: OrderArrays,
    values: _Floats,
    low: float,
    high: float,
    as_first: bool,
    compensated: bool,
    inner: _Floats | None,
    window: _Floats,
) -> None: ...
def pair_extremes(samples: OrderArrays, values: _Floats, low: float, high: float) -> tuple[float, float]: ...
