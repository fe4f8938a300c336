"""What cannot be read exactly is an error, not another value."""

import io

import numpy as np
import pytest

from maxmargin.datasets import DataFileError, load_libsvm, read_samples


def archive(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    file.seek(0)
    return file


def csr_archive(**changed):
    """Return an archive of the matrix [[1, 0, 2], [0, 3, 0]] with some of its arrays replaced."""
    parts = {"format": b"csr", "shape": [2, 3], "data": [1.0, 2.0, 3.0], "indices": [0, 2, 1], "indptr": [0, 2, 3]}
    return archive(**{**parts, "y": [0.0, 1.0], **changed})


def refused(source, format, **options):
    with pytest.raises(DataFileError) as caught:
        read_samples(source, format=format, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"indices": [0.0, 1.5, 1.0]}, "indices must be integers, not float64"),
        ({"indptr": [0.0, 2.0, 3.0]}, "indptr must be integers, not float64"),
        ({"shape": [2.7, 3.0]}, "shape must be integers, not float64"),
        ({"indices": [True, False, True]}, "indices must be integers, not bool"),
        ({"indices": [[0, 2, 1]]}, "indices must be one-dimensional"),
        ({"indices": np.array([0, 2**64 - 1, 1], dtype=np.uint64)}, "indices has 18446744073709551615"),
        ({"indices": [0, -1, 1]}, "the sparse matrix is invalid"),
        ({"indices": [0, 3, 1]}, "the sparse matrix is invalid"),
        ({"indptr": [0, 3, 2]}, "the sparse matrix is invalid"),
        ({"indptr": [1, 2, 3]}, "the sparse matrix is invalid"),
        ({"shape": [-2, 3]}, "it must have rows and columns of numbers"),
        ({"data": np.array([1, 2**53 + 1, 3])}, "9007199254740993, which float64 cannot represent"),
        ({"data": np.array([1j, 2, 3])}, "it must have rows and columns of numbers"),
        ({"data": np.array(["a", "b", "c"])}, "it must have rows and columns of numbers"),
    ],
)
def test_sparse_archives(changed, message):
    assert message in refused(csr_archive(**changed), "npz")


def test_valid_sparse_archives():
    expected = [[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]
    for changed in (
        {},
        {"indices": [2, 0, 1], "data": [2.0, 1.0, 3.0]},  # not sorted
        {"indices": np.array([0, 2, 1], dtype=np.uint64), "indptr": np.array([0, 2, 3], dtype=np.int8)},
        {"indices": [0, 2, 2, 1], "indptr": [0, 3, 4], "data": [1, 1, 1, 3]},  # values of an index twice are summed
        {"data": np.array([1, 2, 3], dtype=np.uint64)},
    ):
        assert read_samples(csr_archive(**changed), format="npz").X.toarray().tolist() == expected


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_large_integers_of_binary_files(tmp_path, dtype):
    exact = np.array([[1, 2**53], [2**60, 3]], dtype=dtype)
    inexact = np.array([[1, 2], [2**53 + 1, 3]], dtype=dtype)
    assert read_samples(archive(X=exact), format="npz").X.tolist() == [[1, 2**53], [2**60, 3]]
    message = "sample 2 has 9007199254740993 in column 1, which float64 cannot represent; use smaller numbers, or leave"
    assert message in refused(archive(X=inexact), "npz")
    np.save(tmp_path / "a.npy", np.column_stack([inexact, np.array([0, 1], dtype)]))
    assert "sample 2 has 9007199254740993 in column 1" in refused(tmp_path / "a.npy", "npy")
    labels = np.array([0, 2**53 + 1], dtype=dtype)
    message = "y of sample 2 is 9007199254740993, an integer that float64 cannot represent; use smaller numbers, or str"
    assert message in refused(archive(X=np.eye(2), y=labels), "npz")
    assert read_samples(archive(X=np.eye(2), y=exact[:, 0]), format="npz").y.tolist() == [1, 2**60]


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_large_integers_of_tables(tmp_path, format):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import ipc, parquet

    def write(table):
        if format == "parquet":
            parquet.write_table(table, tmp_path / "a")
        else:
            with ipc.new_file(tmp_path / "a", table.schema) as writer:
                writer.write_table(table)

    write(pa.table({"id": [1, 2**53 + 1], "x": [2**60, 5], "label": [0, 1]}))
    assert "sample 2: column 'id' has 9007199254740993, which float64 cannot represent" in refused(
        tmp_path / "a", format
    )
    assert read_samples(tmp_path / "a", format=format, ignore=["id"]).X.tolist() == [[2**60], [5]]
    write(pa.table({"x": [1.0, 2.0], "label": [0, 2**53 + 1]}))
    assert "sample 2: the label 9007199254740993 is an integer that" in refused(tmp_path / "a", format)
    write(pa.table({"x": [1.0, 2.0], "label": ["a", "a\0"]}))
    assert "a value of column 'label' has a zero character" in refused(tmp_path / "a", format)
    if format == "parquet":  # cannot be written
        return
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None]))
    write(pa.table({"x": [1.0, 2.0], "label": words}))
    assert "missing" in refused(tmp_path / "a", format)


