"""Tables that are transformed block by block: scalings, transformers of scikit-learn, functions, and their errors."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from blocks.tables import SIZES, SPARSE, WEIGHT, X, Y, assert_rows, collected
from maxmargin import LinearSVC, blocks
from maxmargin.datasets import Scaling

DATA = {"dense": X, "sparse": SPARSE, "single": X.astype(np.float32), "constant column": np.hstack([X, 0 * X + 7])}


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("fit", [Scaling.fit, Scaling.standardise, lambda X: Scaling.fit(X, 0.0, 2.0)])
def test_scalings_are_those_of_the_table_in_memory(fit, kind, rows):
    data = DATA[kind]
    table = blocks.open(data, Y, WEIGHT, block_rows=rows)
    scaling, expected = fit(table), fit(data.astype(np.float64))
    np.testing.assert_array_equal(scaling.columns, expected.columns)
    np.testing.assert_allclose(scaling.minimum, expected.minimum, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(scaling.maximum, expected.maximum, rtol=1e-13, atol=1e-13)
    scaled = scaling.apply(data)
    dense = scaled.toarray() if sparse.issparse(scaled) else scaled
    assert_rows(blocks.transform(table, scaling), dense, Y, WEIGHT)


def test_columns_without_values_and_large_means():
    empty = sparse.csr_array((np.array([1e8, 1e8 + 1, 5.0]), np.array([1, 1, 4]), np.array([0, 1, 2, 3])), shape=(3, 6))
    found, expected = Scaling.standardise(blocks.open(empty, block_rows=2)), Scaling.standardise(empty)
    np.testing.assert_array_equal(found.columns, expected.columns)
    np.testing.assert_allclose(found.minimum, expected.minimum, rtol=1e-12)
    shifted = 1e8 + np.random.default_rng(0).normal(size=(1000, 1))
    found = Scaling.standardise(blocks.open(shifted, block_rows=64))
    assert (found.maximum - found.minimum)[0] / 2 == pytest.approx(shifted.std(), rel=1e-6)


def test_scalers_of_scikit_learn_learn_block_by_block():
    table, scaler = blocks.open(X, Y, block_rows=5), StandardScaler()
    for block in table:
        scaler.partial_fit(block.X)
    scaled = blocks.transform(table, scaler)
    found = collected(scaled)[0]
    np.testing.assert_allclose(found, StandardScaler().fit_transform(X), atol=1e-12)
    streamed, whole = LinearSVC(tol=1e-6).fit(scaled), LinearSVC(tol=1e-6).fit(found, Y)
    np.testing.assert_allclose(streamed.coef_, whole.coef_, atol=1e-3)
    np.testing.assert_array_equal(streamed.predict(scaled), streamed.predict(found))


def test_other_transformers_and_functions():
    table = blocks.open(X, block_rows=5)
    features = RBFSampler(n_components=9, random_state=0).fit(X)
    assert_rows(blocks.transform(table, features), features.transform(X))
    assert_rows(blocks.transform(table, lambda part: sparse.csc_array(part[:, :2])), X[:, :2])
    assert blocks.transform(table, lambda part: sparse.csc_array(part)).is_sparse
    absolute = MaxAbsScaler().fit(SPARSE)
    assert_rows(blocks.transform(blocks.open(SPARSE, block_rows=5), absolute), absolute.transform(SPARSE).toarray())
    twice = blocks.transform(blocks.transform(table, np.exp), np.log)
    np.testing.assert_allclose(collected(twice)[0], X)
    assert "transformed: 23 rows, 4 columns" in repr(twice)


def test_results_are_data_frames_or_lists():
    table, frames = blocks.open(X, block_rows=5), StandardScaler().set_output(transform="pandas").fit(X)
    assert_rows(blocks.transform(table, frames), np.asarray(frames.transform(X)))
    assert_rows(blocks.transform(table, np.ndarray.tolist), X)


def failing(part):
    if part[0, 0] == X[10, 0]:
        raise ValueError("no such value")
    return part


@pytest.mark.parametrize(
    ("transformer", "match"),
    [
        (failing, "block 2: the transformation failed: no such value"),
        (lambda part: part[:3], "block 0: the transformation of 5 rows has 3"),
        (lambda part: part[:, : 1 + (part[0, 0] == X[0, 0])], "block 1: it has 1 columns, but the table has 2"),
        (
            lambda part: part[:, 0],
            r"block 0: the transformation must return a table of numbers .*, not ndarray of shape",
        ),
        (lambda part: None, r"block 0: the transformation must return a table of numbers .*, not NoneType"),
        (
            lambda part: np.where(part == X[12, 3], np.inf, part),
            r"block 2: row 12 .*: inf in column 3",
        ),
        (lambda part: sparse.csr_array(part) if part[0, 0] != X[0, 0] else part, "block 1: it is sparse"),
        (StandardScaler(), "block 0: the transformation failed: .*not fitted"),
        (StandardScaler().fit(X[:, :2]), "block 0: the transformation failed: .*expecting 2 features"),
    ],
)
def test_errors_name_block_and_row(transformer, match):
    with pytest.raises(ValueError, match=match):
        list(blocks.transform(blocks.open(X, block_rows=5), transformer))


def test_arguments():
    with pytest.raises(TypeError, match="table must be what blocks.open returns, not of type ndarray"):
        blocks.transform(X, np.exp)
    with pytest.raises(TypeError, match="have a method transform, which int has not"):
        blocks.transform(blocks.open(X), 3)
    with pytest.raises(TypeError, match="transformer must be fitted, not the class Scaling"):
        blocks.transform(blocks.open(X), Scaling)
    with pytest.raises(TypeError, match=r"scaled by maxmargin.blocks.transform\(table, scaling\)"):
        Scaling.fit(X).apply(blocks.open(X))
