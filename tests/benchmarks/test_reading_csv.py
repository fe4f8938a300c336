"""The comparison of readers of CSV files: all return equal arrays, whether with pyarrow, pandas, polars or neither."""

import pytest
from benchmarks.reading_csv import READERS, compare, write_mixed, write_numbers


@pytest.mark.parametrize("write", [write_numbers, write_mixed])
def test_readers_agree(write, tmp_path, capsys):
    write(tmp_path / "data.csv", 300)
    compare(tmp_path / "data.csv", runs=1)
    table = capsys.readouterr().out
    assert "data.csv: 300 lines" in table
    assert all(f"| {name} |" in table for name in READERS)
