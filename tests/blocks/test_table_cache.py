"""Parquet and Arrow files that are decoded once into the cache."""

import os
import re
import subprocess
import sys
import time

import numpy as np
import pytest

from blocks.tables import SIZES, WEIGHT, X, Y, assert_rows, refused
from maxmargin import blocks
from maxmargin.blocks import arrow_source

pa = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

LABELS = np.array(["a", "bb", "cccc"])[Y]


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "table.parquet"
    write(path)
    return path


def write(path, values=X, label=LABELS):
    table = {f"x{at}": values[:, at] for at in range(values.shape[1])} | {"w": WEIGHT[: len(values)]}
    parquet.write_table(pa.table(table | ({} if label is None else {"y": label})), path, row_group_size=6)


def opened(path, cache, **options):
    return blocks.open(path, convert=True, cache_dir=cache, weight="w", **options)


@pytest.fixture
def decoded(monkeypatch):
    """The numbers of rows that were decoded."""
    counts, original = [], arrow_source.ArrowSource._rows

    def counting(self, file, tables, count):
        counts.append(count)
        return original(self, file, tables, count)

    monkeypatch.setattr(arrow_source.ArrowSource, "_rows", counting)
    return counts


@pytest.mark.parametrize("block_rows", SIZES)
def test_rows_are_decoded_once(path, cache, decoded, block_rows):
    for _ in range(2):
        assert_rows(opened(path, cache, block_rows=block_rows), X, LABELS, WEIGHT)
    assert sum(decoded) == 23
    (folder,) = cache.iterdir()
    assert sorted(file.name for file in folder.iterdir()) == ["X.npy", "sample_weight.npy", "y.npy"]
    np.testing.assert_array_equal(np.load(folder / "X.npy"), X)


def test_without_labels_and_weights(tmp_path, cache):
    parquet.write_table(pa.table({f"x{at}": X[:, at].astype("f4") for at in range(4)}), tmp_path / "t.parquet")
    table = blocks.open(tmp_path / "t.parquet", convert=True, cache_dir=cache, label=None)
    assert table.dtype == np.float32
    assert_rows(table, X.astype("f4"))


def test_options_have_conversions_of_their_own(path, cache):
    assert_rows(opened(path, cache), X, LABELS, WEIGHT)
    assert_rows(opened(path, cache, ignore=["x1"]), np.delete(X, 1, axis=1), LABELS, WEIGHT)
    assert len(os.listdir(cache)) == 2
    assert blocks.clear_cache(cache) > 2 * 23 * 8
    assert not os.listdir(cache)


def test_several_files(tmp_path, path, cache):
    write(tmp_path / "two.parquet", -X)
    table = blocks.open([path, tmp_path / "two.parquet"], convert=True, cache_dir=cache, weight="w")
    assert_rows(table, np.vstack([X, -X]), np.tile(LABELS, 2), np.tile(WEIGHT, 2))
    (tmp_path / "two.parquet").unlink()
    assert_rows(table, np.vstack([X, -X]), np.tile(LABELS, 2), np.tile(WEIGHT, 2))  # the conversion is complete


def test_changed_files_are_converted_again(path, cache, decoded):
    table = opened(path, cache)
    time.sleep(0.01)
    write(path, 2 * X)
    with pytest.raises(ValueError, match="the file changed after it was opened"):
        list(table)
    assert_rows(opened(path, cache), 2 * X, LABELS, WEIGHT)
    assert sum(decoded) == 46
    assert len(os.listdir(cache)) == 1  # the conversion of the old file is removed


@pytest.mark.parametrize("damage", ["truncated", "missing", "another shape"])
def test_damaged_conversions_are_written_again(path, cache, decoded, damage):
    opened(path, cache)
    (folder,) = cache.iterdir()
    if damage == "truncated":
        (folder / "X.npy").write_bytes((folder / "X.npy").read_bytes()[:-8])
    elif damage == "missing":
        (folder / "y.npy").unlink()
    else:
        np.save(folder / "X.npy", X[:5])
    assert_rows(opened(path, cache), X, LABELS, WEIGHT)
    assert sum(decoded) == 46


def test_rows_that_are_refused_leave_nothing(tmp_path, cache):
    broken = X.copy()
    broken[17, 2] = np.nan
    write(tmp_path / "bad.parquet", broken)
    refused(tmp_path / "bad.parquet", convert=True, cache_dir=cache, weight="w", match=r"row 17 .*: nan in column 'x2'")
    assert not os.listdir(cache)
    content = (tmp_path / "bad.parquet").read_bytes()
    (tmp_path / "short.parquet").write_bytes(content[: len(content) // 2])
    refused(tmp_path / "short.parquet", convert=True, cache_dir=cache, match="truncated or not a valid file")
    assert not cache.exists() or not os.listdir(cache)


FULL = """
import resource, sys
from maxmargin import blocks
limit = int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    blocks.open(sys.argv[1], convert=True, cache_dir=sys.argv[2])
except OSError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
@pytest.mark.parametrize("limit", [50, 1000, 100_000])
def test_a_full_disk_leaves_nothing(tmp_path, cache, limit):
    path = tmp_path / "large.parquet"
    parquet.write_table(pa.table({"x": np.random.default_rng(0).normal(size=20_000), "y": np.arange(20_000) % 2}), path)
    done = subprocess.run([sys.executable, "-c", FULL, path, cache, str(limit)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(r"large\.parquet-.*\.rows/\w+\.npy", done.stdout)
    assert not os.listdir(cache)
