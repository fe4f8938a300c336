"""A GPU in NumPy: the Python of `maxmargin.cuda` runs on it, with twins of the two kernels that compute kernel values.

Device arrays are a type of their own, and an operation that mixes one with an array in host memory is an error, as on a
GPU. So is an operation on arrays of a GPU that is not the current one: all of them are on the GPU `Device.home`. What a
tensor core computes is computed from the same halves, in float32.
"""

from typing import ClassVar

import numpy as np
from scipy import sparse

from maxmargin.backends import array_operations, cuda_backend, device_state, device_subproblem
from maxmargin.backends.array_operations import ArrayOperations
from maxmargin.backends.numpy_backend import NumpySubproblem, PreciseNumpySubproblem
from maxmargin.cuda import (
    block_values,
    device,
    device_table,
    halves,
    kernel_values,
    landmarks,
    prediction,
    product_costs,
    products,
    samples,
    sparse_values,
    transfer,
)
from maxmargin.kernels.formula import OuterFunction, Term
from maxmargin.machines import devices
from maxmargin.machines.validation import device_arrays
from maxmargin.search import device_trials
from reference.joint_steps import JointNumpySubproblem, are_joint

#: The modules that ask for CuPy.
MODULES = [
    block_values,
    device,
    device_arrays,
    device_table,
    device_trials,
    devices,
    halves,
    kernel_values,
    landmarks,
    prediction,
    product_costs,
    products,
    samples,
    sparse_values,
    transfer,
]


class DeviceArray(np.ndarray):
    """An array in the memory of the twin."""

    def get(self):
        return np.array(self, subok=False)

    def __dlpack_device__(self):
        return 2, Device.home

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        check_current_device()
        arrays = [*inputs, *(out or ())]
        if any(type(array) is np.ndarray and array.ndim for array in arrays):
            raise TypeError("an array in host memory meets one on the device")
        plain = [array.view(np.ndarray) if isinstance(array, DeviceArray) else array for array in inputs]
        if out is not None:
            options["out"] = tuple(array.view(np.ndarray) for array in out)
        with np.errstate(all="ignore"):
            return on_device(getattr(ufunc, method)(*plain, **options))

    def __array_function__(self, function, types, arguments, options):
        check_current_device()
        if any(kind is np.ndarray for kind in types):
            raise TypeError("an array in host memory meets one on the device")
        return on_device(super().__array_function__(function, types, arguments, options))


def check_current_device():
    if Device.current != Device.home:
        raise RuntimeError(f"arrays on GPU {Device.home}, but GPU {Device.current} is the current one")


def on_device(result):
    if isinstance(result, tuple):
        return tuple(map(on_device, result))
    return result.view(DeviceArray) if isinstance(result, np.ndarray | np.generic) and np.ndim(result) else result


class Runtime:
    """GPUs, and the memory of each: in place of CuPy's runtime and of its pool."""

    free = 10**12

    cudaDevAttrMultiProcessorCount = 16  # noqa: N815  # the name in CuPy

    #: Multiprocessors, kHz, and the rate of float32 relative to that of float64: those of an H200.
    attributes: ClassVar = {16: 132, 13: 1_980_000, 87: 2}

    def deviceGetAttribute(self, attribute, number):
        return self.attributes[attribute]

    def getDevice(self):
        return Device.current

    CUDARuntimeError = RuntimeError

    def getDeviceCount(self):
        return Device.home + 1

    def memGetInfo(self):
        return self.free, 10**13

    def free_bytes(self):
        return 0


class Device:
    """A GPU, the current one within its context."""

    compute_capability = "90"
    current = home = 0

    def __init__(self, number):
        self.number, self.previous = number, []

    def __enter__(self):
        self.previous.append(Device.current)
        Device.current = self.number
        return self

    def __exit__(self, *error):
        Device.current = self.previous.pop()


class Stream:
    def synchronize(self):
        pass


