"""`maxmargin.svmutil` beside LIBSVM's package: the snippets of its README run with both, and give the same values."""

import io
import subprocess
import sys
from ctypes import CDLL

import libsvm.svmutil as theirs
import numpy as np
import pytest
import scipy
from libsvm.commonutil import evaluations_scipy
from threadpoolctl import threadpool_limits

import maxmargin.svmutil as ours
from maxmargin import commonutil
from maxmargin.interchange.errors import ModelFileError
from reference import libsvm
from reference.libsvm_programs import final_lines, numbers_of, shape_of, write_data

#: Snippets of the README of LIBSVM's Python interface, of which `overlap` takes the place of `heart_scale`; the names
#: of the results that are compared follow.
SNIPPETS = {
    "quick start": (
        """
y, x = svm_read_problem('overlap')
m = svm_train(y[:100], x[:100], '-c 4')
pred_labels, pred_metrics, pred_values = svm_predict(y[100:], x[100:], m)
""",
        ["y", "x", "pred_labels", "pred_metrics", "pred_values"],
    ),
    "dense data": (
        """
y, x = [1,-1], [[1,0,1], [-1,0,-1]]
prob  = svm_problem(y, x)
param = svm_parameter('-t 0 -c 4 -b 1')
m = svm_train(prob, param)
""",
        [],
    ),
    "sparse data": (
        """
y, x = [1,-1], [{1:1, 3:1}, {1:-1,3:-1}]
prob  = svm_problem(y, x)
param = svm_parameter('-t 0 -c 4')
m = svm_train(prob, param)
coefficients, vectors, indices = m.get_sv_coef(), m.get_SV(), m.get_sv_indices()
""",
        ["coefficients", "vectors", "indices"],
    ),
    "precomputed kernel": (
        """
y, x = [1,-1], [[1, 2, -2], [2, -2, 2]]
prob  = svm_problem(y, x, isKernel=True)
param = svm_parameter('-t 4 -c 4')
m = svm_train(prob, param)
dense = svm_predict(y, x, m)
y, x = [1,-1], [{0:1, 1:2, 2:-2}, {0:2, 1:-2, 2:2}]
m = svm_train(svm_problem(y, x, isKernel=True), param)
sparse = svm_predict(y, x, m)
direct = svm_predict(y, x, svm_train(y, x, '-t 4 -c 4'))
""",
        ["dense", "sparse", "direct"],
    ),
    "files of models": (
        """
y, x = svm_read_problem('iris')
m = svm_train(y, x, '-b 1 -c 4')
svm_save_model('the.model', m)
m = svm_load_model('the.model')
known = m.is_probability_model(), m.get_nr_class(), m.get_labels(), m.get_svm_type()
pred_labels, pred_metrics, pred_values = svm_predict(y, x, m, '-b 1')
ACC, MSE, SCC = evaluations(y, pred_labels)
""",
        ["known"],
    ),
    "scipy": (
        """
y, x = svm_read_problem('overlap', return_scipy = True)
m = svm_train(y[:100], x[:100, :], '-c 4')
pred_labels, pred_metrics, pred_values = svm_predict(y[100:], x[100:, :], m)
y, x = np.asarray([1,-1]), np.asarray([[1,0,1], [-1,0,-1]])
m = svm_train(svm_problem(y, x), svm_parameter('-t 0 -c 4'))
of_array = m.get_sv_coef(), m.get_SV()
y, x = np.asarray([1,-1]), scipy.sparse.csr_matrix(([1, 1, -1, -1], ([0, 0, 1, 1], [0, 2, 0, 2])))
m = svm_train(svm_problem(y, x), svm_parameter('-t 0 -c 4'))
of_matrix = m.get_sv_coef(), m.get_SV()
""",
        ["pred_labels", "pred_metrics", "pred_values", "of_array", "of_matrix"],
    ),
    "precomputed kernel of scipy": (
        """
y, x = np.asarray([1,-1]), np.asarray([[1,2,-2], [2,-2,2]])
m = svm_train(svm_problem(y, x, isKernel=True), svm_parameter('-t 4 -c 4'))
of_array = svm_predict(y, x, m)
y, x = np.asarray([1,-1]), scipy.sparse.csr_matrix(([1, 2, -2, 2, -2, 2], ([0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2])))
m = svm_train(svm_problem(y, x, isKernel=True), svm_parameter('-t 4 -c 4'))
of_matrix = svm_predict(y, x, m)
""",
        ["of_array", "of_matrix"],
    ),
    "scaling": (
        """
y, x = svm_read_problem('targets', return_scipy=True)
scale_param = csr_find_scale_param(x, lower=0)
scaled_x = csr_scale(x, scale_param)
coef, offset = scale_param['coef'], scale_param['offset']
""",
        ["coef", "offset", "scaled_x"],
    ),
    "svm_train": (
        """
y, x = svm_read_problem('targets')
prob = svm_problem(y, x)
param = svm_parameter('-s 3 -c 5 -h 0')
of_parameter = svm_predict(y, x, svm_train(prob, param))
y, x = svm_read_problem('overlap')
of_data = svm_predict(y, x, svm_train(y, x, '-c 5'))
of_options = svm_predict(y, x, svm_train(svm_problem(y, x), '-t 2 -c 5'))
CV_ACC = svm_train(y, x, '-v 3')
""",
        ["of_parameter", "of_data", "of_options", "CV_ACC"],
    ),
    "one class, and cross-validation of a regression": (
        """
y, x = svm_read_problem('targets')
MSE = svm_train(y, x, '-s 3 -v 4 -q')
decisions = svm_predict(y, x, svm_train(y, x, '-s 2 -n 0.2 -g 0.5 -q'), '-q')[2]
nu = svm_predict([], x, svm_train(y, x, '-s 4 -q'), '-q')
""",
        ["MSE", "decisions", "nu"],
    ),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(package, code, capfd):
    """Run a snippet with the names of a package; return its names and the lines it prints."""
    names = {name: getattr(package, name) for name in package.__all__} | {"np": np, "scipy": scipy}
    # The tolerance of both is tightened, so that their solutions agree to more digits than the default requires.
    train = names["svm_train"]
    names["svm_train"] = lambda *arguments: train(*tightened(package, arguments))
    capfd.readouterr()
    CDLL(None).srand(1)  # LIBSVM's folds are those of the first call in a process, as ours always are
    with threadpool_limits(1):
        exec(code, names)
    return names, final_lines(capfd.readouterr().out)


def tightened(package, arguments):
    *others, last = arguments
    if isinstance(last, str):
        return *others, f"{last} -e 1e-7"
    last.eps = 1e-7
    return *others, last


def plain(value):
    return value.toarray() if scipy.sparse.issparse(value) else value


def assert_close(found, expected, rtol=1e-4):
    """Assert that nested lists, tuples and dicts of numbers agree."""
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        found, expected = list(found.values()), list(expected.values())
    if isinstance(expected, list | tuple):
        assert type(found) is type(expected)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_close(one, other, rtol)
    else:
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=0.2 * rtol)


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippets_of_the_readme(name, folder, capfd):
    code, compared = SNIPPETS[name]
    found, lines = run(ours, code, capfd)
    expected, their_lines = run(theirs, code, capfd)
    if "-b 1" in code:  # LIBSVM prints lines about the folds of its probabilities, too
        lines, their_lines = lines[-1:], their_lines[-1:]
    assert list(map(shape_of, lines)) == list(map(shape_of, their_lines))
    for result in compared:
        assert_close(plain(found[result]), plain(expected[result]))
    for line, other in zip(lines, their_lines, strict=True):
        if line.startswith(("Accuracy", "Mean", "Cross", "Squared")):
            assert_close(numbers_of(line), numbers_of(other))


