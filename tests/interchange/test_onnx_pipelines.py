"""Pipelines converted by skl2onnx with our estimators agree with `predict` and the scores."""

import sys

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import skl2onnx
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import VotingClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

import maxmargin
from maxmargin import SVC, LinearSVC, OneClassSVM, estimators
from maxmargin.interchange import register_onnx_converters, to_onnx
from maxmargin.interchange.fitted_schema import MACHINES

RANDOM = np.random.default_rng(0)
X = RANDOM.random((90, 4)).astype(np.float32)
Y = np.digitize(X.sum(axis=1), np.quantile(X.sum(axis=1), [1 / 3, 2 / 3]))
OPTIONS = {"KernelApproximationSVC": {"n_components": 10, "random_state": 0}, "NuSVC": {"nu": 0.2}}


def run(graph, inputs):
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def one_input(graph, samples):
    return {graph.graph.input[0].name: samples}


def expected_scores(model, samples):
    for method in ("predict_proba", "decision_function"):
        if hasattr(model, method):
            return getattr(model, method)(samples)
    return None


def assert_agrees(graph, model, samples, precision=2e-5):
    """Compare labels and scores, or predictions."""
    found = run(graph, one_input(graph, samples))
    if len(found) == 1:
        expected = model.predict(samples)
        np.testing.assert_allclose(found[0].reshape(expected.shape), expected, atol=precision)
        return
    scores = expected_scores(model, samples)
    given = np.asarray(found[1])
    if scores.ndim == 1:
        assert given.shape[1] == 1 or np.array_equal(given[:, 1], -given[:, 0])
        given, scores = given[:, :1], scores[:, None]
    np.testing.assert_allclose(given, scores, atol=precision)
    best = np.sort(np.column_stack([np.full(len(scores), -np.inf), scores]), axis=1)
    clear = best[:, -1] - best[:, -2] > 1e-4 if scores.shape[1] > 1 else np.abs(scores[:, 0]) > 1e-4
    assert found[0].ravel()[clear].tolist() == model.predict(samples)[clear].tolist()


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("classes", [2, 3])
def test_estimators(name, classes):
    model = getattr(estimators, name)(**OPTIONS.get(name, {}))
    pipeline = make_pipeline(StandardScaler(), model)
    pipeline.fit(X, np.minimum(Y, classes - 1))
    register_onnx_converters()
    options = {"zipmap": False} if hasattr(pipeline, "classes_") else None
    assert_agrees(skl2onnx.to_onnx(pipeline, X[:1], options=options), pipeline, X)
    assert_agrees(to_onnx(pipeline), pipeline, X)


@pytest.mark.parametrize("normalize", ["trace", "diagonal", None])
@pytest.mark.parametrize("name", ["MKLSVC", "MKLSVR", "MKLOneClassSVM"])
def test_kernels_of_some_features(name, normalize):
    kernels = [
        {"kernel": "linear", "features": [0, 2]},
        {"kernel": "rbf", "features": "each"},
        {"kernel": "poly", "coef0": 1.0},
        "laplacian",
    ]
    pipeline = make_pipeline(StandardScaler(), getattr(estimators, name)(kernels, norm=2, normalize=normalize))
    assert_agrees(to_onnx(pipeline.fit(X, Y)), pipeline, X)


@pytest.mark.parametrize("labels", [[3, -7, 5], ["no", "yes", "maybe"], [1.0, 2.0, 4.0]], ids=str)
@pytest.mark.parametrize("probability", [False, True])
def test_labels_and_probabilities(labels, probability):
    y = np.array(labels)[Y]
    for model in (SVC(probability=probability, random_state=0), LinearSVC(probability=probability)):
        for known in (np.isin(Y, [0, 1]), Y >= 0):
            pipeline = make_pipeline(MinMaxScaler(), model).fit(X[known], y[known])
            assert_agrees(to_onnx(pipeline), pipeline, X)
            assert_agrees(to_onnx(pipeline, dtype="float64"), pipeline, X.astype(np.float64), 1e-9)


def test_labels_beyond_integers():
    pipeline = make_pipeline(StandardScaler(), SVC()).fit(X, 2.0**62 * Y)
    with pytest.raises(ValueError, match="labels that are strings or integers"):
        to_onnx(pipeline)


def test_zipmap_only_with_probabilities():
    register_onnx_converters()
    for probability in (False, True):
        model = SVC(probability=probability).fit(X, Y)
        found = run(skl2onnx.to_onnx(model, X[:1]), {"X": X})[1]
        assert isinstance(found, list) == probability
    assert set(found[0]) == {0, 1, 2}


def soft_vote(*models):
    named = [(str(number), model) for number, model in enumerate(models)]
    return VotingClassifier(named, voting="soft", flatten_transform=False)


