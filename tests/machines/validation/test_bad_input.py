"""Every mistake gets one clear sentence."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from maxmargin import SVC, _native
from maxmargin.machines.kernel.kernel_estimator import MIN_ROWS_OF_PRODUCT
from maxmargin.machines.validation.samples import check_samples

X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]])
Y = np.array([0, 0, 1, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": -1}, "C must be a number above 0, not -1"),
        ({"C": 0}, "C must be a number above 0"),
        ({"C": float("nan")}, "C must be a number above 0, not nan"),
        ({"C": "much"}, "C must be a number above 0, not 'much'"),
        ({"C": True}, "C must be a number"),
        ({"kernel": "rfb"}, "unknown kernel 'rfb'; use one of the names 'chi_squared', 'gaussian'"),
        ({"kernel": 3}, "kernel must be a name, a Kernel object or a function"),
        ({"cache_size": "big"}, "cache_size must be a number of megabytes above 0, or 'auto', not 'big'"),
        ({"solver": "smo"}, "solver must be one of 'auto', 'pairwise', 'block', .*not 'smo'"),
        ({"selection": "best"}, "unknown selection 'best'; the rules are 'most_violating_pair'"),
        ({"gamma": "wide"}, "gamma must be one of 'scale', 'auto', not 'wide'"),
        ({"gamma": -0.5}, "gamma must be a number of at least 0, not -0.5"),
        ({"degree": -1, "kernel": "poly"}, "degree must be a whole number of at least 0"),
        ({"degree": 1.5, "kernel": "poly"}, "degree must be a whole number"),
        ({"coef0": None}, "coef0 must be a number, not None"),
        ({"tol": 0}, "tol must be a number above 0"),
        ({"cache_size": 0}, "cache_size must be a number above 0"),
        ({"max_iter": -2}, "max_iter must be a whole number of at least -1"),
        ({"max_seconds": -1}, "max_seconds must be a number of at least 0"),
        ({"gap_tol": 0}, "gap_tol must be a number above 0"),
        ({"shrinking": "yes"}, "shrinking must be True or False, not 'yes'"),
        ({"fit_intercept": 1}, "fit_intercept must be True or False"),
        ({"warm_start": None}, "warm_start must be True or False"),
        ({"decision_function_shape": "all"}, "decision_function_shape must be one of 'ovr', 'ovo'"),
        ({"class_weight": "heavy"}, "class_weight must be one of 'balanced'"),
        ({"class_weight": [1, 2]}, "class_weight must be a dict, 'balanced' or None"),
        ({"class_weight": {5: 1.0}}, "class_weight names 5, which is not one of the classes"),
        ({"class_weight": {1: -1.0}}, "class_weight must be above 0"),
        ({"probability": "yes"}, "probability must be True or False"),
        ({"callback": 3}, "callback must be a function"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
        ({"n_jobs": "2"}, "n_jobs must be a whole number or None"),
        ({"selection": ["x"]}, "unknown selection"),
        ({"solver": type("S", (), {"solve": None})()}, "a solver object must be a dataclass"),
        ({"C": 1e308, "class_weight": {0: 1e3}}, "overflows float64"),
    ],
)
def test_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        SVC(**options).fit(X, Y).predict(X)


@pytest.mark.parametrize(
    ("data", "labels", "message"),
    [
        (np.where(X == 2, np.nan, X), Y, "NaN"),
        (np.where(X == 2, np.inf, X), Y, "infinity"),
        (X, np.array([0, 0, 1, np.nan]), "NaN"),
        (np.empty((0, 2)), np.empty(0), "0 sample"),
        (np.empty((4, 0)), Y, "0 feature"),
        (X[:, 0], Y, "1D array"),
        (X, Y[:3], "inconsistent numbers of samples"),
        (X, np.zeros(4), r"only one class, 0\.0$"),
        (X, np.array([0.1, 0.2, 0.3, 0.4]), "Unknown label type"),
        (X.astype(complex), Y, "Complex data"),
        ([["a", "b"]] * 4, Y, "could not convert string"),
    ],
)
def test_data(data, labels, message):
    with pytest.raises(ValueError, match=message):
        SVC().fit(data, labels)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0, 0, 0, 0], "all samples have zero or negative weights.*at least one number above 0"),
        ([-1, 0, -1, -2], "all samples have zero or negative weights"),
        ([1, 1, 0, 0], "only one class"),
        ([1, 1, -1, 0], "positive weights belong to the same class"),
        ([1, 1], "sample_weight.shape"),
        ([1, 1, np.nan, 1], "NaN"),
    ],
)
def test_sample_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        SVC().fit(X, Y, sample_weight=weights)


def test_precomputed_matrices():
    with pytest.raises(ValueError, match="must be square.*4 x 2"):
        SVC(kernel="precomputed").fit(X, Y)
    with pytest.raises(ValueError, match="must be symmetric.*differ by up to 2"):
        SVC(kernel="precomputed").fit(np.eye(4) + np.triu(np.full((4, 4), 2.0), 1), Y)
    for value in (np.nan, np.inf, -np.inf):
        for at in ((1, 3), (3, 1), (2, 2)):
            K = X @ X.T
            K[at] = value
            with pytest.raises(ValueError, match="contains NaN or infinity"):
                SVC(kernel="precomputed").fit(K, Y)
    overflowing = np.eye(4)
    overflowing[1, 3], overflowing[3, 1] = 1.5e308, -1.5e308
    with pytest.raises(ValueError, match="must be symmetric"):
        SVC(kernel="precomputed").fit(overflowing, Y)
    with pytest.raises(TypeError, match="must be dense"):
        SVC(kernel="precomputed").fit(sparse.eye(4).tocsr(), Y)
    model = SVC(kernel="precomputed").fit(X @ X.T, Y)
    with pytest.raises(TypeError, match="must be dense"):
        model.predict(sparse.csr_array(X @ X.T))
    with pytest.raises(ValueError, match="features"):
        model.predict(X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_large_precomputed_matrices(dtype):
    size = MIN_ROWS_OF_PRODUCT + 3
    K, labels = np.eye(size, dtype=dtype), np.arange(size) % 2
    SVC(kernel="precomputed", n_jobs=2).fit(K, labels)
    for at in ((size - 1, 0), (3, 500)):
        for change, message in (
            (2e-6, "must be symmetric.*differ by up to 2e-06"),
            (np.nan, "NaN"),
            (-np.inf, "infinity"),
        ):
            bad = K.copy()
            bad[at] = change
            with pytest.raises(ValueError, match=message):
                SVC(kernel="precomputed", n_jobs=2).fit(bad, labels)
    K[3, 500] = 5e-7  # not symmetric up to rounding, but within the tolerance
    SVC(kernel="precomputed").fit(K, labels)


def test_products_show_asymmetry():
    size = 75
    random = np.random.default_rng(1)
    K, vector = random.uniform(-2.0, 1.0, (size, size)), random.uniform(0.5, 1.5, size)
    for threads in (1, 3):
        largest, difference = _native.product_asymmetry(K, vector, threads)
        assert largest == np.abs(K).max()
        assert difference == pytest.approx(np.abs(K @ vector - K.T @ vector).max(), rel=1e-12)
        assert _native.product_asymmetry(K + K.T, vector, threads)[1] < 1e-12


def test_kernel_functions():
    with pytest.raises(
        ValueError, match=r"returned an array of shape \(1,\).*it must return a block of shape \(1, 1\)"
    ):
        SVC(kernel=lambda A, B: A[:, 0]).fit(X, Y)
    with pytest.raises(ValueError, match="not finite"):
        SVC(kernel=lambda A, B: np.full((len(A), len(B)), np.inf)).fit(X, Y)
    with pytest.raises(ValueError, match="at least 0"):
        SVC(kernel="chi_squared").fit(X - 1, Y)
    model = SVC(kernel="chi_squared").fit(X, Y)
    with pytest.raises(ValueError, match="at least 0"):
        model.predict(X - 1)


def test_overflowing_kernels():
    with pytest.raises(ValueError, match="not finite; scale the data"):
        SVC(kernel="poly", degree=40, gamma=1.0).fit(X * 1e20, Y)


def test_a_failed_fit_leaves_no_machine():
    model = SVC(C=-1)
    with pytest.raises(ValueError, match="C must be"):
        model.fit(X, Y)
    with pytest.raises(ValueError, match="only one class"):
        model.set_params(C=1).fit(X, np.zeros(4))
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_wrong_number_of_features():
    with pytest.raises(ValueError, match="X has 3 features, but SVC is expecting 2"):
        SVC().fit(X, Y).predict(np.ones((2, 3)))


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_complex_samples_of_machines_without_scikit_learn(container):
    with pytest.raises(ValueError, match="Complex data not supported"):
        check_samples(container(X + 1j))
