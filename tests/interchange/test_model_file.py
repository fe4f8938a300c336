"""Exact round trips of every estimator, kernel and type of label, with certificates."""

import dataclasses
import io
import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import maxmargin
from maxmargin import (
    LSSVC,
    LSSVR,
    MKLSVC,
    MKLSVR,
    SVC,
    SVDD,
    SVR,
    KernelApproximationSVC,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    MKLOneClassSVM,
    NuSVC,
    NuSVR,
    OneClassSVM,
    QuantileSVR,
    RankSVC,
    Status,
    TransductiveSVC,
    estimators,
    kernels,
    solvers,
)
from maxmargin.interchange import ModelFileError, fitted_schema, load, save
from maxmargin.interchange.class_registry import CLASSES
from maxmargin.kernels import ChiSquared, FunctionKernel, Gaussian, Laplacian, Linear, Polynomial, Sigmoid

ESTIMATORS = {
    "SVC": SVC(C=2.0),
    "NuSVC": NuSVC(nu=0.3),
    "SVR": SVR(C=3.0),
    "NuSVR": NuSVR(nu=0.4),
    "OneClassSVM": OneClassSVM(nu=0.2),
    "QuantileSVR": QuantileSVR(quantile=0.3),
    "SVDD": SVDD(nu=0.2),
    "LSSVC": LSSVC(C=2.0),
    "LSSVR": LSSVR(C=2.0),
    "RankSVC": RankSVC(C=0.5),
    "TransductiveSVC": TransductiveSVC(C=2.0, unlabeled_label=2),
}
LINEAR = {
    "LinearSVC": LinearSVC(C=2.0),
    "LinearSVR": LinearSVR(C=3.0, intercept_scaling=2.0),
    "LinearOneClassSVM": LinearOneClassSVM(nu=0.2),
}
SEVERAL_KERNELS = {"MKLSVC": MKLSVC(), "MKLSVR": MKLSVR(norm=2), "MKLOneClassSVM": MKLOneClassSVM(norm=2)}
LANDMARKS = KernelApproximationSVC(n_components=20, random_state=0)
METHODS = ("predict", "decision_function", "score_samples")


