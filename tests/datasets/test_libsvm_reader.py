"""LIBSVM format: agreement with scikit-learn, exact round trips, compression, blocks, errors."""

import bz2
import gzip
import io
import lzma
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from maxmargin.datasets import DataFileError, dump_libsvm, find_libsvm_problems, iterate_libsvm, load_libsvm


def load(text, **options):
    return load_libsvm(io.BytesIO(text), **options)


def bitwise_equal(first, second):
    """Return whether two matrices are bitwise equal."""
    return first.shape == second.shape and all(
        np.array_equal(
            np.asarray(getattr(first, name)).view(np.uint8), np.asarray(getattr(second, name)).view(np.uint8)
        )
        for name in ("data", "indices", "indptr")
    )


def random_matrix(rows, columns, density, seed=0):
    random = np.random.default_rng(seed)
    X = sparse.random(rows, columns, density, format="csr", random_state=random, data_rvs=random.standard_normal)
    return X, random.standard_normal(rows)


@pytest.mark.parametrize("n_jobs", [1, 2, 7])
def test_agrees_with_sklearn(n_jobs):
    X, y = random_matrix(20_000, 300, 0.02)
    text = io.BytesIO()
    dump_svmlight_file(X, y, text, zero_based=False)
    text.seek(0)
    theirs, labels = load_svmlight_file(text)
    ours, y = load(text.getvalue(), n_jobs=n_jobs)
    np.testing.assert_array_equal(y, labels)
    assert (ours != theirs).nnz == 0
    assert ours.shape == theirs.shape


def test_whitespace_comments_and_line_ends():
    text = b"# heading: 1:2\r\n\n +1\t1:2  3:.5 # 4:4\r\n   \n-1 # alone\n2.5e1 2:-1e-2#\n7"
    X, y = load(text)
    np.testing.assert_array_equal(X.toarray(), [[2, 0, 0.5], [0, 0, 0], [0, -0.01, 0], [0, 0, 0]])
    np.testing.assert_array_equal(y, [1, -1, 25, 7])


def test_index_base():
    assert load(b"1 0:1 2:3\n1 1:4\n")[0].toarray().tolist() == [[1, 0, 3], [0, 4, 0]]
    assert load(b"1 1:1 2:3\n")[0].toarray().tolist() == [[1, 3]]
    assert load(b"1 1:1 2:3\n", zero_based=True)[0].toarray().tolist() == [[0, 1, 3]]
    assert load(b"1 1:1 2:3\n", n_features=4)[0].shape == (1, 4)
    with pytest.raises(DataFileError, match="the file, line 2: index 0, but"):
        load(b"1 1:1\n1 0:1\n", zero_based=False)
    with pytest.raises(DataFileError, match="line 1: index 3 is too large"):
        load(b"1 3:1\n", n_features=2)
    with pytest.raises(DataFileError, match="line 1: index 2 exceeds n_features=2"):
        load(b"1 2:1\n2 0:1\n", n_features=2)


def test_wide_indices():
    X, _ = load(b"1 5:1\n1 6:1 3000000000:2\n")
    assert X.shape == (2, 3_000_000_000)
    assert X.indices.tolist() == [4, 5, 2_999_999_999]
    assert load(b"1 2147483647:1\n")[0].indices.dtype == np.int32


def test_queries():
    text = b"3 qid:1 1:1\n2 qid:-7 2:1\n"
    X, _, query = load(text, return_query_id=True)
    assert query.tolist() == [1, -7]
    assert X.shape == (2, 2)
    assert load(text)[0].shape == (2, 2)
    assert load(b"1 1:1\n", return_query_id=True)[2] is None
    with pytest.raises(DataFileError, match="line 2: there is no qid"):
        load(b"3 qid:1 1:1\n2 2:1\n")


def test_numbers_are_rounded_correctly():
    random = np.random.default_rng(3)
    numbers = random.integers(0, 2**64, 20_000, dtype=np.uint64).view(np.float64)
    words = [repr(float(x)) for x in numbers[np.isfinite(numbers)]]
    words += [f"{x:.{d}g}" for x, d in zip(random.standard_normal(20_000), random.integers(1, 25, 20_000), strict=True)]
    words += [f"{x:.{d}f}" for x, d in zip(random.uniform(0, 1e9, 9000), random.integers(0, 25, 9000), strict=True)]
    words += [
        "1e400",
        "-1e400",
        "1e-400",
        "-1e-400",
        "0." + "0" * 400 + "1",
        "1" + "0" * 400,
        "0e999999999999999999999",
    ]
    words += ["9007199254740993", "9007199254740992.0", "0.1", "1.", ".5", "+.5e+3", "-0", "00012", "1e-5", "4.9e-324"]
    words += [
        "2.47e-324",
        "2.48e-324",
        "1.7976931348623157e308",
        "1.7976931348623159e308",
        "inf",
        "-INF",
        "nan",
        "Infinity",
    ]
    X, y = load("".join(f"{word} 1:{word}\n" for word in words).encode())
    exact = np.array([float(word) for word in words])
    np.testing.assert_array_equal(y.view(np.int64), exact.view(np.int64))
    np.testing.assert_array_equal(X.data.view(np.int64), exact.view(np.int64))


