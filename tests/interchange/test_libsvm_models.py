"""LIBSVM model files in both directions, compared with LIBSVM's own reader and programs."""

import io
import shutil
import subprocess
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from libsvm import svmutil
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_classification
from sklearn.preprocessing import MaxAbsScaler
from threadpoolctl import threadpool_limits

from maxmargin import LSSVC, LSSVR, SVC, SVDD, SVR, LinearSVC, NuSVC, NuSVR, OneClassSVM, QuantileSVR
from maxmargin.interchange import LibsvmModel, ModelFileError, read_libsvm_model, write_libsvm_model
from maxmargin.interchange.libsvm import libsvm_model_of, read_text, write_text
from maxmargin.kernels import Gaussian, Laplacian, Linear, Polynomial, Sigmoid
from reference import libsvm

SVM_PREDICT = shutil.which("svm-predict")
SVM_TYPES = {"c_svc": 0, "nu_svc": 1, "one_class": 2, "epsilon_svr": 3, "nu_svr": 4}
KERNELS = {"linear": 0, "polynomial": 1, "rbf": 2, "sigmoid": 3, "precomputed": 4}
DATA = ["iris", "wine", "breast_cancer", "digits", "sparse"]
OURS = {
    "c_svc": SVC(C=2.0),
    "nu_svc": NuSVC(nu=0.1),
    "one_class": OneClassSVM(nu=0.3),
    "epsilon_svr": SVR(C=2.0),
    "nu_svr": NuSVR(C=2.0, nu=0.4),
}
CASES = [(data, svm_type, kernel, probability) for data in DATA for svm_type in SVM_TYPES for kernel in KERNELS
         for probability in (False, True)]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """LIBSVM on one thread: several would wait for each other when the computer is busy."""
    with threadpool_limits(1):
        yield


@cache
def samples(name):
    """Training samples, classes that do not appear in order, targets, and samples to predict."""
    if name == "sparse":
        X, y = make_classification(160, 20, n_informative=8, n_classes=4, random_state=0)
        X, y = np.where(np.abs(X) < 1.0, 0.0, X), np.array([7, -3, 0, 12])[y]
        X[:, 0] = np.abs(X[:, 0]) + 0.5  # away from the origin, for one class
    else:
        loaders = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer, "digits": load_digits}
        X, y = loaders[name](return_X_y=True)
        y = 2 * y - 1 if name == "breast_cancer" else y
    order = np.random.default_rng(1).permutation(len(X))[:90]
    X, y = MaxAbsScaler().fit_transform(X[order]), y[order]
    targets = X[:, 0] - np.sin(3.0 * X[:, 1]) + 0.1 * y
    return X[:75], y[:75], targets[:75], X[75:]


def given(name, kernel):
    """The same, with kernel values in place of samples if the kernel is precomputed."""
    X, y, targets, new = samples(name)
    return (X @ X.T, y, targets, new @ X.T) if kernel == "precomputed" else (X, y, targets, new)


def theirs(name, svm_type, kernel, probability, path):
    """Train with LIBSVM and write its file; return its own model, read again, and the options."""
    X, y, targets, _ = given(name, kernel)
    options = f"-s {SVM_TYPES[svm_type]} -t {KERNELS[kernel]} -b {int(probability)} -c 2 -n 0.1 -g 0.2 -r 0.5 -d 2 -q"
    rows = [[k + 1.0, *row] for k, row in enumerate(X)] if kernel == "precomputed" else X.tolist()
    labels = (y if svm_type in ("c_svc", "nu_svc") else targets).tolist()
    problem = svmutil.svm_problem(labels, rows, isKernel=kernel == "precomputed")
    trained = svmutil.svm_train(problem, svmutil.svm_parameter(options))
    svmutil.svm_save_model(str(path), trained)
    return libsvm.load(path)


def ours(name, svm_type, kernel, probability):
    X, y, targets, _ = given(name, kernel)
    model = OURS[svm_type]
    settings = {"kernel": "poly" if kernel == "polynomial" else kernel, "gamma": 0.2, "coef0": 0.5, "degree": 2}
    settings["noise" if svm_type.endswith("svr") else "probability"] = probability
    model = type(model)(**{**model.get_params(), **settings})
    return model.fit(X, y if svm_type in ("c_svc", "nu_svc") else targets)


