"""Samples in all file formats: exact round trips, format detection, errors for damaged files."""

import bz2
import gzip
import io
import lzma
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.datasets import load_iris

from maxmargin.datasets import DataFileError, Samples, read_samples, write_samples
from maxmargin.datasets.sample_files import FORMATS, find_format
from maxmargin.datasets.samples import are_classes

TABLES = ("csv", "tsv", "parquet", "arrow")


def iris():
    bunch = load_iris()
    names = tuple(name.removesuffix(" (cm)") for name in bunch.feature_names)
    return Samples(bunch.data, bunch.target_names[bunch.target], feature_names=names, label_name="species", name="iris")


def reread(samples, kind, **options):
    stream = io.BytesIO()
    write_samples(samples, stream, kind)
    return read_samples(io.BytesIO(stream.getvalue()), **options)


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


finite = st.floats(allow_nan=False, allow_infinity=False, width=64)
tables = hnp.arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 4)), elements=finite)


class TestRoundTrips:
    @pytest.mark.parametrize("format", FORMATS)
    @given(X=tables, seed=st.integers(0, 99))
    @settings(max_examples=25, deadline=None)
    def test_numbers_to_the_last_bit(self, format, X, seed):
        y = np.random.default_rng(seed).normal(size=len(X))
        found = reread(Samples(X, y), format, format=format, n_features=X.shape[1], header="auto")
        assert np.array_equal(dense(found.X), X)
        assert np.array_equal(found.y, y)
        if not found.is_sparse:
            assert np.array_equal(np.signbit(found.X), np.signbit(X))  # −0 is preserved

    @pytest.mark.parametrize("format", TABLES)
    def test_names_and_string_labels(self, format):
        samples = iris()
        found = reread(samples, format)
        assert np.array_equal(found.X, samples.X)
        assert np.array_equal(found.y, samples.y)
        assert found.feature_names == samples.feature_names
        assert found.label_name == "species"

    def test_npz_keeps_everything(self):
        samples = Samples(iris().X[:4], np.array(list("abca")), np.array([1.0, 1, 2, 2]), tuple("pqrs"))
        found = reread(samples, "npz")
        assert found.feature_names == samples.feature_names
        for left, right in ((found.X, samples.X), (found.y, samples.y), (found.query, samples.query)):
            assert np.array_equal(left, right)

    @pytest.mark.parametrize("format", ["csv", "parquet", "npz", "libsvm"])
    def test_queries(self, format):
        samples = Samples(np.eye(4), np.array([3.0, 1, 2, 1]), np.array([1.0, 1, 2, 2]))
        found = reread(samples, format, query="qid" if format in TABLES else None)
        assert np.array_equal(found.query, samples.query)
        assert np.array_equal(dense(found.X), samples.X)
        assert np.array_equal(found.y, samples.y)

    @pytest.mark.parametrize("format", FORMATS)
    def test_sparse(self, format):
        X = sparse.random(20, 7, 0.2, format="csr", random_state=0)
        found = reread(Samples(X, np.arange(20) % 2.0), format, format=format, n_features=7)
        assert found.is_sparse == (format in ("npz", "libsvm"))
        assert np.array_equal(dense(found.X), X.toarray())

    def test_sparse_archive_is_compatible_with_scipy(self, tmp_path):
        X = sparse.random(20, 7, 0.2, format="csr", random_state=0)
        write_samples(Samples(X, np.arange(20.0)), tmp_path / "a.npz")
        assert np.array_equal(sparse.load_npz(tmp_path / "a.npz").toarray(), X.toarray())
        for kind in ("csr", "csc"):
            sparse.save_npz(tmp_path / "b.npz", X.asformat(kind))
            found = read_samples(tmp_path / "b.npz")
            assert found.y is None
            assert found.X.format == "csr"
            assert np.array_equal(found.X.toarray(), X.toarray())

    @pytest.mark.parametrize("format", FORMATS)
    def test_without_labels(self, format):
        X = np.arange(1.0, 13.0).reshape(4, 3)
        found = reread(Samples(X), format, format=format, label=None)
        assert found.y is None
        assert np.array_equal(dense(found.X), X)

    @pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
    @pytest.mark.parametrize("format", FORMATS)
    def test_compressed(self, format, suffix, tmp_path):
        path = tmp_path / f"data.{format}{suffix}"
        write_samples(Samples(np.arange(1.0, 7.0).reshape(3, 2), np.arange(3.0)), path)
        opener = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}[suffix]
        assert opener(path).read(1)  # it is compressed
        assert np.array_equal(dense(read_samples(path).X), np.arange(1.0, 7.0).reshape(3, 2))
        damaged = tmp_path / f"cut.{format}{suffix}"
        damaged.write_bytes(path.read_bytes()[:-9])
        with pytest.raises(DataFileError, match="cut"):
            read_samples(damaged)