@pytest.mark.parametrize("open_file", [gzip.open, bz2.open, lzma.open, open])
def test_compressed_files(open_file, tmp_path):
    X, y = random_matrix(3000, 50, 0.3)
    dump_libsvm(X, y, tmp_path / "plain")
    text = (tmp_path / "plain").read_bytes()
    with open_file(tmp_path / "packed", "wb") as file:
        file.write(text[:1000])
    with open_file(tmp_path / "packed", "ab") as file:  # a second member
        file.write(text[1000:])
    again, labels = load_libsvm(tmp_path / "packed")
    assert bitwise_equal(again, X)
    np.testing.assert_array_equal(labels, y)
    if open_file is not open:
        damaged = bytearray((tmp_path / "packed").read_bytes())
        with pytest.raises(DataFileError, match=r"the \w+ file is truncated"):
            load(bytes(damaged[:-100]))
        damaged[len(damaged) // 2] ^= 64
        with pytest.raises(DataFileError, match=r"the \w+ file is damaged"):
            load(bytes(damaged))


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz"])
def test_round_trip(suffix, tmp_path):
    X, y = random_matrix(5000, 70, 0.1)
    target = tmp_path / f"data{suffix}"
    query = np.arange(5000) // 3
    dump_libsvm(X, y, target, query_id=query, comment="two\nlines", zero_based=True)
    again, labels, queries = load_libsvm(target, n_features=70, zero_based=True, return_query_id=True)
    assert bitwise_equal(again, X)
    np.testing.assert_array_equal(labels, y)
    np.testing.assert_array_equal(queries, query)


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1 1:2\n")))
    assert load_libsvm("-")[0].toarray() == [[2]]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1 x\n")))
    with pytest.raises(DataFileError, match="standard input, line 1"):
        load_libsvm("-")


def test_blocks():
    X, y = random_matrix(4000, 50, 0.1)
    text = io.BytesIO()
    dump_libsvm(X, y, text)
    for size in (1, 100, 5000, 10**9):
        parts = list(iterate_libsvm(io.BytesIO(text.getvalue()), block_bytes=size, n_features=50))
        assert bitwise_equal(sparse.vstack([part[0] for part in parts], format="csr"), X)
        np.testing.assert_array_equal(np.concatenate([part[1] for part in parts]), y)


def test_first_block_decides_index_base_and_queries():
    text = b"1 1:1\n" * 30_000
    assert [X.shape for X, _ in iterate_libsvm(io.BytesIO(text + b"2 5:1\n"), block_bytes=100_000)][-1][1] == 5
    with pytest.raises(DataFileError, match="line 30001: index 0, but indices start at 1 here; use zero_based=True"):
        list(iterate_libsvm(io.BytesIO(text + b"2 0:1\n"), block_bytes=100_000))
    zero = [X.indices[0] for X, _ in iterate_libsvm(io.BytesIO(b"1 0:1\n" + text), block_bytes=100_000)]
    assert zero == [0, 1, 1]
    with pytest.raises(DataFileError, match="line 30001: there is a qid"):
        list(iterate_libsvm(io.BytesIO(text + b"2 qid:1 1:1\n"), block_bytes=100_000))
    blocks = iterate_libsvm(io.BytesIO(gzip.compress(text)), block_bytes=1000)
    next(blocks)
    blocks.close()  # ends the decompression thread


def test_result_does_not_depend_on_threads():
    X, y = random_matrix(40_000, 200, 0.05)
    text = io.BytesIO()
    dump_libsvm(X, y, text)
    lines = text.getvalue().splitlines(keepends=True)
    lines[::7] = [b"\n# 1:1 2:2\n" + line for line in lines[::7]]  # lines without samples
    for n_jobs in (1, 2, 3, 16):
        again, labels = load(b"".join(lines), n_jobs=n_jobs, n_features=200)
        assert bitwise_equal(again, X)
        np.testing.assert_array_equal(labels, y)
    lines[30_000] = b"1 x\n" + lines[30_000]
    lines[35_000] = b"1 y\n" + lines[35_000]
    message = f"line {b''.join(lines).split(b'1 x')[0].count(b'%c' % 10) + 1}: 'x' is not of the form index:value"
    for n_jobs in (1, 2, 16):
        with pytest.raises(DataFileError, match=message):
            load(b"".join(lines), n_jobs=n_jobs)


@given(
    arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 5)), elements=st.floats(allow_nan=False, width=64)),
    st.data(),
)
def test_round_trip_of_any_numbers(X, data):
    y = data.draw(arrays(np.float64, X.shape[0], elements=st.floats(allow_nan=False)))
    query = data.draw(arrays(np.int64, X.shape[0], elements=st.integers(1 - 10**18, 10**18 - 1)))
    zero_based = data.draw(st.booleans())
    rows, columns = X.shape  # zeros of both signs are stored, too
    stored = sparse.csr_matrix((X.ravel(), np.tile(np.arange(columns), rows), np.arange(rows + 1) * columns), X.shape)
    text = io.BytesIO()
    dump_libsvm(stored, y, text, query_id=query, zero_based=zero_based)
    text.seek(0)
    again, labels, queries = load_libsvm(
        text, zero_based=zero_based, n_features=X.shape[1], return_query_id=True, n_jobs=1
    )
    assert bitwise_equal(again, stored)
    assert labels.tobytes() == y.tobytes()
    assert queries.tobytes() == query.tobytes()


