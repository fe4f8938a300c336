import numpy as np
import pytest
from scipy import sparse

from maxmargin.kernels import (
    KERNELS,
    ChiSquared,
    Combination,
    FunctionKernel,
    Gaussian,
    Laplacian,
    Linear,
    OnFeatures,
    Points,
    Polynomial,
    Sigmoid,
    UnitDiagonal,
    make_kernel,
)  # fmt: skip
from maxmargin.kernels.points import OBJECT_COST, evaluation_cost
from maxmargin.testing.kernel_contract import KernelContract


class TestLinear(KernelContract):
    kernel = pytest.fixture(lambda self: Linear())

    def expected(self, x, z):
        return x @ z


class TestPolynomial(KernelContract):
    kernel = pytest.fixture(lambda self: Polynomial(degree=5, gamma=0.3, coef0=0.7))

    def expected(self, x, z):
        return (0.3 * (x @ z) + 0.7) ** 5


class TestGaussian(KernelContract):
    kernel = pytest.fixture(lambda self: Gaussian(0.4))

    def expected(self, x, z):
        return np.exp(-0.4 * ((x - z) ** 2).sum())

    def test_large_offsets_keep_precision(self, kernel):
        X = np.random.default_rng(0).random((10, 3))
        moved = (X * 1024).round() / 1024  # exactly representable also after the shift
        np.testing.assert_allclose(kernel(moved + 2.0**30), kernel(moved), rtol=1e-12)
        np.testing.assert_allclose(kernel(sparse.csr_array(moved + 2.0**10)), kernel(moved), rtol=1e-9)


def gammas(features):
    return np.resize([0.4, 0.0, 1.5, 0.1], features)


class TestGaussianByFeature(KernelContract):
    kernel = pytest.fixture(lambda self, X: Gaussian(gammas(X.shape[1])))

    def expected(self, x, z):
        return np.exp(-(gammas(len(x)) * (x - z) ** 2).sum())


class TestLaplacianByFeature(KernelContract):
    kernel = pytest.fixture(lambda self, X: Laplacian(gammas(X.shape[1])))

    def expected(self, x, z):
        return np.exp(-(gammas(len(x)) * np.abs(x - z)).sum())


class TestChiSquaredByFeature(KernelContract):
    kernel = pytest.fixture(lambda self, X: ChiSquared(gammas(X.shape[1])))

    def expected(self, x, z):
        return np.exp(-(gammas(len(x)) * (x - z) ** 2 / (x + z)).sum())


class TestLaplacian(KernelContract):
    kernel = pytest.fixture(lambda self: Laplacian(0.4))

    def expected(self, x, z):
        return np.exp(-0.4 * np.abs(x - z).sum())


class TestChiSquared(KernelContract):
    kernel = pytest.fixture(lambda self: ChiSquared(0.4))

    def expected(self, x, z):
        return np.exp(-0.4 * ((x - z) ** 2 / (x + z)).sum())

    def test_zero_over_zero_is_zero(self, kernel):
        np.testing.assert_allclose(kernel(np.array([[0.0, 1.0]]), np.array([[0.0, 3.0]])), np.exp(-0.4))

    def test_negative_features_raise(self, kernel):
        with pytest.raises(ValueError, match="at least 0"):
            kernel.check(Points(np.array([[1.0, -1.0]])))
        with pytest.raises(ValueError, match="at least 0"):
            (Linear() + 2.0 * kernel).check(Points(np.array([[1.0, -1.0]])))


class TestSigmoid(KernelContract):
    positive_semidefinite = False
    kernel = pytest.fixture(lambda self: Sigmoid(0.4, -0.2))

    def expected(self, x, z):
        return np.tanh(0.4 * (x @ z) - 0.2)


class TestSumAndProduct(KernelContract):
    kernel = pytest.fixture(lambda self: 0.5 * Gaussian(0.4) + Linear() * Laplacian(0.2))

    def expected(self, x, z):
        return 0.5 * np.exp(-0.4 * ((x - z) ** 2).sum()) + (x @ z) * np.exp(-0.2 * np.abs(x - z).sum())


class TestFunction(KernelContract):
    computes_in_float64 = False
    sparse_input = False
    kernel = pytest.fixture(lambda self: FunctionKernel(lambda X, Z: (X[:, None, :] * Z[None, :, :]).sum(axis=2)))

    def expected(self, x, z):
        return x @ z

    def test_different_numbers_of_features_raise(self, kernel, X):
        with pytest.raises(ValueError, match="broadcast"):  # raised by the function itself
            kernel(X, X[:, :2])

    def test_wrong_shape_raises(self):
        def my_kernel(X, Z):
            return X[:, 0]

        with pytest.raises(ValueError, match=r"my_kernel returned an array of shape \(4,\).*\(4, 3\)"):
            FunctionKernel(my_kernel)(np.ones((4, 2)), np.ones((3, 2)))

    def test_wrong_type_raises(self):
        with pytest.raises(ValueError, match="not real numbers"):
            FunctionKernel(lambda X, Z: np.full((len(X), len(Z)), "a"))(np.ones((4, 2)))


def test_make_kernel_by_name():
    for name in KERNELS:
        kernel = make_kernel(name, gamma=0.5, coef0=1.0, degree=2)
        assert kernel(np.ones((2, 2))).shape == (2, 2)
    assert make_kernel("rbf", 0.5, 0, 3) == Gaussian(0.5) == make_kernel(Gaussian(0.5), 1, 1, 1)
    assert isinstance(make_kernel(np.dot, 1, 1, 1), FunctionKernel)