class TestFormatDetection:
    @pytest.mark.parametrize("format", FORMATS)
    def test_format_by_content(self, format, tmp_path):
        write_samples(Samples(np.arange(1.0, 7.0).reshape(3, 2), np.arange(3.0)), tmp_path / "data", format)
        assert find_format(tmp_path / "data") == ("csv" if format == "tsv" else format)
        assert np.array_equal(dense(read_samples(tmp_path / "data").X), np.arange(1.0, 7.0).reshape(3, 2))

    def test_arrow_stream(self):
        table = pa.table({"a": [1.0, 2.0], "b": [3, 4], "label": ["x", "y"]})
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        found = read_samples(io.BytesIO(sink.getvalue()))
        assert found.X.tolist() == [[1.0, 3.0], [2.0, 4.0]]
        assert found.y.tolist() == ["x", "y"]

    @pytest.mark.parametrize(
        ("text", "format"),
        [
            (b"+1 1:2 3:4\n", "libsvm"),
            (b"1,2 1:2 3:4\n", "libsvm"),
            (b"3 qid:1 1:2\n", "libsvm"),
            (b"# a comment\n\n1\t1:2\n", "libsvm"),
            (b"-1\n1 1:3\n", "libsvm"),
            (b"1,2,3\n", "csv"),
            (b"a;b\n1;2\n", "csv"),
            (b"a\tb\n1\t2\n", "csv"),
            (b"time,x:y\n1,2\n", "csv"),
        ],
    )
    def test_text(self, text, format, tmp_path):
        (tmp_path / "data").write_bytes(text)
        assert find_format(tmp_path / "data") == format

    def test_standard_input(self, monkeypatch):
        class Piped(io.BytesIO):
            def seekable(self):
                return False

        for text in (b"1 1:2 2:3\n0 1:5 2:6\n", b"a,b,c\n2,3,1\n5,6,0\n"):
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Piped(text)))
            found = read_samples("-")
            assert dense(found.X).tolist() == [[2.0, 3.0], [5.0, 6.0]]
            assert found.y.tolist() == [1.0, 0.0]
            assert found.name == "standard input"

    @pytest.mark.parametrize("content", [b"", b"\n\n", b"some words\n", b"\x00\x01\x02"])
    def test_unknown_content(self, content, tmp_path):
        (tmp_path / "data").write_bytes(content)
        with pytest.raises(DataFileError, match="data"):
            read_samples(tmp_path / "data")

    def test_invalid_arguments(self, tmp_path):
        with pytest.raises(ValueError, match="unknown format 'xls'; the formats are libsvm, csv"):
            read_samples("a", format="xls")
        with pytest.raises(ValueError, match="unknown format"):
            write_samples(iris(), tmp_path / "a", "xls")
        with pytest.raises(FileNotFoundError):
            read_samples(tmp_path / "nowhere.csv")
        with pytest.raises(ValueError, match="categorical must be"):
            read_samples("a", categorical="hot")
        with pytest.raises(DataFileError, match="encode them as integers"):
            write_samples(iris(), io.BytesIO(), "libsvm")
        with pytest.raises(DataFileError, match="cannot store labels that are strings"):
            write_samples(iris(), io.BytesIO(), "npy")
        with pytest.raises(DataFileError, match="cannot store queries"):
            write_samples(Samples(np.eye(2), np.ones(2), np.ones(2)), io.BytesIO(), "npy")

    def test_existing_file_is_replaced_atomically(self, tmp_path):
        path = tmp_path / "data.libsvm.gz"
        write_samples(Samples(np.eye(2), np.ones(2)), path)
        before = path.read_bytes()
        with pytest.raises(DataFileError, match="encode them as integers"):
            write_samples(iris(), path)
        assert path.read_bytes() == before
        with pytest.raises(FileNotFoundError):
            write_samples(iris(), tmp_path / "nowhere" / "data.csv")
        assert [found.name for found in tmp_path.iterdir()] == ["data.libsvm.gz"]
        write_samples(read_samples(path), path)
        assert np.array_equal(read_samples(path).X.toarray(), np.eye(2))


