"""A γ for each feature in kernel objects, and in all estimators."""

import copy
import io
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier

import maxmargin
from maxmargin import (
    LSSVC,
    LSSVR,
    SVC,
    SVDD,
    SVR,
    KernelApproximationSVC,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OnlineOneClassSVM,
    OnlineSVC,
    QuantileSVR,
    RankSVC,
)
from maxmargin.feature_maps import NystroemMap, PolynomialMap
from maxmargin.interchange import to_sklearn, write_libsvm_model
from maxmargin.kernels import ChiSquared, Gaussian, Laplacian, Linear, Points, Polynomial
from maxmargin.kernels.float32_kernel import float32_kernel

GAMMAS = np.array([0.7, 0.0, 0.2, 1.3, 0.05])
RANDOM = np.random.default_rng(0)
X = np.abs(RANDOM.normal(size=(150, 5)))
TARGETS = X[:, 0] ** 2 + X[:, 3] + 0.1 * RANDOM.normal(size=150)
LABELS = (np.median(TARGETS) < TARGETS).astype(int)
KERNELS = {"rbf": Gaussian, "laplacian": Laplacian, "chi_squared": ChiSquared}
ESTIMATORS = [
    SVC(C=5.0),
    SVC(loss="squared_hinge", solver="block"),
    NuSVC(nu=0.3),
    LSSVC(),
    SVR(),
    NuSVR(),
    QuantileSVR(),
    LSSVR(),
    RankSVC(),
    OneClassSVM(nu=0.2),
    SVDD(nu=0.2),
    OnlineSVC(random_state=0),
    OnlineSVC(budget=40, budget_strategy="merge", random_state=0),
    OnlineOneClassSVM(nu=0.2, random_state=0),
    KernelApproximationSVC(n_components=40, random_state=0),
    KernelApproximationSVC(n_components=20, landmarks="kmeans", random_state=0),
]


def scaled(samples, kernel):
    """Return samples whose features are multiplied so that γ is 1 for each."""
    factors = np.sqrt(GAMMAS) if kernel == "rbf" else GAMMAS
    return sparse.csr_array(samples.multiply(factors)) if sparse.issparse(samples) else samples * factors


def fitted(estimator, samples):
    """Return the estimator fitted on the targets it takes."""
    if isinstance(estimator, OneClassSVM | SVDD | OnlineOneClassSVM):
        return estimator.fit(samples)
    return estimator.fit(samples, LABELS if is_classifier(estimator) else TARGETS)


def values(model, samples):
    return model.decision_function(samples) if hasattr(model, "decision_function") else model.predict(samples)