def test_every_public_name_is_one_of_libsvm(folder):
    assert set(ours.__all__) <= set(theirs.__all__) | {"svm_forms", "kernel_names"}
    missing = set(theirs.__all__) - set(ours.__all__)  # the structures of ctypes
    assert missing == {"PRINT_STRING_FUN", "c_double", "gen_svm_nodearray", "libsvm", "print_null", "svm_node",
                       "toPyModel"}  # fmt: skip
    methods = {name for name in dir(theirs.svm_model) if name.startswith(("get_", "is_"))}
    assert methods <= set(dir(ours.svm_model))


@pytest.mark.parametrize("options", ["-t 0", "-s 1 -n 0.3", "-c 10 -w3 4 -t 1 -g 0.1 -r 1", "-t 3 -g 0.01"])
def test_methods_of_models(options, folder):
    y, x = ours.svm_read_problem("iris")
    with threadpool_limits(1):
        mine, other = (package.svm_train(y, x, f"{options} -q -e 1e-8") for package in (ours, theirs))
    for name in ("get_svm_type", "get_nr_class", "get_labels", "is_probability_model"):
        assert getattr(mine, name)() == getattr(other, name)()
    assert mine.get_SV() == [x[number - 1] for number in mine.get_sv_indices()]
    assert (mine.nr_class, mine.l) == (3, mine.get_nr_sv())
    assert mine.param.gamma == other.param.gamma
    X = ours.svm_read_problem("iris", return_scipy=True)[1].toarray()
    expected = libsvm.decide(other, X)[1]  # the package's own function writes beyond its buffer for ν-classification
    np.testing.assert_allclose(ours.svm_predict(y, X, mine, "-q")[2], expected, rtol=5e-3, atol=1e-3)
    assert max(certificate.violation for certificate in mine.machine.certificate_) <= 1e-7