class TestNumpyFiles:
    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            ({"X": np.eye(3), "y": np.ones(2)}, "one entry per sample"),
            ({"X": np.ones(3), "y": np.ones(3)}, "must be two-dimensional"),
            ({"X": np.array([["a"]])}, "must be numbers"),
            ({"X": np.array([[1.0, np.nan]])}, "sample 1 has nan in column 2"),
            ({"X": np.eye(2), "y": np.array([1, np.inf])}, "y of sample 2 is not finite"),
            ({"X": np.eye(2), "y": np.array([1j, 2])}, "numbers or strings"),
            ({"X": np.eye(2), "feature_names": np.array(["a"])}, "feature_names must be 2 strings"),
            ({"x": np.eye(2)}, "X and y or a sparse matrix, but it contains x"),
            ({"X": np.array([{}], dtype=object)}, "archive of NumPy arrays"),
        ],
    )
    def test_invalid_archives(self, arrays, message, tmp_path):
        np.savez(tmp_path / "a.npz", **arrays)
        with pytest.raises(DataFileError, match=message):
            read_samples(tmp_path / "a.npz")

    @pytest.mark.parametrize(
        "change",
        [
            {"indices": np.array([0, 9])},
            {"indices": np.array([0, -1])},
            {"indptr": np.array([0, 1, 7])},
            {"indptr": np.array([0, 2, 1])},
            {"shape": np.array([2])},
            {"shape": np.array([2, -3])},
            {"shape": np.array([0, 0])},
            {"format": np.array("bsr")},
            {"format": np.array([1, 2])},
            {"data": np.array(["a", "b"])},
            {"data": np.array([1.0, np.nan])},
            {"data": np.array([1.0])},
        ],
    )
    def test_invalid_sparse_matrices(self, change, tmp_path):
        good = {"format": np.array(b"csr"), "shape": np.array([2, 3]), "data": np.ones(2), "indices": np.array([0, 2])}
        parts = {**good, "indptr": np.array([0, 1, 2]), "y": np.ones(2)}
        np.savez(tmp_path / "a.npz", **parts)
        assert read_samples(tmp_path / "a.npz").X.shape == (2, 3)
        np.savez(tmp_path / "a.npz", **(parts | change))
        with pytest.raises(DataFileError, match=r"a\.npz"):
            read_samples(tmp_path / "a.npz")

    def test_npy_by_position(self, tmp_path):
        np.save(tmp_path / "a.npy", np.arange(6.0).reshape(2, 3))
        assert read_samples(tmp_path / "a.npy").y.tolist() == [2.0, 5.0]
        assert read_samples(tmp_path / "a.npy", label="first").y.tolist() == [0.0, 3.0]
        assert read_samples(tmp_path / "a.npy", label=1, ignore=[0]).X.tolist() == [[2.0], [5.0]]
        assert read_samples(tmp_path / "a.npy", n_features=3).y is None
        with pytest.raises(DataFileError, match="3 features, but 5 are required"):
            read_samples(tmp_path / "a.npy", n_features=5, label=None)

    @pytest.mark.parametrize("format", ["npz", "npy", "parquet", "arrow"])
    def test_damaged_files_raise_data_file_error(self, format):
        stream = io.BytesIO()
        samples = Samples(np.arange(200.0).reshape(40, 5), np.arange(40.0), name="data")
        write_samples(samples, stream, format)
        good = stream.getvalue()
        random = np.random.default_rng(0)
        refused = 0
        for _ in range(300):
            bad = bytearray(good)
            for place in random.integers(0, len(bad), random.integers(1, 6)):
                bad[place] = random.integers(0, 256)
            cut = bytes(bad[: random.integers(1, len(bad))] if random.random() < 0.3 else bad)
            try:
                read_samples(io.BytesIO(cut), format=format)
            except DataFileError:
                refused += 1
        assert refused > 30


