"""`maxmargin liblinear-train` and `liblinear-predict` compared with LIBLINEAR: objectives, model files, output."""

import ctypes
import sys

import numpy as np
import pytest
from liblinear.liblinearutil import evaluations, load_model, save_model, svm_read_problem, train

from maxmargin.datasets import load_libsvm
from reference.libsvm_programs import final_lines, numbers_of, ours, real, shape_of, write_data

KINDS = [1, 2, 3, 4, 5, 11, 12, 13]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def data_of(kind):
    return "targets" if kind > 10 else "iris"


def objective(kind, data, model, cost=1.0, free_bias=False):
    """Return the primal objective of a model file, by its definition in LIBLINEAR's paper."""
    X, y = load_libsvm(data)
    head, table = model.read_text().split("\nw\n")
    weights = np.array([numbers_of(line) for line in table.splitlines()])
    bias = float(dict(line.split(maxsplit=1) for line in head.splitlines())["bias"])
    X = X.toarray()
    X = np.hstack([X, np.full((len(y), 1), bias)]) if bias >= 0 else X
    values = X @ weights
    if kind > 10:
        losses = np.maximum(np.abs(y[:, None] - values) - 0.1, 0.0)
    else:
        labels = np.array(numbers_of(head.split("label ")[1].splitlines()[0]))
        if kind == 4:
            own = np.argmax(y[:, None] == labels, axis=1)
            margins = values[np.arange(len(y)), own][:, None] - values + np.eye(len(labels))[own] - 1.0
            losses = -margins.min(axis=1)
        else:
            losses = np.maximum(1.0 - np.where(y[:, None] == labels[: weights.shape[1]], 1.0, -1.0) * values, 0.0)
    weights = weights[:-1] if free_bias else weights
    penalty = np.abs(weights).sum() if kind == 5 else 0.5 * (weights**2).sum()
    return penalty + cost * (losses if kind in (3, 4, 13) else losses**2).sum()


class TestAgainstLiblinear:
    """The official package: never skipped."""

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("options", ["", "-B 1", "-B 0.5 -c 0.1", "-w3 4 -w-2 2 -c 0.3"])
    def test_optimum(self, kind, options, folder, capsys):
        data = data_of(kind)
        code, out, err = ours(capsys, "liblinear-train", "-s", kind, *options.split(), "-e", 1e-4, data, "ours")
        assert code == 0
        assert not err or ("-w3" in options and data == "targets")
        y, x = svm_read_problem(data)
        theirs = train(y, x, f"-s {kind} {options} -e 0.0001 -q")
        save_model("theirs", theirs)
        heads = [(folder / name).read_text().split("\nw\n")[0] for name in ("ours", "theirs")]
        assert heads[0] == heads[1]
        if "-w" not in options:
            cost = 1.0 if "-c" not in options else 0.1
            values = [objective(kind, data, folder / name, cost) for name in ("ours", "theirs")]
            assert values[0] <= values[1] * (1 + 1e-4)
            said = sum(float(line.split()[-1]) for line in out.splitlines() if line.startswith("Objective"))
            assert abs(said) == pytest.approx(values[0], rel=1e-4)
        for name in ("ours", "theirs"):
            assert ours(capsys, "liblinear-predict", data, name, "out")[0] == 0
            np.testing.assert_allclose(np.loadtxt("out"), predictions(name, data), rtol=1e-9, atol=1e-12)

    def test_one_class(self, folder, capsys):
        code, out, _ = ours(capsys, "liblinear-train", "-s", 21, "-n", 0.2, "-e", 1e-5, "iris", "ours")
        assert code == 0
        y, x = svm_read_problem("iris")
        theirs = train(y, x, "-s 21 -n 0.2 -e 0.00001 -q")
        assert load_model("ours").rho == pytest.approx(theirs.rho, rel=1e-3)
        assert f"rho = {load_model('ours').rho:f}" in out
        assert ours(capsys, "liblinear-predict", "-q", "iris", "ours", "out")[:2] == (0, "")
        assert set(np.loadtxt("out")) == {-1.0, 1.0}

    def with_costly_bias(self, kind, folder, capsys):
        assert ours(capsys, "liblinear-train", "-s", kind, "-B", 1, "-e", 1e-5, data_of(kind), "other")[0] == 0
        return objective(kind, data_of(kind), folder / "other", free_bias=True)

    def test_unregularised_bias(self, folder, capsys):
        for kind in (2, 5, 11):
            words = ["-s", kind, "-B", 1, "-R", "-e", 1e-5, data_of(kind)]
            assert ours(capsys, "liblinear-train", *words, "ours")[0] == 0
            y, x = svm_read_problem(data_of(kind))
            save_model("theirs", train(y, x, f"-s {kind} -B 1 -R -e 0.00001 -q"))
            values = [objective(kind, data_of(kind), folder / name, free_bias=True) for name in ("ours", "theirs")]
            assert values[0] <= values[1] * (1 + 1e-5)
            assert values[0] < self.with_costly_bias(kind, folder, capsys)

    @pytest.mark.skipif(sys.platform != "linux", reason="LIBLINEAR shuffles with rand(), which is another one here")
    @pytest.mark.parametrize("kind", KINDS)
    def test_cross_validation(self, kind, folder, capsys):
        data = data_of(kind)
        _, out, _ = ours(capsys, "liblinear-train", "-s", kind, "-v", 4, "-e", 1e-4, "-q", data)
        ctypes.CDLL(None).srand(1)
        found = train(*svm_read_problem(data), f"-s {kind} -v 4 -e 0.0001 -q")
        allowed = {"rel": 3e-2} if kind > 10 else {"abs": 1.4}  # at most two samples next to a boundary
        assert numbers_of(out)[0] == pytest.approx(found, **allowed)


