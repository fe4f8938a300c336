"""Sparse data with few values and billions of features: memory and time follow the features that occur."""

import io
import json
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import maxmargin
from maxmargin import SVC, LinearSVC, OnlineSVC
from maxmargin.datasets import Scaling, read_samples
from maxmargin.interchange import load, save
from maxmargin.kernels import points

WIDTH = 2**31 - 1
Y = np.array([1, 2, 1, 2])

ESTIMATORS = [
    maxmargin.SVC(), maxmargin.SVC(kernel="linear"), maxmargin.SVC(kernel="poly"), maxmargin.SVC(kernel="laplacian"),
    maxmargin.NuSVC(), maxmargin.LSSVC(), maxmargin.SVR(), maxmargin.NuSVR(), maxmargin.LSSVR(),
    maxmargin.QuantileSVR(), maxmargin.OneClassSVM(), maxmargin.SVDD(), maxmargin.RankSVC(),
    maxmargin.OnlineSVC(random_state=0), maxmargin.OnlineOneClassSVM(random_state=0),
    maxmargin.KernelApproximationSVC(n_components=3, random_state=0),
]  # fmt: skip


def wide(width=WIDTH, last=None):
    """Return four samples with values in the first two features and the last one."""
    last = width - 1 if last is None else last
    features = np.array([last, 0, last, 0, 1])
    return sparse.csr_matrix((np.array([2.0, 3.0, 1.5, 2.0, 1.0]), features, [0, 1, 2, 3, 5]), shape=(4, width))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("width", [WIDTH, 2**32 + 1])
def test_predictions_are_those_of_the_features_that_occur(estimator, width):
    gamma = {"gamma": 0.5} if "gamma" in estimator.get_params() else {}
    found = estimator.set_params(**gamma).fit(wide(width), Y)
    values = np.asarray(found.predict(wide(width)))
    expected = np.asarray(estimator.set_params(**gamma).fit(wide(3), Y).predict(wide(3)))
    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-9)


def test_features_that_occur_only_in_other_samples():
    model = SVC(gamma=0.5).fit(wide(), Y)
    narrow = SVC(gamma=0.5).fit(wide(4, last=2), Y)
    other = sparse.csr_matrix(([5.0, 1.0], [1000, WIDTH - 1], [0, 2]), shape=(1, WIDTH))
    same = sparse.csr_matrix(([1.0, 5.0], [2, 3], [0, 2]), shape=(1, 4))
    np.testing.assert_allclose(model.decision_function(other), narrow.decision_function(same), rtol=1e-12)
    assert model.certificate_.relative_gap < 1e-3


@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian", "chi_squared", "poly"])
def test_the_same_bits_with_and_without_the_other_features(monkeypatch, kernel):
    random = np.random.default_rng(0)
    X = sparse.random(80, 2000, density=0.002, random_state=0, format="csr")
    y = random.integers(0, 2, 80)
    test = sparse.random(50, 2000, density=0.01, random_state=1, format="csr")
    expected = SVC(kernel=kernel, gamma=0.7).fit(X, y)
    monkeypatch.setattr(points, "VERY_WIDE", 1)
    found = SVC(kernel=kernel, gamma=0.7).fit(X, y)
    assert np.array_equal(found.dual_coef_.toarray(), expected.dual_coef_.toarray())
    values = found.decision_function(test)
    monkeypatch.undo()
    assert np.array_equal(values, expected.decision_function(test))


def test_model_files_have_the_size_of_the_features_that_occur():
    file = io.BytesIO()
    save(SVC().fit(wide(2**32 + 1), Y), file)
    assert file.tell() < 20_000
    file.seek(0)
    assert load(file).predict(wide(2**32 + 1)).tolist() == Y.tolist()


def test_linear_weights_that_do_not_fit(monkeypatch):
    monkeypatch.setattr(maxmargin.resources, "available_memory", lambda: 2**30)
    with pytest.raises(MemoryError, match=r"coef_ of 2,147,483,647 features needs .* GB of memory, but 1.07 GB are"):
        LinearSVC().fit(wide(), Y)


def test_scaling():
    X = wide(2**32 + 1)
    for scaling in (Scaling.fit(X, 0, 1), Scaling.fit(X), Scaling.standardise(X)):
        assert scaling.columns.tolist() == [0, 1, 2**32]
        assert scaling.apply(X).shape == X.shape
        narrow = Scaling(np.arange(3), scaling.minimum, scaling.maximum, scaling.lower, scaling.upper)
        assert np.array_equal(scaling.apply(X).data, sparse.csr_matrix(narrow.apply(wide(3).toarray())).data)


def test_online_updates_with_new_features():
    model = OnlineSVC(gamma=0.5).partial_fit(wide(), Y, classes=[1, 2])
    model.partial_fit(wide(last=7), Y)
    assert model.predict(wide()).tolist() == Y.tolist()


COMMANDS = [
    ["info", "data"],
    ["check", "data"],
    ["scale", "data", "scaled"],
    ["train", "data", "model", "-q"],
    ["predict", "data", "model"],
    ["info", "model"],
    ["svm-train", "-q", "data", "libsvm-model"],
]


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on the address space")
def test_commands_on_tiny_files_with_huge_indices(tmp_path):
    limit = 5 * 2**30
    program = (
        f"import json, resource, sys; resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit})); "
        "from maxmargin.cli.main import main; "
        "print([main(words) for words in json.loads(sys.argv[1])], file=sys.stderr)"
    )
    for index in (2**31 - 1, 2**32 + 1):
        (tmp_path / "data").write_text(f"1 {index}:2\n2 1:3\n")
        commands = COMMANDS if index < 2**31 else COMMANDS[2:-1]
        done = subprocess.run(
            [sys.executable, "-c", program, json.dumps(commands)], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.stderr.splitlines()[-1] == str([0] * len(commands)), done.stderr
        assert (tmp_path / "model").stat().st_size < 20_000
        assert read_samples(tmp_path / "scaled", format="libsvm").X.nnz == 4
