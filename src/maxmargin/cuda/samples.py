"""Samples in GPU memory.

Tensor cores multiply numbers of 11 bits. A feature is stored as the sum of two of them, high and low, which is exact to
about 22 bits; the product of two low parts, which is left out, is smaller than that. Features are multiplied by a power
of 2 first, so that the low parts are normal numbers. Integers up to 2048, as in images, are exact in one number.

The Gaussian is 2^(scale x·z − ½ scale ‖x‖² − ½ scale ‖z‖²). The difference loses the digits of large norms: samples are
centred, and the gap of a two-valued feature (a rare flag that was standardised lies hundreds of deviations out) is cut
to where the kernel value is 2⁻⁶⁰, which is 0 in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import floor, log2, sqrt
from threading import RLock
from typing import Any

import numpy as np

from maxmargin.cuda.device import DeviceError, cupy
from maxmargin.cuda.device_table import DeviceTable
from maxmargin.cuda.transfer import to_device
from maxmargin.kernels.formula import KernelFormula, OuterFunction, Term
from maxmargin.kernels.points import Points, rows_of
from maxmargin.kernels.rounding import MAX_MEAN_EXPONENT, takes_norms
from maxmargin.kernels.split_sums import FeatureSums, SplitSums

#: The largest fraction of the free GPU memory for samples as a table. Their halves take as much again in float32, and
#: a copy in float64, for kernels with a factor for each feature, twice as much.
MAX_TABLE_FRACTION = 0.2

#: The same for a table that is in GPU memory already.
MAX_HALVES_FRACTION = 0.4

#: Values that are prepared at a time: the temporary arrays take some of 8 bytes for each.
PREPARED_VALUES = 2**25

#: log2(e): exponentials are powers of 2.
LOG2_E = 1.4426950408889634

#: Features are scaled so that the largest magnitude is at most this: the low part is exact to 2⁻²⁴ times that.
LARGEST_FEATURE = 4096.0

#: Features beyond this, or all below its inverse, have scales that overflow.
LARGEST_MAGNITUDE = 1e100

#: Integers up to this are exact in one half-precision number.
LARGEST_EXACT_INTEGER = 2048

#: Factors that make integers of usual data: none, and images divided by 255.
INTEGER_FACTORS = (1.0, 255.0)

#: A two-valued feature is cut where it alone makes the kernel value 2 to the power of minus this.
LARGEST_FLAG_EXPONENT = 60.0

#: Widths are padded to a multiple of this, the depth of a product of tensor cores.
WIDTH_MULTIPLE = 16

#: Formulas whose samples are kept: more are prepared again. Halves that depend on γ are one set for each.
MAX_KEPT_FORMULAS = 8

#: Held while samples are prepared: problems that share them begin at the same time.
_PREPARING = RLock()

#: Samples whose medians are the centre, one in so many.
CENTRE_SAMPLES = 4096


#: High and low parts of features; the low part is None if it is 0.
Halves = tuple[Any, Any]

#: From rows to their features as they are prepared.
RowValues = Callable[[slice], Any]

#: What the preparations of the same samples for several formulas have in common, by name.
Shared = dict[str, Any]


@dataclass(frozen=True)
class DeviceSamples:
    """Samples of one data set on one GPU, for one kernel.

    Attributes
    ----------
    formula : KernelFormula
    data : device array
        As given, float32 or float64, C-ordered.
    halves : tuple of device arrays, or None
        High and low parts; the low part is None if it is 0. None altogether for kernels that are no functions of an
        inner product.
    half_norms : device array or None
        ½ scale ‖x‖² in float32, of the Gaussian.
    scale, offset : float
        The inner product is multiplied by the one, the other is added (except for the Gaussian).
    unit : float or None
        The factor of features for sums in pairs of float32; None for float64.
    squared_norms : device array or None
        ‖x‖² in float64, if squared distances in float64 are computed from them and inner products.
    """

    formula: KernelFormula
    data: Any
    halves: Halves | None
    half_norms: Any
    scale: float
    offset: float
    unit: float | None = None
    squared_norms: Any = None

    @classmethod
    def of(cls, formula: KernelFormula, points: Points, device: int) -> DeviceSamples:
        """Return the data behind the points on a GPU; all views of the same data share them."""

        def prepare() -> DeviceSamples:
            data = scaled_on_device(formula, points, device)
            shared = points.memo.setdefault(("shared", device, formula.gammas), {})
            return cls.prepare(formula, data, shared).with_accurate_norms()

        with _PREPARING:
            samples: DeviceSamples = prepared_once(points, ("cuda", device, formula), prepare)
            known = [key for key in list(points.memo) if key[0] == "cuda" and isinstance(key[-1], KernelFormula)]
            for key in known[:-MAX_KEPT_FORMULAS]:
                del points.memo[key]
        return samples

    @classmethod
    def prepare(cls, formula: KernelFormula, data: Any, shared: Shared | None = None) -> DeviceSamples:
        """Return prepared samples of a device array; what formulas have in common is kept in `shared`."""
        shared = {} if shared is None else shared
        if formula.term is Term.SQUARED and formula.function is OuterFunction.EXPONENTIAL:
            return _gaussian(formula, data, shared)
        if formula.term is not Term.PRODUCT:
            return cls.unprepared(formula, data)
        factor = formula.gamma if formula.function is not OuterFunction.IDENTITY else 1.0
        halves, unit = _once(
            shared, "as given", lambda: _integers(data, centred=False) or _split(data.shape, lambda rows: data[rows])
        )
        return cls(formula, data, halves, None, factor / unit**2, formula.coef0)

    @classmethod
    def on_device(
        cls, formula: KernelFormula, points: Points, device: int, sums: FeatureSums = FeatureSums.DOUBLE
    ) -> DeviceSamples:
        """Return the data behind the points on a GPU without parts."""
        split = SplitSums.of(formula, points) if sums is FeatureSums.SPLIT else None
        unit = None if split is None else split.unit
        samples = cls(formula, scaled_on_device(formula, points, device), None, None, 1.0, 0.0, unit)
        return samples.with_norms() if sums is FeatureSums.PRODUCTS and takes_norms(formula, points) else samples

    @classmethod
    def unprepared(cls, formula: KernelFormula, data: Any) -> DeviceSamples:
        """Return samples of a device array without parts: kernel values are sums feature by feature."""
        return cls(formula, data, None, None, 1.0, 0.0)

    @classmethod
    def of_table(cls, data: Any, formula: KernelFormula) -> DeviceSamples:
        """Return the rows of a device array without parts."""
        return cls.unprepared(formula, scaled_table(formula, data))

    @classmethod
    def near_table(cls, data: Any, formula: KernelFormula) -> DeviceSamples:
        """Return the same, with norms where the values are accurate."""
        return cls.of_table(data, formula).with_accurate_norms()

    def with_accurate_norms(self) -> DeviceSamples:
        """Return the same, with norms where squared distances lose few digits with them."""
        if self.formula.function is not OuterFunction.EXPONENTIAL or self.formula.term is not Term.SQUARED:
            return self
        near = self.with_norms()
        return near if float(near.squared_norms.mean()) * self.formula.gamma <= MAX_MEAN_EXPONENT else self

    def with_norms(self) -> DeviceSamples:
        """Return the same with the norms of the samples."""
        xp, norms = cupy(), cupy().empty(len(self.data))
        for rows in _chunks(self.data.shape):
            exact = self.data[rows].astype(xp.float64, copy=False)
            norms[rows] = xp.einsum("ij,ij->i", exact, exact)
        return replace(self, squared_norms=norms)

    @property
    def has_inner_products(self) -> bool:
        """Whether values in float64 are computed from inner products."""
        of_products = self.formula.term is Term.PRODUCT and self.unit is None
        return of_products or self.squared_norms is not None

    @property
    def width(self) -> int:
        """The number of features of the parts, padded."""
        return int(self.halves[0].shape[1]) if self.halves else int(self.data.shape[1])


def data_on_device(points: Points, device: int) -> Any:
    """Return the data behind points on a GPU as a dense table, once for all views of them."""
    if isinstance(points.table, DeviceTable):
        return points.table.array
    data = points.data
    return prepared_once(
        points, ("cuda", device), lambda: to_device(data) if isinstance(data, np.ndarray) else _dense(data)
    )


def scaled_on_device(formula: KernelFormula, points: Points, device: int) -> Any:
    """Return the data behind points on a GPU, features multiplied by the factors of a formula that has them."""
    data = data_on_device(points, device)
    if formula.gammas is None:
        return data
    return prepared_once(points, ("cuda", device, formula.gammas), lambda: scaled_table(formula, data))


def prepared_once(points: Points, key: object, prepare: Callable[[], Any]) -> Any:
    """Return what is kept beside the data under a key; one thread prepares it, and streams of all may use it."""
    with _PREPARING:
        if key not in points.memo:
            prepared = prepare()
            cupy().cuda.get_current_stream().synchronize()
            points.memo[key] = prepared
    return points.memo[key]


def scaled_table(formula: KernelFormula, data: Any) -> Any:
    """Return a device array, features multiplied by the factors of a formula that has them."""
    if formula.gammas is None:
        return data
    scaled = data.astype(np.float64)  # the factors are part of the kernel
    scaled *= cupy().asarray(formula.factors_of(data.shape[1]))
    return scaled


def dense_rows(points: Points) -> Any:
    """Return these samples on the current GPU as a dense table, a copy unless they are there already."""
    index = points.index
    neighbours = len(index) > 0 and bool((np.diff(index) == 1).all())
    chosen = slice(index[0], index[-1] + 1) if neighbours else index
    if isinstance(points.table, DeviceTable):
        return points.table.rows(chosen)
    rows = points.data[chosen] if neighbours else rows_of(points.data, index)
    return to_device(rows) if isinstance(rows, np.ndarray) else _dense(rows)


def fits_on_device(points: Points, device: int) -> bool:
    """Whether the data behind points fit into the memory of the GPU as a dense table, decided once for all views."""
    key = ("fits", device)
    with _PREPARING:
        if key not in points.memo:
            data = points.table
            table = data.shape[0] * data.shape[1] * data.dtype.itemsize
            most = MAX_HALVES_FRACTION if isinstance(data, DeviceTable) else MAX_TABLE_FRACTION
            points.memo[key] = table <= most * free_memory()
    fits: bool = points.memo[key]
    return fits


def free_memory() -> int:
    """Return the free memory of the current GPU in bytes."""
    xp = cupy()
    return int(xp.cuda.runtime.memGetInfo()[0] + xp.get_default_memory_pool().free_bytes())


def is_extreme(data: Any) -> bool:
    """Whether the scales of features overflow."""
    return _is_extreme(_largest(data.shape, lambda rows: data[rows]))


def _is_extreme(largest: float) -> bool:
    return largest > LARGEST_MAGNITUDE or 0.0 < largest < 1.0 / LARGEST_MAGNITUDE


def _dense(data: Any) -> Any:
    """Copy a CSR matrix to the current GPU as a dense table."""
    xp = cupy()
    table = xp.zeros(data.shape, dtype=data.dtype)
    rows = np.repeat(np.arange(data.shape[0]), np.diff(data.indptr))
    xp.add.at(table, (xp.asarray(rows), xp.asarray(data.indices)), xp.asarray(data.data))
    return table


def _once(shared: Shared, name: str, make: Callable[[], Any]) -> Any:
    """Return what is kept under a name, made when it is first needed."""
    if name not in shared:
        shared[name] = make()
    return shared[name]


def _gaussian(formula: KernelFormula, data: Any, shared: Shared) -> DeviceSamples:
    """Return samples whose halves are the same for every γ, but for one that cuts the gap of a feature."""
    factor = 2.0 * formula.gamma * LOG2_E
    found = _once(shared, "integers", lambda: _with_squares(_integers(data, centred=True)))
    if found is None:
        values = _once(shared, "centred", lambda: _centred(data))
        cut = _without_far_flags(data.shape, values, sqrt(LARGEST_FLAG_EXPONENT * 2.0 / factor), shared)
        if cut is values:
            found = _once(shared, "halves", lambda: _with_squares(_split(data.shape, values)))
        else:
            found = _with_squares(_split(data.shape, cut))
    halves, unit, squares = found
    scale = factor / unit**2
    return DeviceSamples(formula, data, halves, (0.5 * scale * squares).astype(np.float32), scale, 0.0)


def _with_squares(found: tuple[Halves, float] | None) -> tuple[Halves, float, Any] | None:
    """Return halves and their factor with the squared norms of the samples."""
    if found is None:
        return None
    xp, (halves, unit) = cupy(), found
    squares = xp.empty(len(halves[0]))
    for rows in _chunks(halves[0].shape):
        exact = halves[0][rows].astype(xp.float64)
        if halves[1] is not None:
            exact += halves[1][rows]
        squares[rows] = xp.einsum("ij,ij->i", exact, exact)
    return halves, unit, squares


def _chunks(shape: tuple[int, ...]) -> Iterator[slice]:
    """Yield the rows that are prepared at a time."""
    step = max(1, PREPARED_VALUES // max(1, shape[1]))
    for start in range(0, shape[0], step):
        yield slice(start, start + step)


def _largest(shape: tuple[int, ...], values: RowValues) -> float:
    """Return the largest magnitude."""
    return max(float(cupy().abs(values(rows)).max()) for rows in _chunks(shape))


def _centre(data: Any, values: Callable[[Any], Any]) -> Any:
    """Return the median of the values of each feature over some samples."""
    xp, some = cupy(), data[:: -(-len(data) // CENTRE_SAMPLES)]
    step = max(1, PREPARED_VALUES // len(some))
    columns = (slice(first, first + step) for first in range(0, data.shape[1], step))
    return xp.concatenate([xp.median(values(some[:, part]), axis=0) for part in columns])


def _centred(data: Any) -> RowValues:
    """Return the features in float64 minus their centre."""
    xp = cupy()
    centre = _centre(data, lambda some: some.astype(xp.float64))

    def values(rows: slice) -> Any:
        out = data[rows].astype(xp.float64)
        out -= centre
        return out

    return values


def _integers(data: Any, centred: bool) -> tuple[Halves, float] | None:
    """Return the features as integers of half precision, and their factor; None if there is none that makes them so."""
    xp = cupy()
    for factor in INTEGER_FACTORS:
        if not all(_are_integers(data[rows] * factor) for rows in _chunks(data.shape)):
            continue
        centre = xp.rint(_centre(data, partial(_rounded, factor))) if centred else 0.0
        halves = _zero_halves(data.shape)
        for rows in _chunks(data.shape):
            integers = _rounded(factor, data[rows])
            integers -= centre
            if float(xp.abs(integers).max()) > LARGEST_EXACT_INTEGER:
                break
            halves[rows, : data.shape[1]] = integers
        else:
            return (halves, None), factor
    return None


def _rounded(factor: float, values: Any) -> Any:
    return cupy().rint(values * factor)


def _are_integers(values: Any) -> bool:
    xp = cupy()
    return bool((xp.abs(values - xp.rint(values)) <= 4.0 * xp.finfo(values.dtype).eps * xp.abs(values)).all())


def _split(shape: tuple[int, ...], values: RowValues) -> tuple[Halves, float]:
    """Return high and low parts, padded, and the factor of the features."""
    largest = _largest(shape, values)
    if _is_extreme(largest):
        raise DeviceError(
            f"features as large as {largest:.2g} are too extreme for a GPU; scale them, or use device='cpu'"
        )
    unit = 2.0 ** floor(log2(LARGEST_FEATURE / largest)) if largest > 0.0 else 1.0
    high, low = _zero_halves(shape), _zero_halves(shape)
    for rows in _chunks(shape):
        scaled = values(rows) * unit
        high[rows, : shape[1]] = scaled
        low[rows, : shape[1]] = scaled - high[rows, : shape[1]]
    return (high, low), unit


def _extremes(shape: tuple[int, ...], values: RowValues) -> tuple[Any, Any]:
    """Return the least and the largest value of each feature."""
    xp = cupy()
    least, largest = xp.full(shape[1], np.inf), xp.full(shape[1], -np.inf)
    for rows in _chunks(shape):
        part = values(rows)
        least, largest = xp.minimum(least, part.min(axis=0)), xp.maximum(largest, part.max(axis=0))
    return least, largest


def _zero_halves(shape: tuple[int, ...]) -> Any:
    """Return zeros in half precision, padded."""
    xp = cupy()
    return xp.zeros((shape[0], -(-shape[1] // WIDTH_MULTIPLE) * WIDTH_MULTIPLE), dtype=xp.float16)


def _without_far_flags(shape: tuple[int, ...], values: RowValues, most: float, shared: Shared) -> RowValues:
    """Return the features with the gap of each two-valued one at most `most`, the commoner value at 0.

    `values` returns new arrays, which are changed.
    """
    xp = cupy()
    least, largest = _once(shared, "extremes", lambda: _extremes(shape, values))
    wide = xp.flatnonzero(largest - least > most)
    if not len(wide):
        return values
    least, largest = least[wide], largest[wide]
    flag, larger = xp.ones(len(wide), dtype=bool), xp.zeros(len(wide), dtype=np.int64)
    for rows in _chunks(shape):
        part = values(rows)[:, wide]
        is_largest = part == largest
        flag &= (is_largest | (part == least)).all(axis=0)
        larger += is_largest.sum(axis=0)
    rare_is_large = 2 * larger <= shape[0]
    flags = wide[flag]
    common = xp.where(rare_is_large, least, largest)[flag]
    shift = xp.where(rare_is_large, most, -most)[flag]

    def cut(rows: slice) -> Any:
        out = values(rows)
        out[:, flags] = xp.where(out[:, flags] == common, 0.0, shift)
        return out

    return cut if len(flags) else values
