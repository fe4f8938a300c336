"""Scaling: agreement with LIBSVM's svm-scale and its range files, sparse and dense data, malformed files."""

import io
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from maxmargin import blocks
from maxmargin.datasets import DataFileError, Scaling, dump_libsvm, load_libsvm

SVM_SCALE = shutil.which("svm-scale")
needs_svm_scale = pytest.mark.skipif(SVM_SCALE is None, reason="needs svm-scale, of Debian's package libsvm-tools")


def cases():
    """Yield matrices that are hard to scale, by name."""
    random = np.random.default_rng(0)
    X = random.normal(size=(30, 6)) * 10.0 ** np.arange(-3, 3)
    yield "unscaled", X
    yield "constant", np.column_stack([X[:, :2], np.full(30, 7.0), np.zeros(30), X[:, 2:4]])
    yield "sparse", np.where(random.random((30, 6)) < 0.7, 0.0, X)
    yield "never negative", np.where(random.random((30, 6)) < 0.7, 0.0, np.abs(X))
    yield "one sample", X[:1]
    yield "two samples", X[:2]
    yield "duplicates", np.repeat(X[:3], 5, axis=0)
    yield "thirds", random.integers(-9, 9, (30, 4)) / 3
    yield "far away", X + 1e6
    yield "huge and tiny", X * np.array([1e300, 1e-300, 1, 1, 1, 1])


CASES = dict(cases())
#: svm-scale 3.24 rounds limits to single precision, so these have few bits.
LIMITS = [(-1.0, 1.0), (0.0, 1.0), (-0.25, 1.75)]


def text_of(X, y):
    stream = io.BytesIO()
    dump_libsvm(X, y, stream)
    return stream.getvalue()


def scaled_by_libsvm(folder, X, y, *options):
    (folder / "data").write_bytes(text_of(X, y))
    done = subprocess.run([SVM_SCALE, *map(str, options), str(folder / "data")], capture_output=True, check=True)
    return [line.split() for line in done.stdout.decode().splitlines()]


def as_libsvm_prints(X, y):
    """Return the words of each line that svm-scale prints, six digits and without zeros."""
    rows = []
    for row, label in zip(X, y, strict=True):
        pairs = [f"{column + 1}:{value:g}" for column, value in enumerate(row.tolist()) if value]
        rows.append([f"{label:.17g}", *pairs])
    return rows


@needs_svm_scale
class TestAgainstLibsvm:
    @pytest.mark.parametrize("limits", LIMITS)
    @pytest.mark.parametrize("name", CASES)
    def test_values_and_file(self, name, limits, tmp_path):
        X = CASES[name]
        y = np.arange(len(X)) % 3 - 1.0
        theirs = scaled_by_libsvm(tmp_path, X, y, "-l", limits[0], "-u", limits[1], "-s", tmp_path / "theirs")
        scaling = Scaling.fit(X, *limits)
        assert as_libsvm_prints(scaling.apply(X), y) == theirs
        scaling.write(tmp_path / "ours")
        assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()

    @pytest.mark.parametrize("name", CASES)
    def test_svm_scale_reads_our_range_file(self, name, tmp_path):
        X = CASES[name]
        y = np.zeros(len(X))
        others = np.random.default_rng(1).permuted(X, axis=0) * 1.5
        Scaling.fit(X).write(tmp_path / "ours")
        theirs = scaled_by_libsvm(tmp_path, others, y, "-r", tmp_path / "ours")
        assert as_libsvm_prints(Scaling.read(tmp_path / "ours").apply(others), y) == theirs

    @pytest.mark.parametrize("limits", [(-1, 1), (0.5, 3)])
    def test_targets(self, limits, tmp_path):
        X = CASES["unscaled"]
        y = np.random.default_rng(2).integers(-50, 50, len(X)) / 8
        theirs = scaled_by_libsvm(tmp_path, X, y, "-y", *limits, "-s", tmp_path / "theirs")
        scaling = Scaling.fit(X).with_target(y, *limits)
        assert [line[0] for line in as_libsvm_prints(X, scaling.apply_to_target(y))] == [line[0] for line in theirs]
        scaling.write(tmp_path / "ours")
        assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
        np.testing.assert_allclose(scaling.restore_target(scaling.apply_to_target(y)), y, atol=1e-12)

    def test_svm_scale_reads_standardised_ranges(self, tmp_path):
        X = CASES["unscaled"]
        Scaling.standardise(X).write(tmp_path / "ours")
        rows = scaled_by_libsvm(tmp_path, X, np.zeros(len(X)), "-r", tmp_path / "ours")
        found, _ = load_libsvm(io.BytesIO("\n".join(" ".join(row) for row in rows).encode()))
        np.testing.assert_allclose(found.toarray().std(axis=0), 1, rtol=1e-4)


