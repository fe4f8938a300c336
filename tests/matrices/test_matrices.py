import numpy as np
import pytest
from scipy import sparse

from contracts.matrix_contract import MatrixContract
from maxmargin.formulations import data_description
from maxmargin.kernels import FunctionKernel, Gaussian, Linear, Points
from maxmargin.matrices import (
    BiasAugmentedMatrix,
    CachedMatrix,
    DifferenceMatrix,
    Float32RowCache,
    FullKernelMatrix,
    KernelMatrix,
    MulticlassMatrix,
    PrecomputedMatrix,
    RepeatedMatrix,
    make_row_cache,
)
from maxmargin.matrices.centred_matrix import CentredMatrix, centred
from maxmargin.matrices.combined_matrix import BaseMatrices, CombinedMatrix
from maxmargin.matrices.float32_matrix import Float32Matrix
from maxmargin.matrices.lazy_row_cache import LazyRowCache
from maxmargin.matrices.numerics import check_finite, inner
from maxmargin.matrices.scaled_matrix import ScaledMatrix
from maxmargin.matrices.signed_matrix import SignedMatrix


def samples(n=12):
    return np.random.default_rng(1).random((n, 3))


class TestKernelMatrix(MatrixContract):
    def make(self):
        X = samples()
        return KernelMatrix(Gaussian(0.5), Points(X)), Gaussian(0.5)(X)


class TestPrecomputedMatrix(MatrixContract):
    def make(self):
        K = Gaussian(0.5)(samples())
        return PrecomputedMatrix(K), K


class TestPrecomputedSubset(MatrixContract):
    def make(self):
        K, index = Gaussian(0.5)(samples(20)), np.array([3, 17, 0, 9, 5, 12, 11, 19])
        return PrecomputedMatrix(K, index), K[np.ix_(index, index)]


class TestPrecomputedFortranFloat32(MatrixContract):
    def make(self):
        K = np.asfortranarray(Gaussian(0.5)(samples()), dtype=np.float32)
        return PrecomputedMatrix(K), K.astype(float)


class TestCombinedMatrix(MatrixContract):
    def make(self):
        X = samples()
        parts = [
            KernelMatrix(Gaussian(0.5), Points(X)),
            PrecomputedMatrix(Linear()(X)),
            KernelMatrix(Linear(), Points(X)),
        ]
        return CombinedMatrix(parts, np.array([0.25, 2.0, 0.0])), 0.25 * Gaussian(0.5)(X) + 2.0 * Linear()(X)