@pytest.mark.parametrize("form", ["dense", "sparse", "float32"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_an_array_is_a_change_of_units(estimator, kernel, form):
    if form == "sparse" and getattr(estimator, "budget", None):
        pytest.skip("merging takes dense samples")
    if getattr(estimator, "budget", None) and kernel != "rbf":
        pytest.skip("merging takes a Gaussian kernel")
    samples = {"dense": X, "sparse": sparse.csr_array(X * (X > 0.3)), "float32": X.astype(np.float32)}[form]
    exact = samples.astype(np.float64)
    found = fitted(clone(estimator).set_params(kernel=kernel, gamma=GAMMAS, tol=1e-6), samples)
    expected = fitted(clone(estimator).set_params(kernel=kernel, gamma=1.0, tol=1e-6), scaled(exact, kernel))
    close = values(expected, scaled(exact, kernel))
    loose = isinstance(estimator, OnlineSVC | OnlineOneClassSVM | KernelApproximationSVC)
    scale = np.abs(close).max() * (1e-2 if loose and form == "float32" else 1e-4)
    np.testing.assert_allclose(values(found, samples), close, atol=scale)


@pytest.mark.parametrize("kernel", KERNELS)
def test_equal_values_are_one_number(kernel):
    one, several = (SVC(kernel=kernel, gamma=gamma, tol=1e-8).fit(X, LABELS) for gamma in (0.3, [0.3] * 5))
    np.testing.assert_allclose(several.decision_function(X), one.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(several.support_, one.support_)
    assert several.certificate_.gap <= one.certificate_.gap + 1e-6


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_gamma_0_ignores_a_feature(form):
    other = X.copy()
    other[:, 1] = RANDOM.normal(size=150) * 1e3
    models = [SVC(gamma=GAMMAS).fit(form(samples), LABELS) for samples in (X, other)]
    np.testing.assert_allclose(
        *(m.decision_function(form(s)) for m, s in zip(models, (X, other), strict=True)), atol=1e-9
    )
    nothing = SVC(gamma=np.zeros(5)).fit(form(X), LABELS)
    assert len(np.unique(nothing.predict(form(X)))) == 1


def test_blocks_of_float32_values_and_threads():
    random = np.random.default_rng(1)
    samples = random.normal(size=(3000, 8)) + 50.0
    labels = ((samples[:, 0] - 50) * (samples[:, 1] - 50) > 0).astype(int)
    gammas = np.array([1.0, 1.0, 0.1, 0.0, 0.0, 0.0, 0.0, 0.01])
    found = SVC(gamma=gammas, C=10.0).fit(samples, labels)
    expected = SVC(gamma=1.0, C=10.0).fit(samples * np.sqrt(gammas), labels)
    assert found.certificate_.violation < 1e-3
    assert found.certificate_.gap < 1e-2 * found.certificate_.primal
    agree = found.predict(samples) == expected.predict(samples * np.sqrt(gammas))
    assert agree.mean() > 0.999
    for compressed in (sparse.csr_array((samples - 50) * (np.abs(samples - 50) > 1)), _mostly_zeros(samples)):
        labels = (
            np.asarray(compressed[:, [0]].todense() if sparse.issparse(compressed) else compressed[:, :1]).ravel() > 0
        )
        wide = np.resize(gammas, compressed.shape[1])
        model = SVC(gamma=wide, C=10.0).fit(compressed, labels)
        assert model.certificate_.violation < 1e-3


def _mostly_zeros(samples):
    wide = np.zeros((len(samples), 64))
    wide[:, ::8] = samples - 50
    return wide


def test_float32_values_are_those_of_float64():
    samples = RANDOM.normal(size=(50, 40)) + 100.0
    sparse_samples = np.where(RANDOM.random((50, 40)) < 0.1, samples - 100.0, 0.0)
    gammas = RANDOM.uniform(0, 0.2, 40)
    for form in (samples, sparse_samples, sparse.csr_array(sparse_samples)):
        for kernel in (Gaussian(gammas), Gaussian(200 * gammas), Laplacian(gammas)):
            points, every = Points(form), np.arange(50)
            prepared, out = float32_kernel(kernel, Points(form)), np.empty((50, 50), np.float32)
            prepared.columns(every, 1).fill(prepared.rows(every), out, every)
            np.testing.assert_allclose(out, kernel.evaluate(points, points), atol=2e-5)


class TestKernelObjects:
    def test_equality_hashes_copies(self):
        kernel = Gaussian(GAMMAS)
        assert kernel == Gaussian(list(GAMMAS)) == copy.deepcopy(kernel) == pickle.loads(pickle.dumps(kernel))
        assert hash(kernel) == hash(Gaussian(tuple(GAMMAS)))
        assert kernel != Gaussian(2 * GAMMAS) != Laplacian(2 * GAMMAS)
        assert kernel != Gaussian(1.0)
        assert Gaussian(1) == Gaussian(1.0)
        assert not kernel.gamma.flags.writeable
        assert "array" in repr(kernel)

    def test_the_given_array_may_change(self):
        gammas = GAMMAS.copy()
        kernel = Gaussian(gammas)
        before = kernel(X[:5])
        gammas[:] = 7.0
        np.testing.assert_array_equal(kernel(X[:5]), before)

    def test_in_sums_and_products(self):
        kernel = 0.5 * Gaussian(GAMMAS) + Linear() * Laplacian(2 * GAMMAS)
        difference = X[:20, None] - X[None, :20]
        expected = 0.5 * np.exp(-(difference**2 @ GAMMAS)) + (X[:20] @ X[:20].T) * np.exp(
            -2 * (np.abs(difference) @ GAMMAS)
        )
        np.testing.assert_allclose(kernel(X[:20]), expected, rtol=1e-12)
        assert SVC(kernel=kernel).fit(X, LABELS).certificate_.violation < 1e-3

    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
    def test_the_length_is_checked(self, form):
        for kernel in (Gaussian([1.0, 2.0]), Linear() + Gaussian([1.0, 2.0])):
            with pytest.raises(ValueError, match="gamma has 2 values, one for each feature, but X has 5"):
                kernel(form(X))
            with pytest.raises(ValueError, match="gamma has 2 values"):
                SVC(kernel=kernel).fit(form(X), LABELS)

    @pytest.mark.parametrize(
        ("gamma", "message"),
        [
            ([1.0, -1.0], r"not -1.0 \(feature 1\)"),
            ([np.nan], "not nan"),
            ([np.inf, 1.0], "not inf"),
            ([], "vector"),
            ([[1.0]], "vector"),
            (["wide"], "one for each feature"),
        ],
    )
    def test_values_are_checked(self, gamma, message):
        with pytest.raises(ValueError, match=message):
            Gaussian(gamma)

    def test_overflow_raises(self):
        with pytest.raises(ValueError, match="overflows float64"):
            SVC(gamma=[1e300, 1.0, 1.0, 1.0, 1.0]).fit(X * 1e200, LABELS)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SVC(gamma=[1.0, 2.0]), "gamma has 2 values, one for each feature, but X has 5 features"),
        (SVC(gamma=-GAMMAS), "at least 0"),
        (SVC(gamma=GAMMAS[:, None]), "vector"),
        (SVC(gamma=GAMMAS, kernel="poly"), "rbf, laplacian and chi_squared"),
        (SVC(gamma=GAMMAS, kernel="sigmoid"), "rbf, laplacian and chi_squared"),
        (SVC(gamma=GAMMAS, kernel="linear"), "rbf, laplacian and chi_squared"),
        (SVC(gamma=GAMMAS, kernel=Gaussian(1.0)), "to the kernel object itself"),
        (SVC(gamma=GAMMAS, kernel=lambda A, B: A @ B.T), "to the kernel object itself"),
        (KernelApproximationSVC(gamma=GAMMAS, kernel=Gaussian(1.0)), "to the kernel object itself"),
        (KernelApproximationSVC(gamma=GAMMAS, kernel="poly"), "rbf, laplacian and chi_squared"),
        (OnlineSVC(gamma=GAMMAS[:2]), "gamma has 2 values"),
        (PolynomialMap(gamma=GAMMAS), "rbf, laplacian and chi_squared"),
    ],
)
def test_errors_name_what_works(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, LABELS)


