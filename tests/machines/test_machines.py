"""Machines without scikit-learn: the same models as the estimators of the same names, and errors of their own."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import maxmargin
from maxmargin.interchange.fitted_schema import MACHINES

ONE_CLASS = ("OneClassSVM", "SVDD", "LinearOneClassSVM")


def data(name, n=120):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 4))
    values = X @ random.normal(size=4) + 0.3 * random.normal(size=n)
    if name == "RankSVC":
        return X, np.round(values)
    if name in ONE_CLASS:
        return X, None
    return X, np.digitize(values, [-0.5, 0.5]) if name.endswith("SVC") else values


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_the_model_is_that_of_the_estimator(name, form):
    X, y = data(name)
    machine, estimator = MACHINES[name]().fit(form(X), y), getattr(maxmargin, name)().fit(form(X), y)
    assert isinstance(estimator, MACHINES[name])
    np.testing.assert_array_equal(machine.predict(form(X)), estimator.predict(form(X)))
    np.testing.assert_array_equal(machine.intercept_, estimator.intercept_)
    assert machine.get_params() == estimator.get_params()


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((0, 2)), "at least one row"),
        (np.zeros(5), "must be a table"),
        (np.full((4, 2), np.nan), "NaN or infinity"),
    ],
)
def test_samples_are_validated(X, message):
    with pytest.raises(ValueError, match=message):
        MACHINES["SVC"]().fit(X, np.arange(len(X)) % 2)


def test_no_machine_imports_scikit_learn():
    program = (
        "import sys, numpy as np\n"
        "from maxmargin.interchange.fitted_schema import MACHINES\n"
        "X = np.random.default_rng(0).normal(size=(40, 2))\n"
        "for name, kind in MACHINES.items(): kind().fit(X, (X[:, 0] > 0).astype(int))\n"
        "print('sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