def samples(count=40, features=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((count, features))
    X[rng.random(X.shape) < 0.3] = 0.0
    return X, np.arange(count) % 3


def round_trip(model, with_certificate=True):
    if with_certificate:
        assert model.certificate_
    file = io.BytesIO()
    save(model, file)
    return load(io.BytesIO(file.getvalue()))


def assert_same(found, expected):
    """Compare values deeply: types, bits, layout of arrays."""
    assert type(found) is type(expected)
    if dataclasses.is_dataclass(expected):
        found, expected = vars(found), vars(expected)
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        found, expected = list(found.values()), list(expected.values())
    if isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif sparse.issparse(expected):
        assert found.shape == expected.shape
        for part in ("data", "indices", "indptr"):
            assert_same(getattr(found, part), getattr(expected, part))
    elif isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        assert found.flags.f_contiguous == expected.flags.f_contiguous
        assert (
            found.tolist() == expected.tolist() if expected.dtype == object else found.tobytes() == expected.tobytes()
        )
    else:
        assert found == expected or (found != found and expected != expected)


def assert_same_model(found, expected, X):
    """Compare attributes and predictions of two models."""
    assert type(found) is type(expected)
    assert_same(found.get_params(deep=False), expected.get_params(deep=False))
    ours, theirs = vars(found), vars(expected)
    assert ours.keys() == theirs.keys()
    for name in theirs.keys() - {"_models_"}:
        assert_same(ours[name], theirs[name])
    for name in ("certificate_", "geometry_", "status_", "n_support_"):
        if type(expected).__name__ not in LINEAR or name in ("certificate_", "status_"):
            assert_same(getattr(found, name), getattr(expected, name))
    assert str(found.certificate_) == str(expected.certificate_)
    if type(expected).__name__ in LINEAR:
        assert_same(found._models_, expected._models_)
    elif hasattr(expected, "coef_"):
        assert_same(found.coef_, expected.coef_)
    for method in METHODS:
        if hasattr(expected, method):
            assert_same(getattr(found, method)(X), getattr(expected, method)(X))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("name", SEVERAL_KERNELS)
def test_several_kernels(name, make):
    X, y = samples()
    model = clone(SEVERAL_KERNELS[name]).fit(make(X), y)
    assert_same_model(round_trip(model), model, make(X))


def test_every_estimator_is_tested():
    assert {*ESTIMATORS, *LINEAR, *SEVERAL_KERNELS, type(LANDMARKS).__name__} == set(fitted_schema.MACHINES)
    assert set(estimators.__all__) - set(fitted_schema.MACHINES) == {"OnlineSVC", "OnlineOneClassSVM"}  # for pickle


def test_every_kernel_and_solver_is_registered():
    exported = [getattr(kernels, name) for name in kernels.__all__] + [
        getattr(solvers, name) for name in solvers.__all__
    ]
    classes = {kind for kind in exported if isinstance(kind, type) and dataclasses.is_dataclass(kind)}
    assert classes - {FunctionKernel} <= {record.kind for record in CLASSES.values()}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_estimators(name, form, kernel):
    X, y = samples()
    model = clone(ESTIMATORS[name]).set_params(kernel=kernel).fit(form(X), y)
    assert_same_model(round_trip(model), model, form(samples(seed=1)[0]))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("form", [np.asarray, np.float32, sparse.csr_matrix, sparse.csr_array])
def test_models_on_landmarks(classes, form):
    X, y = samples()
    expected = clone(LANDMARKS).fit(form(X), y % classes)
    found = round_trip(expected)
    assert_same(vars(found), vars(expected))
    assert_same(found.certificate_, expected.certificate_)
    assert_same(found.decision_function(form(X)), expected.decision_function(form(X)))


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("sparsified", [False, True])
def test_linear_estimators(name, form, sparsified):
    X, y = samples()
    model = clone(LINEAR[name]).fit(form(X), y)
    if sparsified:
        model.sparsify()
    assert_same_model(round_trip(model), model, form(samples(seed=1)[0]))


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(multi_class="crammer_singer"),
        LinearSVC(probability=True, class_weight="balanced"),
        LinearSVC(penalty="l1", probability=True),
        LinearSVC(penalty="l1", solver=solvers.CoordinateDescentSolver(solvers.StoppingRule(relative_gap=1e-3))),
        LinearSVR(noise=True),
        LinearOneClassSVM(probability=True),
    ],
    ids=str,
)
@pytest.mark.parametrize("classes", [2, 3])
def test_more_of_linear_estimators(model, classes):
    X, y = samples()
    model = clone(model).fit(X, np.minimum(y, classes - 1))
    found = round_trip(model)
    assert_same_model(found, model, X)
    for method in ("predict_proba", "predict_interval"):
        if hasattr(model, method):
            assert_same(getattr(found, method)(X), getattr(model, method)(X))


@pytest.mark.parametrize(
    "kind", [solvers.LinearSolver, solvers.DualCoordinateAscentSolver, solvers.SemismoothNewtonSolver]
)
def test_solvers_of_linear_estimators(kind):
    X, y = samples()
    model = LinearSVC(solver=kind(solvers.StoppingRule(relative_gap=1e-3))).fit(X, y)
    assert_same_model(round_trip(model), model, X)


def test_linear_regression_of_several_outputs():
    X, y = samples()
    model = LinearSVR(noise=True).fit(X, np.stack([y, -y], axis=1))
    assert_same_model(round_trip(model), model, X)


