"""LIBLINEAR model files in both directions, compared with LIBLINEAR's own reader and program."""

import io
import shutil
import subprocess
from ctypes import c_double

import numpy as np
import pytest
from liblinear import liblinearutil
from liblinear.liblinear import gen_feature_nodearray
from liblinear.liblinear import liblinear as library
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import MaxAbsScaler
from threadpoolctl import threadpool_limits

from maxmargin import SVC, LinearOneClassSVM, LinearSVC, LinearSVR
from maxmargin.interchange import ModelFileError, read_liblinear_model, write_liblinear_model
from maxmargin.interchange.liblinear_model import (
    CLASSIFIERS,
    LOGISTIC,
    ONE_CLASS,
    liblinear_model_of,
    read_liblinear_text,
    write_liblinear_text,
)

LIBLINEAR_PREDICT = shutil.which("liblinear-predict")
SOLVERS = {
    "L2R_L2LOSS_SVC_DUAL": 1, "L2R_L2LOSS_SVC": 2, "L2R_L1LOSS_SVC_DUAL": 3, "MCSVM_CS": 4, "L1R_L2LOSS_SVC": 5,
    "L2R_L2LOSS_SVR": 11, "L2R_L2LOSS_SVR_DUAL": 12, "L2R_L1LOSS_SVR_DUAL": 13, "ONECLASS_SVM": 21,
}  # fmt: skip
DATA = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer, "digits": load_digits}
OURS = {
    "squared hinge": LinearSVC(dual=False),
    "hinge": LinearSVC(loss="hinge", intercept_scaling=2.0),
    "sparse weights": LinearSVC(penalty="l1"),
    "all in one": LinearSVC(multi_class="crammer_singer"),
    "without intercept": LinearSVC(fit_intercept=False),
    "tube": LinearSVR(),
    "squared tube": LinearSVR(loss="squared_epsilon_insensitive", intercept_scaling=1.0),
    "one class": LinearOneClassSVM(nu=0.3),
}
NAMES = {
    "squared hinge": "L2R_L2LOSS_SVC", "hinge": "L2R_L1LOSS_SVC_DUAL", "sparse weights": "L1R_L2LOSS_SVC",
    "all in one": "MCSVM_CS", "without intercept": "L2R_L2LOSS_SVC_DUAL", "tube": "L2R_L1LOSS_SVR_DUAL",
    "squared tube": "L2R_L2LOSS_SVR", "one class": "ONECLASS_SVM",
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


def samples(name):
    """Training samples, classes that do not appear in order, targets, and samples to predict."""
    X, y = DATA[name](return_X_y=True)
    order = np.random.default_rng(2).permutation(len(X))[:130]
    X, y = MaxAbsScaler().fit_transform(X[order]), 2 * y[order] - 1
    targets = X[:, 0] - np.sin(3.0 * X[:, 1]) + 0.1 * y
    return X[:100], y[:100], targets[:100], X[100:]


def decide(model, X, count):
    """LIBLINEAR's answers and decision values."""
    answers, values = [], []
    for row in X.tolist():
        nodes = gen_feature_nodearray(row, feature_max=model.nr_feature)[0]
        if model.bias >= 0:  # the package adds the constant feature itself, in the two places that it keeps free
            nodes[-2].index, nodes[-2].value = model.nr_feature + 1, model.bias
        buffer = (c_double * count)()
        answers.append(library.predict_values(model, nodes, buffer))
        values.append(list(buffer))
    return np.array(answers), np.array(values)


@pytest.mark.parametrize("bias", [-1, 0, 1, 2.5])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", DATA)
def test_reading_liblinear_files(name, solver, bias, tmp_path):
    X, y, targets, new = samples(name)
    options = f"-s {SOLVERS[solver]} -B {-1 if solver == ONE_CLASS else bias} -q"
    problem = liblinearutil.problem((y if solver in CLASSIFIERS else targets).tolist(), X.tolist())
    path = tmp_path / "their.model"
    liblinearutil.save_model(str(path), liblinearutil.train(problem, liblinearutil.parameter(options)))
    reference = liblinearutil.load_model(str(path))
    model = read_liblinear_text(path)
    answers, values = decide(reference, new, len(model.weights))
    np.testing.assert_allclose(model.decision_values(new), values, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.decision_values(sparse.csr_matrix(new)), values, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.predict(new), answers, rtol=1e-9, atol=1e-12)
    file = io.BytesIO()
    write_liblinear_text(model, file)
    assert file.getvalue() == path.read_bytes()
    estimator = read_liblinear_model(path)
    np.testing.assert_allclose(estimator.predict(new), answers, rtol=1e-9, atol=1e-12)
    back = liblinear_model_of(estimator, model.labels)
    np.testing.assert_allclose(back.predict(new), answers, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(liblinear_model_of(estimator).predict(new), estimator.predict(new))


@pytest.mark.parametrize("made", OURS)
@pytest.mark.parametrize("name", DATA)
def test_liblinear_reads_our_files(name, made, tmp_path):
    X, y, targets, new = samples(name)
    model = OURS[made].fit(X, targets if "tube" in made else y)
    path = tmp_path / "our.model"
    write_liblinear_model(model, path)
    assert path.read_text().splitlines()[0] == f"solver_type {NAMES[made]}"
    reference = liblinearutil.load_model(str(path))
    answers, values = decide(reference, new, len(read_liblinear_text(path).weights))
    expected = model.predict(new)
    clear = np.abs(values[:, 0]) > 1e-9
    assert clear.mean() > 0.9
    np.testing.assert_allclose(answers[clear], expected[clear], rtol=1e-9, atol=1e-12)
    again = read_liblinear_model(path)
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.predict(new), expected)


@pytest.mark.skipif(LIBLINEAR_PREDICT is None, reason="needs liblinear-predict, of Debian's package liblinear-tools")
@pytest.mark.parametrize("made", [made for made in OURS if made != "one class"])  # the program is older than that
@pytest.mark.parametrize("name", DATA)
def test_liblinear_predict_with_our_files(name, made, tmp_path):
    X, y, targets, new = samples(name)
    model = OURS[made].fit(X, targets if "tube" in made else y)
    write_liblinear_model(model, tmp_path / "model")
    lines = [" ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row)) for row in new.tolist()]
    (tmp_path / "data").write_text("".join(f"0 {line}\n" for line in lines))
    command = [LIBLINEAR_PREDICT, "-q", tmp_path / "data", tmp_path / "model", tmp_path / "out"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    np.testing.assert_allclose(np.loadtxt(tmp_path / "out"), model.predict(new), rtol=1e-5, atol=1e-5)


class TestWriting:
    def test_order_of_labels(self, tmp_path):
        for name in ("iris", "breast_cancer"):
            X, y, _, new = samples(name)
            for model in (LinearSVC(), LinearSVC(multi_class="crammer_singer")):
                model.fit(X, y)
                labels = model.classes_[[1, 0, 2][: len(model.classes_)]]
                write_liblinear_model(model, tmp_path / "model", labels=labels)
                found = read_liblinear_text(tmp_path / "model")
                assert found.labels.tolist() == labels.tolist()
                np.testing.assert_array_equal(found.predict(new), model.predict(new))
                np.testing.assert_array_equal(read_liblinear_model(tmp_path / "model").predict(new), model.predict(new))
        with pytest.raises(ValueError, match="permutation of the classes"):
            write_liblinear_model(model, tmp_path / "model", labels=[0, 5])

    def test_empty_samples_are_decided_alike(self, tmp_path):
        nothing = np.zeros((1, 4))
        for name in ("iris", "digits"):
            X, y, _, _ = samples(name)
            nothing = np.zeros((1, X.shape[1]))
            model = LinearSVC(fit_intercept=False).fit(X, y)
            write_liblinear_model(model, tmp_path / "model")
            assert read_liblinear_text(tmp_path / "model").predict(nothing) == model.predict(nothing)

    def test_sparse_coefficients(self, tmp_path):
        X, y, _, new = samples("wine")
        model = LinearSVC(penalty="l1", C=0.1).fit(X, y).sparsify()
        write_liblinear_model(model, tmp_path / "model")
        np.testing.assert_array_equal(read_liblinear_model(tmp_path / "model").predict(new), model.predict(new))

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda X, y: LinearSVC(), "not fitted yet"),
            (lambda X, y: LinearSVC(probability=True).fit(X, y), "probability=False"),
            (lambda X, y: LinearSVC().fit(X, y.astype(str)), "labels in LIBLINEAR files must be 32-bit integers"),
            (lambda X, y: LinearSVR().fit(X, np.column_stack([y, -y])), "one output"),
            (lambda X, y: SVC().fit(X, y), "write_libsvm_model"),
        ],
    )
    def test_unsupported_models(self, make, message, tmp_path):
        X, y, _, _ = samples("iris")
        with pytest.raises(ModelFileError, match=message):
            write_liblinear_model(make(X, y), tmp_path / "model")
        assert not list(tmp_path.iterdir())


