"""Rows of samples."""

import numpy as np
import pytest

from maxmargin.kernels import points


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_rows_are_copied_by_several_threads(dtype):
    data = np.random.default_rng(0).normal(size=(3000, 200)).astype(dtype)
    index = np.random.default_rng(1).permutation(3000)[:2000].astype(np.int32)
    assert index.size * 200 >= points.MIN_COPIED_VALUES
    for table in (data, np.asfortranarray(data)):
        rows = points.rows_of(table, index, threads=3)
        assert rows.dtype == dtype
        np.testing.assert_array_equal(rows, data[index])
    with pytest.raises(ValueError, match="out of range"):
        points.rows_of(data, np.full(2000, 3000), threads=2)
