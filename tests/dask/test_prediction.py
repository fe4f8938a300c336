"""Predictions of Dask collections by models of a single machine; no cluster is needed."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import maxmargin.dask
from maxmargin import SVC, SVR, OneClassSVM

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(300, 4))
TWO = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
THREE = np.digitize(X[:, 0], [-0.5, 0.5])


@pytest.mark.parametrize("labels", [TWO, THREE], ids=["two", "three"])
def test_kernel_classifiers(labels):
    model = SVC(probability=True).fit(X, labels)
    chunks = da.from_array(X, chunks=(77, 2))
    for name in ("predict", "decision_function", "predict_proba"):
        lazy = getattr(maxmargin.dask, name)(model, chunks)
        expected = getattr(model, name)(X)
        assert isinstance(lazy, da.Array)
        assert lazy.dtype == expected.dtype
        assert lazy.shape == expected.shape
        computed = lazy.compute(scheduler="synchronous")
        if name == "predict":
            np.testing.assert_array_equal(computed, expected)
        else:
            np.testing.assert_allclose(computed, expected, rtol=1e-9, atol=1e-12)


def test_data_frames_and_other_machines():
    frame = pd.DataFrame(X, columns=list("abcd"))
    parts = dd.from_pandas(frame, npartitions=3)
    regression, novelty = SVR().fit(frame, X[:, 0]), OneClassSVM().fit(X)
    predicted = maxmargin.dask.predict(regression, parts).compute(scheduler="synchronous")
    assert list(predicted.index) == list(frame.index)
    np.testing.assert_allclose(predicted, regression.predict(frame), rtol=1e-9)
    inside = maxmargin.dask.predict(novelty, da.from_array(X, chunks=(100, 4))).compute(scheduler="synchronous")
    np.testing.assert_array_equal(inside, novelty.predict(X))


def test_nothing_is_computed_early():
    def fail(block):
        raise AssertionError("computed")

    chunks = da.from_array(X, chunks=(100, 4)).map_blocks(fail, dtype=float, meta=np.empty((0, 4)))
    maxmargin.dask.predict(SVC().fit(X, TWO), chunks)


def test_errors():
    model = SVC().fit(X, TWO)
    with pytest.raises(ValueError, match="3 features, but the model was fitted with 4"):
        maxmargin.dask.predict(model, da.from_array(X[:, :3]))
    with pytest.raises(ValueError, match="SVC has no predict_proba"):
        maxmargin.dask.predict_proba(model, da.from_array(X))
    with pytest.raises(ValueError, match="not fitted"):
        maxmargin.dask.predict(SVC(), da.from_array(X))
