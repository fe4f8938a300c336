"""`MKLSVC`, `MKLSVR`, `MKLOneClassSVM`: optima of Clarabel, hard cases, kernels in all forms, limits, files."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

import maxmargin
from maxmargin import MKLSVC, MKLSVR, SVC, SVR, MKLOneClassSVM, OneClassSVM, Status
from maxmargin.kernels import Gaussian, Laplacian, Linear, OnFeatures, Polynomial, UnitDiagonal
from maxmargin.training import kernel_subproblem

KERNELS = [Linear(), Gaussian(0.05), Gaussian(0.5), Polynomial(2, 0.2, 1.0), OnFeatures(Gaussian(1.0), [0, 2])]


def two_classes(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.where(X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.3 * rng.normal(size=n) > 0, 1, -1)


def conic_optimum(kernels, X, p, linear, lower, upper, total, kink=0.0):
    """Return the optimum of the joint dual by Clarabel: max linear·b − kink Σ|b| − ½ ‖(bᵀK_m b)_m‖_p*.

    Variables b, |b| bounds a, t_m ≥ ½ bᵀ K_m b by second-order cones, and s: t_m ≤ s (p = 1), or ‖t‖ ≤ s (p = 2).
    """
    clarabel = pytest.importorskip("clarabel")
    n, count = len(X), len(kernels)
    factors = []
    for kernel in kernels:
        values, vectors = np.linalg.eigh(kernel(X))
        factors.append((vectors * np.sqrt(np.maximum(values, 0.0))).T)
    size = 2 * n + count + 1
    q = np.concatenate([-linear, np.full(n, kink), np.zeros(count), [1.0]])
    eye = np.eye(n)
    rows, right, cones = [], [], []

    def add(matrix, constant, cone):
        rows.append(matrix)
        right.append(constant)
        cones.append(cone)

    def padded(first, second=None):
        second = np.zeros((len(first), n)) if second is None else second
        return np.hstack([first, second, np.zeros((len(first), count + 1))])

    add(padded(np.ones((1, n))), [total], clarabel.ZeroConeT(1))
    box = np.vstack([padded(eye), padded(-eye), padded(eye, -eye), padded(-eye, -eye)])
    add(box, np.concatenate([upper, -lower, np.zeros(2 * n)]), clarabel.NonnegativeConeT(4 * n))
    for m, factor in enumerate(factors):  # ‖(F b, t − ½)‖ ≤ t + ½  ⇔  ½ ‖F b‖² ≤ t
        matrix, constant = np.zeros((n + 2, size)), np.zeros(n + 2)
        matrix[0, 2 * n + m] = matrix[1, 2 * n + m] = -1.0
        constant[0], constant[1] = 0.5, -0.5
        matrix[2:, :n] = -factor
        add(matrix, constant, clarabel.SecondOrderConeT(n + 2))
    norms = np.zeros((count, size))
    norms[:, 2 * n : 2 * n + count] = np.eye(count)
    if p == 1:
        norms[:, -1] = -1.0
        add(norms, np.zeros(count), clarabel.NonnegativeConeT(count))
    else:
        top = np.zeros((1, size))
        top[0, -1] = -1.0
        add(np.vstack([top, -norms]), np.zeros(count + 1), clarabel.SecondOrderConeT(count + 1))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix((size, size)), q, sparse.csc_matrix(np.vstack(rows)), np.concatenate(right), cones, settings
    )
    return -solver.solve().obj_val


@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_classification_reaches_the_optimum_of_clarabel(p, C):
    X, y = two_classes()
    model = MKLSVC(KERNELS, C=C, norm=p, normalize=None, tol=1e-7).fit(X, y)
    optimum = conic_optimum(KERNELS, X, p, y.astype(float), np.where(y > 0, 0, -C), np.where(y > 0, C, 0), 0.0)
    certificate = model.certificate_
    assert model.status_ is Status.CONVERGED
    assert certificate.gap <= 1e-7 * certificate.primal
    slack = 1e-6 * abs(optimum)
    assert certificate.dual - slack <= optimum <= certificate.primal + slack
    assert model.kernel_weights_.sum() == pytest.approx(1.0, abs=1e-14)
    weights = model.kernel_coefficients_
    assert np.sum(weights**p) ** (1 / p) == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_regression_reaches_the_optimum_of_clarabel(p):
    X, _ = two_classes()
    y = np.sin(X[:, 0]) + X[:, 2] ** 2
    model = MKLSVR(KERNELS, C=5.0, epsilon=0.2, norm=p, normalize=None, tol=1e-7).fit(X, y)
    box = np.full(len(y), 5.0)
    optimum = conic_optimum(KERNELS, X, p, y, -box, box, 0.0, kink=0.2)
    assert model.certificate_.dual == pytest.approx(optimum, rel=1e-6)
    assert model.certificate_.primal == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_novelty_detection_reaches_the_optimum_of_clarabel(p):
    X, _ = two_classes()
    model = MKLOneClassSVM(KERNELS, nu=0.3, norm=p, normalize=None, tol=1e-7).fit(X)
    n = len(X)
    optimum = conic_optimum(KERNELS, X, p, np.zeros(n), np.zeros(n), np.ones(n), 0.3 * n)
    assert model.certificate_.dual == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("p", [1.0, 1.5, 3.0])
def test_the_certificate_is_what_the_formulas_say(p):
    X, y = two_classes()
    model = MKLSVC(KERNELS, C=2.0, norm=p, normalize=None).fit(X, y)
    dual = np.zeros(len(X))
    dual[model.support_] = model.dual_coef_[0]
    squared = np.array([dual @ kernel(X) @ dual for kernel in KERNELS])
    norm = squared.max() if p == 1 else (squared ** (p / (p - 1))).sum() ** ((p - 1) / p)
    assert model.certificate_.dual == pytest.approx(y @ dual - 0.5 * norm, rel=1e-9)
    K = sum(weight * kernel(X) for weight, kernel in zip(model.kernel_coefficients_, KERNELS, strict=True))
    losses = np.maximum(0.0, 1.0 - y * (K @ dual + model.intercept_[0]))
    assert model.certificate_.primal == pytest.approx(0.5 * dual @ K @ dual + 2.0 * losses.sum(), rel=1e-6)
    np.testing.assert_allclose(model.decision_function(X), K @ dual + model.intercept_[0], rtol=1e-9, atol=1e-12)


def test_one_kernel_is_the_machine_with_that_kernel():
    X, y = two_classes()
    for ours, theirs in [
        (MKLSVC([Gaussian(0.5)], C=3.0, tol=1e-9), SVC(C=3.0, gamma=0.5, tol=1e-9)),
        (MKLSVR([Gaussian(0.5)], C=3.0, tol=1e-9), SVR(C=3.0, gamma=0.5, tol=1e-9)),
        (MKLOneClassSVM([Gaussian(0.5)], nu=0.4, tol=1e-10), OneClassSVM(nu=0.4, gamma=0.5, tol=1e-9)),
    ]:
        decide = "predict" if isinstance(ours, MKLSVR) else "decision_function"
        values = getattr(ours.fit(X, y), decide)(X)
        np.testing.assert_allclose(values, getattr(theirs.fit(X, y), decide)(X), atol=1e-5)
        assert ours.kernel_weights_.tolist() == [1.0]


class TestHardCases:
    @pytest.mark.parametrize("p", [1.0, 2.0])
    def test_equal_kernels(self, p):
        X, y = two_classes()
        model = MKLSVC([Gaussian(0.5)] * 4, norm=p, tol=1e-8).fit(X, y)
        alone = MKLSVC([Gaussian(0.5)], C=4 ** (1 - 1 / p), tol=1e-8).fit(X, y)  # the sum of the weights is larger
        assert model.status_.converged
        np.testing.assert_array_equal(model.predict(X), alone.predict(X))

    @pytest.mark.parametrize("p", [1.0, 2.0])
    def test_a_kernel_that_is_0_has_no_weight(self, p):
        X, y = two_classes()
        zeros = np.zeros((len(X), len(X)))
        model = MKLSVC("precomputed", norm=p, tol=1e-7).fit([zeros, Gaussian(0.5)(X)], y)
        np.testing.assert_allclose(model.kernel_weights_, [0.0, 1.0], atol=1e-12)
        only = MKLSVC("precomputed", norm=p).fit([zeros], y)
        assert only.status_.converged
        np.testing.assert_allclose(only.decision_function([zeros[:2]]), only.intercept_[0])

    @pytest.mark.parametrize("p", [1.0, 2.0])
    def test_singular_kernels(self, p):
        X, y = two_classes()
        model = MKLSVC([{"kernel": "linear", "features": "each"}], C=100.0, norm=p, tol=1e-6).fit(X, y)
        assert model.certificate_.relative_gap <= 1e-6

    def test_kernels_of_very_different_scales(self):
        X, y = two_classes()
        scaled = [1e-6 * Gaussian(0.5), 1e6 * Linear(), Gaussian(2.0)]
        plain = [Gaussian(0.5), Linear(), Gaussian(2.0)]
        models = [MKLSVC(kernels, C=10.0, tol=1e-7).fit(X, y) for kernels in (scaled, plain)]
        np.testing.assert_allclose(*(model.kernel_weights_ for model in models), atol=1e-4)
        raw = MKLSVC(scaled, C=10.0, normalize=None).fit(X, y)
        assert raw.status_.converged
        assert raw.certificate_.relative_gap <= 1e-3
        assert 0 < raw.kernel_weights_[1] < 1e-3

    @pytest.mark.parametrize("C", [1e-12, 1e8])
    @pytest.mark.parametrize("p", [1.0, 2.0])
    def test_extreme_costs(self, C, p):
        X, y = two_classes()
        y[:3] *= -1  # not what the kernels say
        assert MKLSVC(C=C, norm=p, tol=1e-4).fit(X, y).certificate_.relative_gap <= 1e-4

    def test_two_samples(self):
        model = MKLSVC([Linear(), Gaussian(1.0)], C=10.0, tol=1e-6).fit([[0.0], [1.0]], [0, 1])
        assert model.predict([[-1.0], [2.0]]).tolist() == [0, 1]
        assert MKLOneClassSVM().fit([[0.0], [1.0]]).status_.converged
        assert MKLSVR().fit([[0.0], [1.0]], [0.0, 1.0]).status_.converged

    def test_a_constant_target_needs_no_kernel(self):
        model = MKLSVR().fit(np.arange(8.0)[:, None], np.full(8, 3.0))
        np.testing.assert_allclose(model.predict([[2.5]]), 3.0, atol=0.1)


class TestKernels:
    def test_families(self):
        X, y = two_classes()
        model = MKLSVC(
            [
                "linear",
                {"kernel": "rbf", "gamma": [0.1, 1.0]},
                {"kernel": "laplacian", "features": [[0, 1], [2]], "gamma": 0.5},
                {"kernel": "poly", "degree": [1, 2], "gamma": 1.0, "coef0": 1.0},
                {"kernel": Linear(), "features": [3]},
            ]
        ).fit(X, y)
        assert model.kernels_ == [
            Linear(),
            Gaussian(0.1),
            Gaussian(1.0),
            OnFeatures(Laplacian(0.5), [0, 1]),
            OnFeatures(Laplacian(0.5), [2]),
            Polynomial(1, 1.0, 1.0),
            Polynomial(2, 1.0, 1.0),
            OnFeatures(Linear(), [3]),
        ]

    def test_gamma_scale_is_that_of_the_group(self):
        X, y = two_classes()
        X[:, 1] *= 100.0
        model = MKLSVC([{"features": [[0], [1]], "gamma_factors": [1.0, 2.0]}]).fit(X, y)
        expected = [factor / X[:, j].var() for j in (0, 1) for factor in (1.0, 2.0)]
        np.testing.assert_allclose([one.kernel.gamma for one in model.kernels_], expected)

    def test_names_of_features(self):
        pandas = pytest.importorskip("pandas")
        X, y = two_classes()
        frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
        model = MKLSVC([{"features": [["a", "b"], ["c"]]}]).fit(frame, y)
        assert [one.features for one in model.kernels_] == [(0, 1), (2,)]
        with pytest.raises(ValueError, match="there is no feature 'e': they are 'a'"):
            MKLSVC([{"features": ["e"]}]).fit(frame, y)

    def test_functions_and_sparse_samples(self):
        X, y = two_classes()
        own = MKLSVC([lambda A, B: np.tanh(A @ B.T * 0.0 + 1.0) * (A @ B.T), Gaussian(0.5)]).fit(X, y)
        assert own.status_.converged
        dense = MKLSVC(KERNELS, tol=1e-8).fit(X, y)
        compressed = MKLSVC(KERNELS, tol=1e-8).fit(sparse.csr_matrix(X), y)
        np.testing.assert_allclose(
            compressed.decision_function(sparse.csr_matrix(X)), dense.decision_function(X), atol=1e-5
        )

    def test_unit_diagonal(self):
        X, y = two_classes()
        model = MKLSVC([Polynomial(2, 1.0, 1.0)], normalize="diagonal").fit(X, y)
        assert model.kernels_ == [UnitDiagonal(Polynomial(2, 1.0, 1.0))]

    def test_precomputed_matrices(self):
        X, y = two_classes()
        tables = [kernel(X) for kernel in KERNELS]
        of_kernels = MKLSVC(KERNELS, tol=1e-8).fit(X[:40], y[:40])
        model = MKLSVC("precomputed", tol=1e-8).fit([K[:40, :40] for K in tables], y[:40])
        np.testing.assert_allclose(model.kernel_weights_, of_kernels.kernel_weights_, atol=1e-6)
        tests = [K[40:, :40] for K in tables]
        np.testing.assert_allclose(model.decision_function(tests), of_kernels.decision_function(X[40:]), atol=1e-5)
        np.testing.assert_array_equal(model.predict(np.stack(tests, axis=-1)), model.predict(tests))
        scores = cross_val_score(MKLSVC("precomputed"), np.stack(tables, axis=-1), y, cv=3)
        np.testing.assert_allclose(scores, cross_val_score(MKLSVC(KERNELS), X, y, cv=3))

    @pytest.mark.parametrize(
        ("kernels", "message"),
        [
            ("rbf", "kernels must be a list"),
            ([], "kernels must be a list"),
            ({"kernel": "rbf"}, "kernels must be a list"),
            (["gauss"], "unknown kernel 'gauss'"),
            ([{"gama": 1.0}], "not 'gama'"),
            ([{"kernel": Linear(), "gamma": 1.0}], "'gamma' in kernels is for kernels by name"),
            ([{"features": "all"}], "features must be 'each'"),
            ([{"features": [9]}], "feature 9, counted from 0, but X has 4"),
            ([{"gamma": []}], "an empty list"),
            ([{"gamma": -1.0}], "gamma must be"),
            ([3], "kernel must be a name"),
        ],
    )
    def test_invalid_kernels(self, kernels, message):
        X, y = two_classes()
        with pytest.raises(ValueError, match=message):
            MKLSVC(kernels).fit(X, y)

    def test_invalid_matrices(self):
        X, y = two_classes(8)
        K, model = X @ X.T, MKLSVC("precomputed")
        asymmetric = K + np.triu(K, 1)
        for given, message in [
            (K, "X must be a list with a matrix"),
            ([], "X must be a list with a matrix"),
            ([K, K[:4]], "of one shape"),
            ([K[:4]], "square"),
            ([K, asymmetric], "kernel 1: a precomputed kernel matrix must be symmetric"),
            ([np.where(K > 1, np.nan, K)], "NaN"),
            ([K.astype(str)], "real numbers"),
            ([-K], "negative mean diagonal"),
        ]:
            with pytest.raises(ValueError, match=message):
                model.fit(given, y)
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            model.fit([K], y[:4])
        with pytest.raises(ValueError, match="normalize='diagonal' needs"):
            MKLSVC("precomputed", normalize="diagonal").fit([K], y)
        model.fit([K, K + 1.0], y)
        with pytest.raises(ValueError, match="1 kernels with 8 .* expecting 2 kernels with 8"):
            model.predict([K])

    @pytest.mark.parametrize("parameters", [{"norm": 0.5}, {"normalize": "max"}, {"C": np.inf}, {"tol": 0.0}])
    def test_invalid_parameters(self, parameters):
        X, y = two_classes()
        with pytest.raises(ValueError, match=next(iter(parameters))):
            MKLSVC(**parameters).fit(X, y)


class TestClassesAndWeights:
    @pytest.mark.parametrize("strategy", ["ovo", "ovr"])
    def test_several_classes_share_the_weights(self, strategy):
        X, _ = two_classes(150)
        y = np.array(["a", "b", "c"])[np.digitize(X[:, 1] ** 2, [0.2, 1.2])]
        model = MKLSVC([{"features": "each"}], C=10.0, multi_class=strategy).fit(X, y)
        assert model.kernel_weights_[1] > 0.7
        assert model.score(X, y) > 0.9
        assert model.certificate_.relative_gap <= 1e-3
        assert len(model.geometry_) == 3

    def test_several_outputs_share_the_weights(self):
        X, _ = two_classes(80)
        y = np.column_stack([X[:, 1], X[:, 1] ** 2])
        model = MKLSVR([{"features": "each"}], C=10.0).fit(X, y)
        assert model.kernel_weights_[1] > 0.95
        assert model.predict(X).shape == (80, 2)

    def test_weights_are_repetitions(self):
        X, y = two_classes(40)
        counts = np.random.default_rng(0).integers(0, 4, len(y))
        for model in (MKLSVC(tol=1e-9), MKLSVC(norm=2.0, tol=1e-9), MKLSVR(tol=1e-9)):
            weighted = clone(model).fit(X, y, sample_weight=counts)
            repeated = clone(model).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
            np.testing.assert_allclose(weighted.kernel_weights_, repeated.kernel_weights_, atol=1e-5)

    def test_class_weights_are_sample_weights(self):
        X, y = two_classes(60)
        by_class = MKLSVC(class_weight={1: 5.0}, tol=1e-9).fit(X, y)
        assert by_class.class_weight_.tolist() == [1.0, 5.0]
        costs = MKLSVC(tol=1e-9).fit(X, y, sample_weight=np.where(y > 0, 5.0, 1.0))
        assert by_class.certificate_.relative_gap <= 1e-9
        assert costs.certificate_.relative_gap <= 1e-9


class TestFits:
    def test_a_sample_of_the_rows_first_leads_to_the_same_optimum(self, monkeypatch):
        X, y = two_classes(300)
        families = ["linear", {"gamma_factors": [0.1, 1.0, 10.0]}, {"features": "each"}]
        whole = MKLSVC(families, tol=1e-6).fit(X, y)
        monkeypatch.setattr(kernel_subproblem, "SAMPLE_ROWS", 60)
        parts = MKLSVC(families, tol=1e-6).fit(X, y)
        assert parts.certificate_.relative_gap <= 1e-6
        assert parts.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=2e-6)

    @pytest.mark.parametrize(("C", "seed"), [(0.1, 0), (0.1, 2), (0.1, 5), (0.2, 4)])
    def test_where_most_support_vectors_are_at_their_bounds(self, C, seed, monkeypatch):
        """The value has kinks there, where only a mean of dual vectors is optimal."""
        random = np.random.default_rng(seed)
        X = random.integers(0, 3, size=(120, 8)).astype(float)
        y = (X[:, :3].sum(axis=1) + random.normal(size=120) > 3).astype(int)
        model = MKLSVC(["linear", {"gamma_factors": [0.1, 1.0, 10.0]}, {"features": "each"}], C=C)
        assert model.fit(X, y).status_.converged
        assert model.certificate_.relative_gap <= 1e-3
        monkeypatch.setattr("maxmargin.training.multiple_kernels._CombinationFit._by_planes", lambda *_: None)
        with pytest.warns(ConvergenceWarning):
            assert model.fit(X, y).certificate_.relative_gap > 0.05

    @pytest.mark.parametrize("megabytes", [0.6, 2.0])
    def test_little_memory_changes_nothing_but_the_time(self, megabytes):
        X, y = two_classes(350)
        for norm in (1.0, 2.0):
            much = MKLSVC(KERNELS, norm=norm, tol=1e-6).fit(X, y)
            little = MKLSVC(KERNELS, norm=norm, tol=1e-6, cache_size=megabytes).fit(X, y)
            assert little.certificate_.primal == pytest.approx(much.certificate_.primal, rel=2e-6)

    def test_limits(self):
        X, y = two_classes(200)
        for limit, status in [({"max_iter": 2}, Status.MAX_ITERATIONS), ({"max_seconds": 0}, Status.MAX_SECONDS)]:
            with pytest.warns(ConvergenceWarning, match="Relative duality gap"):
                model = MKLSVC(tol=1e-9, **limit).fit(X, y)
            assert model.status_ is status
            assert model.certificate_.dual <= model.certificate_.primal
            assert np.isfinite(model.decision_function(X)).all()
            assert model.kernel_weights_.sum() == pytest.approx(1.0)

    def test_observers(self):
        X, y = two_classes(100)
        reports = []
        seen = MKLSVC(tol=1e-6, callback=reports.append).fit(X, y)
        plain = MKLSVC(tol=1e-6).fit(X, y)
        np.testing.assert_array_equal(seen.dual_coef_, plain.dual_coef_)
        assert [report.iteration for report in reports] == list(range(1, seen.n_iter_ + 1))
        assert reports[-1].gap <= 1e-6 * reports[-1].primal
        with pytest.warns(ConvergenceWarning, match="callback"):
            stopped = MKLSVC(tol=1e-9, callback=lambda progress: progress.iteration == 2).fit(X, y)
        assert stopped.n_iter_ == 2

    def test_interruption_leaves_a_model(self):
        X, y = two_classes(100)

        def interrupt(progress):
            raise KeyboardInterrupt

        model = MKLSVC(tol=1e-9, callback=interrupt)
        with pytest.raises(KeyboardInterrupt, match="usable"):
            model.fit(X, y)
        assert model.predict(X).shape == y.shape

    def test_search_and_copies(self):
        X, y = two_classes(80)
        grid = {"C": [0.1, 10.0], "norm": [1.0, 2.0]}
        search = GridSearchCV(MKLSVC(KERNELS), grid, cv=2).fit(X, y)
        best = search.best_estimator_
        copied = pickle.loads(pickle.dumps(best))
        np.testing.assert_array_equal(copied.decision_function(X), best.decision_function(X))
        assert copied.certificate_.gap == best.certificate_.gap

    @pytest.mark.parametrize(
        "model",
        [
            MKLSVC(),
            MKLSVC(["linear", {"features": [[0, 1], [3]]}], norm=2.0, normalize="diagonal"),
            MKLSVR(),
            MKLOneClassSVM(norm=2.0),
        ],
        ids=repr,
    )
    def test_model_files(self, model, tmp_path):
        X, y = two_classes(60)
        maxmargin.save(model.fit(X, y), tmp_path / "model")
        loaded = maxmargin.load(tmp_path / "model")
        decide = "predict" if isinstance(model, MKLSVR) else "decision_function"
        np.testing.assert_array_equal(getattr(loaded, decide)(X), getattr(model, decide)(X))
        np.testing.assert_array_equal(loaded.kernel_weights_, model.kernel_weights_)
        assert loaded.kernels_ == model.kernels_
        assert loaded.certificate_.gap == model.certificate_.gap
        assert loaded.status_ is model.status_