def test_support_vectors_and_coefficients(folder):
    y, x = ours.svm_read_problem("overlap")
    with threadpool_limits(1):  # on data where they are unique: no duplicates, and a kernel matrix of full rank
        mine, other = (package.svm_train(y, x, "-g 2 -q -e 1e-8") for package in (ours, theirs))
    assert mine.get_sv_indices() == other.get_sv_indices()
    assert mine.get_nr_sv() == other.get_nr_sv()
    assert mine.get_SV() == other.get_SV()
    assert_close(mine.get_sv_coef(), other.get_sv_coef())


def test_models_are_exchanged_with_libsvm(folder):
    y, x = ours.svm_read_problem("iris")
    model = ours.svm_train(y, x, "-b 1 -q")
    ours.svm_save_model("ours.model", model)
    expected = theirs.svm_predict(y, x, theirs.svm_load_model("ours.model"), "-b 1 -q")
    found = ours.svm_predict(y, x, model, "-b 1 -q")
    assert_close(found, expected)
    assert ours.svm_load_model("ours.model").get_sv_indices() == [0] * model.get_nr_sv()
    assert model.get_svr_probability() == 0.0
    y, x = ours.svm_read_problem("targets")
    noisy = ours.svm_train(y, x, "-s 3 -b 1 -q")
    assert noisy.get_svr_probability() > 0
    labels, _, values = ours.svm_predict(y, x, noisy, "-b 1 -q")
    assert values == [[]] * len(y)
    assert labels == ours.svm_predict(y, x, noisy, "-q")[0]


def test_index_zero_is_a_feature(folder):
    y, x = [1, -1, 1, -1], [{0: 2.0, 2: 1.0}, {0: -1.0}, {0: 1.5}, {0: -2.0, 2: 0.5}]
    mine, other = (package.svm_train(y, x, "-g 0.5 -q -e 1e-7") for package in (ours, theirs))
    assert mine.get_SV() == other.get_SV()
    assert_close(ours.svm_predict(y, x, mine, "-q"), theirs.svm_predict(y, x, other, "-q"))
    without = [{2: 1.0}, {1: 3.0}, {}, {2: -1.0}]
    assert_close(ours.svm_predict(y, without, mine, "-q"), theirs.svm_predict(y, without, other, "-q"))


@pytest.mark.parametrize(
    "x",
    [
        [[1, 0, 2], [0, 3]],
        [(1.0, 0.5), [2.0, 0.0]],
        [np.array([1.0, 2.0]), np.array([0.0, 3.0])],
        [(np.array([0, 2]), np.array([1.0, 5.0])), (np.array([2, 1]), np.array([2.0, 7.0]))],
        [{3: 1.0, 1: 2.0}, {2: 0.0}],
    ],
)
def test_forms_of_samples(x):
    y = [1, -1]
    mine, other = ours.svm_problem(y, x), theirs.svm_problem(y, x)
    assert (mine.l, mine.n) == (other.l, other.n)
    models = [package.svm_train(y, x, "-t 0 -q -e 1e-7") for package in (ours, theirs)]
    assert_close(models[0].get_SV(), models[1].get_SV())