class Csr:
    """A sparse matrix on the device."""

    def __init__(self, parts, shape):
        assert all(isinstance(part, DeviceArray) for part in parts)
        self.matrix = sparse.csr_matrix(tuple(part.get() for part in parts), shape=shape)

    @property
    def shape(self):
        return self.matrix.shape

    @property
    def dtype(self):
        return self.matrix.dtype

    def _wrapped(self, matrix):
        wrapped = object.__new__(Csr)
        wrapped.matrix = sparse.csr_matrix(matrix)
        return wrapped

    def __getitem__(self, index):
        assert isinstance(index, DeviceArray)
        return self._wrapped(self.matrix[index.get()])

    def __matmul__(self, dense):
        assert isinstance(dense, DeviceArray)
        assert dense.dtype == self.dtype
        return on_device(np.asfortranarray(self.matrix @ dense.get()))

    def multiply(self, other):
        return self._wrapped(self.matrix.multiply(other.matrix))

    def sum(self, axis):
        return on_device(np.asarray(self.matrix.sum(axis=axis)))

    def toarray(self):
        return on_device(self.matrix.toarray())


class SparseModule:
    csr_matrix = Csr


class NumpyInPlaceOfCupy:
    """The functions of NumPy, and what is asked about a GPU."""

    ndarray = DeviceArray

    def __init__(self):
        self.cuda = self
        self.runtime = Runtime()

    def get_default_memory_pool(self):
        return Runtime()

    def get_current_stream(self):
        return Stream()

    def Device(self, number=0):
        return Device(number)

    def from_dlpack(self, array):
        return array if isinstance(array, DeviceArray) else on_device(array.get())

    def __getattr__(self, name):
        function = getattr(np, name)
        if not callable(function) or isinstance(function, type | np.ufunc):
            return function
        return lambda *arguments, **options: on_device(function(*arguments, **options))


def _rows(data, index):
    assert isinstance(data, DeviceArray)
    assert data.flags.c_contiguous
    if index is None:
        return data
    assert isinstance(index, DeviceArray)
    assert index.dtype == np.int32
    assert index.flags.c_contiguous
    return data[index]


def tensor(left, rows, right, columns, weights, store):
    """Twin of `products._tensor`."""

    def parts(side, index):
        high, low = side.halves
        exact = _rows(high, index).astype(np.float64)
        return exact if low is None else exact + _rows(low, index)

    formula, inner = left.formula, left.scale * (parts(left, rows) @ parts(right, columns).T)
    if left.half_norms is not None:
        norms = (_rows(side.half_norms, index) for side, index in ((left, rows), (right, columns)))
        values = np.exp2(np.minimum(inner - np.add.outer(*norms), 0.0))
    else:
        values = _function(formula, inner + left.offset, scaled=True)
    return _finished(values.astype(np.float32), weights, store)


def launch_direct(formula, left, rows, right, columns, weights, real, store, unit):
    """Twin of `products._launch_direct`."""
    if unit is not None:
        assert real == "double"
        sums = split_sums(formula.term, *(_rows(*side).get() for side in ((left, rows), (right, columns))), unit)
        return _finished(on_device(_function(formula, sums, scaled=False)), weights, store)
    precision = np.float64 if real == "double" else np.float32
    with np.errstate(over="ignore"):
        x, z = _rows(left, rows).astype(precision)[:, None], _rows(right, columns).astype(precision)[None]
    if formula.term is Term.PRODUCT:
        terms = x * z
    elif formula.term is Term.CHI_SQUARED:
        terms = (x - z) ** 2 / np.where(x + z > 0, x + z, 1.0)
    else:
        terms = np.abs(x - z) if formula.term is Term.ABSOLUTE else (x - z) ** 2
    values = _function(formula, terms.sum(axis=2), scaled=False)
    return _finished(values.astype(precision), weights, store)


def precise_tensor(samples, rows, columns, weights):
    """Twin of `products._precise_tensor`."""
    x, z = (_rows(samples.data, index).astype(np.float64) for index in (rows, columns))
    inner = x @ z.T
    if samples.formula.function is OuterFunction.EXPONENTIAL:
        norms = (_rows(samples.squared_norms, index) for index in (rows, columns))
        inner = np.maximum(np.add.outer(*norms) - 2 * inner, 0.0)
    return _finished(_function(samples.formula, inner, scaled=False), weights, store=False)


def split_sums(term, left, right, unit):
    """Return sums over features in pairs of float32, feature by feature as in `sources/direct.cu`."""
    sums = np.zeros((len(left), len(right)), np.float32), np.zeros((len(left), len(right)), np.float32)
    for x, z in zip(left.T, right.T, strict=True):
        x, z = _pair(x[:, None].astype(np.float64) * unit), _pair(z[None].astype(np.float64) * unit)
        if term is Term.PRODUCT:
            part = _product_of_pairs(x, z)
        else:
            d = _sum_of_pairs(x, (-z[0], -z[1]))
            sign = np.where(d[0] < 0, np.float32(-1), np.float32(1))
            part = _product_of_pairs(d, d) if term is Term.SQUARED else (d[0] * sign, d[1] * sign)
        sums = _sum_of_pairs(sums, part)
    return (sums[0].astype(np.float64) + sums[1]) / (unit if term is Term.ABSOLUTE else unit**2)


