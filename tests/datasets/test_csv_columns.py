"""Columns of CSV files as they come: with pyarrow and without, compared with pandas."""

import io
import sys

import numpy as np
import pandas as pd
import pytest

from maxmargin.datasets import DataFileError, read_columns
from maxmargin.datasets.csv_columns import looks_like_header


def read(content, /, **options):
    stream = io.BytesIO(content if isinstance(content, bytes) else content.encode())
    return read_columns(stream, **{"format": "csv", **options})


def large(rows=30_000):
    random = np.random.default_rng(0)
    numbers = pd.Series(random.normal(size=rows)).where(random.random(rows) > 0.1)
    words = pd.Series(random.choice(["Ulm", 'with "quotes"', "with, comma", ""], rows))
    return pd.DataFrame({"number": numbers, "word": words, "count": random.integers(0, 9, rows)})


class TestValues:
    def test_large_files_agree_with_pandas_and_without_pyarrow(self, monkeypatch):
        frame = large()
        text = frame.to_csv(index=False, na_rep="NA").encode()
        assert len(text) > 1 << 19
        found = read(text)
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
        slowly = read(text)
        for name in frame:
            np.testing.assert_array_equal(found.columns[name], slowly.columns[name])
            np.testing.assert_array_equal(found.columns[name], frame[name].to_numpy())
        np.testing.assert_array_equal(found.lines, slowly.lines)

    def test_text_far_below_numbers_makes_a_column_of_text_with_its_zeros(self):
        rows = [f"{number / 10},{number}" for number in range(200_000)]
        rows[150_000] = "x,7"
        found = read("a,b\n" + "\n".join(rows) + "\n").columns
        assert found["a"][0] == "0.0"
        assert found["a"][150_000] == "x"
        assert found["b"].dtype == np.float64

    def test_byte_order_mark_latin_1_and_quoted_delimiters(self):
        found = read('name;town\n"Weiß; Eva";Köln\n'.encode("latin-1"), header=True)
        assert (found.columns["name"][0], found.columns["town"][0], found.encoding) == ("Weiß; Eva", "Köln", "cp1252")
        found = read("\ufeffname,n\nA,1\n".encode())
        assert list(found.columns) == ["name", "n"]
        assert found.encoding == "utf-8"

    def test_missing_cells_in_several_spellings(self):
        found = read("a,b\n1,x\nNA,N/A\n?,null\n,\n")
        np.testing.assert_array_equal(found.columns["a"], [1, np.nan, np.nan, np.nan])
        assert list(found.columns["b"]) == ["x", "", "", ""]

    def test_columns_that_are_asked_for_as_text(self):
        assert list(read("zip,n\n1067,1\n", text=["zip"]).columns["zip"]) == ["1067"]

    def test_types_of_parquet_files(self, tmp_path):
        frame = pd.DataFrame(
            {
                "when": pd.to_datetime(["2024-01-01", None]), "flag": pd.array([True, None], dtype="boolean"),
                "count": pd.array([1, None], dtype="Int64"), "kind": pd.Categorical(["a", None]), "list": [[1], [2]],
            }
        )  # fmt: skip
        frame.to_parquet(tmp_path / "t.parquet")
        found = read_columns(tmp_path / "t.parquet")
        assert found.columns["when"][0] == np.datetime64("2024-01-01")
        assert np.isnat(found.columns["when"][1])
        np.testing.assert_array_equal(found.columns["flag"], [1, np.nan])
        np.testing.assert_array_equal(found.columns["count"], [1, np.nan])
        assert list(found.columns["kind"]) == ["a", ""]
        assert list(found.unusable) == ["list"]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["a", "b"], ["1", "2"]], True),
        ([["a", "b"], ["c", "d"]], True),
        ([["a", "b"], ["a", "d"]], False),
        ([["1", "b"], ["2", "d"]], False),
        ([["2024-01-01", "b"], ["2024-01-02", "d"]], False),
        ([["a", "a"], ["1", "2"]], False),
        ([["", "b"], ["0", "2"]], True),
        ([["1,5", "b"], ["2,5", "d"]], False),
    ],
)
def test_header(rows, expected):
    assert looks_like_header(rows) is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "the file is empty"),
        (b"a,b\n", "there is a header, but there are no rows below it"),
        (b"a,b\n1,2\n1\n", "line 3: 1 values, but the first line has 2"),
        (b"a,a,b\nx,y,z\n", "two columns are named 'a'"),
        (b'a,b\n"x,1\n', "invalid CSV quoting"),
        (b"a,b\n\0,1\n", "zero byte"),
        (b"1 1:2\n", "the format libsvm has no named columns"),
    ],
)
def test_errors(text, message):
    options = {"header": True} if b"a,a" in text else {}
    with pytest.raises(DataFileError, match=message):
        read(text, format=None if b":" in text else "csv", **options)