class TestScaling:
    @pytest.mark.parametrize("limits", LIMITS)
    @pytest.mark.parametrize("name", CASES)
    def test_sparse_agrees_with_dense(self, name, limits):
        X = CASES[name]
        for kind in (sparse.csr_matrix, sparse.csc_matrix):
            scaling = Scaling.fit(kind(X), *limits)
            found = scaling.apply(kind(X))
            assert found.format == "csr"
            assert np.array_equal(found.toarray(), Scaling.fit(X, *limits).apply(X))
            assert (found.data != 0).all()

    def test_sparsity_is_preserved(self):
        X = sparse.csr_matrix(CASES["never negative"])
        assert Scaling.fit(X, 0, 1).apply(X).nnz == X.nnz
        assert Scaling.fit(X, -1, 1).apply(X).nnz > X.nnz

    @pytest.mark.parametrize("name", CASES)
    def test_limits_are_attained_exactly(self, name):
        X = CASES[name]
        found = Scaling.fit(X, -0.3, 1.7).apply(X)
        nonconstant = X.min(axis=0) != X.max(axis=0)
        assert (found[:, ~nonconstant] == 0).all()
        assert (found[:, nonconstant].min(axis=0) == -0.3).all()
        assert (found[:, nonconstant].max(axis=0) == 1.7).all()

    def test_more_and_fewer_features(self):
        X = CASES["unscaled"]
        scaling = Scaling.fit(X[:, :4])
        for kind in (np.asarray, sparse.csr_matrix):
            wide, narrow = scaling.apply(kind(X)), scaling.apply(kind(X[:, :2]))
            wide, narrow = (value.toarray() if sparse.issparse(value) else value for value in (wide, narrow))
            assert wide.shape == (30, 6)
            assert (wide[:, 4:] == 0).all()
            zeros = np.column_stack([X[:, :2], np.zeros((30, 2))])
            assert np.array_equal(narrow, scaling.apply(zeros))
        assert scaling.unseen(X).tolist() == [4, 5]
        assert scaling.unseen(sparse.csr_matrix(X[:, :2])).tolist() == []

    def test_standardise(self):
        for name in ("unscaled", "sparse", "never negative", "constant"):
            X = CASES[name]
            found = Scaling.standardise(X).apply(X)
            nonconstant = X.std(axis=0) > 0
            np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-12)
            np.testing.assert_allclose(found[:, nonconstant].std(axis=0), 1)
            assert (found[:, ~nonconstant] == 0).all()
            as_sparse = Scaling.standardise(sparse.csr_matrix(X)).apply(sparse.csr_matrix(X))
            np.testing.assert_allclose(as_sparse.toarray(), found, atol=1e-12)

    @pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, blocks.open])
    def test_standardise_in_double_precision(self, kind):
        X = (np.random.default_rng(0).normal(size=(20000, 2)) + 1000).astype(np.float32)
        found = Scaling.standardise(kind(X)).apply(X.astype(np.float64))
        np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-10)
        np.testing.assert_allclose(found.std(axis=0), 1, atol=1e-10)

    def test_standardise_sums_of_duplicates_and_empty_samples(self):
        twice = sparse.csr_matrix(([1.0, 2.0, 4.0], [0, 0, 0], [0, 2, 3]), shape=(2, 1))
        np.testing.assert_allclose(Scaling.standardise(twice).minimum, 3.5 - 0.5)
        for empty in (np.empty((0, 3)), np.empty((3, 0)), sparse.csr_matrix((0, 3)), sparse.csr_matrix((3, 2))):
            assert not len(Scaling.standardise(empty).columns)

    @pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, blocks.open])
    def test_values_that_are_too_large_to_standardise(self, kind):
        with pytest.raises(ValueError, match=r"overflow float64.*Scaling\.fit"):
            Scaling.standardise(kind(np.array([[1e160, 1.0], [-1e160, 2.0]])))

    @given(hnp.arrays(np.float64, (7, 3), elements=st.floats(-1e9, 1e9, width=32)))
    @settings(deadline=None)
    def test_monotone_within_the_limits(self, X):
        found = Scaling.fit(X, 2, 5).apply(X)
        for column in range(3):
            order = np.argsort(X[:, column])
            if X[order[0], column] != X[order[-1], column]:
                assert (np.diff(found[order, column]) >= 0).all()
                assert found[:, column].min() == 2
                assert found[:, column].max() == 5

    def test_errors(self):
        X = np.eye(3)
        for limits in ((1, 1), (2, 1), (0, np.inf), (np.nan, 1)):
            with pytest.raises(ValueError, match="upper limit must be above the lower"):
                Scaling.fit(X, *limits)
        with pytest.raises(ValueError, match="all targets are 1"):
            Scaling.fit(X).with_target(np.ones(3), 0, 1)
        with pytest.raises(ValueError, match="overflows float64"):
            Scaling.fit(np.array([[0.0], [1e-320]])).apply(np.array([[1e300]]))

    def test_memory_limits(self, monkeypatch):
        far = Scaling.read(io.BytesIO(b"x\n-1 1\n1 0 1\n2147483647 0 1\n"))
        with pytest.raises(MemoryError, match="exceed the memory"):
            far.apply(np.ones((1000, 2)))
        scaled = far.apply(sparse.csr_matrix(np.ones((3, 2))))  # takes the memory of the features that have a range
        assert scaled.shape == (3, 2**31 - 1)
        assert scaled.nnz == 6
        monkeypatch.setattr("maxmargin.resources.available_memory", lambda: 100)
        with pytest.raises(MemoryError, match="lower=0"):
            far.apply(sparse.csr_matrix(np.ones((1000, 2))))
        monkeypatch.undo()
        near = Scaling.read(io.BytesIO(b"x\n0 1\n1 0 2\n2147483647 0 1\n"))
        assert near.apply(sparse.csr_matrix(np.ones((3, 2)))).sum() == 1.5  # zeros stay zero, so the result is sparse


