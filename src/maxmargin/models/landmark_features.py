"""Nyström features: explicit features whose inner products approximate a kernel.

With landmarks z_1 … z_B and the matrix K_ZZ = A Aᵀ of their kernel values,

    φ(x) = A⁺ k_Z(x),   k_Z(x) = (k(z_1, x), …, k(z_B, x)),   φ(x)·φ(x') = k_Z(x)ᵀ K_ZZ⁺ k_Z(x') ≈ k(x, x')

(Williams & Seeger 2001): φ(x) is the projection of Φ(x) on the span of the landmarks, so the residual k(x, x) − ‖φ(x)‖²
is at least 0 for a positive semi-definite kernel, and 0 at the landmarks. A is the Cholesky factor; if the landmarks
are nearly linearly dependent, it consists of the eigenvectors with eigenvalues above rounding, and there are fewer
features than landmarks. Negative eigenvalues of an indefinite kernel are dropped with the small ones.

A linear function of the features is a kernel expansion, w·φ(x) = Σ_j a_j k(z_j, x) with a = A⁺ᵀ w: see `expand`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from maxmargin._typing import Floats
from maxmargin.deadline import require_seconds
from maxmargin.kernels.float32_kernel import MAX_FLOAT32_ENTRY, float32_kernel
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.kernel_columns import KernelColumns, batches
from maxmargin.kernels.native_kernel import NativeKernel
from maxmargin.kernels.points import Points
from maxmargin.kernels.radial import RadialKernel
from maxmargin.matrices.numerics import NON_FINITE_KERNEL_MESSAGE, check_finite
from maxmargin.resources import blas_thread_limit

if TYPE_CHECKING:
    from maxmargin.cuda.landmarks import DeviceLandmarks

#: Smallest eigenvalue that is kept, relative to the largest. A rounding error ε of kernel values becomes about
#: ε / √eigenvalue in a feature; with these values the objective of a model in float32 has four correct digits.
EIGENVALUE_CUTOFF = {np.dtype(np.float32): 1e-9, np.dtype(np.float64): 1e-13}

#: Float32 is used if the largest kernel value is above this: smaller values would underflow.
MIN_FLOAT32_VALUE = 1e-25

#: Values of radial kernels, and relative values of the factor, below this are set to 0: their products would be
#: subnormal numbers, which make products a hundred times slower.
UNDERFLOW_CUTOFF = 1e-18

#: Seconds of a Cholesky factorisation with its inverse and of the eigenvectors, divided by the cube of the size. SciPy
#: cannot be interrupted in them, so they are not begun if a time limit would pass.
CHOLESKY_SECONDS, EIGENVECTOR_SECONDS = 3e-11, 4e-10

#: Maximum size of a block of kernel values that are not transformed to features in place, in bytes.
BLOCK_BYTES = 2**24


@dataclass(frozen=True, eq=False)
class LandmarkFeatures:
    """Features whose inner products approximate a kernel.

    Parameters
    ----------
    kernel : Kernel
    landmarks : Points
    factor : float array of shape (landmarks, rank)
        A⁺ᵀ, in float32 where that is accurate enough; the features have the same precision.
    threads : int
        Number of threads; the features depend on it by rounding at most.
    device : str
        ``"cpu"``, or the GPU that computes the features.
    """

    kernel: Kernel
    landmarks: Points
    factor: NDArray[Any]
    threads: int = 1
    device: str = "cpu"

    @classmethod
    def of(cls, kernel: Kernel, landmarks: Points, threads: int = 1, device: str = "cpu") -> LandmarkFeatures:
        """Return the features of some landmarks: one per landmark, or fewer if these are linearly dependent."""
        kernel.check(landmarks)
        values = _evaluate(kernel, landmarks, landmarks, threads)
        with np.errstate(over="ignore", invalid="ignore"):  # rows are added up
            check_finite(2.0 * len(values) * values, NON_FINITE_KERNEL_MESSAGE)
        single = float32_kernel(kernel, landmarks, threads) is not None and np.abs(values).max() > MIN_FLOAT32_VALUE
        precision = np.dtype(np.float32 if single else np.float64)
        require_seconds(CHOLESKY_SECONDS * len(landmarks) ** 3)
        with blas_thread_limit(threads):
            factor = _inverse_cholesky(values, EIGENVALUE_CUTOFF[precision])
            if factor is None:
                require_seconds(EIGENVECTOR_SECONDS * len(landmarks) ** 3)
                factor = inverse_root(values, EIGENVALUE_CUTOFF[precision])
        factor[np.abs(factor) < UNDERFLOW_CUTOFF * np.abs(factor).max()] = 0.0
        return cls(kernel, landmarks, np.ascontiguousarray(factor, dtype=precision), threads, device)

    @property
    def rank(self) -> int:
        """The number of features."""
        return int(self.factor.shape[1])

    def __call__(self, points: Points) -> NDArray[Any]:
        """Return φ(x) for every sample, computed in blocks of bounded size."""
        self.kernel.check(points)
        out = np.empty((len(points), self.rank), dtype=self.factor.dtype)
        for _ in self.fill(points, out):
            pass
        return out

    def fill(self, points: Points, out: NDArray[Any]) -> Iterator[int]:
        """Write φ(x) of all samples to `out` in batches; yield the number of finished samples after each."""
        for rows in self._batches(points):
            with blas_thread_limit(self.threads):
                self._fill(points.take(rows), out[rows])
            yield rows.stop

    def residual(self, points: Points) -> Floats:
        """Return k(x, x) − ‖φ(x)‖² for every sample: the squared distance of Φ(x) from the span of the landmarks."""
        features = self(points).astype(np.float64)
        residual: Floats = self.kernel.diagonal(points) - np.einsum("ij,ij->i", features, features)
        return residual

    def expand(self, weights: NDArray[Any]) -> Floats:
        """Return a with w·φ(x) = Σ_j a_j k(z_j, x), for a weight vector or several in rows."""
        coefficients: Floats = weights.astype(np.float64) @ self.factor.T.astype(np.float64)
        return coefficients

    def _batches(self, points: Points) -> list[slice]:
        if self._on_device is not None:
            max_rows = self._on_device.rows_per_block
        else:
            max_rows = max(1, BLOCK_BYTES // (self.factor.itemsize * len(self.landmarks)))
        return [
            slice(start, min(part.stop, start + max_rows))
            for part in batches(points)
            for start in range(part.start, part.stop, max_rows)
        ]

    def _fill(self, rows: Points, out: NDArray[Any]) -> None:
        if self._on_device is not None:
            self._on_device.fill(rows, out, self._least_value)
        elif not self._triangular:
            block = np.empty((len(rows), len(self.landmarks)), dtype=out.dtype)
            self._evaluate(rows, block)
            np.matmul(block, self.factor, out=out)
        else:  # in place, with half the multiplications
            self._evaluate(rows, out)
            (multiply,) = linalg.get_blas_funcs(("trmm",), dtype=out.dtype)
            product = multiply(1.0, self.factor.T, out.T, lower=1, overwrite_b=1).T
            assert np.shares_memory(product, out)
        check_finite(out, NON_FINITE_KERNEL_MESSAGE)

    def _evaluate(self, rows: Points, out: NDArray[Any]) -> None:
        """Write the kernel values of some samples and all landmarks."""
        if self._columns is not None and _largest_entry(rows) < MAX_FLOAT32_ENTRY:
            self._columns.fill(rows, out, np.arange(len(rows)))
            if out.min() < self._least_value:
                out[out < self._least_value] = 0.0
            return
        with np.errstate(over="ignore"):  # values that overflow float32 become infinite and are reported
            out[:] = _evaluate(self.kernel, rows, self.landmarks, self.threads)

    @property
    def _least_value(self) -> float:
        """Kernel values below this count as 0."""
        return UNDERFLOW_CUTOFF if isinstance(self.kernel, RadialKernel) else -np.inf

    @cached_property
    def _on_device(self) -> DeviceLandmarks | None:
        if self.device == "cpu":
            return None
        from maxmargin.cuda.landmarks import DeviceLandmarks

        return DeviceLandmarks(self.kernel, self.landmarks, self.factor, self.device)

    @cached_property
    def _triangular(self) -> bool:
        return self.rank == len(self.landmarks) and not np.tril(self.factor, -1).any()

    @cached_property
    def _columns(self) -> KernelColumns | None:
        """The landmarks, packed in float32.

        The form of the kernel depends on the landmarks alone: the fast form of the Gaussian is accurate for samples
        near them, and the kernel value of a distant sample is almost 0 in any form.
        """
        if self.factor.dtype != np.float32:
            return None
        kernel = float32_kernel(self.kernel, self.landmarks, self.threads)
        return None if kernel is None else kernel.columns(self.landmarks.index, self.threads)


def _inverse_cholesky(values: Floats, cutoff: float) -> Floats | None:
    """Return L⁻ᵀ with values = L Lᵀ, or None if the reciprocal condition number is below `cutoff`."""
    lower, failed = linalg.lapack.dpotrf(values, lower=1)
    if failed:
        return None
    size = np.abs(values).sum(axis=0).max()
    condition, _ = linalg.lapack.dpocon(lower, size, uplo="L")
    if condition < cutoff:
        return None
    inverse, failed = linalg.lapack.dtrtri(lower, lower=1)
    return None if failed else np.tril(inverse).T


def inverse_root(values: Floats, cutoff: float) -> Floats:
    """Return U Λ^−½ of the eigenvalues above `cutoff` times the largest."""
    eigenvalues, vectors = linalg.eigh(0.5 * (values + values.T), driver="evd")
    kept = eigenvalues > cutoff * np.abs(eigenvalues).max()
    if not kept.any():
        raise ValueError(
            "the kernel matrix of the landmarks has no positive eigenvalue, so there are no features; choose other "
            "landmarks or another kernel"
        )
    # The largest eigenvalues first: the leading features carry most of the kernel.
    root: Floats = (vectors[:, kept] / np.sqrt(eigenvalues[kept]))[:, ::-1]
    # An eigenvector has two signs, and rounding would decide: its largest entry is positive.
    root *= np.sign(root[np.abs(root).argmax(axis=0), np.arange(root.shape[1])])
    return root


def _evaluate(kernel: Kernel, left: Points, right: Points, threads: int) -> Floats:
    if isinstance(kernel, NativeKernel):
        return kernel.evaluate(left, right, threads)
    return kernel.evaluate(left, right)


def _largest_entry(points: Points) -> float:
    values = points.values()
    stored = values.data if sparse.issparse(values) else values
    return float(max(stored.max(), -stored.min())) if stored.size else 0.0