@pytest.mark.parametrize("rows_of_memory", [0, 2, 3, 100])
def test_base_matrices_give_the_same_values_in_any_memory(rows_of_memory):
    X = samples(20)
    kernels, points = [Gaussian(0.5), Linear(), Gaussian(2.0)], Points(X)
    base = BaseMatrices([KernelMatrix(kernel, points) for kernel in kernels], rows_of_memory * 8 * 20**2)
    rows, vector = np.array([3, 17, 0]), np.array([1.0, -2.0, 0.5])
    for weights in ([0.2, 0.3, 0.5], [0.0, 0.0, 1.0], [0.5, 0.5, 0.0]):
        expected = sum(weight * kernel(X) for weight, kernel in zip(weights, kernels, strict=True))
        matrix = base.combined(np.array(weights))
        np.testing.assert_allclose(matrix.block(np.arange(20), np.arange(20)), expected, rtol=1e-14)
        np.testing.assert_allclose(matrix.uncached().matvec(np.ones(20)), expected.sum(axis=1), rtol=1e-12)
        for m, kernel in enumerate(kernels):
            product = kernel(X[rows]) @ vector
            np.testing.assert_allclose(base.product(m, rows, vector), product, rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(base.part(m, rows).matvec(vector), product, rtol=1e-12, atol=1e-13)


class TestFloat32Matrix(MatrixContract):
    def make(self):
        matrix = KernelMatrix(Gaussian(0.5), Points(samples(20)))
        table = Float32Matrix.of(matrix, np.array([3, 17, 0, 9, 5, 12, 11, 19]), threads=1)
        return table, table.values.astype(float)

    def test_values_equal_the_matrix(self):
        X, some = samples(20), np.array([3, 17, 0, 9])
        table = Float32Matrix.of(KernelMatrix(Gaussian(0.5), Points(X)), some, threads=1)
        np.testing.assert_allclose(table.values, Gaussian(0.5)(X[some]), rtol=1e-6)


class TestRepeatedMatrix(MatrixContract):
    def make(self):
        X, of = samples(8), np.array([0, 3, 5, 3, 7, 1, 0, 3, 2])
        return RepeatedMatrix(KernelMatrix(Gaussian(0.5), Points(X)), of), Gaussian(0.5)(X)[np.ix_(of, of)]


@pytest.mark.parametrize("columns", [np.arange(12), np.array([7, 0, 5, 3, 8, 10]), np.array([1, 7, 4])])
def test_repeated_columns_are_computed_or_copied(columns):
    """Few repeated columns, many, and all: of a working set, of two sides of one sample, and of all variables."""
    X, of = samples(6), np.tile(np.arange(6), 2)
    matrix, expected = RepeatedMatrix(KernelMatrix(Gaussian(0.5), Points(X)), of), Gaussian(0.5)(X)[np.ix_(of, of)]
    rows, out = np.array([9, 3, 0, 6, 11]), np.full((7, len(columns)), np.nan, dtype=np.float32)
    part, weights = matrix.float32_columns(columns), np.linspace(-1.0, 2.0, len(columns))
    part.fill(rows, out, np.array([6, 0, 2, 5, 3]))
    np.testing.assert_allclose(out[[6, 0, 2, 5, 3]], expected[np.ix_(rows, columns)], rtol=1e-6)
    np.testing.assert_allclose(part.combine(rows, weights)[0], expected[np.ix_(rows, columns)] @ weights, rtol=1e-5)


class TestRepeatedPrecomputed(MatrixContract):
    def make(self):
        K, of = Gaussian(0.5)(samples(6)), np.tile(np.arange(6), 2)
        return RepeatedMatrix(PrecomputedMatrix(K), of), K[np.ix_(of, of)]


class TestSignedMatrix(MatrixContract):
    def make(self):
        X, of, signs = samples(6), np.tile(np.arange(6), 2), np.where(np.arange(12) % 3 == 0, -1.0, 1.0)
        base = RepeatedMatrix(KernelMatrix(Gaussian(0.5), Points(X)), of)
        return SignedMatrix(base, signs), Gaussian(0.5)(X)[np.ix_(of, of)] * np.outer(signs, signs)


class TestSignedPrecomputed(MatrixContract):
    def make(self):
        K, signs = Gaussian(0.5)(samples(9)), np.where(np.arange(9) % 2, -1.0, 1.0)
        return SignedMatrix(PrecomputedMatrix(K), signs), K * np.outer(signs, signs)


class TestScaledMatrix(MatrixContract):
    def make(self):
        X = samples()
        return ScaledMatrix(KernelMatrix(Gaussian(0.5), Points(X)), 4), Gaussian(0.5)(X) / 16.0


class TestScaledPrecomputed(MatrixContract):
    def make(self):
        K = Gaussian(0.5)(samples())
        return ScaledMatrix(PrecomputedMatrix(2.0**900 * K), 900), K


class TestScaledLinear(MatrixContract):
    def make(self):
        X = samples()
        return ScaledMatrix(KernelMatrix(Linear(), Points(2.0**-500 * X)), -1000), Linear()(X)

    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
    def test_features_are_scaled_by_the_root(self, form):
        X = samples()
        matrix = ScaledMatrix(BiasAugmentedMatrix(KernelMatrix(Linear(), Points(form(X))), 4.0), 6)
        rows, weights = matrix.features(), np.arange(1.0, X.shape[1] + 2)
        expected = np.column_stack([X, np.full(len(X), 2.0)]) @ weights / 8
        np.testing.assert_allclose(rows.decisions(weights), expected, rtol=1e-14)
        np.testing.assert_array_equal(X, samples())


class TestCentredMatrix(MatrixContract):
    def make(self):
        X, shift = samples(), np.linspace(-0.3, 0.5, 12)
        return CentredMatrix(KernelMatrix(Gaussian(0.5), Points(X)), shift), Gaussian(0.5)(X) - np.add.outer(
            shift, shift
        )


@pytest.mark.parametrize("stored", [True, False])
def test_centred_values_are_inner_products_around_the_mean(stored):
    X, shares = samples(9), np.repeat([0.25, 0.0], [4, 5])
    base = PrecomputedMatrix(Linear()(X)) if stored else KernelMatrix(Linear(), Points(X))
    around = X - shares @ X
    np.testing.assert_allclose(centred(base, shares).rows(np.arange(9)), around @ around.T, atol=1e-14)


class TestBiasAugmentedMatrix(MatrixContract):
    def make(self):
        X = samples()
        return BiasAugmentedMatrix(KernelMatrix(Gaussian(0.5), Points(X)), 2.0), Gaussian(0.5)(X) + 2.0


class TestBiasAugmentedPrecomputed(MatrixContract):
    def make(self):
        K = Gaussian(0.5)(samples())
        return BiasAugmentedMatrix(PrecomputedMatrix(K)), K + 1.0


class TestMulticlassMatrix(MatrixContract):
    def make(self):
        X = samples(5)
        return MulticlassMatrix.for_classes(KernelMatrix(Gaussian(0.5), Points(X)), 3), np.kron(
            Gaussian(0.5)(X), np.eye(3)
        )


class TestMulticlassMatrixOfSomeVariables(MatrixContract):
    def make(self):
        X, of, kind = samples(6), np.array([4, 0, 4, 2, 5, 5, 4, 1]), np.array([0, 2, 2, 0, 0, 2, 0, 1])
        dense = Gaussian(0.5)(X)[np.ix_(of, of)] * (kind[:, None] == kind)
        return MulticlassMatrix(BiasAugmentedMatrix(KernelMatrix(Gaussian(0.5), Points(X)), 0.0), of, kind), dense


def differences(K, first, second):
    across = K[first] - K[second]
    return across[:, first] - across[:, second]


class TestDifferenceMatrix(MatrixContract):
    first, second = np.array([0, 3, 5, 3, 7, 1, 0, 3, 2]), np.array([1, 5, 3, 3, 0, 0, 1, 6, 4])

    def make(self):
        X = samples(8)
        base = KernelMatrix(Gaussian(0.5), Points(X))
        return DifferenceMatrix(base, self.first, self.second), differences(Gaussian(0.5)(X), self.first, self.second)


class TestDifferencesOfPrecomputed(TestDifferenceMatrix):
    def make(self):
        K = Gaussian(0.5)(samples(8))
        return DifferenceMatrix(PrecomputedMatrix(K), self.first, self.second), differences(K, self.first, self.second)


def test_difference_matrix_in_small_tables(monkeypatch):
    monkeypatch.setattr("maxmargin.matrices.difference_matrix.TABLE_BYTES", 16 * 20 * 3)  # three rows at a time
    X, (first, second) = samples(20), np.triu_indices(20, 1)
    matrix = DifferenceMatrix(KernelMatrix(Gaussian(0.5), Points(X)), first, second)
    dense = differences(Gaussian(0.5)(X), first, second)
    everything = np.arange(len(first))
    np.testing.assert_array_equal(matrix.block(everything, everything), dense)
    np.testing.assert_array_equal(matrix.diagonal(), np.diag(dense))
    out = np.zeros((len(first), len(first)), dtype=np.float32)
    matrix.float32_columns(everything).fill(everything, out, everything)
    np.testing.assert_allclose(out, dense, atol=1e-6)
    np.testing.assert_allclose(matrix.sample_coefficients(np.ones(len(first))), 19.0 - 2.0 * np.arange(20))
    assert matrix.cost < 2 * KernelMatrix(Gaussian(0.5), Points(X)).cost  # two rows of samples serve all pairs


class TestCachedMatrix(MatrixContract):
    budget = 10**6

    def make(self):
        X = samples()
        return CachedMatrix(KernelMatrix(Gaussian(0.5), Points(X)), self.budget), Gaussian(0.5)(X)


class TestCacheOfTwoRows(TestCachedMatrix):
    budget = 1


class TestReorderedCache(MatrixContract):
    def make(self):
        X = samples()
        cached = CachedMatrix(KernelMatrix(Gaussian(0.5), Points(X)), 5 * 8 * 12)
        order = np.random.default_rng(0).permutation(12)
        cached.rows(np.arange(4))
        cached.reorder(order)
        return cached, Gaussian(0.5)(X)[np.ix_(order, order)]


class TestReorderedCacheOfMatrixInMemory(MatrixContract):
    def make(self):
        K = Gaussian(0.5)(samples())
        cached = CachedMatrix(PrecomputedMatrix(K), 10**6)
        order = np.random.default_rng(0).permutation(12)
        cached.reorder(order)
        return cached, K[np.ix_(order, order)]


def test_values_in_memory_are_not_modified():
    K = Gaussian(0.5)(samples())
    before = K.copy()
    CachedMatrix(PrecomputedMatrix(K), 10**6).reorder(np.arange(12)[::-1])
    np.testing.assert_array_equal(K, before)


def test_least_recently_used_row_is_evicted():
    cached = CachedMatrix(KernelMatrix(FunctionKernel(Gaussian(0.5)), Points(samples())), 3 * 8 * 12)
    for position in (0, 1, 2, 0, 3):
        cached.rows(np.array([position]))
    assert {p for p in range(12) if cached.slot[p] >= 0} == {0, 2, 3}
    assert (cached.misses, cached.hits) == (4, 1)
    assert cached.evaluations == 4 * 12


def test_partial_rows_are_extended_and_reordered():
    X = samples()
    K = Gaussian(0.5)(X)
    cached = CachedMatrix(KernelMatrix(FunctionKernel(Gaussian(0.5)), Points(X)), 10**6)
    cached.ensure(2, 5)
    assert cached.evaluations == 5
    cached.ensure(2, 8)
    assert cached.evaluations == 8
    # Positions 1 and 6 are exchanged: the row of 2 has eight values and keeps them all.
    permutation = np.arange(8)
    permutation[[1, 6]] = [6, 1]
    cached.reorder(permutation)
    slot = cached.slot[2]
    assert cached.length[slot] == 8
    np.testing.assert_array_equal(cached.storage[slot, :8], K[2, permutation])
    # Position 9, whose value is unknown, moves to position 3: only the values before it stay valid.
    permutation = np.array([0, 1, 2, 9, 4, 5, 6, 7, 8, 3])
    cached.reorder(permutation)
    assert cached.length[cached.slot[2]] == 3
    cached.ensure(2, 12)
    np.testing.assert_array_equal(cached.storage[cached.slot[2]], K[2][cached.order])


def test_a_function_kernel_computes_few_rows_per_call():
    calls = []

    def kernel(X, Z):
        calls.append((len(X), len(Z)))
        return Gaussian(0.5)(X, Z)

    cached = CachedMatrix(KernelMatrix(FunctionKernel(kernel), Points(samples())), 10**6)
    cached.fetch(3, 12, likely=np.arange(12))
    assert calls == [(3, 12)]
    cached.fetch(9, 12)
    assert calls[1:] == [(1, 12)]


def test_non_finite_values_raise():
    matrix = KernelMatrix(FunctionKernel(lambda X, Z: np.full((len(X), len(Z)), np.nan)), Points(samples()))
    with pytest.raises(ValueError, match="not finite"):
        CachedMatrix(matrix, 10**6).rows(np.array([0]))


def test_precomputed_must_be_square():
    with pytest.raises(ValueError, match="must be square.*3 x 4"):
        PrecomputedMatrix(np.ones((3, 4)))


@pytest.mark.parametrize("budget", [0, 2 * 4 * 8, 10**6])
def test_multiclass_row_cache_caches_rows_of_the_base(budget):
    X = np.random.default_rng(2).random((8, 200))
    matrix = MulticlassMatrix.for_classes(KernelMatrix(Gaussian(0.1), Points(X)), 3)
    dense = np.kron(Gaussian(0.1)(X), np.eye(3))
    store = make_row_cache(matrix, budget, 1)
    assert store.capacity == 0
    rows, weights = np.array([4, 0, 23, 5, 22]), np.array([1.0, 2.0, -1.0, 0.5, -3.0])
    for _ in range(2):
        np.testing.assert_allclose(store.combine(rows, weights), weights @ dense[rows], rtol=1e-5, atol=1e-6)
        out = np.empty((5, 5), dtype=np.float32)
        store.square(store.cached_last(rows), out)
        np.testing.assert_allclose(out, dense[np.ix_(rows, rows)], rtol=1e-6)
    if budget == 10**6:
        assert store.evaluations == 3 * 8  # one row per sample, independent of the class
    assert type(make_row_cache(matrix.base, budget, 1)) is Float32RowCache


class TestLazyRowCache:
    @pytest.mark.parametrize("budget", [0, 8 * 12 * 12 - 1, 8 * 12 * 12])
    @pytest.mark.parametrize("nonzeros", [0, 2, 7, 12])
    def test_rows_and_products(self, budget, nonzeros):
        X = samples()
        K, cache = Gaussian(0.5)(X), LazyRowCache(KernelMatrix(Gaussian(0.5), Points(X)), budget)
        vector = np.zeros(12)
        vector[np.random.default_rng(0).permutation(12)[:nonzeros]] = np.linspace(1.0, 2.0, nonzeros)
        for _ in range(2):
            np.testing.assert_allclose(cache.product(vector), K @ vector, atol=1e-12)
            np.testing.assert_array_equal(cache.rows(np.array([5, 2])), K[[5, 2]])
        needed = len({5, 2} | set(np.flatnonzero(vector)))
        fits = budget == 8 * 12 * 12
        assert cache.evaluations == (12 * needed if fits else 2 * 12 * (nonzeros + 2))

    def test_a_matrix_in_memory_is_read_in_place(self):
        K = Gaussian(0.5)(samples())
        cache = LazyRowCache(PrecomputedMatrix(K), 10**6)
        np.testing.assert_allclose(cache.product(np.arange(12.0)), K @ np.arange(12.0), atol=1e-12)
        assert cache.evaluations == 0

    def test_non_finite_rows_raise(self):
        matrix = KernelMatrix(FunctionKernel(lambda X, Z: np.full((len(X), len(Z)), np.inf)), Points(samples()))
        with pytest.raises(ValueError, match="not finite"):
            LazyRowCache(matrix, 10**6).product(np.ones(12))


class TestFullKernelMatrix:
    @pytest.mark.parametrize("kernel", [Gaussian(0.5), FunctionKernel(Gaussian(0.5))], ids=["cheap", "expensive"])
    @pytest.mark.parametrize("n", [12, 150])
    def test_submatrices(self, kernel, n):
        X, order = samples(n), np.random.default_rng(3).permutation(n)
        full = FullKernelMatrix.of(kernel, Points(X), order, threads=2)
        K = Gaussian(0.5)(X)
        for rows in (order, order[2:7], np.concatenate([order[6:9], order[:3]]), np.arange(n), np.array([4, 0, 4])):
            matrix = full(rows)
            everything = np.arange(len(rows))
            np.testing.assert_array_equal(matrix.block(everything, everything), K[np.ix_(rows, rows)])
            assert isinstance(matrix.uncached(), KernelMatrix)
            np.testing.assert_array_equal(matrix.uncached().block(everything, everything), K[np.ix_(rows, rows)])

    def test_the_diagonal_of_sparse_samples_has_no_errors_of_cancellation(self):
        class Cancelling(Gaussian):
            """Distances as native loops compute them, compiled so that ‖x‖² and x·x are rounded differently."""

            def evaluate(self, left, right, threads=1):
                values = Gaussian(self.gamma)(left.data[left.index], right.data[right.index])
                return np.where(values == 1.0, 1.0 - 1e-9, values)

        X = sparse.csr_array(np.tile(samples(12), 100))  # wide, so that the kernel's own evaluation is called
        full = FullKernelMatrix.of(Cancelling(0.5), Points(X), np.arange(12), threads=1)
        for rows in (np.arange(12), np.array([3, 1, 7])):
            matrix = full(rows)
            errors = np.abs(matrix.diagonal() - 1.0)  # the exact value
            assert (errors <= matrix.diagonal_error()).all()
            assert (data_description.pose(matrix, np.ones(len(rows)), 0.5).linear == 0.5).all()

    def test_non_finite_values_raise(self):
        kernel = FunctionKernel(lambda X, Z: np.full((len(X), len(Z)), np.nan))
        with pytest.raises(ValueError, match="not finite"):
            FullKernelMatrix.of(kernel, Points(samples()), np.arange(12), threads=1)


def test_check_finite():
    check_finite(np.full(10, 1e308))  # finite values, although their sum overflows
    check_finite(np.empty(0))
    for bad in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="scale the data"):
            check_finite(np.array([1.0, bad, -bad]))


def test_inner_products_overflow_to_infinity_without_a_warning():
    assert inner(np.array([1.0, 2.0]), np.array([3.0, -4.0])) == -5.0
    assert inner(np.full(2, 1e200), np.full(2, 1e200)) == np.inf
