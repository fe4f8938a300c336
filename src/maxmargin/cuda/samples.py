"""Samples in GPU memory, prepared for the products of a kernel.

The Gaussian is 2^(scale x·z − ½ scale ‖x‖² − ½ scale ‖z‖²). The difference loses the digits of large norms: samples are
centred, and the gap of a two-valued feature (a rare flag that was standardised lies hundreds of deviations out) is cut
to where the kernel value is 2⁻⁶⁰, which is 0 in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt
from threading import RLock
from typing import Any

import numpy as np

from maxmargin.cuda.device import cupy
from maxmargin.cuda.device_table import DeviceTable
from maxmargin.cuda.halves import (
    LARGEST_FLAG_EXPONENT,
    Halves,
    Shared,
    centred_values,
    chunks,
    integer_halves,
    once,
    split_halves,
    with_squares,
    without_far_flags,
)
from maxmargin.cuda.transfer import to_device
from maxmargin.kernels.formula import FeatureGammas, KernelFormula, OuterFunction, Term
from maxmargin.kernels.points import Points, rows_of
from maxmargin.kernels.rounding import MAX_MEAN_EXPONENT, takes_norms
from maxmargin.kernels.split_sums import FeatureSums, SplitSums

#: The largest fraction of the free GPU memory for samples as a table. Their halves take as much again in float32, and
#: a copy in float64, for kernels with a factor for each feature, twice as much.
MAX_TABLE_FRACTION = 0.2

#: The same for each byte of a value, for a table that is in GPU memory already.
MAX_HALVES_FRACTION_PER_BYTE = 0.05

#: log2(e): exponentials are powers of 2.
LOG2_E = 1.4426950408889634

#: Formulas whose samples are kept, and different halves among them, which depend on γ where features are cut, and on a
#: γ for each feature: more are prepared again.
MAX_KEPT_FORMULAS, MAX_KEPT_HALVES = 8, 2

#: Held while samples are prepared: problems that share them begin at the same time.
_PREPARING = RLock()


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
            _forget_older_samples(points, device)
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

        def as_given() -> tuple[Halves, float]:
            return integer_halves(data, centred=False) or split_halves(data.shape, lambda rows: data[rows])

        halves, unit = once(shared, "as given", as_given)
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
        for rows in chunks(self.data.shape):
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


def _forget_older_samples(points: Points, device: int) -> None:
    """Remove all samples but the last ones from what is kept beside the data."""
    memo, seen, used = points.memo, list[int](), {None}
    formulas = [key for key in memo if key[:2] == ("cuda", device) and isinstance(key[-1], KernelFormula)]
    for position, key in enumerate(reversed(formulas)):
        halves = id(memo[key].halves[0]) if memo[key].halves else 0
        if halves not in seen:
            seen.append(halves)
        if position >= MAX_KEPT_FORMULAS or seen.index(halves) >= MAX_KEPT_HALVES:
            del memo[key]
        else:
            used.add(key[-1].gammas)
    for key in [key for key in memo if key[:2] in (("cuda", device), ("shared", device))]:
        if isinstance(key[-1], FeatureGammas) and key[-1] not in used:
            del memo[key]


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
            there = isinstance(data, DeviceTable)
            most = MAX_HALVES_FRACTION_PER_BYTE * data.dtype.itemsize if there else MAX_TABLE_FRACTION
            points.memo[key] = table <= most * free_memory()
    fits: bool = points.memo[key]
    return fits


def free_memory() -> int:
    """Return the free memory of the current GPU in bytes."""
    xp = cupy()
    return int(xp.cuda.runtime.memGetInfo()[0] + xp.get_default_memory_pool().free_bytes())


def _dense(data: Any) -> Any:
    """Copy a CSR matrix to the current GPU as a dense table."""
    xp = cupy()
    table = xp.zeros(data.shape, dtype=data.dtype)
    rows = np.repeat(np.arange(data.shape[0]), np.diff(data.indptr))
    xp.add.at(table, (xp.asarray(rows), xp.asarray(data.indices)), xp.asarray(data.data))
    return table


def _gaussian(formula: KernelFormula, data: Any, shared: Shared) -> DeviceSamples:
    """Return samples whose halves are the same for every γ, but for one that cuts the gap of a feature."""
    factor = 2.0 * formula.gamma * LOG2_E
    found = once(shared, "integers", lambda: with_squares(integer_halves(data, centred=True)))
    if found is None:
        values = once(shared, "centred", lambda: centred_values(data))
        cut = without_far_flags(data.shape, values, sqrt(LARGEST_FLAG_EXPONENT * 2.0 / factor), shared)
        if cut is values:
            found = once(shared, "halves", lambda: with_squares(split_halves(data.shape, values)))
        else:
            found = with_squares(split_halves(data.shape, cut))
    halves, unit, squares = found
    scale = factor / unit**2
    return DeviceSamples(formula, data, halves, (0.5 * scale * squares).astype(np.float32), scale, 0.0)