class TestReading:
    @pytest.mark.parametrize("solver", LOGISTIC)
    def test_logistic_regression_is_none_of_ours(self, solver):
        text = f"solver_type {solver}\nnr_class 2\nlabel 1 -1\nnr_feature 1\nbias -1\nw\n1\n".encode()
        with pytest.raises(ModelFileError, match="line 1: .* logistic regression.*LogisticRegression"):
            read_liblinear_model(io.BytesIO(text))

    def test_more_and_fewer_features(self):
        text = b"solver_type L2R_L1LOSS_SVR_DUAL\nnr_class 2\nnr_feature 2\nbias 2\nw\n3\n5\n7\n"
        model = read_liblinear_text(io.BytesIO(text))
        assert model.predict(np.array([[1.0, 1.0, 9.0]])).tolist() == [3 + 5 + 14]
        assert model.predict(np.array([[1.0]])).tolist() == [3 + 14]
        wide = read_liblinear_model(io.BytesIO(text), n_features=3)
        assert wide.predict([[1.0, 1.0, 9.0]]).tolist() == [22]
        assert wide.intercept_scaling == 2.0
        with pytest.raises(ValueError, match="2 features, but n_features is 1"):
            read_liblinear_model(io.BytesIO(text), n_features=1)

    def test_a_single_class(self):
        text = b"solver_type MCSVM_CS\nnr_class 1\nlabel 3\nnr_feature 1\nbias -1\nw\n1\n"
        assert read_liblinear_text(io.BytesIO(text)).predict(np.eye(1)).tolist() == [3]
        with pytest.raises(ModelFileError, match="single class, 3"):
            read_liblinear_model(io.BytesIO(text))

    def test_certify_on_data(self, tmp_path):
        X, y, _, _ = samples("breast_cancer")
        problem = liblinearutil.problem(y.tolist(), X.tolist())
        model = liblinearutil.train(problem, liblinearutil.parameter("-s 2 -c 1 -B 1 -e 1e-8 -q"))
        liblinearutil.save_model(str(tmp_path / "model"), model)
        estimator = read_liblinear_model(tmp_path / "model")
        with pytest.raises(AttributeError, match=r"certificate_.*certify\(X, y\)"):
            _ = estimator.certificate_
        assert estimator.certify(X, y).relative_gap < 1e-6
