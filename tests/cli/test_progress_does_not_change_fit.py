"""`maxmargin train` writes the same model whether its progress bar is shown or not."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris

from cli.terminal import Terminal, call
from maxmargin import load
from maxmargin.datasets import chessboard

#: Fitted attributes that hold the solution; estimators have those that apply to them.
ARRAYS = ("support_", "support_vectors_", "dual_coef_", "coef_", "intercept_", "n_iter_", "_sigmoids_")

#: A training that takes longer than the delay of the progress bar.
LONG = ["chessboard:2500,noise=0.2", "-C", "1e3", "-g", "5", "--tol", "1e-6", "--solver", "pairwise"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = load_breast_cancer(return_X_y=True)
    np.savez("cancer.npz", X=X, y=y)  # unscaled, on which solvers take different paths most easily
    X, y = load_iris(return_X_y=True)
    np.savez("iris.npz", X=X, y=y)
    np.savez("iris_values.npz", X=X[:, :3], y=X[:, 3] + 0.001 * X[:, 0])
    X, y = chessboard(3000, noise=0.1)
    np.savez("board.npz", X=X, y=y + 2 * (X[:, 0] > 2))
    return tmp_path


def train_on_terminal(*arguments):
    terminal = Terminal("train", *arguments)
    written = terminal.read(seconds=300.0)
    assert terminal.code() == 0, written
    return written


def contents(name):
    """Return the solution in a model file as arrays."""
    model = load(name)
    certificates = model.certificate_ if isinstance(model.certificate_, list) else [model.certificate_]
    arrays = {key: getattr(model, key) for key in ARRAYS if hasattr(model, key)}
    arrays = {key: value.toarray() if sparse.issparse(value) else np.asarray(value) for key, value in arrays.items()}
    arrays["certificate"] = np.array([(one.primal, one.dual, one.gap, one.violation) for one in certificates])
    return arrays


def assert_identical(first, second):
    first, second = contents(first), contents(second)
    assert first.keys() == second.keys()
    for key in first:
        assert first[key].dtype == second[key].dtype, key
        assert first[key].tobytes() == second[key].tobytes(), key


@pytest.mark.parametrize(
    "arguments",
    [
        ["cancer.npz"],
        ["cancer.npz", "-C", 100, "--probability"],
        ["cancer.npz", "--kernel", "linear"],
        ["cancer.npz", "--estimator", "nu-svc", "--nu", 0.2],
        ["iris.npz", "--multi-class", "ovr"],
        ["iris.npz", "--estimator", "linear-svc", "--probability"],
        ["iris_values.npz", "--estimator", "svr"],
        ["board.npz", "-C", 100, "-g", 1],
    ],
    ids=lambda arguments: " ".join(map(str, arguments)),
)
def test_terminal_and_quiet(arguments, folder):
    data, *options = arguments
    train_on_terminal(data, "terminal", *options)
    call("train", data, "quiet", *options, "--quiet")
    assert_identical("terminal", "quiet")


def test_pipe(folder):
    call("train", "cancer.npz", "pipe")
    call("train", "cancer.npz", "quiet", "--quiet")
    assert_identical("pipe", "quiet")


def test_visible_progress_bar(folder):
    data, *options = LONG
    assert "training ━" in train_on_terminal(data, "terminal", *options)
    call("train", data, "quiet", *options, "--quiet")
    assert_identical("terminal", "quiet")


def test_models_equal_those_of_estimators_without_callback(folder):
    from maxmargin import SVC

    data = np.load("cancer.npz")
    expected = SVC().fit(data["X"], data["y"].astype(float))
    train_on_terminal("cancer.npz", "terminal")
    np.testing.assert_array_equal(load("terminal").dual_coef_, expected.dual_coef_)
    np.testing.assert_array_equal(load("terminal").intercept_, expected.intercept_)


def test_limits_that_are_not_reached(folder):
    """Time and iteration limits that do not end the training do not change the model, either."""
    train_on_terminal("cancer.npz", "limited", "--max-seconds", 300, "--max-iter", 10**7)
    call("train", "cancer.npz", "unlimited", "--quiet")
    assert_identical("limited", "unlimited")