def test_one_class_of_labels(capfd):
    y, x = [3, 3, 3], [[1.0], [2.0], [0.5]]
    mine, other = (package.svm_train(y, x, "-q") for package in (ours, theirs))
    assert mine.get_labels() == other.get_labels() == [3]
    assert ours.svm_predict(y, x, mine, "-q")[::2] == theirs.svm_predict(y, x, other, "-q")[::2]
    assert mine.machine is None


def test_files_and_objects_that_are_read(folder):
    text = "1 1:0.5 3:0\n-1 0:2 2:1e-3\n0\n"
    for package in (ours, theirs):
        assert package.svm_read_problem(io.StringIO(text)) == (
            [1.0, -1.0, 0.0],
            [{1: 0.5, 3: 0.0}, {0: 2.0, 2: 0.001}, {}],
        )
    mine, other = (package.svm_read_problem(io.StringIO(text), return_scipy=True) for package in (ours, theirs))
    np.testing.assert_array_equal(mine[0], other[0])
    assert mine[1].nnz == 3
    with pytest.raises(ValueError, match="line 2"):
        ours.svm_read_problem(io.StringIO("1 1:2\n1 one:2\n"))
    with pytest.raises(FileNotFoundError):
        ours.svm_read_problem("nothing-here")


def test_evaluations():
    rng = np.random.default_rng(0)
    for truth, predicted in (
        (rng.integers(0, 2, 30), rng.integers(0, 2, 30)),
        (rng.normal(size=30), rng.normal(size=30)),
        ([1, 1, 1], [1, 2, 3]),
    ):
        expected = theirs.evaluations(list(truth), list(predicted))
        assert ours.evaluations(list(truth), tuple(predicted)) == pytest.approx(expected, nan_ok=True)
        arrays = np.asarray(truth), np.asarray(predicted)
        assert commonutil.evaluations_scipy(*arrays) == pytest.approx(evaluations_scipy(*arrays), nan_ok=True)
    with pytest.raises(ValueError, match="equal"):
        ours.evaluations([1, 2], [1])
    with pytest.raises(TypeError, match="ndarray"):
        commonutil.evaluations_scipy([1], [1])


@pytest.mark.parametrize("lower", [-1, 0])
def test_scaling(lower, capfd):
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(30, 5, 0.5, "csr", random_state=rng)
    X = scipy.sparse.csr_matrix(scipy.sparse.hstack([X, np.zeros((30, 1))]))
    found, expected = (package.csr_find_scale_param(X, lower, 2) for package in (ours, theirs))
    np.testing.assert_allclose(found["coef"], expected["coef"])
    np.testing.assert_allclose(found["offset"], expected["offset"])
    np.testing.assert_allclose(ours.csr_scale(X, found).toarray(), theirs.csr_scale(X, expected).toarray())
    narrow = ours.csr_scale(X[:, :4], found)
    np.testing.assert_allclose(narrow.toarray(), ours.csr_scale(X, found).toarray()[:, :4])
    wide = scipy.sparse.csr_matrix(scipy.sparse.hstack([X, np.ones((30, 2))]))
    assert not ours.csr_scale(wide, found)[:, 6:].nnz
    assert "do not match" in capfd.readouterr().err
    with pytest.raises(ValueError, match="csr_matrix"):
        ours.csr_find_scale_param(X.toarray())
    with pytest.raises(ValueError, match="below"):
        ours.csr_find_scale_param(X, 1, 1)


