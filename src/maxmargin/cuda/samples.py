"""Samples in GPU memory.

Tensor cores multiply numbers of 11 bits. A feature is stored as the sum of two of them, high and low, which is exact to
about 22 bits; the product of two low parts, which is left out, is smaller than that. Features are multiplied by a power
of 2 first, so that the low parts are normal numbers. Integers up to 2048, as in images, are exact in one number.

The Gaussian is 2^(scale x·z − ½ scale ‖x‖² − ½ scale ‖z‖²). The difference loses the digits of large norms: samples are
centred, and the gap of a two-valued feature (a rare flag that was standardised lies hundreds of deviations out) is cut
to where the kernel value is 2⁻⁶⁰, which is 0 in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, log2, sqrt
from threading import RLock
from typing import Any

import numpy as np

from maxmargin.cuda.device import DeviceError, cupy
from maxmargin.cuda.transfer import to_device
from maxmargin.kernels.formula import KernelFormula, OuterFunction, Term
from maxmargin.kernels.points import Points, rows_of

#: The largest fraction of the free GPU memory for samples as a table; their halves and temporary arrays take several
#: times as much.
MAX_TABLE_FRACTION = 0.2

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

#: Held while samples are prepared: problems that share them begin at the same time.
_PREPARING = RLock()

#: Samples whose medians are the centre, one in so many.
CENTRE_SAMPLES = 4096


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
    """

    formula: KernelFormula
    data: Any
    halves: tuple[Any, Any] | None
    half_norms: Any
    scale: float
    offset: float

    @classmethod
    def of(cls, formula: KernelFormula, points: Points, device: int) -> DeviceSamples:
        """Return the data behind the points on a GPU; all views of the same data share them."""
        samples: DeviceSamples = prepared_once(
            points, ("cuda", device, formula), lambda: cls.prepare(formula, scaled_on_device(formula, points, device))
        )
        return samples

    @classmethod
    def prepare(cls, formula: KernelFormula, data: Any) -> DeviceSamples:
        """Return prepared samples of a device array."""
        if formula.term is Term.SQUARED and formula.function is OuterFunction.EXPONENTIAL:
            return _gaussian(formula, data)
        if formula.term is not Term.PRODUCT:
            return cls.unprepared(formula, data)
        factor = formula.gamma if formula.function is not OuterFunction.IDENTITY else 1.0
        integers = _integers(data, centred=False)
        halves, unit = _split(data) if integers is None else (_padded(integers[0]), integers[1])
        return cls(formula, data, halves, None, factor / unit**2, formula.coef0)

    @classmethod
    def on_device(cls, formula: KernelFormula, points: Points, device: int) -> DeviceSamples:
        """Return the data behind the points on a GPU without parts."""
        return cls.unprepared(formula, scaled_on_device(formula, points, device))

    @classmethod
    def unprepared(cls, formula: KernelFormula, data: Any) -> DeviceSamples:
        """Return samples of a device array without parts: kernel values are sums feature by feature."""
        return cls(formula, data, None, None, 1.0, 0.0)

    @classmethod
    def of_table(cls, data: Any, formula: KernelFormula) -> DeviceSamples:
        """Return the rows of a device array without parts."""
        return cls.unprepared(formula, scaled_table(formula, data))

    @property
    def width(self) -> int:
        """The number of features of the parts, padded."""
        return int(self.halves[0].shape[1]) if self.halves else int(self.data.shape[1])


def data_on_device(points: Points, device: int) -> Any:
    """Return the data behind points on a GPU as a dense table, once for all views of them."""
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
    # In float64: the factors are part of the kernel.
    return data.astype(np.float64) * cupy().asarray(formula.factors_of(data.shape[1]))


def dense_rows(points: Points) -> Any:
    """Return a copy of these samples on the current GPU as a dense table."""
    index = points.index
    neighbours = len(index) > 0 and bool((np.diff(index) == 1).all())
    rows = points.data[index[0] : index[-1] + 1] if neighbours else rows_of(points.data, index)
    return to_device(rows) if isinstance(rows, np.ndarray) else _dense(rows)


def fits_on_device(points: Points, device: int) -> bool:
    """Whether the data behind points fit into the memory of the GPU as a dense table, decided once for all views."""
    key = ("fits", device)
    with _PREPARING:
        if key not in points.memo:
            data = points.data
            table = data.shape[0] * data.shape[1] * data.dtype.itemsize
            points.memo[key] = table <= MAX_TABLE_FRACTION * free_memory()
    fits: bool = points.memo[key]
    return fits


