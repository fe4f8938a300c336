"""Tables for the tests of blocks, and what they have in common."""

import numpy as np
import pytest
from scipy import sparse

from maxmargin import blocks

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(23, 4))
Y = RANDOM.integers(0, 3, 23)
WEIGHT = RANDOM.random(23)
SPARSE = sparse.random_array((23, 6), density=0.3, format="csr", rng=RANDOM)


def collected(table):
    """All rows of a pass, and the sizes of its blocks."""
    parts, expected = [], 0
    for block in table:
        assert block.first == expected
        expected += block.X.shape[0]
        assert block.X.dtype in (np.float32, np.float64)
        parts.append(block)
    stack = sparse.vstack if sparse.issparse(parts[0].X) else np.vstack
    whole = stack([part.X for part in parts])
    y = None if parts[0].y is None else np.concatenate([part.y for part in parts])
    weight = None if parts[0].sample_weight is None else np.concatenate([part.sample_weight for part in parts])
    dense = whole.toarray() if sparse.issparse(whole) else whole
    return dense, y, weight, [part.X.shape[0] for part in parts]


def assert_rows(table, X, y=None, weight=None, passes=2):
    assert table.shape == X.shape
    for _ in range(passes):
        found, labels, weights, _ = collected(table)
        np.testing.assert_array_equal(found, X)
        assert (labels is None) == (y is None)
        assert table.has_labels == (y is not None)
        if y is not None:
            np.testing.assert_array_equal(labels, y)
        if weight is not None:
            np.testing.assert_array_equal(weights, weight)


SIZES = [1, 5, 22, 23, 1000, None]


def refused(*given, match, **options):
    with pytest.raises((ValueError, OSError), match=match) as caught:
        list(blocks.open(*given, **options))
    assert "\n" not in str(caught.value)