@pytest.mark.parametrize(("name", "svm_type", "kernel", "probability"), CASES)
def test_reading_libsvm_files(name, svm_type, kernel, probability, tmp_path):
    path = tmp_path / "their.model"
    new = given(name, kernel)[3]
    reference = theirs(name, svm_type, kernel, probability, path)
    answers, values = libsvm.decide(reference, new, kernel == "precomputed")
    model = read_text(path)
    assert (model.svm_type, model.kernel) == (svm_type, kernel)
    scale = max(1.0, float(np.abs(model.coefficients).sum()))
    np.testing.assert_allclose(model.decision_values(new), values, rtol=1e-9, atol=1e-13 * scale)
    np.testing.assert_allclose(model.decision_values(sparse.csr_matrix(new)), values, rtol=1e-9, atol=1e-13 * scale)
    clear = np.abs(values).min(axis=1) > 1e-9
    assert clear.mean() > 0.9
    np.testing.assert_allclose(model.predict(new)[clear], answers[clear], rtol=1e-9, atol=1e-13 * scale)
    if model.has_probabilities and not svm_type.endswith("svr"):
        expected = libsvm.probabilities(reference, new, kernel == "precomputed")
        np.testing.assert_allclose(model.predict_probability(new)[clear], expected[clear], atol=1e-9)
    file = io.BytesIO()
    write_text(model, file)
    assert file.getvalue() == path.read_bytes()
    check_estimator(read_libsvm_model(path, n_features=new.shape[1]), model, new, clear)


def check_estimator(estimator, model, new, clear):
    """The estimator says what the model does, with its classes sorted."""
    decisions = estimator.decision_function(new) if model.svm_type == "one_class" else None
    if model.labels is None:
        found = estimator.predict(new)
        np.testing.assert_allclose(found[clear], model.predict(new)[clear], rtol=1e-9, atol=1e-12)
        if decisions is not None:
            np.testing.assert_allclose(decisions, model.decision_values(new)[:, 0], rtol=1e-9, atol=1e-9)
        if model.probA is not None:
            middle = estimator.predict_interval(new, 1.0 - np.exp(-1.0))
            np.testing.assert_allclose(np.diff(middle, axis=1), 2.0 * model.probA[0])
        if model.density_marks is not None:
            coarse, fine = model.predict_probability(new), estimator.predict_proba(new)
            assert np.abs(coarse - fine).max() < 0.051  # steps of a tenth here, straight lines there
        return
    in_order = model.reordered(np.sort(model.labels))
    turned = model.reordered(np.sort(model.labels)[::-1])
    np.testing.assert_array_equal(model.predict(new)[_is_won(model, new)], turned.predict(new)[_is_won(model, new)])
    assert estimator.classes_.tolist() == sorted(model.labels.tolist())
    assert estimator.n_support_.sum() == model.coefficients.shape[1] == len(estimator.support_)
    if model.has_probabilities:
        np.testing.assert_allclose(estimator.predict_proba(new), in_order.predict_probability(new), atol=0.01)
        estimator.set_params(probability=False)
    np.testing.assert_array_equal(estimator.predict(new)[clear], in_order.predict(new)[clear])
    back = libsvm_model_of(estimator)
    np.testing.assert_array_equal(back.coefficients, in_order.coefficients)
    np.testing.assert_array_equal(back.rho, in_order.rho)
    again = back.reordered(model.labels)
    np.testing.assert_array_equal(again.coefficients, model.coefficients)
    np.testing.assert_array_equal(again.rho, model.rho)


def _is_won(model, new):
    """Whether one class alone has most votes, and no value is next to 0."""
    values = model.decision_values(new)
    votes, count = np.zeros((len(values), len(model.labels))), len(model.labels)
    for pair, (a, b) in enumerate(combinations(range(count), 2)):
        votes[np.arange(len(values)), np.where(values[:, pair] > 0, a, b)] += 1
    most = np.sort(votes, axis=1)
    return (most[:, -1] > most[:, -2]) & (np.abs(values).min(axis=1) > 1e-9)