def _pair(values):
    high = values.astype(np.float32)
    return high, (values - high).astype(np.float32)


def _two_sum(a, b):
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _fast_two_sum(a, b):
    s = a + b
    return s, b - (s - a)


def _sum_of_pairs(x, y):
    s, t = _two_sum(x[0], y[0]), _two_sum(x[1], y[1])
    v = _fast_two_sum(s[0], s[1] + t[0])
    return _fast_two_sum(v[0], t[1] + v[1])


def _product_of_pairs(x, y):
    def fma(a, b, c):  # the product is exact in float64
        return (a.astype(np.float64) * b + c).astype(np.float32)

    c = x[0] * y[0]
    cross = fma(x[1], y[0], fma(x[0], y[1], x[1] * y[1]))
    return _fast_two_sum(c, fma(x[0], y[0], -c) + cross)


def _function(formula, inner, scaled):
    if formula.function is OuterFunction.IDENTITY:
        return inner
    gamma = 1.0 if formula.gammas is not None else formula.gamma
    if formula.function is OuterFunction.EXPONENTIAL:
        return np.exp(-gamma * inner)
    inner = inner if scaled else gamma * inner + formula.coef0
    return np.tanh(inner) if formula.function is OuterFunction.TANGENT else inner**formula.degree


def _finished(values, weights, store):
    assert store or (weights.dtype == np.float64 and weights.flags.c_contiguous)
    return values if store else (weights.astype(np.float64) @ values.astype(np.float64).T)[None]


def install(monkeypatch):
    """Put the twin in place of CuPy and of the compiled kernels."""
    twin = NumpyInPlaceOfCupy()
    for module in MODULES:
        monkeypatch.setattr(module, "cupy", lambda: twin)
    monkeypatch.setattr(sparse_values, "cupy_sparse", SparseModule)
    monkeypatch.setattr(products, "_tensor", tensor)
    monkeypatch.setattr(products, "_launch_direct", launch_direct)
    monkeypatch.setattr(products, "_precise_tensor", precise_tensor)
    monkeypatch.setattr(products, "_shared_memory", lambda number: 232_448)
    return twin


class _Parent:
    """What `NumpySubproblem` needs of the problem that it is a part of."""

    def __init__(self, part):
        box = part.variables
        self.dual, self.gradient = in_host_memory(part.dual), in_host_memory(part.gradient)
        self.lower, self.upper, self.ridge, self.curvature = (
            in_host_memory(array) for array in (box.lower, box.upper, box.ridge, box.curvature)
        )
        self.kink = np.zeros(part.active) if box.kink is None else in_host_memory(box.kink)
        self.group, self.groups, self.bounded = in_host_memory(box.group).astype(np.int32), part.groups, part.bounded
        self.totals, self.threads = part.totals, 1


def in_host_memory(array):
    return array.get() if isinstance(array, DeviceArray) else array


def take_pair_steps(part, tolerance, max_steps, max_seconds):
    """Take pair steps in NumPy."""
    kind = JointNumpySubproblem if are_joint(part) else PreciseNumpySubproblem if part.precise else NumpySubproblem
    steps = kind(_Parent(part), np.arange(part.active), in_host_memory(part.values))
    reason = steps.pair_steps(tolerance, max_steps, max_seconds)
    part.dual[:], part.gradient[:], part.violation = steps.dual, steps.gradient, steps.violation
    return reason


def install_backend(monkeypatch):
    """Let `CudaBackend` run on the twin."""
    twin = install(monkeypatch)
    monkeypatch.setattr(cuda_backend, "cupy", lambda: twin)
    monkeypatch.setattr(cuda_backend, "CudaOperations", lambda groups, size: ArrayOperations(twin, groups))
    monkeypatch.setattr(cuda_backend, "CudaStepper", lambda: take_pair_steps)
    monkeypatch.setattr(cuda_backend, "own_stream", Device)
    for module in (array_operations, device_state, device_subproblem):
        monkeypatch.setattr(module, "to_host", in_host_memory)
    return twin