def test_digits_agree_with_printf():
    X = np.random.default_rng(0).standard_normal((50, 4)) * 10.0 ** np.arange(-9, 11, 5)
    for digits in (1, 6, 8, 16):
        text = io.BytesIO()
        dump_libsvm(X, X[:, 0], text, digits=digits)
        lines = [" ".join(["%.*g", *(f"{j + 1}:%.*g" for j in range(4))]) for _ in X]
        numbers = [tuple(part for x in (row[0], *row) for part in (digits, x)) for row in X]
        assert text.getvalue().decode().splitlines() == [line % n for line, n in zip(lines, numbers, strict=True)]


def test_dump_is_canonical_and_keeps_explicit_zeros():
    X = sparse.csr_matrix((np.array([1.0, 2.0, 3.0, 0.0]), [2, 0, 2, 1], [0, 3, 4]), shape=(2, 3))
    text = io.BytesIO()
    dump_libsvm(X, [1, 2], text)
    assert text.getvalue() == b"1 1:2 3:4\n2 2:0\n"
    assert X.nnz == 4  # the matrix of the caller is unchanged


def test_float32():
    X, _ = load(b"1 1:0.1 2:1e300\n", dtype=np.float32)
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X.data, [np.float32(0.1), np.inf])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: load(b"", n_features=0), "n_features must be"),
        (lambda: load(b"", zero_based="yes"), "zero_based must be"),
        (lambda: load(b"", dtype=int), "dtype must be"),
        (lambda: load_libsvm(io.StringIO("1 1:1")), "mode 'rb'"),
        (lambda: load_libsvm(7), "a path or a binary file"),
        (lambda: iterate_libsvm("x", block_bytes=0), "block_bytes must be"),
        (lambda: find_libsvm_problems("x", 0), "limit must be"),
        (lambda: dump_libsvm([[1]], ["a"], io.BytesIO()), "y must be numeric"),
        (lambda: dump_libsvm([[1]], [1, 2], io.BytesIO()), "y must have shape"),
        (lambda: dump_libsvm([1], [1], io.BytesIO()), "X must be a two-dimensional array"),
        (lambda: dump_libsvm([[1]], [1], io.BytesIO(), query_id=[0.5]), "query_id must be integers"),
        (lambda: dump_libsvm([[1]], [1], io.BytesIO(), query_id=[10**18]), "query_id must be integers"),
        (lambda: dump_libsvm([[1]], [1], io.BytesIO(), query_id=[1, 2]), "query_id must have shape"),
        (lambda: dump_libsvm([[1]], [1], io.BytesIO(), digits=18), "digits must be"),
        (lambda: dump_libsvm([[1]], [1], 7), "a path or a binary file"),
    ],
)
def test_invalid_arguments(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


@pytest.mark.parametrize("beginning", [b"1 1:", gzip.compress(b"1 1:1\n" * 100)[:20]], ids=["plain", "gzip"])
def test_keyboard_interrupt_while_waiting_for_input(beginning):
    program = "from maxmargin.datasets import load_libsvm; print('ready', flush=True); load_libsvm('-')"
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdin.write(beginning)
    process.stdin.flush()
    assert process.stdout.readline() == b"ready\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) != 0
    assert process.stderr.read().rstrip().endswith(b"KeyboardInterrupt")
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()


def test_error_is_a_picklable_value_error():
    error = pickle.loads(pickle.dumps(DataFileError("a.txt", "bad", 3)))
    assert isinstance(error, ValueError)
    assert (str(error), error.name, error.line) == ("a.txt, line 3: bad", "a.txt", 3)