@pytest.mark.parametrize("kind", [complex, object, "datetime64[s]", "timedelta64[s]", "S3", "U3"])
def test_types_that_are_not_real_numbers(kind):
    values = np.ones((2, 2)).astype(np.int64).astype(kind)
    assert refused(archive(X=values), "npz")
    file = io.BytesIO()
    np.save(file, values)
    file.seek(0)
    assert refused(file, "npy")


def test_types_of_real_numbers():
    for kind in (bool, np.int8, np.uint16, np.float16, np.float32, ">f8", ">i4", np.longdouble):
        values = np.array([[1, 0], [0, 1]]).astype(kind)
        assert read_samples(archive(X=values), format="npz").X.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    if np.finfo(np.longdouble).max > np.finfo(np.float64).max:
        assert "sample 1 has inf" in refused(archive(X=np.full((2, 2), np.longdouble("1e400"))), "npz")


def test_bytes_after_an_array():
    file = io.BytesIO()
    np.save(file, np.eye(2))
    np.save(file, np.eye(2))
    file.seek(0)
    assert "its header says that it has 160 bytes, but it has 320" in refused(file, "npy")


NUMBERS_OF_OTHERS = ["\u0661", "\uff11", "1_0", "0x10", "0x1p3", "1\u00a0", "1'000", "1e", "--1", "1..2", "1\0"]


@pytest.mark.parametrize("cell", NUMBERS_OF_OTHERS)
@pytest.mark.parametrize("line", [0, 1, 150])
def test_numbers_of_csv_files_are_ascii(cell, line):
    rows = ["1.5,2,0"] * 200
    rows[line] = f"1.5,{cell},0"
    assert refused(io.BytesIO("\n".join(["a,b,label", *rows]).encode()), "csv")


@pytest.mark.parametrize("cell", ["\u0661", "1_0", "0x10"])
def test_labels_that_are_not_numbers_are_strings(cell):
    samples = read_samples(io.BytesIO(f"a,label\n1,{cell}\n2,1\n".encode()), format="csv")
    assert samples.y.tolist() == [cell, "1"]


def test_zero_bytes_of_csv_files():
    for line in (0, 1, 150):
        rows = [f"{number},label{number % 2}" for number in range(200)]
        rows[line] += "\0"
        assert "there is a zero byte" in refused(io.BytesIO("\n".join(rows).encode()), "csv")


@pytest.mark.parametrize("cell", NUMBERS_OF_OTHERS)
def test_numbers_of_libsvm_files_are_ascii(cell):
    for line in (f"{cell} 1:2", f"1 1:{cell}", f"1 {cell}:2"):
        with pytest.raises(DataFileError, match="line 2"):
            load_libsvm(io.BytesIO(f"1 1:2\n{line}\n".encode()))


def test_large_integer_labels_of_csv_files():
    message = refused(io.BytesIO(b"x,label\n1,1\n2,9007199254740993\n"), "csv")
    assert "line 3: the label 9007199254740993 is an integer that float64 cannot represent" in message
    assert read_samples(io.BytesIO(b"x,label\n1,1\n2,1152921504606846976\n"), format="csv").y.tolist() == [1, 2**60]


def test_byte_order_mark():
    assert read_samples(io.BytesIO(b"\xef\xbb\xbfx,label\n1,1\n2,0\n"), format="csv").feature_names == ("x",)
    assert load_libsvm(io.BytesIO(b"\xef\xbb\xbf1 1:2\n"))[1].tolist() == [1.0]
