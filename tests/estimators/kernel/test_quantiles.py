"""Several quantiles of `QuantileSVR`: columns that never cross, compared with a fit of each."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import mean_pinball_loss

from maxmargin import QuantileSVR, load, save
from maxmargin.interchange import to_onnx

LEVELS = [0.1, 0.4, 0.5, 0.9]
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (60, 2))
Y = X[:, 0] + (0.1 + np.abs(X[:, 1])) * rng.normal(size=60)
MODEL = QuantileSVR(quantile=LEVELS, C=100.0, gamma=3.0).fit(X, Y)
SINGLE = [QuantileSVR(quantile=level, C=100.0, gamma=3.0).fit(X, Y) for level in LEVELS]
LINEAR = QuantileSVR(quantile=LEVELS, C=10.0, kernel="linear").fit(X, Y)
coordinates = st.floats(-1e6, 1e6)


@given(st.lists(st.tuples(coordinates, coordinates), min_size=1, max_size=20))
def test_quantiles_never_cross_anywhere(points):
    for model in (MODEL, LINEAR):
        assert (np.diff(model.predict(np.array(points)), axis=1) >= 0).all()


def test_the_functions_cross_and_their_predictions_are_the_sorted_values():
    wide = rng.uniform(-3, 3, (500, 2))
    values = np.column_stack([model.predict(wide) for model in SINGLE])
    assert (np.diff(values, axis=1) < 0).any()
    np.testing.assert_allclose(MODEL.predict(wide), np.sort(values, axis=1), atol=1e-2)
    np.testing.assert_allclose(LINEAR.predict(wide), np.sort(wide @ LINEAR.coef_.T + LINEAR.intercept_, axis=1))
    for one, certificate in zip(SINGLE, MODEL.certificate_, strict=True):
        assert certificate.primal == pytest.approx(one.certificate_.primal, rel=1e-3)


@given(st.integers(0, 2**32 - 1))
def test_sorting_never_increases_the_pinball_loss(seed):
    draw = np.random.default_rng(seed)
    points, targets = draw.normal(scale=3.0, size=(30, 2)), draw.normal(scale=3.0, size=30)
    unsorted = [model.predict(points) for model in SINGLE]
    ours = sum(
        mean_pinball_loss(targets, f, alpha=level) for f, level in zip(np.sort(unsorted, axis=0), LEVELS, strict=True)
    )
    theirs = sum(mean_pinball_loss(targets, f, alpha=level) for f, level in zip(unsorted, LEVELS, strict=True))
    assert ours <= theirs + 1e-12


def test_a_single_quantile_in_a_list_is_a_column():
    model = clone(MODEL).set_params(quantile=[0.4]).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X)[:, 0], SINGLE[1].predict(X))


def test_files_and_onnx():
    file = io.BytesIO()
    save(MODEL, file)
    read = load(io.BytesIO(file.getvalue()))
    np.testing.assert_array_equal(read.predict(3 * X), MODEL.predict(3 * X))
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(to_onnx(MODEL, dtype="float64").SerializeToString())
    np.testing.assert_allclose(session.run(None, {"X": 3 * X})[0], MODEL.predict(3 * X), rtol=1e-9)


def test_score_is_the_mean_of_the_levels():
    assert MODEL.score(X, Y) > 0.3
    assert QuantileSVR(quantile=[0.5], C=100.0, gamma=3.0).fit(X, Y).score(X, Y) == pytest.approx(
        1 - mean_pinball_loss(Y, SINGLE[2].predict(X)) / mean_pinball_loss(Y, np.full(60, np.median(Y)))
    )


@pytest.mark.parametrize(
    ("quantile", "y", "message"),
    [
        ([0.5, 0.1], Y, "must be increasing numbers"),
        ([0.5, 0.5], Y, "must be increasing numbers"),
        ([], Y, "must be increasing numbers"),
        ([0.1, 1.0], Y, "above 0 and below 1"),
        ([0.1, "high"], Y, "quantile must be a number"),
        ([0.1, 0.9], np.column_stack([Y, Y]), "MultiOutputRegressor"),
    ],
)
def test_wrong_quantiles(quantile, y, message):
    with pytest.raises(ValueError, match=message):
        QuantileSVR(quantile=quantile).fit(X, y)