@pytest.mark.parametrize(("name", "svm_type", "kernel", "probability"), CASES)
def test_libsvm_reads_our_files(name, svm_type, kernel, probability, tmp_path):
    path = tmp_path / "our.model"
    new = given(name, kernel)[3]
    model = ours(name, svm_type, kernel, probability)
    write_libsvm_model(model, path)
    reference = libsvm.load(path)
    answers, values = libsvm.decide(reference, new, kernel == "precomputed")
    scale = max(1.0, float(np.abs(model.dual_coef_).sum()))
    if svm_type in ("c_svc", "nu_svc"):
        model.set_params(decision_function_shape="ovo")
        found = model.decision_function(new)
        found = -found[:, None] if found.ndim == 1 else found
    else:
        found = model._decide(new)[:, None]
    np.testing.assert_allclose(values, found, rtol=1e-9, atol=1e-13 * scale)
    clear = np.abs(values).min(axis=1) > 1e-9 + 1e-12 * scale
    assert clear.mean() > 0.9
    if svm_type in ("c_svc", "nu_svc"):
        if probability:
            expected = libsvm.probabilities(reference, new, kernel == "precomputed")
            np.testing.assert_allclose(model.predict_proba(new), expected, atol=0.01)
            model.set_params(probability=False)
        np.testing.assert_array_equal(model.predict(new)[clear], answers[clear])
    elif svm_type == "one_class" and probability:
        expected = libsvm.probabilities(reference, new, kernel == "precomputed")
        assert np.abs(expected - model.predict_proba(new)).max() < 0.051
    again = read_libsvm_model(path, n_features=new.shape[1])
    np.testing.assert_array_equal(again.dual_coef_, model.dual_coef_)
    np.testing.assert_array_equal(again.intercept_, model.intercept_)
    np.testing.assert_array_equal(again.predict(new), _predicted(model, again, new))


def _predicted(model, again, new):
    return model.set_params(probability=True).predict(new) if getattr(again, "_sigmoids_", None) else model.predict(new)


@pytest.mark.skipif(SVM_PREDICT is None, reason="needs svm-predict, of Debian's package libsvm-tools")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("svm_type", SVM_TYPES)
@pytest.mark.parametrize("name", DATA)
def test_svm_predict_with_our_files(name, svm_type, kernel, tmp_path):
    new = given(name, kernel)[3]
    first = ["0:1"] if kernel == "precomputed" else []
    lines = [" ".join(first + [f"{j + 1}:{value!r}" for j, value in enumerate(row)]) for row in new.tolist()]
    (tmp_path / "data").write_text("".join(f"0 {line}\n" for line in lines))
    probable = svm_type != "one_class"  # the program of libsvm-tools is older than probabilities of one class
    model = ours(name, svm_type, kernel, probable)
    write_libsvm_model(model, tmp_path / "model")
    plain = run_predict(tmp_path)
    if svm_type in ("c_svc", "nu_svc"):
        header, *rows = run_predict(tmp_path, "-b", "1")
        assert header.split() == ["labels", *map(str, model.classes_)]
        found = np.array([row.split() for row in rows], dtype=float)
        np.testing.assert_allclose(found[:, 1:], model.predict_proba(new), atol=0.01)
        np.testing.assert_allclose(found[:, 1:], libsvm_model_of(model).predict_probability(new), atol=2e-3)
        clear = np.sort(found[:, 1:], axis=1)[:, -2:] @ [-1, 1] > 0.02
        np.testing.assert_array_equal(found[clear, 0], model.predict(new)[clear])
        model.set_params(probability=False)
    expected = model.predict(new)
    clear = np.abs(libsvm_model_of(model).decision_values(new)).min(axis=1) > 1e-8
    np.testing.assert_allclose(np.array(plain, dtype=float)[clear], expected[clear], rtol=1e-5, atol=1e-5)


