"""Arrays, maps, sparse matrices and objects of a user give the rows of the table, in every pass."""

import os
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from blocks.tables import SIZES, SPARSE, WEIGHT, X, Y, assert_rows, collected, refused
from maxmargin import blocks
from maxmargin.blocks import file_arrays


@pytest.mark.parametrize("block_rows", SIZES)
@pytest.mark.parametrize("dtype", ["f8", "f4", ">f8", ">f4", "f2", "i4", "u1", "?"])
def test_arrays(dtype, block_rows):
    table = X.astype(dtype)
    opened = blocks.open(table, Y, WEIGHT, block_rows=block_rows)
    assert_rows(opened, table, Y, WEIGHT)
    assert opened.dtype == (np.float32 if dtype.endswith("f4") else np.float64)
    assert len(collected(opened)[3]) == -(-23 // (block_rows or 23))


def test_floats_are_not_copied():
    (block,) = blocks.open(X)
    assert np.shares_memory(block.X, X)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("block_rows", SIZES)
def test_npy_files(tmp_path, order, block_rows):
    path = tmp_path / "X.npy"
    np.save(path, np.asarray(X, order=order))
    np.save(tmp_path / "y.npy", Y)
    np.save(tmp_path / "weight.npy", WEIGHT)
    y, weight = tmp_path / "y.npy", str(tmp_path / "weight.npy")
    assert_rows(blocks.open(path, y, weight, block_rows=block_rows), X, Y, WEIGHT)
    assert_rows(blocks.open(np.load(path, mmap_mode="r"), Y, block_rows=block_rows), X, Y)
    for block in blocks.open(path, block_rows=block_rows):
        assert block.X.flags.c_contiguous
        assert block.X.flags.aligned
        assert type(block.X) is np.ndarray


@pytest.mark.parametrize("block_rows", SIZES)
def test_lists(tmp_path, block_rows):
    np.save(tmp_path / "X.npy", X)
    parts = [X[:7], str(tmp_path / "X.npy"), X[:1].astype(int)]
    whole = np.vstack([X[:7], X, X[:1].astype(int)])
    labels = [Y[:7], Y, Y[:1]]
    assert_rows(blocks.open(parts, labels, block_rows=block_rows), whole, np.concatenate(labels))
    assert_rows(blocks.open(parts, np.concatenate(labels), block_rows=block_rows), whole, np.concatenate(labels))


@pytest.mark.parametrize("block_rows", SIZES)
@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_matrices(make, block_rows):
    assert_rows(blocks.open(make(SPARSE), Y, block_rows=block_rows), SPARSE.toarray(), Y)
    assert_rows(blocks.open([make(SPARSE), SPARSE[:3]], block_rows=block_rows), np.vstack([SPARSE.toarray()] * 2)[:26])


def test_unsorted_and_duplicate_indices():
    data, indices, indptr = np.arange(1.0, 6.0), np.array([2, 0, 1, 1, 0]), np.array([0, 2, 5])
    given = sparse.csr_matrix((data.copy(), indices.copy(), indptr), shape=(2, 3))
    (block,) = blocks.open(given)
    np.testing.assert_array_equal(block.X.toarray(), [[2, 0, 1], [5, 7, 0]])
    assert block.X.has_canonical_format
    np.testing.assert_array_equal(given.indices, indices)  # of the user


class Parts:
    """An object that gives its blocks anew."""

    def __init__(self, table, size=5, make=tuple):
        self.table, self.size, self.make = table, size, make

    def __iter__(self):
        for first in range(0, 23, self.size):
            rows = slice(first, first + self.size)
            yield self.make((self.table[rows], Y[rows], WEIGHT[rows]))


@pytest.mark.parametrize("block_rows", SIZES)
@pytest.mark.parametrize("size", [1, 5, 50])
def test_objects_of_a_user(size, block_rows):
    for table in (X, SPARSE):
        dense = table.toarray() if sparse.issparse(table) else table
        given = Parts(table, size)
        assert_rows(blocks.open(given, block_rows=block_rows), dense, Y, WEIGHT)
        assert_rows(blocks.open(lambda given=given: iter(given), block_rows=block_rows), dense, Y, WEIGHT)
        as_blocks = Parts(table, size, make=lambda rows: blocks.RowBlock(*rows, first=0))
        assert_rows(blocks.open(as_blocks, block_rows=block_rows), dense, Y, WEIGHT)


def test_declared_shapes_need_no_first_pass():
    given = Parts(X)
    started = []
    given.shape = X.shape
    original = Parts.__iter__

    class Counted(Parts):
        shape = X.shape

        def __iter__(self):
            for number, block in enumerate(original(self)):
                started.append(number)
                yield block

    opened = blocks.open(Counted(X))
    assert started == [0]
    assert_rows(opened, X, Y, WEIGHT)


def test_row_blocks_are_returned_as_they_are():
    opened = blocks.open(X)
    assert blocks.open(opened) is opened
    assert_rows(blocks.open(opened, Y), X, Y)


@pytest.mark.parametrize("labels", [list("abc"), np.array(["x", "yy", "x"], object), np.array([1, 2, 1.5], object)])
def test_kinds_of_labels(labels):
    (block,) = blocks.open(X[:3], labels)
    assert block.y.dtype.kind in "Uf"
    np.testing.assert_array_equal(block.y, list(labels))


def test_refused_tables():
    refused(np.zeros(3), match="two dimensions")
    refused(np.zeros((0, 3)), match="empty: 0 rows")
    refused(np.zeros((3, 0)), match="3 rows with 0 columns")
    refused(sparse.csr_matrix((0, 3)), match="empty")
    refused(np.array([["a"]]), match="must be numbers")
    refused(np.array([[1j]]), match="must be numbers")
    refused([], match="list of tables is empty")
    refused([[1, 2], [3, 4]], match="np.asarray")
    refused(3, match="cannot be read from int")
    refused([X, X[:, :3]], match=r"part 1 \(the array\) has 3 columns and part 0 .* has 4 columns")
    refused([X, X.astype("f4")], match="float32 values")
    refused([X, sparse.csr_matrix(X)], match="sparse rows")
    refused(X, block_rows=0, match="block_rows")
    refused(X, block_rows=1.5, match="block_rows")
    refused(np.array([[1, 2**53 + 1]]), match=r"row 0 .* column 1, which float64 cannot represent")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_name_the_row(value):
    table = X.copy()
    table[17, 2] = value
    refused(table, block_rows=5, match=r"the array, block 3: row 17 \(counting from 0\): (nan|inf) in column 2")
    matrix = sparse.csr_matrix(table)
    refused(matrix, block_rows=5, match=r"block 3: row 17 .* column 2 is not finite")
    refused(Parts(table), match=r"Parts, block 3: row 17")
    labels = Y.astype(float)
    labels[22] = value
    refused(X, labels, block_rows=5, match=r"block 4: row 22 .* label or target")
    refused(X, Y, labels, block_rows=5, match=r"block 4: row 22 .* sample weight")


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_masked_values_are_missing(dtype):
    table = np.ma.masked_array(np.ones((50, 3), dtype))
    assert_rows(blocks.open(table), np.ones((50, 3)).astype(dtype))
    table[41, 1] = np.ma.masked
    for given in (table, lambda: iter([table])):
        with pytest.raises(ValueError, match="row 41 .*: nan in column 1"):
            list(blocks.open(given, block_rows=20))


def test_refused_labels():
    refused(X, Y[:-1], match="y has 22 values, but the array has 23 rows")
    refused(X, Y, WEIGHT[:-1], match="sample_weight has 22")
    refused(X, np.zeros((23, 2)), match="one dimension")
    refused(X[:3], np.array(["a", None, "b"], object), match=r"row 1 .*None.*missing")
    refused(X[:3], np.array(["a", np.nan, "b"], object), match=r"row 1 .*nan")
    refused(X, Y, -WEIGHT, match="not negative")


def test_refused_objects_of_a_user():
    refused((block for block in [(X, Y)]), match="read only once")
    refused(iter([X]), match="read only once")
    refused(lambda: iter([]), match="no block with a row")
    refused(lambda: iter([{"X": X}]), match="blocks must be")
    refused(lambda: iter([(X, Y), (X[:, :2], Y)]), match="block 1: it has 2 columns, but the table has 4")
    refused(lambda: iter([(X, Y), (X.astype("f4"), Y)]), match="block 1: its values are float32")
    refused(lambda: iter([(X, Y), (sparse.csr_matrix(X), Y)]), match="block 1: it is sparse")
    refused(lambda: iter([(X, Y), (X,)]), match="block 1: y is missing")
    refused(lambda: iter([(X, Y[:3])]), match="block 0: 3 values of y for 23 rows")
    exhausted = iter([(X, Y)])
    refused(lambda: exhausted, match="0 rows in this pass, but 23 when it was opened")
    lengths = iter([1, 2])
    refused(lambda: iter([(X, Y)] * next(lengths)), match="at least 46 rows in this pass")


def test_invalid_sparse_indices_are_refused():
    matrix = SPARSE.copy()
    matrix.indices[5] = 6
    refused(matrix, block_rows=3, match=r"row \d+ .* column 6, but there are 6 columns")
    matrix = SPARSE.copy()
    matrix.indptr[3] = matrix.indptr[4] + 1
    refused(matrix, match="ascend")


def test_refused_files(tmp_path):
    path = tmp_path / "X.npy"
    refused(path, match="No such file")
    np.save(path, X)
    whole = path.read_bytes()
    path.write_bytes(whole[:-8])
    refused(path, match="X.npy: the file is truncated")
    path.write_bytes(whole[:20])
    refused(path, match="X.npy: not a valid NumPy array")
    np.save(path, np.array([[None]]), allow_pickle=True)
    refused(path, match="Python objects")


def test_files_that_change_between_passes(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, X)
    opened = blocks.open(path)
    assert_rows(opened, X)
    os.utime(path, (1, 1))
    with pytest.raises(ValueError, match="X.npy: the file changed"):
        list(opened)
    opened = blocks.open(path)
    mapped = blocks.open(np.load(path, mmap_mode="r"))
    with path.open("rb+") as stream:
        stream.truncate(300)
    for table in (opened, mapped):
        with pytest.raises(ValueError, match="changed|truncated"):
            list(table)
    path.unlink()
    with pytest.raises(OSError, match="removed after it was opened"):
        list(opened)
    np.save(path, X)
    labels = tmp_path / "y.npy"
    np.save(labels, Y)
    opened = blocks.open(X, labels)
    np.save(labels, Y[:5])
    with pytest.raises(ValueError, match="y.npy: the file changed"):
        list(opened)


@pytest.fixture(params=["mapped", "read"])
def large_file(request, tmp_path, monkeypatch):
    """A file of several pages that is mapped into memory, or read."""
    if request.param == "mapped":
        if not file_arrays.MAPS:
            pytest.skip("this system has no mappings that survive a truncation")
        monkeypatch.setattr(file_arrays, "MIN_MAPPED_BYTES", 0)
    else:
        monkeypatch.setattr(file_arrays, "MAPS", False)
    path = tmp_path / "X.npy"
    np.save(path, np.arange(200_000.0).reshape(-1, 4))
    return path


def test_files_that_are_mapped_or_read(large_file, tmp_path):
    whole = np.arange(200_000.0).reshape(-1, 4)
    assert_rows(blocks.open(large_file, block_rows=7000), whole)
    np.savez(tmp_path / "X.npz", X=whole.astype(np.float32), y=np.arange(50_000))
    assert_rows(blocks.open(tmp_path / "X.npz"), whole.astype(np.float32), np.arange(50_000))
    thin = sparse.csr_array(np.where(whole % 3 == 0, whole, 0.0))
    blocks.write_csr(tmp_path / "thin", blocks.open(thin, np.arange(50_000)))
    assert_rows(blocks.open(tmp_path / "thin", block_rows=9999), thin.toarray(), np.arange(50_000))


def test_a_file_truncated_within_a_pass(large_file):
    reading = iter(blocks.open(large_file, block_rows=20_000))
    block = next(reading)
    with large_file.open("rb+") as stream:
        stream.truncate(300)
    assert np.isin(block.X[-1], [0.0, 79996, 79997, 79998, 79999]).all()  # zeros if the page was mapped, and is lost
    with pytest.raises(ValueError, match="the file changed after it was opened as a table, from"):
        list(reading)


def test_pages_that_cannot_be_read(large_file):
    """A disk that fails gives zeros, which are never used: the pass ends with an error."""
    table = blocks.open(large_file)
    reading = iter(table)
    next(reading)
    array = table._source._parts[0]._X
    if array._pages is None:
        pytest.skip("the system reports errors of reading")
    array._pages = SimpleNamespace(lost=True)
    with pytest.raises(OSError, match=r"parts of the file could not be read.*X.npy"):
        list(reading)