def test_precomputed_kernels_raise():
    with pytest.raises(ValueError, match="not for 'precomputed'"):
        SVC(gamma=np.ones(150), kernel="precomputed").fit(X @ X.T, LABELS)
    with pytest.raises(ValueError, match="at least 0"):
        Polynomial(3, -1.0)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_model_files_and_pickles(form):
    model = SVC(gamma=GAMMAS).fit(form(X), LABELS)
    certificate = model.certificate_
    file = io.BytesIO()
    maxmargin.save(model, file)
    file.seek(0)
    for found in (maxmargin.load(file), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(found.decision_function(form(X)), model.decision_function(form(X)))
        np.testing.assert_array_equal(found.gamma, GAMMAS)
        assert found.certificate_.primal == certificate.primal


def test_formats_with_one_gamma_raise():
    model = SVC(gamma=GAMMAS).fit(X, LABELS)
    for export in (lambda: write_libsvm_model(model, io.BytesIO()), lambda: to_sklearn(model)):
        with pytest.raises(ValueError, match="has one for each feature; use"):
            export()


def test_features_of_landmarks():
    found = NystroemMap(gamma=GAMMAS, n_components=150, random_state=0).fit_transform(X)
    np.testing.assert_allclose(found @ found.T, Gaussian(GAMMAS)(X), atol=1e-3)


def test_certificates_of_features_far_from_0():
    """Years, in units of days: the rounding of features times √γ is within the bounds of the certificate."""
    years = X + np.array([1e6, 0.0, 2e5, 0.0, 1e9])
    model = SVC(gamma=GAMMAS / np.array([1, 1, 1, 1, 1e3]), C=100.0, tol=1e-6).fit(years, LABELS)
    certificate = model.certificate_
    assert 0 <= certificate.gap < 1e-3
    # A power of 4 makes factors exact: these models have the same kernel and no rounding of factors.
    powers = 4.0 ** np.array([-1, -20, -1, 0, -12])
    several = SVC(gamma=powers, C=100.0, tol=1e-6).fit(years, LABELS).certificate_
    one = SVC(gamma=1.0, C=100.0, tol=1e-6).fit(years * np.sqrt(powers), LABELS).certificate_
    assert several.dual <= one.primal
    assert one.dual <= several.primal
