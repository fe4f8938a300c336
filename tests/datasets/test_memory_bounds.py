"""Files that expand or do not fit: a clear MemoryError after a bounded amount of memory, never an empty message."""

import bz2
import gzip
import io
import lzma
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from scipy import sparse

from maxmargin import resources
from maxmargin.datasets import DataFileError, Samples, iterate_libsvm, load_libsvm, read_samples, write_samples

#: Bytes of a compressed member, and the number of members of a file.
PIECE, REPETITIONS = 2**20, 128

#: The limit in these tests; the usual one of 1 GiB takes minutes.
LIMIT = 2**23
COMPRESSORS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}

#: Reads the file named first, and prints the error and the growth of the peak memory in bytes.
READER = f"""
import resource, sys
from maxmargin.datasets import compression, read_samples
compression.EXPANDED_BYTES = {LIMIT}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_samples(sys.argv[1])
except MemoryError as error:
    print(error)
print(1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
"""


def read_in_process(path, limit=None):
    """Return the message of the MemoryError and the peak memory of a process that reads a file."""
    program = READER
    if limit is not None:
        program = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))\n" + program
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *message, peak = done.stdout.splitlines()
    return "\n".join(message), int(peak)


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of the peak memory is that of Linux")
@pytest.mark.parametrize(
    ("kind", "text"), [("gz", b"1"), ("bz2", b"1"), ("xz", b"1"), ("gz", b"1 1:1\n"), ("gz", b"1,2,3\n")]
)
def test_expanding_text(tmp_path, kind, text):
    suffix = "csv" if b"," in text else "libsvm"
    path = tmp_path / f"a.{suffix}.{kind}"
    path.write_bytes(COMPRESSORS[kind](text * (PIECE // len(text))) * REPETITIONS)
    message, peak = read_in_process(path)
    assert re.search(r"expands to more than [\d.]+ MB, over 100 times its compressed size of", message)
    assert message.endswith("if that is intended, decompress it first")
    assert peak < 64 * LIMIT


def write_bomb(path, shape=(2**12, 2**12)):
    """Write an archive of 134 MB of zeros."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
    with archive, archive.open("X.npy", "w", force_zip64=True) as member:
        member.write(header.getvalue())
        for _ in range(8 * shape[0] * shape[1] // 2**24):
            member.write(bytes(2**24))


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of the peak memory is that of Linux")
@pytest.mark.parametrize("labels", [{}, {"y": np.zeros(3)}], ids=["without y", "with y"])
def test_archive_of_columns_with_more_rows_than_values(labels, tmp_path):
    """Compressed rows need an entry for each row, which a file of compressed columns does not have."""
    parts = {"data": np.ones(1), "indices": np.zeros(1, np.int32), "indptr": np.array([0, 1], np.int32)}
    path = tmp_path / "columns.npz"
    np.savez(path, format=np.array(b"csc"), shape=np.array([10**9, 1]), **parts, **labels)
    with pytest.raises(DataFileError, match="1000000000"):
        read_samples(path)


def test_expanding_archive(tmp_path):
    write_bomb(tmp_path / "a.npz")
    message, peak = read_in_process(tmp_path / "a.npz")
    assert re.search(r"expands to more than [\d.]+ MB, over 100 times its compressed size of", message)
    assert peak < LIMIT


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on the address space")
def test_files_that_do_not_fit_into_the_memory(tmp_path):
    with (tmp_path / "line.libsvm").open("wb") as file:  # one line, in a sparse file
        file.seek(2**32)
        file.write(b"1\n")
    np.lib.format.open_memmap(tmp_path / "a.npy", "w+", np.float32, (2**14, 2**15))
    for name in ("line.libsvm", "a.npy"):
        message, peak = read_in_process(tmp_path / name, limit=3 * 2**30)
        assert f"{name}" in message
        assert "of memory, but" in message
        assert "are available; " in message
        assert peak < 3 * 2**30


@pytest.mark.parametrize(
    "name", ["a.libsvm", "a.csv", "a.tsv", "a.npz", "a.npy", "a.parquet", "a.arrow", "a.libsvm.gz"]
)
def test_message_of_every_reader(tmp_path, monkeypatch, name):
    X = np.arange(90_000.0).reshape(300, 300) + 0.1
    write_samples(Samples(X, np.arange(300) % 2.0), tmp_path / name)
    monkeypatch.setattr("maxmargin.datasets.libsvm_reader.CHECKED_BYTES", 2**10)
    monkeypatch.setattr("maxmargin.datasets.csv_files.CHECKED_BYTES", 2**10)
    monkeypatch.setattr("maxmargin.datasets.csv_lines.BLOCK_BYTES", 2**12)
    assert read_samples(tmp_path / name).X.shape == (300, 300)
    monkeypatch.setattr(resources, "available_memory", lambda: 2**17)
    with pytest.raises(MemoryError, match=rf"{name}.* needs .*B of memory, but 131 kB are available; use fewer"):
        read_samples(tmp_path / name)


def test_blocks_may_expand_to_any_size(tmp_path, monkeypatch):
    monkeypatch.setattr("maxmargin.datasets.compression.EXPANDED_BYTES", 2**20)
    text = gzip.compress(b"1 1:1\n" * 10**6)
    assert sum(len(y) for _, y in iterate_libsvm(io.BytesIO(text), block_bytes=2**16)) == 10**6
    with pytest.raises(MemoryError, match="the file expands to more than"):
        load_libsvm(io.BytesIO(text))


def test_a_header_that_claims_more_than_the_file(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**3)})
    (tmp_path / "a.npy").write_bytes(header.getvalue())
    with pytest.raises(ValueError, match="its header says that it has 8,000,000,000,128 bytes, but it has 128"):
        read_samples(tmp_path / "a.npy")


def test_unexplained_errors_name_the_file(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("1,2\n3,4\n")

    def fail(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr("maxmargin.datasets.sample_files.read_csv", fail)
    with pytest.raises(MemoryError, match=r"reading .*a.csv needs more memory than the .* that are available; use"):
        read_samples(tmp_path / "a.csv")


def test_sparse_data_in_a_dense_format(tmp_path):
    samples = Samples(sparse.csr_matrix(([1.0], [2**31 - 2], [0, 1]), shape=(1, 2**40)), np.ones(1), name="wide")
    for name in ("a.csv", "a.npy", "a.parquet"):
        with pytest.raises(
            MemoryError, match=r"wide: a dense array of 1 samples with 1,099,511,627,776 features needs"
        ):
            write_samples(samples, tmp_path / name)
    assert not list(tmp_path.iterdir())