def run_predict(folder, *options):
    command = [SVM_PREDICT, *options, "-q", folder / "data", folder / "model", folder / "out"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return (folder / "out").read_text().splitlines()


class TestWriting:
    def test_order_of_labels(self, tmp_path):
        X, y, _, new = samples("sparse")
        model = SVC(probability=True).fit(X, y)
        file = tmp_path / "model"
        write_libsvm_model(model, file, labels=[12, 0, 7, -3])
        assert read_text(file).labels.tolist() == [12, 0, 7, -3]
        again = read_libsvm_model(file)
        np.testing.assert_array_equal(again.predict(new), model.predict(new))
        np.testing.assert_allclose(again.predict_proba(new), model.predict_proba(new), rtol=1e-12)
        with pytest.raises(ValueError, match="permutation of the classes"):
            write_libsvm_model(model, file, labels=[1, 2, 3, 4])

    @pytest.mark.parametrize("kernel", [Gaussian(0.3), Linear(), Polynomial(2, 0.5, 1.0), Sigmoid(0.1, -0.2)])
    @pytest.mark.parametrize(
        "made", [SVC(loss="squared_hinge"), LSSVC(), SVC(fit_intercept=False), QuantileSVR(), LSSVR()]
    )
    def test_what_libsvm_cannot_train(self, made, kernel, tmp_path):
        X, y, targets, new = samples("wine")
        model = made.set_params(kernel=kernel).fit(X, y if hasattr(made, "class_weight") else targets)
        write_libsvm_model(model, tmp_path / "model")
        answers, _ = libsvm.decide(libsvm.load(tmp_path / "model"), new)
        np.testing.assert_allclose(answers, model.predict(new), rtol=1e-8, atol=1e-10)

    def test_single_precision_and_truth_values(self, tmp_path):
        X, y, _, new = samples("breast_cancer")
        model = SVC().fit(X.astype(np.float32), y > 0)
        write_libsvm_model(model, tmp_path / "model")
        again = read_libsvm_model(tmp_path / "model")
        assert again.classes_.tolist() == [0, 1]
        np.testing.assert_array_equal(again.predict(new).astype(bool), model.predict(new))

    def test_fewer_digits(self, tmp_path):
        X, y, _, _ = samples("iris")
        model = SVC().fit(X, y)
        write_libsvm_model(model, tmp_path / "exact")
        write_libsvm_model(model, tmp_path / "short", digits=3)
        exact, short = read_libsvm_model(tmp_path / "exact"), read_libsvm_model(tmp_path / "short")
        np.testing.assert_array_equal(exact.support_vectors_, model.support_vectors_)
        np.testing.assert_allclose(short.support_vectors_, model.support_vectors_, rtol=5e-3)
        assert (tmp_path / "short").stat().st_size < (tmp_path / "exact").stat().st_size
        with pytest.raises(ValueError, match="from 1 to 17"):
            write_libsvm_model(model, tmp_path / "none", digits=0)

    def test_sparse_support_vectors_stay_sparse(self, tmp_path):
        X = sparse.random_array((80, 500), density=0.02, rng=np.random.default_rng(0), format="csr")
        y = np.arange(80) % 3
        model = SVC(kernel="linear").fit(X, y)
        write_libsvm_model(model, tmp_path / "model")
        again = read_libsvm_model(tmp_path / "model", n_features=500)
        assert sparse.issparse(again.support_vectors_)
        np.testing.assert_allclose(again.decision_function(X), model.decision_function(X), atol=1e-12)
        np.testing.assert_allclose(again.coef_.toarray(), model.coef_.toarray(), atol=1e-12)

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda X, y: SVC(), "not fitted yet"),
            (lambda X, y: SVC(multi_class="ovr").fit(X, y), "multi_class='ovo'"),
            (lambda X, y: SVC(multi_class="crammer_singer").fit(X, y), "multi_class='ovo'"),
            (lambda X, y: SVC(kernel=Laplacian(0.5)).fit(X, y), "no kernel Laplacian"),
            (lambda X, y: SVC(kernel=Gaussian(0.5) + Linear()).fit(X, y), "no kernel Sum"),
            (lambda X, y: SVC().fit(X, y.astype(str)), "LabelEncoder"),
            (lambda X, y: SVC().fit(X, y + 2**40), "32-bit integers"),
            (lambda X, y: SVR().fit(X, np.column_stack([y, -y])), "one output"),
            (lambda X, y: LinearSVC().fit(X, y), "write_liblinear_model"),
            (lambda X, y: SVDD().fit(X), "cannot represent SVDD"),
        ],
    )
    def test_unsupported_models(self, make, message, tmp_path):
        X, y, _, _ = samples("iris")
        with pytest.raises(ModelFileError, match=message):
            write_libsvm_model(make(X, y), tmp_path / "model")
        assert not list(tmp_path.iterdir())

    def test_two_classes_of_all_in_one(self, tmp_path):
        X, y, _, new = samples("breast_cancer")
        model = SVC(multi_class="crammer_singer").fit(X, y)
        write_libsvm_model(model, tmp_path / "model")
        np.testing.assert_array_equal(read_libsvm_model(tmp_path / "model").predict(new), model.predict(new))