@pytest.mark.parametrize(
    "model",
    [
        CalibratedClassifierCV(SVC(random_state=0)),
        CalibratedClassifierCV(LinearSVC(), cv=3),
        soft_vote(SVC(probability=True, random_state=0), LinearSVC(probability=True)),
        GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [1.0, 10.0]}, cv=3),
        make_pipeline(StandardScaler(), maxmargin.SVCCV(Cs=2, gammas=2, cv=3)),
        make_pipeline(StandardScaler(), OneClassSVM(nu=0.2)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_of_models(model):
    model = clone(model).fit(X, Y)
    assert_agrees(to_onnx(model), model, X, 1e-4)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "chi_squared", "poly", "sigmoid", "linear"])
def test_kernels(kernel):
    pipeline = make_pipeline(MinMaxScaler(), SVC(kernel=kernel), verbose=False).fit(X, Y)
    assert_agrees(to_onnx(pipeline), pipeline, X)


@pytest.mark.parametrize("opset", [15, 17, 18, 21])
def test_versions_of_operators(opset):
    register_onnx_converters()
    for kernel in ("rbf", "laplacian"):
        pipeline = make_pipeline(StandardScaler(), SVC(kernel=kernel)).fit(X, Y)
        assert_agrees(skl2onnx.to_onnx(pipeline, X[:1], target_opset=opset), pipeline, X)
    with pytest.raises(ValueError, match="target_opset must be at least 15"):
        skl2onnx.to_onnx(pipeline, X[:1], target_opset=12)


@pytest.mark.parametrize("base", [SVC(), LinearSVC(), maxmargin.KernelApproximationSVC(n_components=10)], ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_calibration(base, classes):
    known = classes > Y
    model = CalibratedClassifierCV(base, cv=3).fit(X[known], Y[known])
    np.testing.assert_allclose(run(to_onnx(model), {"X": X})[1], model.predict_proba(X), atol=1e-4)


def test_raw_scores():
    register_onnx_converters()
    model = SVC().fit(X, Y == 1)
    scores = model.decision_function(X)
    for raw, signs in ((False, [1, -1]), (True, [-1, 1])):
        graph = skl2onnx.to_onnx(model, X[:1], options={id(model): {"raw_scores": raw}})
        np.testing.assert_allclose(run(graph, {"X": X})[1], np.outer(scores, signs), atol=1e-5)


def test_one_versus_rest_takes_probabilities():
    model = OneVsRestClassifier(SVC(probability=True, random_state=0)).fit(X, Y)
    np.testing.assert_allclose(run(to_onnx(model), {"X": X})[1], model.predict_proba(X), atol=1e-5)


def test_several_models_in_one_graph():
    kernels = [SVC(kernel="laplacian", probability=True, C=C, random_state=0) for C in (1.0, 5.0)]
    model = soft_vote(*kernels).fit(X, Y)
    assert_agrees(to_onnx(model), model, X)


def test_tables(tmp_path):
    table = pd.DataFrame(X[:, :2], columns=["size", "mass"]).assign(colour=np.array(["red", "green", "blue"])[Y])
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["size", "mass"]),
            ("words", OneHotEncoder(handle_unknown="ignore"), ["colour"]),
        ]
    )
    pipeline = make_pipeline(columns, SVC()).fit(table, Y)
    graph = to_onnx(pipeline, tmp_path / "model.onnx", X=table[:1])
    columns = {name: table[[name]].to_numpy(object if name == "colour" else np.float32) for name in table}
    label, scores = run(graph, columns)
    np.testing.assert_array_equal(label, pipeline.predict(table))
    np.testing.assert_allclose(scores, pipeline.decision_function(table), atol=1e-5)
    assert (tmp_path / "model.onnx").stat().st_size > 0


def test_errors(monkeypatch):
    with pytest.raises(ValueError, match="not fitted"):
        to_onnx(make_pipeline(StandardScaler(), SVC()))
    pipeline = make_pipeline(StandardScaler(), SVC(kernel=lambda A, B: A @ B.T)).fit(X, Y)
    with pytest.raises(ValueError, match="cannot be exported to ONNX; use a kernel of maxmargin.kernels"):
        to_onnx(pipeline)
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match=r"maxmargin\[onnx\]"):
        to_onnx(pipeline)
    with pytest.raises(ImportError, match=r"maxmargin\[onnx\]"):
        register_onnx_converters()


def test_registration_leaves_others_alone():
    from sklearn import svm

    register_onnx_converters()
    model = svm.SVR().fit(X, Y)
    assert "SVMRegressor" in {node.op_type for node in skl2onnx.to_onnx(model, X[:1]).graph.node}
