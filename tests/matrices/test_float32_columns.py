"""Float32 columns: accuracy on all data formats, sharing between class pairs, sparse data stay sparse."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from scipy import sparse

from maxmargin.kernels import ChiSquared, FunctionKernel, Gaussian, Laplacian, Linear, Points, Polynomial, Sigmoid
from maxmargin.kernels.float32_kernel import float32_kernel
from maxmargin.kernels.formula import OuterFunction, Term
from maxmargin.matrices import KernelMatrix, PrecomputedMatrix
from maxmargin.matrices.class_kernel_cache import ClassKernelCache

KERNELS = [
    Gaussian(0.1), Laplacian(0.05), Linear(), Polynomial(3, 0.1, 1.0), Sigmoid(0.05, 0.1), ChiSquared(0.1),
    Gaussian(0.1) + Linear(), FunctionKernel(lambda X, Z: np.asarray(X @ Z.T, dtype=float) + 1.0),
]  # fmt: skip


def samples(kind):
    X = np.abs(np.random.default_rng(0).normal(size=(130, 40)))
    if kind == "dense":
        return X
    X[X < 1.5] = 0.0
    return X if kind == "mostly zeros" else sparse.csr_array(X)


@pytest.mark.parametrize("kind", ["dense", "mostly zeros", "sparse"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
def test_columns_equal_the_matrix(kernel, kind):
    if kind == "sparse" and isinstance(kernel, FunctionKernel):
        kernel = FunctionKernel(lambda X, Z: (X @ Z.T).toarray() + 1.0)
    points = Points(samples(kind)).take(np.arange(5, 125))
    matrix = KernelMatrix(kernel, points, threads=2)
    exact = matrix.block(np.arange(120), np.arange(120))
    columns, rows = np.array([3, 99, 40, 41, 7]), np.array([0, 119, 3])
    float32 = matrix.float32_columns(columns)
    out = np.full((4, 7), np.nan, dtype=np.float32)
    assert float32.fill(rows, out, np.array([2, 0, 3])) == 15
    np.testing.assert_allclose(out[[2, 0, 3], :5], exact[np.ix_(rows, columns)], rtol=2e-5, atol=2e-5)
    assert np.isnan(out[1]).all()
    weights = np.linspace(-1, 1, 5)
    product, computed = float32.combine(rows, weights)
    np.testing.assert_allclose(product, exact[np.ix_(rows, columns)] @ weights, rtol=2e-4, atol=2e-4)
    assert computed == 15
    np.testing.assert_allclose(matrix.matvec(np.ones(120)), exact.sum(axis=1), rtol=1e-12)
    taken = matrix.take(rows)
    np.testing.assert_allclose(taken.block(np.arange(3), np.arange(3)), exact[np.ix_(rows, rows)], rtol=1e-13)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["dense", "mostly zeros", "sparse"])
@pytest.mark.parametrize(
    "kernel", [k for k in KERNELS if not isinstance(k, FunctionKernel)], ids=lambda k: type(k).__name__
)
def test_values_do_not_depend_on_the_batch(kernel, kind, threads):
    matrix = KernelMatrix(kernel, Points(samples(kind)), threads)
    chosen = np.random.default_rng(0).permutation(matrix.size)
    columns, slots = matrix.float32_columns(chosen), np.arange(len(chosen))
    at_once = np.full((len(chosen), len(chosen)), np.nan, dtype=np.float32)
    columns.fill(chosen, at_once, slots)  # samples with themselves: one half is mirrored
    for step in (1, 50, len(chosen) - 1):
        in_batches = np.full((len(chosen), len(chosen) + 3), np.nan, dtype=np.float32)
        for start in range(0, len(chosen), step):
            columns.fill(chosen[start : start + step], in_batches, slots[start : start + step])
        np.testing.assert_array_equal(in_batches[:, : len(chosen)], at_once)
        assert np.isnan(in_batches[:, len(chosen) :]).all()
    np.testing.assert_array_equal(at_once, at_once.T)


def test_precomputed_columns():
    K = np.cov(np.random.default_rng(0).normal(size=(20, 40)))
    matrix = PrecomputedMatrix(K, np.arange(2, 20))
    out = np.empty((1, 3), dtype=np.float32)
    matrix.float32_columns(np.array([0, 5, 6])).fill(np.array([4]), out, np.array([0]))
    np.testing.assert_allclose(out[0], K[6, [2, 7, 8]], rtol=1e-6)
    np.testing.assert_array_equal(matrix.take(np.array([1, 3])).diagonal(), K.diagonal()[[3, 5]])


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Gaussian(50.0), Laplacian(0.5)], ids=["fast", "summed", "absolute"])
def test_data_with_a_large_offset_are_centred(kernel):
    X = np.random.default_rng(0).normal(size=(60, 3))
    matrix = KernelMatrix(kernel, Points(X + 1e6))
    out = np.empty((60, 60), dtype=np.float32)
    matrix.float32_columns(np.arange(60)).fill(np.arange(60), out, np.arange(60))
    np.testing.assert_allclose(out, matrix.block(np.arange(60), np.arange(60)), atol=2e-6)


def data_with_outliers(n_samples: int = 400) -> np.ndarray:
    """Samples near 0, a few at all distances from it, and copies of these, moved a little: pairs of close outliers."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n_samples, 6))
    distant = random.choice(n_samples, n_samples // 20, replace=False)
    X[distant] *= np.geomspace(1.0, 100.0, len(distant))[:, None]
    X[(distant[:-1] + 1) % n_samples] = X[distant[:-1]] + 0.1 * random.normal(size=(len(distant) - 1, 6))
    return X


def test_pairs_of_outliers_are_summed_by_differences():
    matrix = KernelMatrix(Gaussian(0.5), Points(data_with_outliers()))
    every = np.arange(400)
    assert float32_kernel(Gaussian(0.5), matrix.points).formula.function is OuterFunction.GAUSSIAN_OF_PRODUCT
    exact = matrix.block(every, every)
    columns = matrix.float32_columns(every)
    values = np.empty((400, 400), dtype=np.float32)
    columns.fill(every, values, every)
    np.testing.assert_allclose(values, exact, atol=3e-6)
    weights = np.random.default_rng(1).normal(size=400)
    sums, _ = columns.combine(every, weights)
    np.testing.assert_allclose(sums, exact @ weights, atol=3e-5)
    # A value depends on its two samples, a sum on its row and the columns, never on the other rows of a block.
    for step in (1, 7, 50):
        in_parts = np.empty_like(values)
        for start in range(0, 400, step):
            part = every[start : start + step]
            columns.fill(part, in_parts, part)
            np.testing.assert_array_equal(columns.combine(part, weights)[0], sums[part])
        np.testing.assert_array_equal(in_parts, values)


def test_data_of_outliers_are_summed_by_differences():
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[:12] *= 100
    assert float32_kernel(Gaussian(0.5), Points(X)).formula.term is Term.SQUARED


def test_fast_gaussian_is_used_for_moderate_exponents():
    X = np.random.default_rng(0).normal(size=(60, 3))
    assert float32_kernel(Gaussian(0.5), Points(X)).formula.function is OuterFunction.GAUSSIAN_OF_PRODUCT
    assert float32_kernel(Gaussian(500.0), Points(X)).formula.term is Term.SQUARED
    assert float32_kernel(Gaussian(0.5), Points(X * 1e20)) is None
    assert float32_kernel(Polynomial(9), Points(X * 1e5)) is None


def test_sparse_data_stay_sparse(monkeypatch):
    X = sparse.random_array((300, 50_000), density=0.001, format="csr", rng=np.random.default_rng(0))
    for name in ("toarray", "todense"):
        monkeypatch.setattr(sparse.csr_array, name, lambda *_, **__: pytest.fail("converted to dense"))
    matrix = KernelMatrix(Gaussian(1.0), Points(X), threads=2)
    out = np.empty((300, 300), dtype=np.float32)
    matrix.float32_columns(np.arange(300)).fill(np.arange(300), out, np.arange(300))
    np.testing.assert_allclose(out, matrix.block(np.arange(300), np.arange(300)), atol=1e-6)
    np.testing.assert_array_equal(out, out.T)


def test_prepared_kernel_is_memoised():
    points = Points(samples("dense"))
    first = float32_kernel(Gaussian(0.1), points)
    assert float32_kernel(Gaussian(0.1), points.take([1, 2])) is first
    assert float32_kernel(Gaussian(0.2), points) is not first


class TestClassKernelCache:
    @pytest.fixture
    def shared(self):
        points = Points(samples("dense"))
        members = [np.arange(c, 130, 3) for c in range(3)]
        return ClassKernelCache(Gaussian(0.1), points, members, 1), points, members

    def test_pair_matrices_equal_the_kernel(self, shared):
        kernel, points, members = shared
        for a, b in ((0, 1), (0, 2), (1, 2)):
            order = np.concatenate([members[a], members[b]])
            exact = KernelMatrix(Gaussian(0.1), points.take(order)).block(np.arange(len(order)), np.arange(len(order)))
            matrix = kernel.pair(a, b)
            everything = np.arange(matrix.size)
            out = np.empty((matrix.size, matrix.size), dtype=np.float32)
            matrix.float32_columns(everything).fill(everything, out, everything)
            np.testing.assert_allclose(out, exact, atol=2e-6)
            wide, backwards = np.empty((matrix.size, matrix.size + 2), dtype=np.float32), everything[::-1].copy()
            matrix.float32_columns(everything).fill(everything, wide, backwards)
            np.testing.assert_array_equal(wide[backwards, : matrix.size], out)
            columns, rows = np.array([60, 2, 1, 70]), np.array([5, 66, 0])
            some = np.empty((3, 4), dtype=np.float32)
            matrix.float32_columns(columns).fill(rows, some, np.arange(3))
            np.testing.assert_allclose(some, exact[np.ix_(rows, columns)], atol=1e-6)
            weights = np.array([1.0, -2.0, 0.5, 3.0])
            np.testing.assert_allclose(
                matrix.float32_columns(columns).combine(rows, weights)[0], some @ weights, atol=1e-5
            )

    def test_values_within_a_class_are_computed_once(self, shared):
        kernel, _, members = shared
        computed = []
        for a, b in ((0, 1), (0, 2)):
            everything = np.arange(len(members[a]) + len(members[b]))
            out = np.empty((len(everything), len(everything)), dtype=np.float32)
            computed.append(kernel.pair(a, b).float32_columns(everything).fill(everything, out, everything))
        sizes = [len(rows) for rows in members]
        assert computed[0] == sizes[0] ** 2 + sizes[1] ** 2 + sizes[0] * sizes[1]
        assert computed[1] == sizes[2] ** 2 + sizes[0] * sizes[2]

    def test_threads_compute_them_once(self, shared):
        kernel, _, members = shared
        pairs = [(0, 1), (0, 2), (1, 2)] * 4
        together = Barrier(len(pairs))

        def fill(pair):
            together.wait()
            everything = np.arange(sum(len(members[c]) for c in pair))
            out = np.empty((len(everything), len(everything)), dtype=np.float32)
            computed = kernel.pair(*pair).float32_columns(everything).fill(everything, out, everything)
            return computed - len(members[pair[0]]) * len(members[pair[1]]), out

        with ThreadPoolExecutor(len(pairs)) as pool:
            computed, values = zip(*pool.map(fill, pairs), strict=True)
        assert sum(computed) == sum(len(rows) ** 2 for rows in members)
        for one, other in zip(values[:3], values[9:], strict=True):
            np.testing.assert_array_equal(one, other)

    def test_a_small_block_computes_no_whole_rows(self, shared):
        kernel, points, members = shared
        matrix, wanted = kernel.pair(0, 1), np.array([60, 2, 1, 70])
        exact = KernelMatrix(Gaussian(0.1), points.take(np.concatenate(members[:2]))).block(wanted, wanted)
        computed = []
        for before in (np.empty(0, dtype=np.int64), np.array([2, 60])):  # without and with rows of changed variables
            if len(before):
                matrix.float32_columns(before).combine(np.arange(matrix.size), np.ones(len(before)))
            out = np.empty((4, 4), dtype=np.float32)
            computed.append(matrix.float32_columns(wanted).fill(wanted, out, np.arange(4)))
            np.testing.assert_allclose(out, exact, atol=1e-6)
        assert computed == [16, 12]

    def test_it_pays_for_expensive_values_only(self):
        assert ClassKernelCache.pays(Gaussian(0.1), Points(np.ones((4, 200))), 1)
        assert not ClassKernelCache.pays(Gaussian(0.1), Points(np.ones((4, 10))), 1)
        assert not ClassKernelCache.pays(FunctionKernel(np.dot), Points(np.ones((4, 200))), 1)

    def test_a_kernel_without_float32_raises(self):
        with pytest.raises(ValueError, match="cannot be shared"):
            ClassKernelCache(FunctionKernel(np.dot), Points(np.ones((2, 2))), [np.array([0]), np.array([1])], 1)