class TestRangeFiles:
    @given(
        st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=10, unique=True),
        st.booleans(),
    )
    @settings(deadline=None)
    def test_round_trip(self, values, targets):
        numbers = np.sort(np.array(values)[: len(values) // 2 * 2]).reshape(2, -1)
        scaling = Scaling(np.arange(numbers.shape[1]) * 3, numbers[0], numbers[1], -0.1, 1 / 3)
        if targets:
            scaling = scaling.with_target(numbers.ravel(), 0.1, 0.7)
        stream = io.BytesIO()
        scaling.write(stream)
        found = Scaling.read(io.BytesIO(stream.getvalue()))
        for name in ("columns", "minimum", "maximum"):
            assert np.array_equal(getattr(found, name), getattr(scaling, name))
        assert (found.lower, found.upper, found.target) == (scaling.lower, scaling.upper, scaling.target)

    @pytest.mark.parametrize(
        ("text", "line", "message"),
        [
            (b"", 1, "begins with a line 'x'"),
            (b"hello\n", 1, "begins with a line 'x'"),
            (b"x\n", 1, "'lower upper'"),
            (b"x\n-1\n", 2, "'lower upper'"),
            (b"x\n1 -1\n", 2, "must be above the lower"),
            (b"x\n-1 nan\n", 2, "'lower upper'"),
            (b"x\n-1 1\n1 0\n", 3, "index minimum maximum"),
            (b"x\n-1 1\n1 0 1 2\n", 3, "index minimum maximum"),
            (b"x\n-1 1\n1 0 inf\n", 3, "index minimum maximum"),
            (b"x\n-1 1\n1 0 1_0\n", 3, "index minimum maximum"),
            (b"x\n-1 1\n1 1 0\n", 3, "must be above the minimum"),
            (b"x\n-1 1\n\n2 0 1\n1 0 1\n", 5, "must be in ascending order"),
            (b"x\n-1 1\n1 0 1\n1 0 1\n", 4, "must be in ascending order"),
            (b"x\n-1 1\n0 0 1\n", 3, "not a feature index"),
            (b"x\n-1 1\n-3 0 1\n", 3, "not a feature index"),
            (b"x\n-1 1\n2147483648 0 1\n", 3, "not a feature index"),
            (b"x\n-1 1\n99999999999999999999 0 1\n", 3, "not a feature index"),
            (b"y\n-1 1\nx\n-1 1\n", 3, "minimum maximum"),
            (b"y\n-1 1\n3 3\nx\n-1 1\n", 3, "must be above the smallest"),
            (b"y\n-1 1\n0 3\n", 3, "begins with a line 'x'"),
            (b"\x00\xff\n", 1, "begins with a line 'x'"),
        ],
    )
    def test_malformed(self, text, line, message, tmp_path):
        (tmp_path / "range").write_bytes(text)
        with pytest.raises(DataFileError, match=message) as caught:
            Scaling.read(tmp_path / "range")
        assert caught.value.line == line
        assert "range, line" in str(caught.value)

    def test_mutations(self):
        good = b"y\n-1 1\n-3.5 7\nx\n0 1\n1 -0.25 3\n4 1e-5 2e10\n17 -8 0.125\n"
        random = np.random.default_rng(0)
        letters = np.frombuffer(b"0123456789.-+e \n\txy\x00\xffnaif:#_", dtype=np.uint8)
        read = 0
        for _ in range(20_000):
            bad = bytearray(good)
            for place in random.integers(0, len(bad), random.integers(1, 4)):
                how = random.integers(3)
                if how == 0:
                    bad[place % len(bad)] = random.choice(letters)
                elif how == 1:
                    bad.insert(place, random.choice(letters))
                else:
                    del bad[place % len(bad)]
            try:
                scaling = Scaling.read(io.BytesIO(bytes(bad)))
            except DataFileError as error:
                assert error.line is not None  # noqa: PT017
            else:
                read += 1
                assert (scaling.minimum < scaling.maximum).all()
        assert 0 < read < 20_000


@pytest.mark.parametrize("X", ["table.npy", None, [[1.0, 2.0]], np.zeros(3)], ids=str)
@pytest.mark.parametrize("fit", [Scaling.fit, Scaling.standardise])
def test_samples_are_a_table(fit, X):
    with pytest.raises(TypeError, match="two dimensions, a sparse matrix or a table"):
        fit(X)
