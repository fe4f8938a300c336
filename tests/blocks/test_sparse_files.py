"""Sparse tables in .npz files and folders, and LIBSVM text with its cache."""

import gzip
import json
import os
import re
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import sparse

from blocks.tables import SIZES, SPARSE, WEIGHT, Y, assert_rows, refused
from maxmargin import blocks
from maxmargin.blocks import conversions, libsvm_cache
from maxmargin.datasets import dump_libsvm, load_libsvm

DENSE = SPARSE.toarray()


@pytest.mark.parametrize("block_rows", SIZES)
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
def test_npz_of_scipy(tmp_path, compressed, block_rows, dtype):
    matrix = (10 * SPARSE).astype(dtype)
    sparse.save_npz(tmp_path / "X.npz", matrix, compressed=compressed)
    opened = blocks.open(tmp_path / "X.npz", Y, block_rows=block_rows)
    assert_rows(opened, matrix.toarray(), Y)
    assert opened.dtype == (np.float32 if dtype == "f4" else np.float64)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_of_arrays(tmp_path, save):
    save(tmp_path / "X.npz", X=DENSE, y=Y)
    assert_rows(blocks.open(tmp_path / "X.npz", block_rows=4), DENSE, Y)
    assert_rows(blocks.open(tmp_path / "X.npz", label=None, block_rows=4), DENSE)


def test_refused_npz(tmp_path):
    path = tmp_path / "X.npz"
    sparse.save_npz(path, SPARSE.tocsc(), compressed=False)
    refused(path, match="X.npz: .* csr, not csc")
    np.savez(path, A=DENSE)
    refused(path, match="must contain X or a CSR matrix")
    sparse.save_npz(path, SPARSE, compressed=False)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused(path, match="X.npz: not a valid archive")


@pytest.mark.parametrize("block_rows", SIZES)
@pytest.mark.parametrize("given", [SPARSE, DENSE, SPARSE.astype("f4")])
def test_folders(tmp_path, given, block_rows):
    folder = tmp_path / "table"
    blocks.write_csr(folder, blocks.open(given, Y, WEIGHT, block_rows=block_rows))
    assert sorted(os.listdir(tmp_path)) == ["table"]
    dense = given.toarray() if sparse.issparse(given) else given
    opened = blocks.open(folder, block_rows=block_rows)
    assert opened.is_sparse
    assert opened.dtype == given.dtype
    assert_rows(opened, dense, Y, WEIGHT)
    assert_rows(blocks.open([folder, folder], block_rows=block_rows), np.vstack([dense, dense]), np.tile(Y, 2))


def test_folders_without_shape(tmp_path):
    blocks.write_csr(tmp_path / "table", blocks.open(SPARSE))
    (tmp_path / "table" / "shape.npy").unlink()
    assert_rows(blocks.open(tmp_path / "table"), DENSE)
    assert blocks.open(tmp_path / "table", n_features=9).shape == (23, 9)
    (tmp_path / "table" / "indptr.npy").unlink()
    refused(tmp_path / "table", match="indptr.npy is missing")