def test_unknown_name_raises_with_the_list_of_names():
    with pytest.raises(
        ValueError, match="unknown kernel 'rfb'.*'laplacian'.*'precomputed'.*'rbf'|'rbf'.*'precomputed'"
    ):
        make_kernel("rfb", 1, 1, 1)
    with pytest.raises(ValueError, match="must be a name"):
        make_kernel(3, 1, 1, 1)


@pytest.mark.parametrize(
    "make", [lambda: Gaussian(-1), lambda: Polynomial(-1), lambda: Polynomial(1.5), lambda: -1 * Linear()]
)
def test_invalid_parameters_raise(make):
    with pytest.raises(ValueError, match="must be|can only"):
        make()


def test_points_are_views():
    X = np.random.default_rng(0).random((6, 2))
    points = Points(X)
    assert points.data is X
    some = points.take([4, 2]).take([1])
    assert some.data is X
    np.testing.assert_array_equal(some.values(), X[[2]])
    assert Points(X.astype(np.float32)).data.dtype == np.float32
    assert Points(X.astype(np.float16)).data.dtype == np.float64


def test_sparse_points_are_validated():
    bad = sparse.csr_array((np.ones(1), np.array([0]), np.array([0, 1])), shape=(1, 2))
    bad.indices = np.array([7], dtype=np.int32)
    with pytest.raises(ValueError, match="outside its shape"):
        Points(bad)
    doubled = sparse.csr_array((np.ones(2), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
    np.testing.assert_array_equal(Linear()(doubled), [[4.0]])


def test_nan_is_propagated():
    for kernel in (Gaussian(1.0), Laplacian(1.0), Polynomial(2), Linear()):
        assert np.isnan(kernel(np.array([[np.nan]]), np.array([[0.5]]))).all()


@pytest.mark.parametrize("form", ["dense", "sparse", "objects"])
def test_checksum_changes_with_the_data(form):
    X = np.random.default_rng(0).random((40, 3))
    words = [f"word {i}" for i in range(40)]
    make = {
        "dense": lambda: Points(X),
        "sparse": lambda: Points(sparse.csr_array(X)),
        "objects": lambda: Points.as_given(words),
    }
    before = make[form]().checksum()
    assert make[form]().checksum() == before
    X[17, 1] += 1.0
    words[17] = "another"
    assert make[form]().checksum() != before


def test_evaluation_cost_counts_features_and_stored_entries():
    X = np.zeros((10, 600))
    X[:, :20] = 1.0
    assert evaluation_cost(Points(X)) > 600
    assert 3 * 20 < evaluation_cost(Points(sparse.csr_array(X))) < 100
    assert evaluation_cost(Points.as_given(["a", "b"])) == OBJECT_COST


class TestCombination(KernelContract):
    kernel = pytest.fixture(
        lambda self: Combination((Gaussian(0.4), Polynomial(2, 0.1, 0.5), Linear()), (0.25, 1.5, 0.0))
    )

    def expected(self, x, z):
        return 0.25 * np.exp(-0.4 * ((x - z) ** 2).sum()) + 1.5 * (0.1 * (x @ z) + 0.5) ** 2

    def test_kernels_of_weight_0_are_not_evaluated(self):
        def fails(X, Z):
            raise AssertionError

        assert Combination((Linear(), FunctionKernel(fails)), (2.0, 0.0))([[3.0]])[0, 0] == 18.0
        assert Combination((Linear(), Gaussian(1.0)), (0.0, 0.0))([[3.0]])[0, 0] == 0.0

    def test_double_double_values_are_those_of_float64(self, kernel, X):
        points = Points(X)
        extended = kernel.evaluate_extended(points, points)
        errors = np.abs((extended.high - kernel(X)) + extended.low)
        assert (errors <= kernel.error_bound(points, points, np.ones(len(X)))[:, None]).all()

    @pytest.mark.parametrize("weights", [(1.0,), (1.0, -1.0), (1.0, np.nan)])
    def test_weights_are_checked(self, weights):
        with pytest.raises(ValueError, match="weight"):
            Combination((Linear(), Gaussian(1.0)), weights)


class TestOnFeatures(KernelContract):
    kernel = pytest.fixture(lambda self: OnFeatures(Gaussian(0.4), [2, 0]))

    def expected(self, x, z):
        return np.exp(-0.4 * ((x - z)[[0, 2]] ** 2).sum())

    def test_columns_are_checked(self, X):
        with pytest.raises(ValueError, match="feature 900, counted from 0, but X has"):
            OnFeatures(Linear(), [900])(X)
        for features in ([], [-1], [0.5], [1, 1], ["a"]):
            with pytest.raises(ValueError, match="features"):
                OnFeatures(Linear(), features)


class TestUnitDiagonal(KernelContract):
    kernel = pytest.fixture(lambda self: UnitDiagonal(Polynomial(3, 0.5, 1.0)))

    def expected(self, x, z):
        def k(a, b):
            return (0.5 * (a @ b) + 1.0) ** 3

        return k(x, z) / np.sqrt(k(x, x) * k(z, z))

    def test_diagonal_is_1(self, kernel, X):
        np.testing.assert_allclose(kernel.diagonal(X), 1.0, rtol=1e-15)

    def test_samples_of_norm_0_have_values_0(self):
        np.testing.assert_array_equal(UnitDiagonal(Linear())([[0.0], [2.0]]), [[0.0, 0.0], [0.0, 1.0]])

    def test_double_double_values_are_those_of_float64(self, kernel, X):
        points = Points(X)
        extended = kernel.evaluate_extended(points, points)
        errors = np.abs((extended.high - kernel(X)) + extended.low)
        assert (errors <= kernel.error_bound(points, points, np.ones(len(X)))[:, None]).all()