def steps_of(text):
    """Return the rate of each step of a search."""
    return dict(line.split("\t") for line in text.splitlines() if "\t" in line)


def predictions(name, data):
    """Return the predictions of a model file, by its definition."""
    model = load_model(name)
    X = load_libsvm(data)[0].toarray()
    functions = len(model.get_labels()) if model.get_nr_class() > 2 or model.param.solver_type == 4 else 1
    weights = np.array([model.get_decfun(k)[0] for k in range(functions)])
    offsets = np.array([model.get_decfun(k)[1] for k in range(functions)])
    values = X @ weights.T + offsets
    if model.is_regression_model():
        return values[:, 0]
    labels = np.array(model.get_labels())
    return labels[(values[:, 0] <= 0).astype(int)] if functions == 1 else labels[np.argmax(values, axis=1)]


class TestOutput:
    """The output of both programs is compared."""

    @pytest.mark.parametrize("options", ["-s 1", "-s 3", "-s 4", "-s 5", "-s 12", "-s 13 -q", "-s 3 -v 3"])
    def test_training(self, options, folder, capsys):
        data = data_of(int(options.split()[1]))
        code, out, _ = real("liblinear-train", *options.split(), data, "theirs", folder=folder)
        own = ours(capsys, "liblinear-train", *options.split(), data, "ours")
        assert (own[0], own[2]) == (code, "")
        theirs = [line for line in final_lines(out) if "may be faster" not in line and "reaching max" not in line]
        assert list(map(shape_of, final_lines(own[1]))) == list(map(shape_of, theirs))

    def test_search_for_C(self, folder, capsys):
        for options in ("-C", "-C -s 2 -c 0.25 -v 3 -B 1", "-C -s 2 -q"):
            code, out, err = real("liblinear-train", *options.split(), "iris", folder=folder)
            own_code, own_out, own_err = ours(capsys, "liblinear-train", *options.split(), "iris")
            assert (own_code, own_err) == (code, err)
            theirs, mine = map(steps_of, (out, own_out))
            steps = min(len(theirs), len(mine))
            assert list(mine)[:steps] == list(theirs)[:steps]
            assert own_out.splitlines()[0] == out.splitlines()[0]
            assert shape_of(own_out.splitlines()[-1]) == shape_of(out.splitlines()[-1])
            rates = [(numbers_of(mine[step])[0], numbers_of(theirs[step])[0]) for step in list(mine)[:steps]]
            assert all(abs(a - b) < 5 for a, b in rates)  # LIBLINEAR stops early, and so differs

    def test_search_for_epsilon(self, folder, capsys):
        code, out, err = ours(capsys, "liblinear-train", "-C", "-s", 11, "-p", 0.2, "-c", 0.01, "targets")
        assert (code, err) == (0, "")
        lines = out.splitlines()
        errors = [numbers_of(line)[-1] for line in lines if line.startswith("log2c")]
        assert lines[-1].startswith("Best C = ")
        assert numbers_of(lines[-1])[-1] == pytest.approx(min(errors))

    @pytest.mark.parametrize(
        "command",
        ["liblinear-train -c 0 iris", "liblinear-train -e 0 iris", "liblinear-train -s 11 -p -1 iris",
         "liblinear-train -x iris", "liblinear-train -v 1 iris", "liblinear-train",
         "liblinear-train nothing", "liblinear-train -q iris no/where",
         "liblinear-predict nothing model out", "liblinear-predict iris nothing out", "liblinear-predict iris model",
         "liblinear-predict iris model no/where", "liblinear-predict -b 1 iris model out"],
    )  # fmt: skip
    def test_errors_equal_those_of_liblinear(self, command, folder, capsys):
        real("liblinear-train", "-q", "iris", "model", folder=folder)
        program, *rest = command.split()
        code, out, err = real(program, *rest, folder=folder)
        own_code, own_out, own_err = ours(capsys, program, *rest)
        assert (own_code, own_err) == (code, err)
        assert bool(own_out) == bool(out)