def test_string_labels_of_growing_length(tmp_path):
    labels = np.array(["a" * (1 + row // 5) for row in range(23)])
    parts = [(DENSE[rows], labels[rows].tolist()) for rows in (slice(0, 3), slice(3, 20), slice(20, 23))]
    blocks.write_csr(tmp_path / "table", blocks.open(lambda: iter(parts)))
    assert_rows(blocks.open(tmp_path / "table", block_rows=4), DENSE, labels)


def test_write_csr_is_complete_or_absent(tmp_path):
    table = DENSE.copy()
    table[20, 1] = np.nan
    with pytest.raises(ValueError, match="row 20"):
        blocks.write_csr(tmp_path / "table", blocks.open(table, block_rows=4))
    assert not os.listdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        blocks.write_csr(tmp_path / "none" / "table", blocks.open(DENSE))
    blocks.write_csr(tmp_path / "table", blocks.open(DENSE))
    with pytest.raises(ValueError, match=r"pass maxmargin.blocks.open\(X, y\)"):
        blocks.write_csr(tmp_path / "other", DENSE)
    with pytest.raises(FileExistsError, match="exists"):
        blocks.write_csr(tmp_path / "table", blocks.open(DENSE))


def test_damaged_folders(tmp_path):
    folder = tmp_path / "table"
    blocks.write_csr(folder, blocks.open(SPARSE))
    indices = np.load(folder / "indices.npy")
    indices[7] = 99
    np.save(folder / "indices.npy", indices)
    refused(folder, match=r"table, block 0: row \d+ .* column 99, but there are 6 columns")
    data = (folder / "data.npy").read_bytes()
    (folder / "data.npy").write_bytes(data[:-4])
    refused(folder, match="data.npy: the file is truncated")


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "data.svm"
    dump_libsvm(SPARSE, Y, str(path))
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "maxmargin"


@pytest.fixture
def parsed(monkeypatch):
    """The names of the files that are parsed."""
    names = []

    def recording(path, **options):
        names.append(path.name)
        return original(path, **options)

    original = libsvm_cache.iterate_libsvm
    monkeypatch.setattr(libsvm_cache, "iterate_libsvm", recording)
    return names


@pytest.mark.parametrize("block_rows", SIZES)
@pytest.mark.parametrize("text_bytes", [1, 100, 2**20])
def test_libsvm(text, block_rows, text_bytes, monkeypatch):
    monkeypatch.setattr(libsvm_cache, "TEXT_BYTES", text_bytes)
    X, y = load_libsvm(text)
    assert_rows(blocks.open(text, block_rows=block_rows), X.toarray(), y)


def test_the_cache_is_reused(text, cache, parsed, tmp_path):
    blocks.open(text)
    blocks.open(str(text))
    assert parsed == ["data.svm"]
    (folder,) = cache.iterdir()
    assert json.loads((folder / "source.json").read_text())["source"] == os.path.realpath(text)
    blocks.open(text, cache_dir=tmp_path / "other")
    assert len(parsed) == 2
    assert blocks.clear_cache(tmp_path / "other") > 0
    assert not list((tmp_path / "other").iterdir())
    blocks.open(text)
    assert len(parsed) == 2
    (cache / "notes.txt").write_text("of the user")
    blocks.clear_cache()
    assert os.listdir(cache) == ["notes.txt"]
    assert blocks.clear_cache(tmp_path / "absent") == 0
    assert_rows(blocks.open(text), DENSE, Y)
    assert len(parsed) == 3


def test_changes_of_the_text(text, cache, parsed):
    opened = blocks.open(text)
    status = text.stat()
    original = text.read_bytes()
    changed = original.replace(b"\n", b"\n", 1)[:-2] + b"7\n"  # the last digit
    assert len(changed) == len(original)
    text.write_bytes(changed)
    os.utime(text, ns=(status.st_atime_ns, status.st_mtime_ns))  # the same size and time: the checksum differs
    X, _ = load_libsvm(text)
    assert_rows(blocks.open(text), X.toarray(), Y)
    assert len(parsed) == 2
    assert len(list(cache.iterdir())) == 1  # the old one is removed
    with text.open("ab") as stream:
        stream.write(b"1 1:1\n")
    with pytest.raises((ValueError, OSError), match="changed|removed"):
        list(opened)
    assert blocks.open(text).n_rows == 24
    os.utime(text, (5, 5))
    blocks.open(text)
    assert len(parsed) == 4


def test_large_texts_have_a_checksum_of_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(conversions, "CHECKED_BYTES", 64)
    monkeypatch.setattr(conversions, "PIECE_BYTES", 16)
    path = tmp_path / "large"
    path.write_bytes(bytes(1000))
    before = conversions._checksum(path, 1000)
    for changed in (0, 999):
        data = bytearray(1000)
        data[changed] = 1
        path.write_bytes(data)
        assert conversions._checksum(path, 1000) != before


def test_texts_may_be_removed_after_conversion(text):
    opened = blocks.open(text)
    text.unlink()
    assert_rows(opened, DENSE, Y)


def test_index_zero_in_a_late_line(tmp_path, monkeypatch):
    monkeypatch.setattr(libsvm_cache, "TEXT_BYTES", 8)
    late, usual = tmp_path / "late.svm", tmp_path / "usual.svm"
    late.write_text("1 1:2 3:4\n-1 2:5\n1 0:6\n")
    usual.write_text("1 1:7\n")
    rows = [[0, 2, 0, 4], [0, 0, 5, 0], [6, 0, 0, 0]]
    assert_rows(blocks.open(late), np.array(rows, float), np.array([1, -1, 1]))
    assert_rows(blocks.open([usual, late]), np.array([[0, 7, 0, 0], *rows], float), np.array([1, 1, -1, 1]))
    refused(late, zero_based=False, match="late.svm, line 3: index 0")


def test_texts_of_several_widths(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:2\n")
    (tmp_path / "b.svm").write_text("2 3:4\n")
    paths = [tmp_path / "a.svm", tmp_path / "b.svm"]
    assert_rows(blocks.open(paths), np.array([[2.0, 0, 0], [0, 0, 4]]), np.array([1, 2]))
    assert blocks.open(paths, n_features=5).shape == (2, 5)
    refused(paths, n_features=2, match="more than n_features=2")


def test_compressed_text(text):
    (text.parent / "data.svm.gz").write_bytes(gzip.compress(text.read_bytes()))
    assert_rows(blocks.open(text.parent / "data.svm.gz"), DENSE, Y)


def test_refused_text(tmp_path, cache):
    path = tmp_path / "bad.svm"
    for content, match in (
        ("1 1:2\n1 3:x\n", "bad.svm, line 2"),
        ("1 1:2\n1 1:nan\n", r"bad.svm: row 1 \(counting from 0\) has a value that is not finite"),
        ("1 1:2\nnan 1:2\n", "row 1 .* a label"),
        ("\n\n", "empty|no samples"),
    ):
        path.write_text(content)
        refused(path, format="libsvm", match=match)
        assert not cache.exists() or not os.listdir(cache)


def test_damaged_caches_are_converted_again(text, cache, parsed):
    blocks.open(text)
    (folder,) = cache.iterdir()
    (folder / "data.npy").write_bytes(b"damaged")
    assert_rows(blocks.open(text), DENSE, Y)
    (folder / "source.json").unlink()
    assert_rows(blocks.open(text), DENSE, Y)
    assert len(parsed) == 3


KILLED = """
import sys, time
from maxmargin import blocks
from maxmargin.blocks import libsvm_cache
original = libsvm_cache.iterate_libsvm
def slow(*given, **options):
    for block in original(*given, **options):
        yield block
        print("converting", flush=True)
        time.sleep(60)
libsvm_cache.iterate_libsvm = slow
blocks.open(sys.argv[1])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_killed_conversion_is_never_read(text, cache):
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(text)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "converting\n"
    process.kill()
    process.wait()
    process.stdout.close()
    (left,) = os.listdir(cache)
    assert left.endswith(".part")
    assert_rows(blocks.open(text), DENSE, Y)
    (complete,) = os.listdir(cache)  # what the killed process left is removed
    assert complete.endswith(".csr")


FULL = """
import resource, sys
from maxmargin import blocks
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    blocks.open(sys.argv[1])
except OSError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
@pytest.mark.parametrize("limit", [50, 128, 1000, 2**14, 45_000])
def test_a_full_disk_leaves_nothing(tmp_path, cache, limit):
    path = tmp_path / "large.svm"
    path.write_text("1 1:2 2:3\n" * 5000)
    command = [sys.executable, "-c", FULL, str(path), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "large.svm" in done.stdout
    assert re.search(r"\.csr/\w+\.npy", done.stdout)
    assert not os.listdir(cache)


def test_two_conversions_at_once(text, cache, monkeypatch):
    original = libsvm_cache.iterate_libsvm
    nested = []

    def interrupted(path, **options):
        if not nested:  # another process converts the same text in the meantime
            nested.append(True)
            blocks.open(path)
        return original(path, **options)

    monkeypatch.setattr(libsvm_cache, "iterate_libsvm", interrupted)
    assert_rows(blocks.open(text), DENSE, Y)
    assert len(os.listdir(cache)) == 1


def test_the_text_changes_during_the_conversion(text, cache, monkeypatch):
    original = libsvm_cache.iterate_libsvm

    def changing(path, **options):
        yield from original(path, **options)
        time.sleep(0.01)
        path.write_text("1 1:1\n")

    monkeypatch.setattr(libsvm_cache, "iterate_libsvm", changing)
    refused(text, match="data.svm: the file changed")
    assert not os.listdir(cache)