@pytest.mark.parametrize("strategy", ["ovr", "crammer_singer", "weston_watkins"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_strategies(strategy, classes, kernel):
    X, y = samples()
    model = SVC(multi_class=strategy, kernel=kernel).fit(X, np.minimum(y, classes - 1))
    assert_same_model(round_trip(model), model, X)


@pytest.mark.parametrize("name", ["SVC", "NuSVC", "OneClassSVM"])
def test_probabilities(name):
    X, y = samples()
    model = clone(ESTIMATORS[name]).set_params(probability=True).fit(X, y)
    found = round_trip(model)
    assert_same_model(found, model, X)
    assert_same(found.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("name", ["SVR", "NuSVR"])
def test_noise(name):
    X, y = samples()
    for targets in (y, np.stack([y, X[:, 0]], axis=1)):
        model = clone(ESTIMATORS[name]).set_params(noise=True).fit(X, targets)
        found = round_trip(model)
        assert_same_model(found, model, X)
        assert_same(found.predict_interval(X), model.predict_interval(X))


@pytest.mark.parametrize("name", ["SVR", "NuSVR", "QuantileSVR", "LSSVR"])
def test_several_outputs(name):
    X, y = samples()
    model = clone(ESTIMATORS[name]).fit(X, np.stack([y, X[:, 0]], axis=1))
    assert_same_model(round_trip(model), model, X)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_single_precision_stays(form):
    X, y = samples()
    model = SVC().fit(form(X.astype(np.float32)), y)
    assert model.support_vectors_.dtype == np.float32
    assert_same_model(round_trip(model), model, form(X.astype(np.float32)))


@pytest.mark.parametrize("name", sorted(set(ESTIMATORS) - {"SVDD"}))
def test_precomputed(name):
    X, y = samples()
    model = clone(ESTIMATORS[name]).set_params(kernel="precomputed").fit(Gaussian(2.0)(X), y)
    assert_same_model(round_trip(model), model, Gaussian(2.0)(samples(7, seed=1)[0], X))


@pytest.mark.parametrize(
    "kernel",
    [
        *sorted(kernels.KERNELS),
        ChiSquared(0.3),
        Gaussian(np.float32(0.5)),
        Gaussian([0.5, 0.0, 2.0]),
        2.0 * Laplacian(np.linspace(0.0, 1.0, 3)) + ChiSquared([0.1] * 3),
        Laplacian(1),
        Polynomial(2, 0.5, np.float64(1.0)),
        Sigmoid(0.1, -1.0),
        0.5 * Gaussian(2.0) + Linear() * Polynomial(3.0, 0.1, 1.0),
        sum([Gaussian(0.1 * k) for k in range(1, 60)], start=Linear()),
    ],
    ids=lambda kernel: kernel if isinstance(kernel, str) else str(kernel)[:40],
)
def test_kernels(kernel):
    X, y = samples()
    for model in (SVC(kernel=kernel, coef0=0.5), SVR(kernel=kernel, gamma=0.7), SVDD(kernel=kernel)):
        model.fit(X, y)
        assert_same_model(round_trip(model), model, X)


@pytest.mark.parametrize(
    "labels",
    [
        ["no", "yes"],
        ["früh", "spät", "\N{SNOWMAN} nie"],
        [3, -7, 2**40],
        np.array([1, 2, 3], dtype=np.uint8),
        [1.0, 2.0, 5.0],
        [False, True],
        np.array(["a", "bc"], dtype=object),
    ],
    ids=str,
)
def test_labels_and_class_weights(labels):
    X, _ = samples()
    y = np.asarray(labels)[np.arange(len(X)) % len(labels)]
    for weights in (None, "balanced", {label: 1.0 + k for k, label in enumerate(np.asarray(labels).tolist())}):
        model = SVC(class_weight=weights, break_ties=True).fit(X, y)
        loaded = round_trip(model)
        assert_same_model(loaded, model, X)
        assert loaded.score(X, y) == model.score(X, y)


def test_feature_names():
    X, y = samples()
    frame = pd.DataFrame(X, columns=["größe", "b", "c"])
    model = SVR().fit(frame, y)
    loaded = round_trip(model)
    assert_same_model(loaded, model, frame)
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame.rename(columns={"b": "d"}))


def test_parameters_of_all_types():
    X, y = samples()
    own = solvers.PairwiseSolver("maximum_gain", stopping=solvers.StoppingRule(1e-5, max_iterations=10**6))
    model = SVC(C=np.inf, kernel=Gaussian(300.0), random_state=7, solver=own, tol=np.float32(0.01), n_jobs=np.int64(2))
    model.fit(X, y == 1)
    assert_same_model(round_trip(model), model, X)
    block = SVR(solver=solvers.BlockSolver(working_set=16)).fit(X, y)
    assert_same_model(round_trip(block), block, X)


def test_unusual_models():
    X, y = samples()
    flat = SVR(epsilon=10.0).fit(X, y)
    assert len(flat.support_) == 0
    assert_same_model(round_trip(flat), flat, X)
    two = NuSVC(nu=1.0).fit([[0.0], [1.0]], [0, 1])
    assert_same_model(round_trip(two), two, [[0.2]])
    no_bias = SVC(fit_intercept=False).fit(X, y, sample_weight=y + np.arange(len(y)) % 2)
    assert_same_model(round_trip(no_bias), no_bias, X)
    with pytest.warns(ConvergenceWarning):
        limited = SVC(max_iter=2).fit(X, y)
    loaded = round_trip(limited)
    assert_same_model(loaded, limited, X)
    assert Status.MAX_ITERATIONS in loaded.status_


def test_files_from_before_there_were_devices(monkeypatch):
    X, y = samples()
    model = SVC().fit(X, y)
    expected = model.predict(X)
    del model.device_
    without = {name: value for name, value in model.get_params(deep=False).items() if name != "device"}
    monkeypatch.setattr(SVC, "get_params", lambda self, deep=True: without)
    np.testing.assert_array_equal(round_trip(model).predict(X), expected)


NOT_COMPUTED = "not computed before the model was pickled or saved.*read certificate_ before .* or fit again"


@pytest.mark.parametrize("model", [SVC(), SVC(multi_class="ovr"), SVR(), OneClassSVM(), LSSVC(), RankSVC()], ids=str)
def test_saving_does_not_compute_the_certificate(model):
    X, y = samples()
    model.fit(X, y)
    loaded = round_trip(model, with_certificate=False)
    assert not any(one.certificate_computed for one in (*model._models_, *loaded._models_))
    assert_same(loaded.predict(X), model.predict(X))
    for found in (loaded, round_trip(loaded, with_certificate=False), pickle.loads(pickle.dumps(model))):
        for attribute in ("certificate_", "geometry_"):
            with pytest.raises(AttributeError, match=NOT_COMPUTED):
                getattr(found, attribute)
        assert found.status_ is not None
    assert model.certificate_
    assert all(one.certificate_computed for one in round_trip(model)._models_)
    assert loaded.fit(X, y).certificate_


def test_data_changed_before_saving():
    X, y = samples()
    given = X.copy()
    model = SVC().fit(given, y)
    given[:] = 0.0
    with pytest.raises(RuntimeError, match="training data were changed"):
        _ = model.certificate_
    loaded = round_trip(model, with_certificate=False)
    assert_same(loaded.predict(X), model.predict(X))
    with pytest.raises(AttributeError, match=NOT_COMPUTED):
        _ = loaded.certificate_


def test_warm_start_of_a_loaded_model():
    X, y = samples(200)
    for model in (SVC(C=100.0, warm_start=True), SVR(C=100.0, warm_start=True)):
        steps = np.sum(model.fit(X, y).n_iter_)
        loaded = round_trip(model).fit(X, y)
        assert np.sum(loaded.n_iter_) < steps
        assert loaded.certificate_ if isinstance(model, SVR) else loaded.certificate_[0]


def test_loaded_models_can_be_pickled_saved_and_cloned():
    X, y = samples()
    model = SVC().fit(X, y)
    loaded = pickle.loads(pickle.dumps(round_trip(model)))
    assert_same_model(loaded, model, X)
    assert_same_model(round_trip(round_trip(model)), model, X)
    assert loaded.support_vectors_.flags.writeable
    assert_same(clone(round_trip(model)).fit(X, y).dual_coef_, model.dual_coef_)


def test_paths_and_files(tmp_path):
    X, y = samples()
    model = SVC().fit(X, y)
    assert model.certificate_
    for path in (tmp_path / "model.mxm", str(tmp_path / "other")):
        maxmargin.save(model, path)
        assert_same_model(maxmargin.load(path), model, X)
    with open(tmp_path / "third", "wb") as file:
        save(model, file)
    with open(tmp_path / "third", "rb", buffering=0) as file:
        assert_same_model(load(file), model, X)
    contents = {(tmp_path / name).read_bytes() for name in ("model.mxm", "other", "third")}
    assert len(contents) == 1
    assert len(os.listdir(tmp_path)) == 3
    with open(tmp_path / "third", encoding="latin-1") as file, pytest.raises(ModelFileError, match="binary mode"):
        load(file)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere")


def test_writing_is_atomic(tmp_path, monkeypatch):
    X, y = samples()
    path = tmp_path / "model"
    save(SVC().fit(X, y), path)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        save(SVR().fit(X, y), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


def test_symbolic_links_are_followed(tmp_path):
    X, y = samples()
    (tmp_path / "link").symlink_to(tmp_path / "model")
    save(SVC().fit(X, y), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert not (tmp_path / "model").is_symlink()
    assert isinstance(load(pathlib.PurePath(tmp_path / "model")), SVC)


def test_importing_does_not_load_onnx():
    program = "import sys, maxmargin; print([m for m in ('onnx', 'onnxruntime') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