class TestReading:
    def test_one_class_of_classification(self, tmp_path):
        svmutil.svm_save_model(str(tmp_path / "model"), libsvm.train(np.eye(2), [5, 5], "-s 0"))
        model = read_text(tmp_path / "model")
        assert model.labels.tolist() == [5]
        assert model.predict(np.ones((3, 2))).tolist() == [5, 5, 5]
        file = io.BytesIO()
        write_text(model, file)
        assert [line.rstrip() for line in file.getvalue().splitlines()] == [
            line.rstrip() for line in (tmp_path / "model").read_bytes().splitlines()
        ]
        with pytest.raises(ModelFileError, match="single class, 5"):
            read_libsvm_model(tmp_path / "model")

    def test_any_order_spaces_and_line_ends(self):
        text = b"nr_class 2\r\n\r\nkernel_type  linear \r\nnr_sv 1 1\r\n label -1 4\r\nrho 0.5\r\ntotal_sv 2\r\n"
        model = read_text(io.BytesIO(text + b"svm_type c_svc\r\nSV\r\n1 1:1 \r\n-1\t2:+.5e0\r\n\r\n\n"))
        assert model.decision_values(np.array([[2.0, 2.0]]))[0, 0] == 2.0 - 1.0 - 0.5
        assert model.predict(np.array([[2.0, 2.0], [0.0, 0.0]])).tolist() == [-1, 4]

    def test_indices_from_zero(self):
        text = b"svm_type epsilon_svr\nkernel_type linear\nnr_class 2\ntotal_sv 1\nrho 0\nSV\n1 0:2 3:4\n"
        model = read_text(io.BytesIO(text))
        assert model.zero_based
        assert model.support_vectors.toarray().tolist() == [[2.0, 0.0, 0.0, 4.0]]
        file = io.BytesIO()
        write_text(model, file)
        assert file.getvalue().split(b"SV\n")[1] == b"1 0:2 3:4 \n"

    def test_samples_of_other_widths(self):
        text = b"svm_type epsilon_svr\nkernel_type rbf\ngamma 1\nnr_class 2\ntotal_sv 1\nrho 0\nSV\n1 1:2\n"
        model = read_text(io.BytesIO(text))
        wide = model.decision_values(np.array([[2.0, 0.0, 1.0]]))
        assert wide[0, 0] == pytest.approx(np.exp(-1.0))
        assert model.decision_values(np.zeros((1, 0)))[0, 0] == pytest.approx(np.exp(-4.0))
        huge = sparse.csr_matrix(([1.0], ([0], [2**31 - 2])), shape=(1, 2**31 - 1))
        assert model.decision_values(huge)[0, 0] == pytest.approx(np.exp(-5.0))

    def test_no_support_vectors(self, tmp_path):
        X, _, targets, new = samples("iris")
        model = SVR(epsilon=100.0).fit(X, targets)
        write_libsvm_model(model, tmp_path / "model")
        again = read_libsvm_model(tmp_path / "model", n_features=4)
        np.testing.assert_array_equal(again.predict(new), model.predict(new))
        text = b"svm_type c_svc\nkernel_type linear\nnr_class 3\ntotal_sv 0\nrho 1 1 1\nlabel 3 2 1\nnr_sv 0 0 0\nSV\n"
        assert read_text(io.BytesIO(text)).predict(np.zeros((1, 2))).tolist() == [1]
        assert read_libsvm_model(io.BytesIO(text), n_features=2).predict(np.zeros((1, 2))).tolist() == [1]

    def test_too_few_features(self, tmp_path):
        X, y, _, _ = samples("iris")
        write_libsvm_model(SVC().fit(X, y), tmp_path / "model")
        with pytest.raises(ValueError, match="4 features, but n_features is 2"):
            read_libsvm_model(tmp_path / "model", n_features=2)
        write_libsvm_model(SVC(kernel="precomputed").fit(X @ X.T, y), tmp_path / "model")
        with pytest.raises(ValueError, match="the model uses training sample"):
            read_text(tmp_path / "model").decision_values(np.eye(3))

    def test_no_probabilities(self):
        text = b"svm_type epsilon_svr\nkernel_type linear\nnr_class 2\ntotal_sv 0\nrho 0\nSV\n"
        with pytest.raises(ValueError, match="train it with -b 1"):
            read_text(io.BytesIO(text)).predict_probability(np.eye(2))

    def test_ties_are_libsvms(self):
        model = LibsvmModel(
            "c_svc", "linear", np.zeros(3), np.zeros((2, 0)), sparse.csr_matrix((0, 2)), labels=np.array([9, 4, 6]),
            counts=np.zeros(3, dtype=np.int64),
        )  # fmt: skip
        assert model.predict(np.eye(2)).tolist() == [6, 6]  # a value of 0 is a vote for the later class

    def test_probabilities_of_many_samples(self):
        X, y, _, _ = samples("iris")
        model = libsvm_model_of(SVC(probability=True).fit(X, y))
        once = model.predict_probability(X)
        many = np.tile(model.decision_values(X), (2000, 1))  # more than are coupled at once
        np.testing.assert_array_equal(model.probabilities(many), np.tile(once, (2000, 1)))
        assert model.predict_probability(X[:0]).shape == (0, 3)

    def test_a_file_in_text_mode(self):
        with pytest.raises(ModelFileError, match="binary mode"):
            read_text(io.StringIO("svm_type c_svc"))