class TestArrowFiles:
    def test_types(self, tmp_path):
        table = pa.table(
            {
                "a": pa.array([1, 2], pa.int8()),
                "b": pa.array([True, False]),
                "c": pa.array(["u", "v"]).dictionary_encode(),
                "class": pa.array(["x", "y"], pa.large_string()),
                "d": pa.array([0.5, 1.5], pa.float32()),
            }
        )
        pa.parquet.write_table(table, tmp_path / "a.parquet")
        found = read_samples(tmp_path / "a.parquet", categorical="one-hot")
        assert found.feature_names == ("a", "b", "c=u", "c=v", "d")
        assert found.X.tolist() == [[1.0, 1.0, 1.0, 0.0, 0.5], [2.0, 0.0, 0.0, 1.0, 1.5]]
        assert found.y.tolist() == ["x", "y"]
        assert found.label_name == "class"
        with pytest.raises(DataFileError, match=r"column 'c' \(u, v\)"):
            read_samples(tmp_path / "a.parquet")

    @pytest.mark.parametrize(
        ("column", "message"),
        [
            (pa.array([1.0, None]), "sample 2: the value of column 'a' is missing"),
            (pa.array([1.0, float("inf")]), "sample 2: inf in column 'a' is not finite"),
            (pa.array([[1.0], [2.0]]), "neither numbers nor strings"),
        ],
    )
    def test_invalid_columns(self, column, message, tmp_path):
        pa.parquet.write_table(pa.table({"a": column, "label": [1, 2]}), tmp_path / "a.parquet")
        with pytest.raises(DataFileError, match=message):
            read_samples(tmp_path / "a.parquet")

    def test_without_pyarrow(self, tmp_path, monkeypatch):
        (tmp_path / "a.parquet").write_bytes(b"PAR1")
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(DataFileError, match="requires pyarrow"):
            read_samples(tmp_path / "a.parquet")


def test_samples_are_validated():
    for wrong in ({"X": [[1.0]]}, {"X": np.ones(3)}, {"X": np.eye(2), "y": np.ones(3)},
                  {"X": np.eye(2), "feature_names": ("a",)}):  # fmt: skip
        with pytest.raises(ValueError, match=r"must|names"):
            Samples(**wrong)
    some = iris().take(slice(0, 3))
    assert (len(some), some.n_features, some.is_sparse) == (3, 4, False)


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (np.array(["a", "b"]), True),
        (np.array([1.0, -1.0]), True),
        (np.array([0.5, 1.0]), False),
        (np.arange(11.0), False),
        (np.arange(1100) % 11.0, True),
        (np.arange(3000) % 101.0, False),
    ],
)
def test_classes_or_targets(y, classes):
    assert are_classes(y) == classes