def free_memory() -> int:
    """Return the free memory of the current GPU in bytes."""
    xp = cupy()
    return int(xp.cuda.runtime.memGetInfo()[0] + xp.get_default_memory_pool().free_bytes())


def is_extreme(data: Any) -> bool:
    """Whether the scales of features overflow."""
    largest = float(cupy().abs(data).max())
    return largest > LARGEST_MAGNITUDE or 0.0 < largest < 1.0 / LARGEST_MAGNITUDE


def _dense(data: Any) -> Any:
    """Copy a CSR matrix to the current GPU as a dense table."""
    xp = cupy()
    table = xp.zeros(data.shape, dtype=data.dtype)
    rows = np.repeat(np.arange(data.shape[0]), np.diff(data.indptr))
    xp.add.at(table, (xp.asarray(rows), xp.asarray(data.indices)), xp.asarray(data.data))
    return table


def _gaussian(formula: KernelFormula, data: Any) -> DeviceSamples:
    xp = cupy()
    factor = 2.0 * formula.gamma * LOG2_E
    integers = _integers(data, centred=True)
    if integers is None:
        data_64 = data.astype(xp.float64)
        data_64 -= _centre(data_64)
        halves, unit = _split(_without_far_flags(data_64, sqrt(LARGEST_FLAG_EXPONENT * 2.0 / factor)))
    else:
        halves, unit = _padded(integers[0]), integers[1]
    exact = halves[0].astype(xp.float64) if halves[1] is None else halves[0].astype(xp.float64) + halves[1]
    scale = factor / unit**2
    half_norms = (0.5 * scale * xp.einsum("ij,ij->i", exact, exact)).astype(xp.float32)
    return DeviceSamples(formula, data, halves, half_norms, scale, 0.0)


def _centre(data: Any) -> Any:
    """Return the median of each feature over some samples."""
    return cupy().median(data[:: -(-len(data) // CENTRE_SAMPLES)], axis=0)


def _integers(data: Any, centred: bool) -> tuple[Any, float] | None:
    """Return the features as integers of half precision, and their factor; None if there is none that makes them so."""
    xp = cupy()
    for factor in INTEGER_FACTORS:
        scaled = data * factor
        integers = xp.rint(scaled)
        if bool((xp.abs(scaled - integers) <= 4.0 * xp.finfo(data.dtype).eps * xp.abs(scaled)).all()):
            if centred:
                integers -= xp.rint(_centre(integers))
            if float(xp.abs(integers).max()) <= LARGEST_EXACT_INTEGER:
                return integers, factor
    return None


def _split(data: Any) -> tuple[tuple[Any, Any], float]:
    """Return high and low parts, padded, and the factor of the features."""
    xp = cupy()
    largest = float(xp.abs(data).max())
    if is_extreme(data):
        raise DeviceError(
            f"features as large as {largest:.2g} are too extreme for a GPU; scale them, or use device='cpu'"
        )
    unit = 2.0 ** floor(log2(LARGEST_FEATURE / largest)) if largest > 0.0 else 1.0
    scaled = data * unit
    high, _ = _padded(scaled)
    low, _ = _padded(scaled - high[:, : data.shape[1]])
    return (high, low), unit


def _padded(data: Any) -> tuple[Any, None]:
    """Return features in half precision, padded with zeros, and no low part."""
    xp = cupy()
    out = xp.zeros((len(data), -(-data.shape[1] // WIDTH_MULTIPLE) * WIDTH_MULTIPLE), dtype=xp.float16)
    out[:, : data.shape[1]] = data
    return out, None


def _without_far_flags(data: Any, most: float) -> Any:
    """Return the samples with the gap of each two-valued feature at most `most`, the commoner value at 0."""
    xp = cupy()
    least, largest = data.min(axis=0), data.max(axis=0)
    wide = xp.flatnonzero(largest - least > most)
    if len(wide):
        values, least, largest = data[:, wide], least[wide], largest[wide]
        is_largest = values == largest
        flag = (is_largest | (values == least)).all(axis=0)
        rare_is_large = 2 * is_largest.sum(axis=0) <= len(data)
        common = xp.where(rare_is_large, least, largest)
        shift = xp.where(rare_is_large, most, -most)
        data[:, wide[flag]] = xp.where(values == common, 0.0, shift)[:, flag]
    return data
