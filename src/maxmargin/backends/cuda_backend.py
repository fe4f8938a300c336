"""The backend of a GPU: kernel values on tensor cores, never stored; pair steps by one multiprocessor."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.backends.cuda_operations import CudaOperations
from maxmargin.backends.device_state import DeviceMatrix, DeviceState
from maxmargin.backends.device_subproblem import DeviceSubproblem
from maxmargin.backends.interface import BlockTuning, BoundStart, StopReason
from maxmargin.backends.selection import place_at_bounds
from maxmargin.cuda.block_values import values_of_points
from maxmargin.cuda.device import DeviceError, cupy, open_device
from maxmargin.cuda.kernel_values import KernelValues, is_supported
from maxmargin.cuda.pair_steps import DeviceBox, max_variables, pair_steps, step_report
from maxmargin.cuda.streams import own_stream
from maxmargin.matrices import KernelMatrix, PrecomputedMatrix
from maxmargin.matrices.repeated_matrix import RepeatedMatrix
from maxmargin.matrices.scaled_matrix import ScaledMatrix
from maxmargin.problems import DualProblem

#: The size of the first working set, beside free variables, and the largest that pays.
FIRST_SIZE, MAX_FIRST_SIZE = 2048, 8192

#: A problem of up to so many variables is solved as one subproblem.
MAX_WHOLE_SIZE = 4096

#: A subproblem is solved until its violation is this fraction of the violation among all variables: rounds are cheap.
SUBPROBLEM_TOLERANCE = 0.3

#: Pair steps of one launch, some milliseconds.
STEPS_PER_CHECK = 8000


@dataclass(frozen=True)
class CudaBackend:
    """Operations of the block solver on a GPU.

    Parameters
    ----------
    name : str
        ``"cuda"``, or ``"cuda:1"`` for another than the first.
    """

    name: str = "cuda"

    def __post_init__(self) -> None:
        open_device(self.name)

    @property
    def number(self) -> int:
        """The number of the GPU."""
        return open_device(self.name)

    def scope(self) -> AbstractContextManager[Any]:
        """Return a context in which arrays are on this GPU, and operations on a stream of their own."""
        return own_stream(self.number)

    def open(self, problem: DualProblem, cache_bytes: int, threads: int) -> DeviceState:
        """Return the state of a problem; rows are computed again instead of stored."""
        matrix = device_matrix(problem.matrix, self.number)
        operations = CudaOperations(problem.groups, problem.size)
        return DeviceState(problem, operations, matrix, CudaStepper(), tuning(problem.size))

    def start_at_bounds(self, problem: DualProblem, columns: Indices, weights: Floats) -> BoundStart:
        """Return the feasible point with each variable at the bound that its slack indicates."""
        xp = cupy()
        matrix = device_matrix(problem.matrix, self.number)
        result: Floats = matrix.product_parts(xp.asarray(columns), xp.asarray(weights)).sum(axis=0).get()
        dual = place_at_bounds(problem, problem.linear - result, _argsort)
        return BoundStart(dual, result, problem.size * len(columns))


def _argsort(values: Floats) -> Indices:
    """Return the order of numbers in host memory, of equal ones as given."""
    xp = cupy()
    order: Indices = xp.argsort(xp.asarray(values), kind="stable").get()
    return order


def tuning(size: int) -> BlockTuning:
    """Return sizes that suit a GPU."""
    return BlockTuning(
        first_size=FIRST_SIZE,
        min_first_size=size if size <= MAX_WHOLE_SIZE else FIRST_SIZE,
        max_first_size=MAX_FIRST_SIZE,
        solve_whole=size <= MAX_WHOLE_SIZE,
        stored_rows=0,
        steps_per_check=STEPS_PER_CHECK,
        value_credit=0.0,
        subproblem_tolerance=SUBPROBLEM_TOLERANCE,
    )


class CudaStepper:
    """Pair steps on the GPU, on the subproblems of one problem."""

    def __init__(self) -> None:
        self._report = step_report()

    def __call__(self, part: DeviceSubproblem, tolerance: float, max_steps: int, max_seconds: float) -> StopReason:
        """Take pair steps; a launch is short enough for limits of time."""
        box = part.variables
        if len(part.working_set) > (most := max_variables()):
            raise DeviceError(f"working sets on this GPU have at most {most} variables; use a smaller working_set")
        result = pair_steps(
            part.values,
            (part.gradient, part.dual, part.start),
            DeviceBox(box.lower, box.upper, box.kink, box.group, box.ridge, box.curvature),
            part.middles,
            part.members,
            part.singles,
            part.ridged,
            tolerance,
            min(max_steps, STEPS_PER_CHECK),
            self._report,
        )
        part.middles, part.members = result.middles, result.members
        part.know(result.changed, result.free)
        part.violation = result.violation
        part.totals.iterations += result.steps
        part.totals.dual_value += result.gain
        return StopReason(result.reason)


def device_matrix(matrix: Any, device: int) -> DeviceMatrix:
    """Return the kernel values of a problem on a GPU; raise DeviceError with what works if that is not supported."""
    sample = None
    if isinstance(matrix, RepeatedMatrix):
        matrix, sample = matrix.base, matrix.sample
    if isinstance(matrix, PrecomputedMatrix):
        return CudaValues(matrix, sample)
    if isinstance(matrix, KernelMatrix):
        if not is_supported(matrix.kernel):
            raise DeviceError(
                "a GPU computes the built-in kernels, their sums, products and multiples; use one of them, or "
                "device='cpu'"
            )
        index, points = matrix.points.index if sample is None else matrix.points.index[sample], matrix.points
        return CudaKernelValues(values_of_points(matrix.kernel, points, device), index)
    if isinstance(matrix, ScaledMatrix):
        raise DeviceError(
            "targets, costs, weights and kernel values beyond 1e20 or below 1e-20 are for the CPU; scale them, or use "
            "device='cpu'"
        )
    raise DeviceError(f"a GPU does not compute matrices of type {type(matrix).__name__}; use device='cpu'")


class CudaKernelValues:
    """Kernel values of dense samples, computed when they are needed."""

    def __init__(self, values: KernelValues, index: Indices) -> None:
        self.values, self.index = values, cupy().asarray(index.astype(np.int32))
        self.in_order = np.array_equal(index, np.arange(len(index)))

    def _rows(self, variables: Any) -> Any:
        """Return the rows of samples of some variables."""
        return variables.astype(np.int32, copy=False) if self.in_order else self.index[variables]

    def product_parts(self, columns: Any, weights: Any) -> Any:
        """Return rows whose sum is Σ weights · column for all variables, with values in single precision."""
        return self.values.product_parts(self.index, self._rows(columns), weights)

    def square(self, variables: Any) -> Any:
        """Return the block between some variables in single precision."""
        rows = self._rows(variables)
        return self.values.square(rows, rows)

    def precise_product(self, rows: Any, columns: Any, weights: Any) -> Any:
        """Return Σ weights · column for some variables, in double precision."""
        chosen = self.index if rows is None else self._rows(rows)
        return self.values.precise_product(chosen, self._rows(columns), weights)

    def precise_square(self, variables: Any) -> Any:
        """Return the block between some variables in double precision."""
        rows = self._rows(variables)
        return self.values.precise_square(rows, rows)


class CudaValues:
    """A precomputed kernel matrix in GPU memory."""

    def __init__(self, matrix: PrecomputedMatrix, sample: Indices | None) -> None:
        xp = cupy()
        every = np.arange(matrix.size)
        self.values = xp.asarray(matrix.block(every, every))
        if sample is not None:
            index = xp.asarray(sample)
            self.values = self.values[index[:, None], index]

    def product_parts(self, columns: Any, weights: Any) -> Any:
        """Return Σ weights · column for all variables, as one row."""
        return (self.values[:, columns] @ weights)[None]

    def square(self, variables: Any) -> Any:
        """Return the block between some variables in single precision."""
        return self.values[variables[:, None], variables].astype(np.float32)

    def precise_product(self, rows: Any, columns: Any, weights: Any) -> Any:
        """Return Σ weights · column for some variables, in double precision."""
        return self.values[:, columns] @ weights if rows is None else self.values[rows[:, None], columns] @ weights

    def precise_square(self, variables: Any) -> Any:
        """Return the block between some variables in double precision."""
        return self.values[variables[:, None], variables]
