"""Arrays of other libraries than NumPy in, arrays of the same library and device out: scikit-learn's dispatch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import array_api_strict
import numpy as np
import pytest
import sklearn.svm

from maxmargin import SVC, LinearSVC

CASES = Path(__file__).with_name("array_library_cases.py")


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_every_estimator_follows_the_library(library):
    pytest.importorskip(library)
    done = subprocess.run(
        [sys.executable, str(CASES), library],
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["cases"] >= 50
    assert not result["wrong"]


@pytest.mark.parametrize("kind", [SVC, LinearSVC])
def test_without_dispatch_results_are_those_of_scikit_learn(kind):
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 3))
    y = (X[:, 0] > 0).astype(int)
    there = [array_api_strict.asarray(array) for array in (X, y)]
    model, other = kind().fit(*there), getattr(sklearn.svm, kind.__name__)().fit(*there)
    found, expected = model.predict(there[0]), other.predict(there[0])
    assert type(found) is type(expected) is np.ndarray
    np.testing.assert_array_equal(found, expected)
