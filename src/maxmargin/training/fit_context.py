"""The context of one fit: kernel, solver options, memory for kernel values, threads, limits and observers.

Estimators make one `FitContext` from their validated parameters; everything that trains problems takes it instead of
the estimator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from maxmargin._typing import Indices
from maxmargin.deadline import TimeLimitReachedError
from maxmargin.formulations.formulation import Formulation
from maxmargin.kernels import Kernel, Points
from maxmargin.kernels.device_rows import DeviceRows
from maxmargin.kernels.points import evaluation_cost
from maxmargin.kernels.split_sums import FeatureSums
from maxmargin.matrices import FullKernelMatrix, KernelMatrix, PrecomputedMatrix, SharedCacheMatrix, SymmetricMatrix
from maxmargin.matrices.packed_kernel import PackedKernel
from maxmargin.resources import default_cache_bytes, thread_count
from maxmargin.solvers import BlockSolver, PairwiseSolver, StoppingRule, make_solver
from maxmargin.training.joined_models import JoinedProblem
from maxmargin.training.pipeline import Session, Solver, Subproblem, train_problems
from maxmargin.training.small_problems import SmallProblemTraining
from maxmargin.training.trained_model import TrainedModel

#: Up to this many samples the whole kernel matrix is computed at once: in double precision it takes 32 MB.
MAX_FULL_KERNEL_ROWS = 2048

#: The same for the largest problem on a precomputed matrix, of which only rows of support vectors are read. Pair steps
#: of a batch, at most 10,000 in one native call, then take about 50 ms. Tuned on kernel matrices of mnist and covtype.
MAX_PRECOMPUTED_ROWS = 4096

#: The least memory for kernel values, whatever `cache_size` is: those of 256 samples.
MIN_CACHE_BYTES = 2**19

#: Up to this many variables the pairwise solver in double precision is faster than the block solver.
MAX_PAIRWISE_VARIABLES = 500

#: Pairs of classes compute kernel rows in a batch if an evaluation takes at most this many multiplications, and if they
#: have at most this many variables altogether, 72 bytes each. Wider samples exceed the cache when rows are computed one
#: by one. Tuned on `abalone_28_classes`, `six_classes` and generated classes of 10 to 140 features.
MAX_PACKED_COST, MAX_PACKED_VARIABLES = 100, 2**19

#: Kernel values that each thread of such a batch may store: 64 MB.
STORED_VALUES = 2**23

#: The largest working set on a GPU. Tuned on a9a, covtype and mnist (benchmarks.gpu).
DEVICE_WORKING_SET = 4096

#: Problems at the same time on a GPU: pair steps occupy few multiprocessors each.
PROBLEMS_ON_DEVICE = 8

#: Up to this many samples a second thread costs more than it saves.
MAX_SINGLE_THREAD_ROWS = 1000


@dataclass(frozen=True)
class SolverOptions:
    """The solver parameters of an estimator.

    Attributes
    ----------
    solver : str or Solver
        A name of `maxmargin.solvers.SOLVERS`, "auto", or a solver object, which keeps its own options.
    rule : StoppingRule
        Of solvers by name.
    selection, shrinking
        Options of the pairwise and the block solver.
    auto : str, optional
        The solver that "auto" stands for; by default pairwise or block, by the number of variables.
    """

    solver: str | Solver
    rule: StoppingRule
    selection: str = "second_order"
    shrinking: bool = True
    auto: str | None = None

    @property
    def stopping(self) -> StoppingRule:
        """The stopping rule of the fit."""
        return self.rule if isinstance(self.solver, str) else self.solver.stopping

    @property
    def solves_batches(self) -> bool:
        """Whether small problems may be solved together in one native call, with second-order working sets."""
        return self.solver == "auto" and self.auto is None and self.selection == "second_order"

    def make(self, size: int, bounded: bool, cache_bytes: int, threads: int, max_pairwise: int) -> Solver:
        """Return the solver for problems of up to `size` variables."""
        name = self.solver
        if not isinstance(name, str):
            return name
        if name == "auto" and self.auto is not None:
            name = self.auto
        elif name == "auto":
            # Hard margins and the other working-set rules need the pairwise solver.
            pairwise = size <= max_pairwise or not bounded or self.selection != "second_order"
            name = "pairwise" if pairwise else "block"
        if name == "pairwise":
            return PairwiseSolver(self.selection, self.shrinking, cache_bytes, self.rule)
        if name == "block":
            return BlockSolver(shrinking=self.shrinking, cache_bytes=cache_bytes, stopping=self.rule, threads=threads)
        return cast(Solver, make_solver(name, cache_bytes=cache_bytes, stopping=self.rule, threads=threads))

    def make_for_device(self, device: str, bounded: bool, cache_bytes: int, threads: int) -> Solver:
        """Return the solver of problems on a GPU; raise ValueError if they need another one."""
        if self.solver not in ("auto", "block") or self.auto is not None or self.selection != "second_order":
            raise ValueError(
                f"device={device!r} trains with solver='auto' or 'block' and selection='second_order', not "
                f"solver={self.solver!r}, selection={self.selection!r}; use device='cpu'"
            )
        if not bounded:
            raise ValueError(f"device={device!r} needs a finite C; a hard margin (C=inf) is trained with device='cpu'")
        return BlockSolver(DEVICE_WORKING_SET, self.shrinking, cache_bytes, self.rule, threads, backend=device)


@dataclass(frozen=True)
class FitContext:
    """Everything that training needs besides the data and the formulation.

    Attributes
    ----------
    kernel : Kernel or None
        None if the data are a precomputed kernel matrix.
    options : SolverOptions
    cache_budget : int or None
        Bytes for kernel values; None chooses by the number of samples and the available memory.
    n_jobs : int or None
        As in scikit-learn.
    session : Session
        Limits and observers.
    device : str
        ``"cpu"``, or the GPU that trains the problems.
    problems_on_device : int
        The most problems at the same time on a GPU, of which other fits may train some, too.
    """

    kernel: Kernel | None
    options: SolverOptions
    cache_budget: int | None
    n_jobs: int | None
    session: Session
    device: str = "cpu"
    problems_on_device: int = PROBLEMS_ON_DEVICE

    @property
    def on_cpu(self) -> bool:
        """Whether kernel values are computed by the CPU."""
        return self.device == "cpu"

    def cache_bytes(self, size: int) -> int:
        """Return the memory for kernel values of a fit with `size` samples."""
        if self.cache_budget is not None:
            return max(self.cache_budget, MIN_CACHE_BYTES)
        return 8 * size**2 if size <= MAX_FULL_KERNEL_ROWS else default_cache_bytes()

    @property
    def matrix_bytes(self) -> int:
        """The memory for the matrices of several kernels."""
        return default_cache_bytes() if self.cache_budget is None else max(self.cache_budget, MIN_CACHE_BYTES)

    def divide_threads(self, X: Any, problems: int) -> tuple[int, int]:
        """Return how many problems on these samples are trained at the same time, and the threads of each."""
        size = X.shape[0]
        threads = thread_count(1 if self.n_jobs is None and size <= MAX_SINGLE_THREAD_ROWS else self.n_jobs)
        if size <= MAX_SINGLE_THREAD_ROWS or not self.thread_safe:
            return 1, 1
        workers = min(threads, problems)
        if not self.on_cpu and threads > 1 and problems > 1:  # threads that wait for the GPU
            workers = min(self._most_on_device(X), problems)
        return workers, max(1, threads // workers)

    def _most_on_device(self, X: Any) -> int:
        """Return the most problems at a time: one where samples are copied in blocks, which divide the free memory."""
        from maxmargin.cuda.device import cupy, open_device
        from maxmargin.cuda.samples import fits_on_device

        number = open_device(self.device)
        with cupy().cuda.Device(number):
            return self.problems_on_device if fits_on_device(Points.wrap(X), number) else 1

    @property
    def thread_safe(self) -> bool:
        """Whether kernel values may be computed by several threads: a user's function is called by one at a time."""
        return self.kernel is None or self.kernel.vectorised

    def solver(
        self, size: int, bounded: bool, cache_bytes: int, threads: int, max_pairwise: int = MAX_PAIRWISE_VARIABLES
    ) -> Solver:
        """Return the solver for problems of up to `size` variables."""
        if not self.on_cpu:
            return self.options.make_for_device(self.device, bounded, cache_bytes, threads)
        return self.options.make(size, bounded, cache_bytes, threads, max_pairwise)

    def kernel_matrices(
        self, X: Any, order: Indices, cache_bytes: int, threads: int, readers: int = 1
    ) -> FullKernelMatrix | Callable[[Indices], SymmetricMatrix]:
        """Return the full kernel matrix of few samples, else a function from training rows to their kernel matrix.

        Rows that are read together should be neighbours in `order`. A user's function is only called for the values
        that are needed, unless several `readers` would each call it.
        """
        kernel = self.kernel
        if kernel is None:
            return lambda rows: PrecomputedMatrix(X, rows)
        points = Points.wrap(X)
        kernel.check(points)
        if (
            self.on_cpu
            and (kernel.vectorised or readers > 1)
            and len(points) <= MAX_FULL_KERNEL_ROWS
            and 8 * len(points) ** 2 <= cache_bytes
        ):
            _, full_threads = self.divide_threads(X, 1)
            try:
                with self.session.deadline.in_force():
                    return FullKernelMatrix.of(kernel, points, order, full_threads)
            except TimeLimitReachedError:
                pass  # solvers end at once, without these values
        device, sums = self._certificate_products(points, threads)
        return lambda rows: KernelMatrix(kernel, points.take(rows), threads, device, sums)

    def _certificate_products(self, points: Points, threads: int) -> tuple[str, FeatureSums]:
        """Return the device and the arithmetic of products with the kernel matrix, by which solutions are verified."""
        if self.on_cpu or self.kernel is None:
            return self.device, FeatureSums.DOUBLE
        from maxmargin.cuda.device import open_device
        from maxmargin.cuda.product_costs import quickest_products

        rule = self.options.stopping
        tolerance = rule.violation if rule.gap is None else 0.0
        in_host_memory = not isinstance(points.table, DeviceRows)
        width = int(points.table.shape[1])
        number = open_device(self.device)
        sums = quickest_products(number, self.kernel, width, threads, in_host_memory, tolerance)
        return ("cpu", FeatureSums.DOUBLE) if sums is None else (self.device, sums)

    def shared_matrix(
        self, X: Any, rows: Indices, solver: Solver, problems: int, workers: int, threads: int
    ) -> tuple[Solver, SymmetricMatrix]:
        """Return a solver and the matrix of some rows for several problems, whose values are computed once for all.

        One half of the memory is for rows that all problems share, the rest for the working sets of each.
        """
        cache_bytes = self.cache_bytes(X.shape[0])
        matrix = self.kernel_matrices(X, rows, cache_bytes, threads, problems)(rows)
        if (
            problems == 1
            or not self.on_cpu
            or not isinstance(matrix, KernelMatrix)
            or not isinstance(solver, BlockSolver)
        ):
            return solver, matrix
        shared = SharedCacheMatrix(matrix, cache_bytes // 2, threads)
        if solver is self.options.solver:  # a solver object keeps its options
            return solver, shared
        return replace(solver, cache_bytes=(cache_bytes - shared.bytes) // workers), shared

    def packed_kernel(self, X: Any, members: Sequence[Indices], threads: int) -> PackedKernel | None:
        """Return the kernel of pairs of classes whose rows are computed in a batch; None if that does not pay."""
        points = Points.wrap(X)
        variables = sum(map(len, members)) * (len(members) - 1)
        if (
            self.kernel is None
            or not self.on_cpu
            or not self.options.solves_batches
            or evaluation_cost(points) > MAX_PACKED_COST
            or variables > MAX_PACKED_VARIABLES
            or self.cache_bytes(len(points)) < 8 * STORED_VALUES
        ):
            return None
        return PackedKernel.of(self.kernel, points, members, STORED_VALUES, threads)

    def small_training(
        self,
        subproblems: Sequence[Subproblem],
        solver: Solver,
        formulation: Formulation,
        workers: int,
        kernel: PackedKernel | None = None,
        joined: JoinedProblem | None = None,
    ) -> SmallProblemTraining | None:
        """Return the training of small problems in a batch, None if that is not possible.

        `joined` is all of them as one problem, if they can be posed so.
        """
        if not self.options.solves_batches or not self.on_cpu:
            return None
        if kernel is not None:
            workers = min(workers, self.cache_bytes(len(kernel.data)) // (8 * STORED_VALUES))
        else:
            most = MAX_PRECOMPUTED_ROWS if self.kernel is None else MAX_FULL_KERNEL_ROWS
            if max([len(one.samples) for one in subproblems] if joined is None else joined.sizes) > most:
                return None
        if joined is not None:
            small = SmallProblemTraining.of_joined(
                joined, subproblems, formulation, solver, workers, self.session, kernel
            )
            if small is not None:
                return small
        return SmallProblemTraining.of(subproblems, formulation, solver, workers, self.session, kernel)

    def train(
        self, subproblems: Sequence[Subproblem], solver: Solver, formulation: Formulation, workers: int = 1
    ) -> Sequence[TrainedModel]:
        """Return the trained model of each problem: small ones in a batch, others one by one, some at the same time."""
        small = self.small_training(subproblems, solver, formulation, workers)
        if small is not None:
            return small.train()
        return train_problems(subproblems, solver, formulation, self.session, workers)