def test_parameters_have_the_fields_of_libsvm():
    options = "-s 3 -t 1 -d 2 -g 0.5 -r 1 -c 3 -n 0.2 -p 0.3 -m 50 -e 0.1 -h 0 -b 1 -w1 5 -w-1 0.5 -v 3 -q"
    for words in ("", options, options.split()):
        mine, other = ours.svm_parameter(words), theirs.svm_parameter(words)
        for name in ("svm_type", "kernel_type", "degree", "gamma", "coef0", "C", "nu", "p", "eps", "shrinking",
                     "probability", "nr_weight", "nr_fold", "cross_validation"):  # fmt: skip
            assert getattr(mine, name) == getattr(other, name), name
        assert mine.weight == list(other.weight[: other.nr_weight])
        assert mine.weight_label == list(other.weight_label[: other.nr_weight])
    assert "kernel_type: 2" in str(ours.svm_parameter())
    assert mine.cache_size == 50
    mine.set_to_default_values()
    assert mine.C == 1
    assert not mine.cross_validation


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ours.svm_train([1, -1], [[1], [2]], "-c"), ValueError, "Wrong options"),
        (lambda: ours.svm_train([1, -1], [[1], [2]], "-z 1"), ValueError, "Wrong options: unknown option -z"),
        (lambda: ours.svm_train([1, -1], [[1], [2]], "file"), ValueError, "'file' is no option"),
        (lambda: ours.svm_train([1, -1], [[1], [2]], "-c -1"), ValueError, "Error: C <= 0"),
        (lambda: ours.svm_train([1, -1], [[1], [2]], "-c much"), ValueError, "needs a number"),
        (lambda: ours.svm_train([1, -1], [[1], [2]], "-s 7"), ValueError, "7 is not a valid svm_forms"),
        (lambda: ours.svm_train([1, -1], [[1], [2]], "-v 1"), ValueError, "n must >= 2"),
        (lambda: ours.svm_train([1, -1], [[1], [2]], 3), TypeError, "list or a str"),
        (lambda: ours.svm_train([1, -1], [[1]]), ValueError, r"len\(y\) != len\(x\)"),
        (lambda: ours.svm_train([], []), ValueError, "no samples"),
        (lambda: ours.svm_train(["a", "b"], [[1], [2]]), ValueError, "must be numbers"),
        (lambda: ours.svm_train([1, -1], [["a"], [2]]), ValueError, "consist of numbers"),
        (lambda: ours.svm_train([1, -1], [[np.nan], [2]]), ValueError, "NaN or infinite"),
        (lambda: ours.svm_train([1, np.nan], [[1], [2]]), ValueError, "label is NaN"),
        (lambda: ours.svm_train([1, -1], [{-1: 1}, {1: 2}]), ValueError, "must be from 0"),
        (lambda: ours.svm_train([1, -1], [{2**40: 1}, {1: 2}]), ValueError, "must be from 0"),
        (lambda: ours.svm_train([1, -1], [{"a": 1}, {1: 2}]), ValueError, "integers as indices"),
        (lambda: ours.svm_train([1, -1], "ab"), TypeError, "type of x"),
        (lambda: ours.svm_train("ab", [[1], [2]]), TypeError, "Wrong types"),
        (lambda: ours.svm_train([1, -1], [3, 4]), TypeError, "dictionary"),
        (lambda: ours.svm_train([1, -1], [[1, 2, 3], [2, 1, 1]], "-t 4 -s 0 -v 0"), ValueError, "n must"),
        (lambda: ours.svm_train([1, -1], [[0, 2, 3], [2, 1, 1]], "-t 4"), ValueError, "first column must be"),
        (lambda: ours.svm_train([1, -1], [[9, 2, 3], [2, 1, 1]], "-t 4"), ValueError, "out of range"),
        (lambda: ours.svm_train(ours.svm_problem([1, -1], [[1], [2]]), "-t 4"), ValueError, "first column must be"),
        (lambda: ours.svm_train([1, 1, 1, -1], [[1], [2], [3], [4]], "-s 1 -n 0.9"), ValueError, "nu is infeasible"),
        (lambda: ours.svm_train([1, -1], [[1], [2]], "-w+one 3"), ValueError, "must be followed by a label"),
        (lambda: predict_with("-b 1"), ValueError, "does not support probabiliy"),
        (lambda: predict_with("-x"), ValueError, "Wrong options"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def predict_with(options):
    return ours.svm_predict([1], [[1]], ours.svm_train([1, -1], [[1], [2]], "-q"), options)


def test_files_of_models_that_cannot_be_read(folder, capfd):
    assert ours.svm_load_model("nothing-here") is None
    assert capfd.readouterr().out == "can't open model file nothing-here\n"
    y, x = ours.svm_read_problem("iris")
    ours.svm_save_model("m", ours.svm_train(y, x, "-q"))
    (folder / "cut").write_text((folder / "m").read_text()[:200])
    with pytest.raises(ModelFileError):
        ours.svm_load_model("cut")


@pytest.mark.parametrize("module", ["svmutil", "liblinearutil"])
def test_scikit_learn_is_not_imported(module):
    train = "svm_train" if module == "svmutil" else "train"
    program = (
        f"import sys; from maxmargin.{module} import *; {train}([1, -1], [[1, 0], [0, 1]], '-q');"
        "print(sorted({'sklearn', 'pandas', 'rich', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
