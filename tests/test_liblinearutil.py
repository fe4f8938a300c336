"""`maxmargin.liblinearutil` beside LIBLINEAR's package: the snippets of its README run with both."""

from ctypes import CDLL

import liblinear.liblinearutil as theirs
import numpy as np
import pytest
import scipy
from threadpoolctl import threadpool_limits

import maxmargin.liblinearutil as ours
from maxmargin.interchange.errors import ModelFileError
from reference.libsvm_programs import final_lines, shape_of, write_data
from test_svmutil import assert_close, plain

#: Snippets of the README of LIBLINEAR's Python interface with a support vector machine where it has logistic regression
#: (-s 0), `overlap` in place of `heart_scale`, and C at which LIBLINEAR reaches its tolerance before its limit of a
#: thousand passes; the names of the results that are compared follow.
SNIPPETS = {
    "quick start": (
        """
y, x = svm_read_problem('overlap')
m = train(y[:100], x[:100], '-c 0.05')
pred_labels, pred_metrics, pred_values = predict(y[100:], x[100:], m)
""",
        ["pred_labels", "pred_metrics", "pred_values"],
    ),
    "problems and parameters": (
        """
y, x = [1,-1], [[1,0,1], [-1,0,-1]]
dense = train(problem(y, x), parameter('-s 2 -c 4 -B 1')).get_decfun()
y, x = [1,-1], [{1:1, 3:1}, {1:-1,3:-1}]
prob  = problem(y, x)
param = parameter('-s 2 -c 4 -B 1')
m = train(prob, param)
sparse = m.get_decfun()
size = prob.n, prob.l, prob.bias, m.bias, m.get_nr_feature()
""",
        ["dense", "sparse", "size"],
    ),
    "files of models": (
        """
y, x = svm_read_problem('iris')
m = train(y, x, '-c 4 -B 1')
save_model('the.model', m)
m = load_model('the.model')
pred_labels, pred_metrics, pred_values = predict(y, x, m)
ACC, MSE, SCC = evaluations(y, pred_labels)
known = m.get_nr_feature(), m.get_nr_class(), m.get_labels(), m.is_probability_model(), m.is_regression_model()
W_kj = m.get_decfun_coef(feat_idx=1, label_idx=2)
b_k = m.get_decfun_bias(label_idx=2)
[w_k, b] = m.get_decfun(label_idx=2)
outside = m.get_decfun_coef(5, 0), m.get_decfun_coef(0, 0), m.get_decfun_coef(1, 3)
""",
        ["pred_labels", "pred_values", "ACC", "MSE", "SCC", "known", "W_kj", "b_k", "w_k", "b", "outside"],
    ),
    "scipy": (
        """
y, x = svm_read_problem('overlap', return_scipy = True)
m = train(y[:100], x[:100, :], '-c 0.05')
pred_labels, pred_metrics, pred_values = predict(y[100:], x[100:, :], m)
y, x = np.asarray([1,-1]), np.asarray([[1,0,1], [-1,0,-1]])
of_array = train(problem(y, x), parameter('-s 2 -c 4 -B 1')).get_decfun()
y, x = np.asarray([1,-1]), scipy.sparse.csr_matrix(([1, 1, -1, -1], ([0, 0, 1, 1], [0, 2, 0, 2])))
of_matrix = train(problem(y, x), parameter('-s 2 -c 4 -B 1')).get_decfun()
""",
        ["pred_labels", "pred_metrics", "pred_values", "of_array", "of_matrix"],
    ),
    "fields of parameters": (
        """
param = parameter()
param.solver_type = 1
param.C = 4
prob = problem([1,-1], [{1:1, 3:1}, {1:-1,3:-1}])
found = train(prob, param).get_decfun()
copied = prob.copy()
shared = copied.l, copied.n
""",
        ["found", "shared"],
    ),
    "train": (
        """
y, x = svm_read_problem('overlap')
prob = problem(y, x)
param = parameter('-s 3 -c 0.05 -q')
of_data = predict(y, x, train(y, x, '-c 0.05'), '-q')[2]
of_options = predict(y, x, train(prob, '-w1 5 -c 0.05'), '-q')[2]
of_parameter = predict(y, x, train(prob, param), '-q')[2]
CV_ACC = train(y, x, '-v 3 -q')
""",
        ["of_data", "of_options", "of_parameter", "CV_ACC"],
    ),
    "regression, one class, Crammer-Singer": (
        """
y, x = svm_read_problem('targets')
m = train(y, x, '-s 11 -B 1 -q')
values = predict(y, x, m)
[W, b] = m.get_decfun()
MSE = train(y, x, '-s 12 -v 4 -q')
m = train(y, x, '-s 21 -n 0.3 -q')
inside = predict([], x, m, '-q')[2]
rho = m.get_decfun_rho(), m.is_oneclass_model()
y, x = svm_read_problem('iris')
joint = predict(y, x, train(y, x, '-s 4 -q'), '-q')[2]
y, x = svm_read_problem('overlap')
m = train(y, x, '-s 4 -q')
pair = m.get_decfun(0), m.get_decfun(1)
m = train(y, x, '-s 2 -B 1 -q')
signs = m.get_decfun(0), m.get_decfun(1)
""",
        ["values", "W", "b", "MSE", "inside", "rho", "joint", "pair", "signs"],
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
    train = names["train"]

    def first_train(*arguments):
        CDLL(None).srand(1)  # LIBLINEAR's folds are those of the first call in a process, as ours always are
        return train(*tightened(arguments))

    names["train"] = first_train
    capfd.readouterr()
    with threadpool_limits(1):
        exec(code, names)
    return names, final_lines(capfd.readouterr().out)


def tightened(arguments):
    """Return arguments with a tolerance at which solutions agree to the digits that are compared."""
    *others, last = arguments
    if isinstance(last, str):
        return *others, f"{last} -e 1e-7"
    last.eps = 1e-7
    return *others, last


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippets_of_the_readme(name, folder, capfd):
    code, compared = SNIPPETS[name]
    found, lines = run(ours, code, capfd)
    expected, their_lines = run(theirs, code, capfd)
    evaluated = ("Accuracy", "Cross", "Mean", "Squared")
    lines, their_lines = ([line for line in some if line.startswith(evaluated)] for some in (lines, their_lines))
    assert list(map(shape_of, lines)) == list(map(shape_of, their_lines))
    for result in compared:
        assert_close(plain(found[result]), plain(expected[result]), 0.004)


def test_every_public_name_is_one_of_liblinear():
    assert set(ours.__all__) <= set(theirs.__all__)
    missing = set(theirs.__all__) - set(ours.__all__)  # the structures of ctypes
    assert missing == {"feature_node", "gen_feature_nodearray", "liblinear", "print_null", "toPyModel"}
    methods = {name for name in dir(theirs.model) if name.startswith(("get_", "is_"))}
    assert methods <= set(dir(ours.model))


@pytest.mark.parametrize(("data", "options"), [("overlap", "-C -q"), ("iris", "-C -s 2 -v 3 -c 0.5 -q"),
                                               ("targets", "-C -s 11 -p 0.5 -c 1 -q")])  # fmt: skip
def test_search_for_parameters(data, options, folder, capfd):
    y, x = ours.svm_read_problem(data)
    results, printed = [], []
    for package in (ours, theirs):
        CDLL(None).srand(1)
        results.append(package.train(y, x, options))
        printed.append(capfd.readouterr().out)
    assert shape_of(printed[0]) == shape_of(printed[1])
    found, expected = results
    assert found[1] == pytest.approx(expected[1]) == (-1.0 if data != "targets" else found[1])
    assert found[2] == pytest.approx(expected[2], rel=0.02)


def test_models_are_exchanged_with_liblinear(folder):
    y, x = ours.svm_read_problem("iris")
    model = ours.train(y, x, "-B 1 -q")
    ours.save_model("ours.model", model)
    expected = theirs.predict(y, x, theirs.load_model("ours.model"), "-q")
    assert_close(ours.predict(y, x, model, "-q"), expected)
    assert max(certificate.relative_gap for certificate in model.machine.certificate_) <= 1e-4
    loaded = ours.load_model("ours.model")
    assert loaded.machine is None
    assert loaded.param.solver_type == ours.solver_names.L2R_L2LOSS_SVC_DUAL


def test_one_label_unknown_features_and_problems_that_share_samples():
    one = ours.train([3, 3], [[1.0], [2.0]], "-q")
    assert one.get_labels() == [3]
    assert ours.predict([3, 1], [[1.0], [5.0]], one, "-q")[0] == [3.0, 3.0]
    model = ours.train([1, -1], [[1.0], [-1.0]], "-q")
    assert_close(ours.predict([], [{1: 1.0, 7: 100.0}], model, "-q")[2], ours.predict([], [[1.0]], model, "-q")[2])
    data = ours.problem([1, -1], [[1.0], [-1.0]])
    other = data.copy()
    other.y = -data.y
    assert ours.train(other, "-q").get_labels() == [1, -1]
    assert ours.train(other, "-q").get_decfun_coef(1) == -ours.train(data, "-q").get_decfun_coef(1)


def test_parameters_have_the_fields_of_liblinear():
    options = "-s 11 -c 3 -p 0.3 -e 0.1 -B 1 -R -w1 5 -v 3 -q -n 0.2"
    for words in ("", options, options.split(), "-C", "-C -c 2 -v 4", "-s 3", "-s 21"):
        mine, other = ours.parameter(words), theirs.parameter(words)
        for name in ("solver_type", "C", "p", "nu", "eps", "bias", "regularize_bias", "nr_weight", "nr_fold",
                     "flag_find_parameters", "flag_C_specified", "flag_p_specified"):  # fmt: skip
            assert getattr(mine, name) == getattr(other, name), name
        assert mine.weight == list(other.weight[: other.nr_weight])
    assert "solver_type: 21" in str(mine)
    mine.set_to_default_values()
    assert mine.solver_type == 1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: ours.train([1, -1], [[1], [2]], "-s 0"),
            ValueError,
            "logistic regression.* the types that work are 1",
        ),
        (lambda: ours.train([1, -1], [[1], [2]], "-s 99"), ValueError, "99 is not .*the types that work are 1"),
        (lambda: ours.train([1, -1], [[1], [2]], "-C -s 3"), ValueError, "only available for -s 2 and -s 11"),
        (lambda: ours.train([1, -1], [[1], [2]], "-c"), ValueError, "Wrong options"),
        (lambda: ours.train([1, -1], [[1], [2]], "-c -1"), ValueError, "Error: C <= 0"),
        (lambda: ours.train([1, -1], [[1], [2]], "-v 1"), ValueError, "n must >= 2"),
        (lambda: ours.train([1, -1], [[1], [2]], "-R"), ValueError, "must specify -B 1"),
        (lambda: ours.train([1, -1], [{0: 1}, {1: 2}]), ValueError, "start at 1"),
        (lambda: ours.train([1, -1], [[1]]), ValueError, r"len\(y\) != len\(x\)"),
        (lambda: ours.train("ab", [[1], [2]]), TypeError, "Wrong types"),
        (lambda: ours.train([1, -1], [[np.inf], [2]]), ValueError, "NaN or infinite"),
        (lambda: predict_with("-b 1"), TypeError, "only supported for logistic regression"),
        (lambda: predict_with("-x"), ValueError, "Wrong options"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def predict_with(options):
    return ours.predict([1], [[1]], ours.train([1, -1], [[1], [2]], "-q"), options)


def test_files_of_models_that_cannot_be_read(folder, capfd):
    assert ours.load_model("nothing-here") is None
    assert capfd.readouterr().out == "can't open model file nothing-here\n"
    (folder / "cut").write_text("solver_type L2R_L2LOSS_SVC\nnr_class 2\n")
    with pytest.raises(ModelFileError):
        ours.load_model("cut")