@pytest.mark.parametrize(
    ("options", "message"),
    [("-s 0", "ERROR: -s 0 is logistic regression, which maxmargin does not have; the types that work are 1, 2 (sq"),
     ("-s 9", "ERROR: unknown solver type 9; the types that work are 1, 2 (squared hinge), 3 (hinge)"),
     ("-R", "ERROR: To not regularize bias, must specify -B 1 along with -R"),
     ("-R -B 1", "ERROR: -R option supported only for solver L2R_LR"),
     ("-s 21 -B 1", "ERROR: prob->bias >=0, but this is ignored in ONECLASS_SVM"),
     ("-s 21 -n 2", "ERROR: nu <= 0 or nu > 1")],
)  # fmt: skip
def test_errors_of_newer_versions(options, message, folder, capsys):
    code, out, err = ours(capsys, "liblinear-train", *options.split(), "iris")
    assert (code, out) == (1, "")
    assert err.startswith(message)


def test_a_single_class(folder, capsys):
    (folder / "lone").write_text("5 1:1 2:3\n5 2:1\n5 1:2\n")
    assert ours(capsys, "liblinear-train", "lone", "model")[0] == 0
    assert ours(capsys, "liblinear-predict", "lone", "model", "out")[1] == "Accuracy = 100% (3/3)\n"
    assert ours(capsys, "liblinear-train", "-v", 2, "-q", "lone")[1] == "Cross Validation Accuracy = 100%\n"
    assert ours(capsys, "liblinear-train", "-C", "-q", "lone")[0] == 0


def test_mean_squared_error_and_correlation(folder, capsys):
    assert ours(capsys, "liblinear-train", "-s", 12, "-q", "targets", "model")[0] == 0
    _, out, _ = ours(capsys, "liblinear-predict", "targets", "model", "out")
    _, error, correlation = evaluations(load_libsvm("targets")[1].tolist(), np.loadtxt("out").tolist())
    assert numbers_of(out) == pytest.approx([error, correlation], rel=1e-4)
