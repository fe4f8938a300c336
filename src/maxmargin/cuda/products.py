"""Fused products with a kernel matrix on a GPU, and blocks of it: values are never stored."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from maxmargin.cuda.device import cupy
from maxmargin.cuda.modules import kernel, launch
from maxmargin.cuda.samples import DeviceSamples
from maxmargin.deadline import check_deadline
from maxmargin.kernels.formula import KernelFormula, OuterFunction

#: The sides of a tile of tensor cores and of the direct kernel; threads of a block.
TENSOR_TILE, DIRECT_TILE, TENSOR_THREADS, DIRECT_THREADS = 128, 64, (256,), (16, 16)

#: Blocks of threads for each multiprocessor: columns are divided into parts until there are so many. In float64, where
#: blocks take longer, there are more of them, so that few multiprocessors wait for the last ones.
BLOCKS_PER_PROCESSOR, PRECISE_BLOCKS_PER_PROCESSOR = 8, 32

#: The tile of products in float64 on tensor cores, and features in shared memory at a time: all, or so many of more.
PRECISE_ROWS, PRECISE_COLUMNS, MAX_PRECISE_DEPTH, PRECISE_CHUNK = 128, 64, 60, 16

#: Multiplications of a launch in float64: less than 0.1 seconds on an H200, some seconds on a card for games.
WORK_PER_LAUNCH = 2**38

#: The code of the Gaussian of an inner product in `sources/products.cu`, and features in shared memory at a time.
GAUSSIAN, CHUNK = int(OuterFunction.GAUSSIAN_OF_PRODUCT), 64


#: The most functions of a fused product: sums on tensor cores are in shared memory, others in registers.
TENSOR_FUNCTIONS, DIRECT_FUNCTIONS = 16, 12

#: Shared memory for the sums of a function, of four groups of columns, and for its weights; what is declared besides.
BYTES_PER_FUNCTION, STATIC_MEMORY = 4 * TENSOR_TILE * 8 + TENSOR_TILE * 4, 1024


def product_parts(samples: DeviceSamples, rows: Any, columns: Any, weights: Any) -> Any:
    """Return rows whose sum is Σ_j weights_j k(x_row, x_column j) for some rows, with kernel values in float32.

    `rows` and `columns` are int32 device arrays of row numbers; None stands for all rows in order.
    """
    if samples.halves is None:
        return _direct(samples, rows, columns, weights, "float", store=False)
    return _tensor(samples, rows, samples, columns, weights, store=False)


def several_products(samples: DeviceSamples, rows: Any, columns: Any, weights: Any) -> Any:
    """Return Σ_j weights_jc k(x_row, x_column j) for some rows and every function c, with kernel values in float32."""
    n = _count(samples, rows)

    def products(part: Any) -> Any:
        return product_parts(samples, rows, columns, part)

    return _by_functions(n, weights, functions_at_a_time(samples), products)


def precise_several_products(samples: DeviceSamples, rows: Any, columns: Any, weights: Any) -> Any:
    """Return the same in float64."""
    rows, columns = _numbers(samples, rows), _numbers(samples, columns)

    def products(part: Any) -> Any:
        return _product_by_rows(samples, rows, columns, part)[None]

    return _by_functions(len(rows), weights, DIRECT_FUNCTIONS, products)


def _by_functions(n: int, weights: Any, step: int, products: Callable[[Any], Any]) -> Any:
    """Return sums for n rows and every function, a column of the weights, of `step` functions at a time.

    `products` returns parts whose sum has a row for each function, and takes such weights.
    """
    xp = cupy()
    count = weights.shape[1]
    out = xp.empty((n, count))
    step = -(-count // max(1, -(-count // step))) or 1  # parts of about equal size
    for first in range(0, count, step):
        part = xp.ascontiguousarray(weights[:, first : first + step].T)
        out[:, first : first + step] = products(part).sum(axis=0).T
    return out


def functions_at_a_time(samples: DeviceSamples) -> int:
    """Return how many functions share the values of a fused product: their sums are in shared memory."""
    if samples.halves is None:
        return DIRECT_FUNCTIONS
    room = _shared_memory(cupy().cuda.runtime.getDevice()) - STATIC_MEMORY - _tile_memory(samples)
    return max(1, min(TENSOR_FUNCTIONS, room // BYTES_PER_FUNCTION))


def square(samples: DeviceSamples, rows: Any, columns: Any) -> Any:
    """Return the kernel values of some rows and columns in float32."""
    if samples.halves is None:
        return _direct(samples, rows, columns, None, "float", store=True)
    return _tensor(samples, rows, samples, columns, None, store=True)


def precise_product(samples: DeviceSamples, rows: Any, columns: Any, weights: Any) -> Any:
    """Return Σ_j weights_j k(x_row, x_column j) for some rows, in float64."""
    return _product_by_rows(samples, _numbers(samples, rows), _numbers(samples, columns), weights)


def _numbers(samples: DeviceSamples, index: Any) -> Any:
    """Return row numbers; all of them in place of None."""
    return cupy().arange(len(samples.data), dtype=np.int32) if index is None else index


def _product_by_rows(samples: DeviceSamples, rows: Any, columns: Any, weights: Any) -> Any:
    """Return sums of kernel values in float64, so many rows at a time that limits and Ctrl-C are obeyed in between."""
    xp = cupy()
    out = xp.empty((*weights.shape[:-1], len(rows)))
    tile, work = PRECISE_ROWS, len(columns) * samples.data.shape[1]
    step = max(tile, WORK_PER_LAUNCH // max(1, work) // tile * tile)
    for start in range(0, len(rows), step):
        check_deadline()
        part = slice(start, start + step)
        if samples.has_inner_products:
            sums = _precise_tensor(samples, rows[part], columns, weights)
        else:
            sums = _direct(samples, rows[part], columns, weights, "double", store=False)
        out[..., part] = sums.sum(axis=0)
        xp.cuda.get_current_stream().synchronize()
    return out


def precise_square(samples: DeviceSamples, rows: Any, columns: Any) -> Any:
    """Return the same as `square`, in float64."""
    return _direct(samples, rows, columns, None, "double", store=True)


def _tensor(left: DeviceSamples, rows: Any, right: DeviceSamples, columns: Any, weights: Any, store: bool) -> Any:
    xp = cupy()
    assert left.halves is not None
    assert right.halves is not None
    exact = left.halves[1] is None and right.halves[1] is None
    n, m = _count(left, rows), _count(right, columns)
    if not n or not m:
        return xp.zeros((n, m), dtype=xp.float32) if store else xp.zeros((1, *weights.shape[:-1], n))
    functions, formula = _functions(weights), left.formula
    function = GAUSSIAN if formula.function is OuterFunction.EXPONENTIAL else int(formula.function)
    compiled = kernel(
        "products", "kernel_product", FUNCTION=function, DEGREE=formula.degree, WIDTH=left.width, EXACT=int(exact),
        STORE=int(store), FUNCTIONS=functions,
    )  # fmt: skip
    memory = _tile_memory(left if left.halves[1] is not None else right)
    memory += functions * BYTES_PER_FUNCTION if functions > 1 else 0
    tiles, parts, per_part = _grid(n, m, TENSOR_TILE, store)
    out = xp.empty((n, m), dtype=xp.float32) if store else xp.empty((parts, *weights.shape[:-1], n))
    factors = None if store else weights.astype(xp.float64, copy=False)
    sides = [(*_halves(side), side.half_norms, index, xp.int32(count)) for side, index, count in
             ((left, rows, n), (right, columns, m))]  # fmt: skip
    arguments = (
        *sides[0], *sides[1], factors, xp.int32(per_part), xp.float32(left.scale), xp.float32(left.offset), out
    )  # fmt: skip
    launch(compiled, (tiles, parts), TENSOR_THREADS, _pointers(arguments), memory)
    return out


def _precise_tensor(samples: DeviceSamples, rows: Any, columns: Any, weights: Any) -> Any:
    """Return rows whose sum is Σ_j weights_j k(x_row, x_column j), from inner products in float64 on tensor cores."""
    xp, formula, data = cupy(), samples.formula, samples.data
    n, m, width = _count(samples, rows), _count(samples, columns), int(data.shape[1])
    if not n or not m:
        return xp.zeros((1, *weights.shape[:-1], n))
    functions = _functions(weights)
    depth, stride, memory = precise_tile(width, functions)
    compiled = kernel(
        "precise", "kernel_product", DATA="double" if data.dtype == xp.float64 else "float",
        FUNCTION=int(formula.function), DEGREE=formula.degree, DEPTH=depth, STRIDE=stride, FUNCTIONS=functions,
        SMALL_PRODUCTS=0,
    )  # fmt: skip
    tiles, parts, per_part = _grid(n, m, PRECISE_ROWS, False, PRECISE_BLOCKS_PER_PROCESSOR)
    out = xp.empty((parts, *weights.shape[:-1], n))
    sides = [(data, samples.squared_norms, index, xp.int32(count)) for index, count in ((rows, n), (columns, m))]
    arguments = (
        *sides[0], *sides[1], xp.int32(width), weights.astype(xp.float64, copy=False), xp.int32(per_part),
        xp.float64(formula.gamma), xp.float64(formula.coef0), out,
    )  # fmt: skip
    launch(compiled, (tiles, parts), TENSOR_THREADS, _pointers(arguments), memory)
    return out


def precise_tile(width: int, functions: int) -> tuple[int, int, int]:
    """Return the features in shared memory at a time, the stride of a sample there, and its bytes.

    The bytes are within the 99 KB that a block of threads has on every card since Ampere.
    """
    depth = -(-width // 4) * 4 if width <= MAX_PRECISE_DEPTH else PRECISE_CHUNK
    stride = next(k for k in range(depth, depth + 16) if k % 16 in (4, 12))  # eight samples in different banks
    memory = 8 * ((PRECISE_ROWS + PRECISE_COLUMNS) * stride + (1 + functions) * PRECISE_COLUMNS)
    return depth, stride, memory


def _functions(weights: Any) -> int:
    """Return the number of functions: rows of weights, one for a vector, or for none."""
    return int(weights.shape[0]) if weights is not None and weights.ndim == 2 else 1


def _tile_memory(samples: DeviceSamples) -> int:
    """Return the shared memory of two tiles of samples."""
    depth = min(samples.width, CHUNK)
    return 2 * TENSOR_TILE * (depth + 8) * 2 * (1 if _halves(samples)[1] is None else 2)


def _halves(samples: DeviceSamples) -> tuple[Any, Any]:
    assert samples.halves is not None
    return samples.halves


def _direct(samples: DeviceSamples, rows: Any, columns: Any, weights: Any, real: str, store: bool) -> Any:
    unit = samples.unit if real == "double" else None
    return _launch_direct(samples.formula, samples.data, rows, samples.data, columns, weights, real, store, unit)


def _launch_direct(
    formula: KernelFormula,
    left: Any,
    rows: Any,
    right: Any,
    columns: Any,
    weights: Any,
    real: str,
    store: bool,
    unit: float | None,
) -> Any:
    """Launch the kernel of values that are summed feature by feature, in pairs of float32 if there is a unit."""
    xp = cupy()
    n, m = (len(data) if index is None else len(index) for data, index in ((left, rows), (right, columns)))
    if not n or not m:
        dtype = xp.float64 if real == "double" else xp.float32
        return xp.zeros((n, m), dtype=dtype) if store else xp.zeros((1, *weights.shape[:-1], n))
    compiled = kernel(
        "direct", "kernel_product", REAL=real, DATA="double" if left.dtype == xp.float64 else "float",
        TERM=int(formula.term), FUNCTION=int(formula.function), DEGREE=formula.degree, STORE=int(store),
        FUNCTIONS=_functions(weights), SPLIT=int(unit is not None),
    )  # fmt: skip
    tiles, parts, per_part = _grid(n, m, DIRECT_TILE, store)
    dtype = xp.float64 if real == "double" else xp.float32
    out = xp.empty((n, m), dtype=dtype) if store else xp.empty((parts, *weights.shape[:-1], n))
    arguments = (
        left, rows, xp.int32(n), right, columns, xp.int32(m), xp.int32(left.shape[1]),
        None if store else weights.astype(xp.float64, copy=False), xp.int32(per_part), xp.float64(formula.gamma),
        xp.float64(formula.coef0), out, xp.float64(1.0 if unit is None else unit),
    )  # fmt: skip
    launch(compiled, (tiles, parts), DIRECT_THREADS, _pointers(arguments), 0)
    return out


def _count(samples: DeviceSamples, index: Any) -> int:
    return len(samples.data) if index is None else len(index)


def _grid(n: int, m: int, tile: int, store: bool, per_processor: int = BLOCKS_PER_PROCESSOR) -> tuple[int, int, int]:
    """Return the tiles of rows, the parts of columns, and the columns of a part."""
    tiles, column_tiles = -(-n // tile), -(-m // tile)
    if store:
        return tiles, column_tiles, tile
    blocks = per_processor * _processors(cupy().cuda.runtime.getDevice())
    parts = max(1, min(column_tiles, -(-blocks // tiles)))
    tiles_per_part = -(-column_tiles // parts)
    return tiles, -(-column_tiles // tiles_per_part), tiles_per_part * tile


@lru_cache(maxsize=16)
def _shared_memory(device: int) -> int:
    """Return the shared memory that a block of threads may ask for."""
    runtime = cupy().cuda.runtime
    return int(runtime.deviceGetAttribute(runtime.cudaDevAttrMaxSharedMemoryPerBlockOptin, device))


@lru_cache(maxsize=16)
def _processors(device: int) -> int:
    """Return the number of multiprocessors of a GPU."""
    runtime = cupy().cuda.runtime
    return int(runtime.deviceGetAttribute(runtime.cudaDevAttrMultiProcessorCount, device))


def _pointers(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of a launch: a missing array is a null pointer."""
    xp = cupy()
    return tuple(xp.uint64(0) if argument is None else argument for argument in arguments)
