"""Malformed text model files: an error with a line number, or a model that predicts.

Among them are the files that make LIBSVM 3.37 crash or read garbage.
"""

import io
import random
import re
import resource

import numpy as np
import pytest

from interchange.text_mutations import MUTATIONS
from maxmargin import SVC, SVR, LinearOneClassSVM, LinearSVC, OneClassSVM
from maxmargin.interchange import ModelFileError, read_svmlight_model, write_liblinear_model, write_libsvm_model
from maxmargin.interchange.liblinear_model import linear_machine_of, read_liblinear_text
from maxmargin.interchange.libsvm import machine_of, read_text
from maxmargin.interchange.model_text import ModelText
from maxmargin.interchange.support_vector_lines import _read_checked, _read_fast

#: Estimators with more features are not used for predictions.
MAX_FEATURES = 1000


def written(write, model):
    file = io.BytesIO()
    write(model, file)
    return file.getvalue()


def seeds():
    """Return a small file of each format, and its reader."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(14, 3)), np.arange(14) % 3
    libsvm = [
        SVC(probability=True, C=1.0).fit(X, y),
        SVC(kernel="poly", degree=2, gamma=0.5).fit(X, y > 0),
        SVR(kernel="linear", noise=True).fit(X, X[:, 0]),
        OneClassSVM(probability=True, nu=0.5).fit(X),
        SVC(kernel="precomputed").fit(X @ X.T, y),
    ]
    linear = [LinearSVC().fit(X, y), LinearSVC().fit(X, y > 0), LinearOneClassSVM().fit(X + 3.0)]
    svmlight = b"".join(
        b"SVM-light Version V6.02\n2 # kernel type\n3 # -d\n0.5 # -g\n1 # -s\n1 # -r\nempty# -u\n3 # highest\n9 # n\n"
        b"3 # plus 1\n0.25 # threshold b\n0.5 1:1 3:0.5 #\n-0.5 2:1 #\n".splitlines(keepends=True)
    )
    return (
        [(read_libsvm, written(write_libsvm_model, model)) for model in libsvm]
        + [(read_liblinear, written(write_liblinear_model, model)) for model in linear]
        + [(read_svmlight, svmlight)]
    )


def read_libsvm(data):
    model = read_text(io.BytesIO(data))
    width = model.n_features if model.kernel == "precomputed" and model.n_features <= MAX_FEATURES else 3
    if model.kernel != "precomputed" or width >= model.n_features:
        model.predict(np.ones((2, max(1, width))))
    return machine_of(model)


def read_liblinear(data):
    model = read_liblinear_text(io.BytesIO(data))
    model.predict(np.ones((2, 3)))
    return linear_machine_of(model)


def read_svmlight(data):
    return read_svmlight_model(io.BytesIO(data))


def attempt(read, data):
    """Return whether a file was read; otherwise check that the error names a line."""
    try:
        model = read(data)
    except ModelFileError as error:
        message = str(error)
        assert re.search(r", line \d+: \S", message) or "single class" in message, message
        assert "\n" not in message
        assert len(message) < 400
        return False
    if model.n_features_in_ <= MAX_FEATURES:
        model.predict(np.ones((2, model.n_features_in_)))
    return True


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__)
def test_mutations(mutate):
    files, chance = seeds(), random.Random(mutate.__name__)
    assert all(attempt(read, data) for read, data in files)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read_again = 0
    with np.errstate(all="ignore"):  # numbers may overflow
        for k in range(MUTATIONS[mutate]):
            read, data = files[k % len(files)]
            other = chance.choice(files)[1]
            read_again += attempt(read, mutate(data.splitlines(), chance, other.splitlines()))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes
    assert 0.001 < read_again / MUTATIONS[mutate] < 0.9  # some mutations are harmless


@pytest.mark.parametrize("width", [1, 3])
def test_fast_and_checked_readers_agree(width):
    """Support vectors are read natively; malformed lines are read again to locate the error."""
    chance, rng = random.Random(width), np.random.default_rng(width)
    lines = [
        " ".join(
            [*map(repr, rng.normal(size=width).tolist()), *(f"{j}:{rng.normal():.5g}" for j in (0, 3, 17, 2**31 - 1))]
        )
        for _ in range(4)
    ]
    lines = [line.encode() for line in lines]
    seen = {True: 0, False: 0}
    for k in range(2000):
        data = list(MUTATIONS)[k % len(MUTATIONS)](lines, chance, lines)
        if not data.isascii() or not data.strip():
            continue
        text = ModelText(io.BytesIO(data))
        fast = _read_fast(text.lines, width)
        try:
            checked = _read_checked(text, 1, len(text), width)
        except ModelFileError:
            checked = None
        assert (fast is None) == (checked is None), data
        seen[fast is None] += 1
        for field in ("coefficients", "starts", "indices", "values") if fast is not None else ():
            np.testing.assert_array_equal(getattr(fast, field), getattr(checked, field))
    assert min(seen.values()) > 200


HEAD = "svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 0\nlabel 1 -1\nnr_sv 1 1\nSV\n"
MORE = HEAD.replace("total_sv 2", "total_sv 3").replace("nr_sv 1 1", "nr_sv 1 2")
VECTORS = "1 1:1\n-1 2:1\n"
REGRESSION = "svm_type epsilon_svr\nkernel_type rbf\ngamma 1\nnr_class 2\ntotal_sv 1\nrho 0\nSV\n1 1:1\n"
ONE_CLASS = "svm_type one_class\nkernel_type linear\nnr_class 2\ntotal_sv 1\nrho 0\nprob_density_marks {}\nSV\n1 1:1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # These crash LIBSVM or make it read beyond its arrays.
        (HEAD.replace("nr_sv 1 1", "nr_sv 1 5") + VECTORS, "line 7: the sum of nr_sv is 6, but total_sv is 2"),
        (HEAD.replace("nr_sv 1 1", "nr_sv 2147483647 2147483647") + VECTORS, "line 7: the sum of nr_sv is 4294967294"),
        (HEAD.replace("label 1 -1\nnr_sv 1 1\n", "") + VECTORS, "line 6: the line label is missing before SV"),
        (HEAD.replace("nr_sv 1 1\n", "") + VECTORS, "line 7: the line nr_sv is missing"),
        (
            HEAD.replace("total_sv 2", "total_sv 5").replace("nr_sv 1 1", "nr_sv 1 4") + VECTORS,
            "line 10: .*after 2 .* 5",
        ),
        (HEAD + "1 1:1\n\n-1 2:1\n", "line 11: there are lines after the 2 support vectors"),
        (HEAD + "1 1:1\n\n", "line 9: the file ends after 1 support vectors"),
        (
            HEAD.replace("total_sv 2", "total_sv 3").replace("nr_sv 1 1", "nr_sv 1 2") + "1 1:1\n\n-1 2:1\n",
            "line 10: .*0",
        ),
        (HEAD.replace("nr_class 2", "nr_class -2") + VECTORS, "line 3: nr_class must be an integer from 1"),
        (HEAD.replace("nr_class 2", "nr_class 2147483647") + VECTORS, "line 5: rho has 1 values, but must have"),
        (HEAD.replace("total_sv 2", "total_sv 2147483647") + VECTORS, "line 7: the sum of nr_sv is 2"),
        (HEAD.replace("total_sv 2", "total_sv 9999999999999999999999") + VECTORS, "line 4: total_sv must be"),
        # Other counts and words.
        ("", "line 1: .*the line SV is missing"),
        ("\n\n", "line 1: .*SV is missing"),
        (HEAD.replace("SV\n", ""), "line 7: .*SV is missing"),
        (HEAD.replace("SV\n", "SV 3\n") + VECTORS, "line 8: SV has 1 values"),
        ("svm_type c_svc\x00\nSV\n", "line 1: svm_type must be one of"),
        ("svm_type c_svc\nkernel_type lin\u00e9aire\nSV\n", "line 2: the file is not ASCII text"),
        (HEAD.replace("svm_type c_svc", "svm_type d_svc") + VECTORS, "line 1: svm_type must be one of c_svc"),
        (HEAD.replace("svm_type c_svc", "svm_type") + VECTORS, "line 1: svm_type must be one of"),
        (HEAD.replace("svm_type c_svc\n", "") + VECTORS, "line 7: the line svm_type is missing"),
        (HEAD.replace("kernel_type linear", "kernel_type cubic") + VECTORS, "line 2: kernel_type must be one of"),
        (HEAD.replace("kernel_type linear", "kernel_type rbf") + VECTORS, "line 8: the line gamma is missing"),
        (HEAD.replace("rho 0", "coef 1 2\nrho 0") + VECTORS, "line 5: 'coef' is not a keyword of LIBSVM"),
        (HEAD.replace("rho 0", "rho 0\nrho 0") + VECTORS, "line 6: rho occurs twice, first on line 5"),
        (HEAD.replace("rho 0", "rho nan") + VECTORS, "line 5: rho must be a finite number, not 'nan'"),
        (HEAD.replace("rho 0", "rho 1e400") + VECTORS, "line 5: rho must be a finite number"),
        (HEAD.replace("rho 0", "rho 0 0") + VECTORS, "line 5: rho has 2 values, but must have 1"),
        (HEAD.replace("label 1 -1", "label 1 1") + VECTORS, "line 6: a label occurs twice"),
        (HEAD.replace("label 1 -1", "label 1 a") + VECTORS, "line 6: label must be an integer"),
        (HEAD.replace("label 1 -1", "label 1 2147483648") + VECTORS, "line 6: label must be an integer"),
        (HEAD.replace("nr_sv 1 1", "nr_sv 3 -1") + VECTORS, "line 7: nr_sv must be an integer from 0"),
        (HEAD.replace("nr_sv", "probA 1\nnr_sv") + VECTORS, "line 9: the line probB is missing"),
        (HEAD.replace("nr_sv", "probA 1\nprobB 1 2\nnr_sv") + VECTORS, "line 8: probB has 2 values"),
        (REGRESSION.replace("gamma 1", "gamma -1"), "line 3: gamma must be at least 0"),
        (REGRESSION.replace("nr_class 2", "nr_class 3"), "line 4: nr_class of epsilon_svr must be 2"),
        (REGRESSION.replace("rho 0", "rho 0\nprobA -1"), "line 7: probA of a regression"),
        (REGRESSION.replace("rbf\ngamma 1", "polynomial\ngamma 1\ncoef0 0\ndegree -2"), "line 5: degree"),
        (ONE_CLASS.format("1 2 3"), "line 6: prob_density_marks has 3 values, but must have 10"),
        (ONE_CLASS.format("1 2 3 4 5 6 7 8 9 0"), "line 6: prob_density_marks must be in ascending order"),
        # Vectors.
        (HEAD + "1 1:1\n-1 2:1\n5 1:1\n", "line 11: there are lines after"),
        (HEAD + "1 1:1\n-1 2;1\n", "line 10: a feature must be index:value, for example 3:0.5, not '2;1'"),
        (HEAD + "1 1:1\n-1 1 2:1\n", "line 10: a feature must be index:value"),
        (HEAD + "1 1:1\nx 2:1\n", "line 10: a coefficient must be a finite number, not 'x'"),
        (HEAD + "1 1:1\n2:1\n", "line 10: a coefficient must be a finite number, not '2:1'"),
        (HEAD + "1 1:1\n-1 2:1 1:1\n", "line 10: index 1: indices must be in ascending order"),
        (HEAD + "1 1:1\n-1 2:1 2:1\n", "line 10: index 2: indices must be in ascending order"),
        (HEAD + "1 1:1\n-1 -2:1\n", "line 10: a feature must be index:value"),
        (HEAD + "1 1:1\n-1 2147483648:1\n", "line 10: index 2147483648: indices must .* at most 2147483647"),
        (HEAD + "1 1:inf\n-1 2:1\n", "line 9: a feature must be index:value"),
        (HEAD + "1 1:1\n-1 2:1e400\n", "line 10: a number overflows float64"),
        (HEAD + "1e400 1:1\n-1 2:1\n", "line 9: a number overflows float64"),
        (HEAD.replace("linear", "precomputed") + "1 0:1\n-1 0:0\n", "line 10: .*precomputed kernel must be 0:n"),
        (HEAD.replace("linear", "precomputed") + "1 0:1\n-1 0:1.5\n", "line 10: .*precomputed"),
        (HEAD.replace("linear", "precomputed") + "1 0:1\n-1 1:1\n", "line 10: .*precomputed"),
        (HEAD.replace("linear", "precomputed") + "1 0:1\n-1\n", "line 10: .*precomputed"),
        (HEAD.replace("linear", "precomputed") + "1 0:1\n-1 0:4294967297\n", "line 10: .*precomputed"),
    ],
)
def test_libsvm(text, message):
    with pytest.raises(ModelFileError, match=f"^the model file, {message}"):
        read_text(io.BytesIO(text.encode()))


LINEAR = "solver_type L2R_L2LOSS_SVC_DUAL\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias 1\nw\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LINEAR + "1\n2\n", "line 8: the file ends after 2 lines of weights, but must have 3"),
        (LINEAR + "1\n2\n3\n4\n", "line 10: there are lines after the 3 lines"),
        (LINEAR + "1\n2 2\n3\n", "line 8: a line of weights has 2 values, but must have 1"),
        (LINEAR + "1\n\n3\n", "line 8: a line of weights has 0 values"),
        (LINEAR + "1\nx\n3\n", "line 8: a line of weights must be a finite number, not 'x'"),
        (LINEAR + "1\n1e400\n3\n", "line 8: a number overflows float64"),
        (LINEAR.replace("nr_feature 2", "nr_feature 2147483647") + "1\n", "line 7: the file ends after 1 lines"),
        (LINEAR.replace("nr_class 2", "nr_class 2147483647") + "1\n", "line 3: label has 2 values"),
        (LINEAR.replace("nr_class 2", "nr_class 0") + "1\n", "line 2: nr_class"),
        (LINEAR.replace("bias 1", "bias nan") + "1\n", "line 5: bias must be a finite number"),
        (LINEAR.replace("bias 1\n", "") + "1\n", "line 5: the line bias is missing before w"),
        (LINEAR.replace("L2R_L2LOSS_SVC_DUAL", "L2R") + "1\n", "line 1: solver_type must be one of"),
        (LINEAR.replace("label 1 -1\n", "") + "1\n", "line 5: the line label is missing"),
        (LINEAR.replace("w\n", ""), "line 5: .*the line w is missing"),
        (LINEAR.replace("L2R_L2LOSS_SVC_DUAL", "ONECLASS_SVM") + "1\n", "line 6: the line rho is missing"),
        (LINEAR.replace("L2R_L2LOSS_SVC_DUAL\nnr_class 2", "ONECLASS_SVM\nnr_class 3"), "line 2: .*must be 2"),
    ],
)
def test_liblinear(text, message):
    with pytest.raises(ModelFileError, match=f"^the model file, {message}"):
        read_liblinear_text(io.BytesIO(text.encode()))


def test_errors_name_the_file(tmp_path):
    (tmp_path / "some.model").write_text("svm_type c_svc\n")
    with pytest.raises(ModelFileError, match=r"some\.model, line 1: "):
        read_text(tmp_path / "some.model")


def test_large_feature_index_takes_little_memory():
    text = HEAD + "1 1:1\n-1 2147483647:1\n"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = read_text(io.BytesIO(text.encode()))
    assert model.predict(np.eye(3)).tolist() == [1, -1, -1]
    assert machine_of(model).n_features_in_ == 2**31 - 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000
