"""SVMlight model files: decision values by the formulas of its manual."""

import io

import numpy as np
import pytest

from maxmargin import SVC, SVR
from maxmargin.interchange import ModelFileError, read_svmlight_model

KERNELS = {
    0: lambda X, z: X @ z,
    1: lambda X, z: (0.5 * (X @ z) + 2.0) ** 3,
    2: lambda X, z: np.exp(-0.25 * ((X - z) ** 2).sum(axis=1)),
    3: lambda X, z: np.tanh(0.5 * (X @ z) + 2.0),
}
VECTORS = [(0.7, {1: 0.5, 4: 1.0}), (-0.4, {2: 1.0}), (-0.3, {3: -2.5, 4: 0.125}), (0.0, {})]


def file(code=2, vectors=VECTORS, threshold=0.25, version="V6.02", highest=5):
    lines = [
        f"SVM-light Version {version}",
        f"{code} # kernel type",
        "3 # kernel parameter -d ",
        "0.25 # kernel parameter -g ",
        "0.5 # kernel parameter -s ",
        "2 # kernel parameter -r ",
        "empty# kernel parameter -u ",
        f"{highest} # highest feature index ",
        "100 # number of training documents ",
        f"{len(vectors) + 1} # number of support vectors plus 1 ",
        f"{threshold} # threshold b, each following line is a SV (starting with alpha*y)",
        *(f"{weight} " + "".join(f"{j}:{value:g} " for j, value in row.items()) + "#" for weight, row in vectors),
    ]
    return io.BytesIO("".join(f"{line}\n" for line in lines).encode())


def expected(code, X):
    total = np.full(len(X), -0.25)
    for weight, row in VECTORS:
        z = np.array([row.get(j + 1, 0.0) for j in range(X.shape[1])])
        total += weight * KERNELS[code](X, z)
    return total


@pytest.mark.parametrize("version", ["V6.02", "V5.00"])
@pytest.mark.parametrize("code", KERNELS)
def test_values(code, version):
    X = np.random.default_rng(0).normal(size=(20, 5))
    classifier = read_svmlight_model(file(code, version=version))
    assert isinstance(classifier, SVC)
    assert classifier.classes_.tolist() == [-1, 1]
    assert classifier.n_support_.tolist() == [3, 1]
    np.testing.assert_allclose(classifier.decision_function(X), expected(code, X), atol=1e-12)
    np.testing.assert_array_equal(classifier.predict(X), np.where(expected(code, X) > 0, 1, -1))
    regressor = read_svmlight_model(file(code), task="regression", n_features=5)
    assert isinstance(regressor, SVR)
    np.testing.assert_allclose(regressor.predict(X), expected(code, X), atol=1e-12)


def test_linear_model_with_one_vector():
    model = read_svmlight_model(file(0, [(1.0, {1: 2.0, 3: -1.0})], threshold=-1.5, highest=3))
    np.testing.assert_allclose(model.decision_function([[1.0, 5.0, 0.5]]), [2.0 - 0.5 + 1.5])
    np.testing.assert_allclose(model.coef_, [[2.0, 0.0, -1.0]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace(b"SVM-light", b"SVM-heavy"), "line 1: .* starts with SVM-light"),
        (lambda text: b"", "line 1: "),
        (lambda text: text.split(b"100 #")[0], "line 8: the header is incomplete"),
        (lambda text: text.replace(b"2 # kernel type", b"4 # kernel type"), "line 2: .*user-defined"),
        (lambda text: text.replace(b"2 # kernel type", b"7 # kernel type"), "line 2: .*from 0 to 4"),
        (lambda text: text.replace(b"2 # kernel type", b"# kernel type"), "line 2: .*one value"),
        (lambda text: text.replace(b"3 # kernel", b"-3 # kernel"), "line 3: "),
        (lambda text: text.replace(b"0.25 # kernel", b"nan # kernel"), "line 4: .*finite number"),
        (lambda text: text.replace(b"0.25 # kernel", b"-1 # kernel"), "line 4: .*at least 0"),
        (lambda text: text.replace(b"5 # number of support", b"50 # number of support"), "ends after 4 .* 49"),
        (
            lambda text: text.replace(b"5 # number of support", b"3 # number of support"),
            "line 14: there are lines after",
        ),
        (lambda text: text.replace(b"2:1 #", b"0:1 #"), "line 13: .*start at 1"),
        (lambda text: text.replace(b"2:1 #", b"2:1 2:3 #"), "line 13: .*ascending"),
        (lambda text: text.replace(b"2:1 #", b"2:x #"), "line 13: .*index:value"),
        (lambda text: text.replace(b"-0.4 2", b"many 2"), "line 13: a coefficient"),
        (lambda text: text.replace(b"2:1 #", b"2:1e999 #"), "line 13: .*overflows"),
    ],
)
def test_malformed_files(change, message):
    text = file().getvalue()
    assert change(text) != text
    with pytest.raises(ModelFileError, match=message):
        read_svmlight_model(io.BytesIO(change(text)))


def test_invalid_task():
    with pytest.raises(ValueError, match="'classification' or 'regression'"):
        read_svmlight_model(file(), task="ranking")
