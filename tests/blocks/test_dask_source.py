"""Dask arrays and data frames as blocks: the rows of the partitions, in order, computed anew in each pass."""

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("dask.dataframe", reason="dask is in the test extra")
import dask.array as da
import pandas as pd
from dask import dataframe as dd
from dask import delayed

from maxmargin import LinearSVC, blocks

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(500, 4))
Y = (X[:, 0] > 0).astype(int)
WEIGHTS = RANDOM.choice([0.5, 1.0], 500)
CHUNKS = (200, 0, 290, 10)


def rows_of(values, chunks=CHUNKS):
    return da.from_array(values, chunks=(chunks, *values.shape[1:]))


def joined(table):
    parts = [*table]
    X = [block.X.toarray() if sparse.issparse(block.X) else block.X for block in parts]
    columns = [[block.y for block in parts], [block.sample_weight for block in parts]]
    return np.concatenate(X), *(None if one[0] is None else np.concatenate(one) for one in columns)


def assert_is(table, X, y=None, weights=None):
    for _ in range(2):
        for found, expected in zip(joined(table), (X, y, weights), strict=True):
            assert (found is None) == (expected is None)
            if expected is not None:
                np.testing.assert_array_equal(found, expected)
    assert table.shape == X.shape


def test_arrays():
    assert_is(blocks.open(rows_of(X)), X)
    assert_is(blocks.open(rows_of(X), rows_of(Y, (500,)), rows_of(WEIGHTS)), X, Y, WEIGHTS)
    assert_is(blocks.open(rows_of(X), Y, rows_of(WEIGHTS), block_rows=77), X, Y, WEIGHTS)
    assert_is(blocks.open(X, rows_of(Y)), X, Y)
    single = blocks.open(rows_of(X.astype(np.float32)).rechunk((100, 2)))  # several blocks of columns
    assert single.dtype == np.float32
    assert_is(single, X.astype(np.float32))
    assert_is(blocks.open(rows_of(Y[:, None]), Y), Y[:, None].astype(float), Y)


def test_unknown_lengths_and_sparse_chunks():
    chosen = X[:, 1] > 0
    lazy = rows_of(X)
    assert_is(blocks.open(lazy[lazy[:, 1] > 0], rows_of(Y)[lazy[:, 1] > 0]), X[chosen], Y[chosen])
    thin = np.where(np.abs(X) > 0.7, X, 0.0)
    table = blocks.open(rows_of(thin, (250, 250)).map_blocks(sparse.csr_matrix), Y)
    assert table.is_sparse
    assert_is(table, thin, Y)


def frame_of(npartitions=3):
    frame = pd.DataFrame(X, columns=[*"abcd"])
    frame["tree"] = pd.Categorical.from_codes(Y, ["birch", "ash"])
    frame["mass"] = WEIGHTS
    return dd.from_pandas(frame, npartitions=npartitions)


def test_data_frames():
    frame, names = frame_of(), np.array(["birch", "ash"])[Y]
    assert_is(blocks.open(frame[[*"abcd"]], frame.tree, frame.mass), X, names, WEIGHTS)
    assert_is(blocks.open(frame, label="tree", weight="mass"), X, names, WEIGHTS)
    assert_is(blocks.open(frame, weight="mass"), X, names, WEIGHTS)  # the label is the last column that is left
    assert_is(blocks.open(frame.drop(columns="mass"), label="tree", ignore=["b"]), X[:, [0, 2, 3]], names)
    assert_is(blocks.open(frame[[*"abcd"]], label=None), X)
    assert_is(blocks.open(frame[[*"abcd"]].astype("Float32"), Y), X.astype(np.float32).astype(float), Y)


def test_fits_are_those_of_arrays():
    model = LinearSVC().fit(blocks.open(rows_of(X), rows_of(Y)))
    again = LinearSVC().fit(blocks.open(X, Y))
    np.testing.assert_allclose(model.coef_, again.coef_, rtol=1e-3)
    frame = blocks.open(frame_of(), label="tree", weight="mass")
    named = LinearSVC().fit(frame)
    assert named.classes_.tolist() == ["ash", "birch"]
    assert named.score(frame) > 0.9
    np.testing.assert_array_equal(model.predict(blocks.open(rows_of(X))), model.predict(X))


def test_errors():
    bad = X.copy()
    bad[495, 2] = np.nan
    with pytest.raises(ValueError, match=r"the Dask array X, block 2: row 495 .*: nan in column 2"):
        list(blocks.open(rows_of(bad)))
    with pytest.raises(ValueError, match=r"'tree' \(category\).*get_dummies"):
        blocks.open(frame_of(), label="mass")
    with pytest.raises(ValueError, match="no column named 'oak'"):
        blocks.open(frame_of(), label="oak")
    with pytest.raises(ValueError, match="500 rows, but y has 499"):
        blocks.open(rows_of(X), rows_of(Y[:499], (499,)))
    with pytest.raises(ValueError, match="y has 499 values"):
        blocks.open(rows_of(X), Y[:499])
    with pytest.raises(ValueError, match="two dimensions"):
        blocks.open(rows_of(Y))
    with pytest.raises(ValueError, match="data frame, not a series"):
        blocks.open(frame_of().mass)
    with pytest.raises(ValueError, match="empty"):
        blocks.open(rows_of(X)[:0])
    with pytest.raises(ValueError, match="to_numpy"):
        blocks.open(pd.DataFrame(X))


def test_partitions_that_disagree():
    wide = da.concatenate([rows_of(X), da.from_delayed(delayed(np.ones)((5, 7)), shape=(5, 4), dtype=float)])
    with pytest.raises(ValueError, match=r"block 3: it has 7 columns, but the table has 4"):
        list(blocks.open(wide))
    short = da.concatenate([rows_of(X), da.from_delayed(delayed(np.ones)((5, 4)), shape=(9, 4), dtype=float)])
    with pytest.raises(ValueError, match="505 rows in this pass, but 509"):
        list(blocks.open(short))
    failing = da.concatenate([rows_of(X), da.from_delayed(delayed(int)("no number"), shape=(9, 4), dtype=float)])
    with pytest.raises(ValueError, match="no number"):
        LinearSVC().fit(blocks.open(failing, np.append(Y, np.ones(9))))
