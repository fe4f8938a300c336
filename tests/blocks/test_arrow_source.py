"""Parquet and Arrow files: the rows of `read_samples`, by blocks."""

import sys

import numpy as np
import pytest

from blocks.tables import SIZES, WEIGHT, X, Y, assert_rows, collected, refused
from maxmargin import blocks
from maxmargin.datasets import read_samples

pa = pytest.importorskip("pyarrow")
from pyarrow import feather, ipc, parquet  # noqa: E402


def columns(values=X):
    return {f"x{at}": values[:, at] for at in range(values.shape[1])}


def write_parquet(path, table, rows=6):
    parquet.write_table(pa.table(table), path, row_group_size=rows)


def write_arrow(path, table, rows=6, compression="uncompressed"):
    feather.write_feather(pa.table(table), str(path), chunksize=rows, compression=compression)


def write_compressed(path, table, rows=6):
    write_arrow(path, table, rows, "lz4")


def write_stream(path, table, rows=6):
    whole = pa.table(table)
    with ipc.new_stream(str(path), whole.schema) as writer:
        writer.write_table(whole, max_chunksize=rows)


WRITERS = [write_parquet, write_arrow, write_compressed, write_stream]


def path_for(tmp_path, write):
    return tmp_path / ("table.parquet" if write is write_parquet else "table.arrow")


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("block_rows", SIZES)
def test_numbers(tmp_path, write, block_rows):
    path = path_for(tmp_path, write)
    write(path, {**columns(), "y": Y})
    assert_rows(blocks.open(path, block_rows=block_rows), X, Y)
    sizes = collected(blocks.open(path, block_rows=block_rows))[3]
    assert len(sizes) == -(-23 // (block_rows or 23))


def test_types_of_numbers(tmp_path):
    path = tmp_path / "table.parquet"
    write_parquet(path, {**columns(X.astype("f4")), "y": Y})
    opened = blocks.open(path)
    assert opened.dtype == np.float32
    assert_rows(opened, X.astype("f4"), Y)
    write_parquet(path, {"a": np.arange(3), "b": np.array([True, False, True]), "y": [0.5, 1, 2]})
    assert_rows(blocks.open(path), np.array([[0.0, 1], [1, 0], [2, 1]]), np.array([0.5, 1, 2]))


def test_roles_of_columns(tmp_path):
    path = tmp_path / "table.parquet"
    write_parquet(path, {"class": Y, **columns(), "w": WEIGHT, "id": np.arange(23)})
    opened = blocks.open(path, weight="w", ignore=["id"], block_rows=4)
    assert_rows(opened, X, Y, WEIGHT)
    assert_rows(blocks.open(path, ignore=["class", "w", "id"], y=Y, block_rows=4), X, Y)
    assert_rows(blocks.open(path, label=None, ignore=["class", "w", "id"], block_rows=4), X)
    assert_rows(blocks.open(path, label="x0", ignore=["class", "w", "id"]), X[:, 1:], X[:, 0])
    refused(path, label="absent", match="no column named 'absent'")
    refused(path, Y, label="class", match="given twice")
    refused(path, None, WEIGHT, weight="w", match="given twice")


def strings(rows=23):
    colours = np.array(["red", "green", "blue"])[np.arange(rows) % 3]
    names = np.array(["no", "maybe"])[(np.arange(rows) > 10).astype(int)]
    return {"a": X[:rows, 0], "colour": colours, "b": X[:rows, 1], "label": names}


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("as_dictionary", [False, True])
@pytest.mark.parametrize("block_rows", SIZES)
def test_strings_and_categories(tmp_path, write, as_dictionary, block_rows):
    path = path_for(tmp_path, write)
    table = pa.table(strings())
    if as_dictionary:
        for name in ("colour", "label"):
            at = table.column_names.index(name)
            table = table.set_column(at, name, table.column(name).dictionary_encode())
    write(path, table)
    expected = read_samples(path, categorical="one-hot")
    assert_rows(blocks.open(path, categorical="one-hot", block_rows=block_rows), expected.X, expected.y)
    listed = {"colour": ["blue", "red", "green", "white"]}
    expected = read_samples(path, categorical=listed)
    assert_rows(blocks.open(path, categorical=listed, block_rows=block_rows), expected.X, expected.y)


def test_strings_that_are_numbers_in_some_blocks(tmp_path):
    path = tmp_path / "table.parquet"
    write_parquet(path, {"x": np.arange(4.0), "y": ["1", "2", "3", "three"]})
    assert_rows(blocks.open(path, block_rows=1), np.arange(4.0)[:, None], np.array(["1", "2", "3", "three"]))
    write_parquet(path, {"x": np.arange(4.0), "y": ["1", " 2", "3", "4.5"]})
    assert_rows(blocks.open(path, block_rows=1), np.arange(4.0)[:, None], np.array([1, 2, 3, 4.5]))


def test_refused_categories(tmp_path):
    path = tmp_path / "table.parquet"
    write_parquet(path, strings())
    refused(path, match="text instead of numbers in column 'colour'")
    listed = {"colour": ["red", "green"]}
    refused(path, categorical=listed, block_rows=2, match=r"block 1: row 2 \(counting .*'blue' is not a category")
    write_parquet(path, {"id": [f"name {number}" for number in range(2000)], "y": np.zeros(2000)})
    refused(path, categorical="one-hot", match="too many for categories")


@pytest.mark.parametrize("block_rows", SIZES)
def test_several_files_and_folders(tmp_path, block_rows):
    folder = tmp_path / "tables"
    folder.mkdir()
    whole = strings()
    for number, rows in enumerate((slice(0, 4), slice(4, 20), slice(20, 23))):
        write_parquet(folder / f"part-{number}.parquet", {name: values[rows] for name, values in whole.items()})
    (folder / "_SUCCESS").write_text("")
    write_parquet(tmp_path / "whole.parquet", whole)
    expected = read_samples(tmp_path / "whole.parquet", categorical="one-hot")
    for given in (folder, str(folder), sorted(folder.glob("*.parquet"))):
        assert_rows(blocks.open(given, categorical="one-hot", block_rows=block_rows), expected.X, expected.y)


def test_files_that_do_not_agree(tmp_path):
    first, second = tmp_path / "a.parquet", tmp_path / "b.parquet"
    write_parquet(first, {"x": [1.0], "z": [2.0], "y": [0]})
    write_parquet(second, {"x": [1.0], "y": [0]})
    refused([first, second], match=r"b.parquet: its columns are not those of .*a.parquet")
    write_parquet(second, {"x": ["text"], "z": [2.0], "y": [0]})
    refused([first, second], match=r"b.parquet: column 'x' is of type string")
    refused(tmp_path / "absent", match="No such file")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", match="empty: the folder has neither")


def test_missing_values_name_the_row(tmp_path):
    path = tmp_path / "table.parquet"
    values = pa.array([1.0] * 17 + [None] + [2.0] * 5)
    write_parquet(path, {"x": values, "y": Y})
    refused(path, block_rows=5, match=r"table.parquet, block 3: row 17 .* column 'x' is missing")
    write_parquet(path, {"x": np.ones(23), "y": pa.array(["a"] * 20 + [None] * 3)})
    refused(path, block_rows=5, match=r"block 4: row 20 .* column 'y' is missing")
    write_parquet(path, {"x": np.r_[np.ones(22), np.nan], "y": Y})
    refused([path, path], block_rows=5, match=r"block 4: row 22 .*nan in column 'x' is not finite")
    write_parquet(path, {"x": pa.array(["a"] * 20 + [None] * 3), "y": Y})
    refused(path, categorical="one-hot", match=r"row 20 .* column 'x' is missing")
    write_parquet(path, {"x": [2**53 + 1], "y": [0]})
    refused(path, match="float64 cannot represent")


@pytest.mark.parametrize("write", WRITERS)
def test_truncated_files(tmp_path, write):
    path = path_for(tmp_path, write)
    write(path, {**columns(), "y": Y})
    whole = path.read_bytes()
    for size in (0, 3, 8, len(whole) // 3, len(whole) - 9):
        path.write_bytes(whole[:size])
        if write is write_stream and size == len(whole) - 9:
            continue  # a stream without its end marker is complete
        refused(path, match="table.(parquet|arrow)")


def test_damaged_pages(tmp_path):
    path = tmp_path / "table.parquet"
    write_parquet(path, {"x": np.random.default_rng(0).normal(size=5000), "y": np.zeros(5000)}, 1000)
    whole = bytearray(path.read_bytes())
    whole[100:20000] = bytes(19900)
    path.write_bytes(whole)
    refused(path, match="table.parquet")


def test_files_that_change_between_passes(tmp_path):
    path = tmp_path / "table.parquet"
    write_parquet(path, {**columns(), "y": Y})
    opened = blocks.open(path)
    list(opened)
    write_parquet(path, {**columns(X[:7]), "y": Y[:7]})
    with pytest.raises(ValueError, match="table.parquet: the file changed"):
        list(opened)


def test_empty_tables(tmp_path):
    path = tmp_path / "table.parquet"
    write_parquet(path, {"x": np.zeros(0), "y": np.zeros(0)})
    refused(path, match="table is empty: 0 rows")
    write_parquet(path, {"y": np.zeros(3)})
    refused(path, match="no feature column is left")


def test_other_formats_are_refused(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n")
    refused(path, match="csv are not read in blocks")
    refused(path, format="csv", match="format must be one of")
    (tmp_path / "X.npy.gz").write_bytes(b"\x1f\x8b")
    refused(tmp_path / "X.npy.gz", match="unpack it")


def test_without_pyarrow(tmp_path, monkeypatch):
    path = tmp_path / "table.parquet"
    write_parquet(path, {**columns(), "y": Y})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'maxmargin\[parquet\]'"):
        blocks.open(path)
