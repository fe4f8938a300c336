"""Passes over large tables take the memory of a few blocks."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from maxmargin import blocks

#: Size of the tables in bytes, and the limit on the growth of the peak memory: read-ahead holds three blocks of 32 MiB.
TABLE_BYTES, LIMIT_BYTES = 2**29, 2**27 + 2**24

#: Reads the table named first twice, and prints the growth of the peak memory in bytes. The peak is not that of
#: getrusage, which begins at the memory of the process that started this one. Files that are mapped would count.
READER = """
import pathlib, sys
import numpy, scipy.sparse
from maxmargin import blocks
def peak():
    (line,) = (line for line in pathlib.Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])
from maxmargin.blocks import file_arrays
file_arrays.MAPS = False
list(blocks.read_ahead(blocks.open(numpy.zeros((1, 1)))))
before = peak()
table = blocks.open(sys.argv[1])
for _ in range(2):
    rows = sum(block.X.shape[0] for block in blocks.read_ahead(table))
    assert rows == table.n_rows
print(peak() - before)
"""

#: Reads the table within a limit on the growth of private memory, where files may be mapped.
LIMITED_READER = """
import pathlib, resource, sys
import numpy
from maxmargin import blocks
list(blocks.read_ahead(blocks.open(numpy.zeros((1, 1)))))
(line,) = (line for line in pathlib.Path("/proc/self/status").read_text().splitlines() if line.startswith("VmData"))
limit = 1024 * int(line.split()[1]) + int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
table = blocks.open(sys.argv[1])
for _ in range(2):
    assert sum(block.X.shape[0] for block in blocks.read_ahead(table)) == table.n_rows
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def growth(path):
    done = subprocess.run([sys.executable, "-c", READER, str(path)], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_private_memory_of_files_that_are_mapped(tmp_path):
    rows = TABLE_BYTES // 256
    np.lib.format.open_memmap(tmp_path / "X.npy", "w+", "f4", (rows, 64)).flush()
    command = [sys.executable, "-c", LIMITED_READER, str(tmp_path / "X.npy"), str(2**26)]
    subprocess.run(command, capture_output=True, text=True, check=True)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_npy_files(tmp_path, dtype):
    rows = TABLE_BYTES // (64 * np.dtype(dtype).itemsize)
    np.lib.format.open_memmap(tmp_path / "X.npy", "w+", dtype, (rows, 64)).flush()  # holes instead of zeros on the disk
    assert growth(tmp_path / "X.npy") < LIMIT_BYTES


def test_folders(tmp_path):
    part = sparse.random_array((10_000, 1000), density=0.1, format="csr", rng=np.random.default_rng(0))
    blocks.write_csr(tmp_path / "table", blocks.open([part] * 30))
    assert growth(tmp_path / "table") < LIMIT_BYTES
