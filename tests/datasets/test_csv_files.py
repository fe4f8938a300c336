"""CSV files: column roles, headers, categorical columns, and errors with line numbers."""

import io
import subprocess
import sys
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.datasets import DataFileError, csv_blocks, csv_files, csv_lines, read_samples
from maxmargin.datasets.categorical_columns import MAX_CATEGORIES
from maxmargin.datasets.column_roles import ColumnSelection
from maxmargin.datasets.csv_blocks import parse_block
from maxmargin.datasets.csv_files import BLOCK_LINES, find_csv_problems, read_csv


def read(text, **options):
    data = text if isinstance(text, bytes) else text.encode()
    return read_samples(io.BytesIO(data), format="csv", **options)


PEOPLE = "height,sex,weight,class\n1.8,m,80,b\n1.6,f,60,a\n1.7,f,65,b\n"


class TestRoles:
    @pytest.mark.parametrize(
        ("label", "expected", "features"),
        [
            ("auto", [3, 6], ("a", "b")),
            ("last", [3, 6], ("a", "b")),
            ("first", [1, 4], ("b", "c")),
            ("b", [2, 5], ("a", "c")),
            (1, [2, 5], ("a", "c")),
            (-2, [2, 5], ("a", "c")),
            (None, None, ("a", "b", "c")),
        ],
    )
    def test_label(self, label, expected, features):
        found = read("a,b,c\n1,2,3\n4,5,6\n", label=label)
        assert (found.y if expected is None else found.y.tolist()) == expected
        assert found.feature_names == features

    @pytest.mark.parametrize(
        ("header", "label"),
        [("label,b,c", "label"), ("a,Target,c", "Target"), ("class,label,x", "label"), ("x,y,z", "z")],
    )
    def test_label_by_usual_names(self, header, label):
        assert read(f"{header}\n1,2,3\n4,5,6\n").label_name == label

    def test_as_many_columns_as_features_have_no_label(self):
        assert read("a,b,c\n1,2,3\n", n_features=3).y is None
        assert read("a,b,c\n1,2,3\n", n_features=2).y.tolist() == [3.0]
        with pytest.raises(DataFileError, match="2 features, but 5 are required"):
            read("a,b,c\n1,2,3\n", n_features=5)

    def test_ignored_and_query(self):
        found = read("id,q,a,b,y\nx,1,2,3,4\nz,1,5,6,7\n", ignore=["id"], query="q")
        assert found.feature_names == ("a", "b")
        assert found.query.tolist() == [1.0, 1.0]
        assert read("id,q,a,b,y\nx,1,2,3,4\nz,1,5,6,7\n", ignore=["id", 1], n_features=3).y is None

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"label": "d"}, "no column named 'd'; the columns are a, b, c"),
            ({"label": 3}, "no column at position 3; there are 3 columns"),
            ({"ignore": ["c"], "label": "c"}, "choose one role"),
            ({"ignore": ["a", "b"]}, "no feature column is left"),
        ],
    )
    def test_invalid_selection(self, options, message):
        with pytest.raises(DataFileError, match=message):
            read("a,b,c\n1,2,3\n", **options)

    def test_two_columns_of_the_same_name(self):
        assert read("a,a,b\n1,2,3\n").X.tolist() == [[1.0, 2.0]]
        with pytest.raises(DataFileError, match="two columns are named 'a'"):
            read("a,a,b\n1,2,3\n", label="b")


class TestHeaders:
    @pytest.mark.parametrize(
        ("text", "names", "samples"),
        [
            ("1,2\n3,4\n", None, 2),
            ("a,b\n3,4\n", ("a",), 1),
            ("1,label\n3,4\n", ("1",), 1),
            ("1,x\n3,y\n", None, 2),
            ("\ufeffa,b\n3,4\n", ("a",), 1),
            ("\n\na,b\n\n3,4\n\n", ("a",), 1),
            ("a,b\r\n3,4\r\n5,6", ("a",), 2),
            ('"a, or b",c\n"3",4\n', ("a, or b",), 1),
            ("a;b\n1;2\n", ("a",), 1),
            ("a\tb\n1\t2\n", ("a",), 1),
        ],
    )
    def test_detected(self, text, names, samples):
        found = read(text)
        assert (found.feature_names, len(found)) == (names, samples)

    def test_given(self):
        assert len(read("1,2\n3,4\n", header=True)) == 1
        assert read("1,2\n3,4\n", header=True).feature_names == ("1",)
        assert len(read("a,b\nc,d\n", header=False, categorical="one-hot")) == 2
        with pytest.raises(ValueError, match="header must be"):
            read("1,2\n", header="yes")

    def test_header_of_text_columns_is_ambiguous(self):
        with pytest.raises(DataFileError, match="unclear whether the first is a header"):
            read("a,b\nc,d\n")


class TestCategoricalColumns:
    def test_error_with_advice(self):
        with pytest.raises(DataFileError, match=r"column 'sex' \(f, m\); .*one-hot.*--ignore"):
            read(PEOPLE)

    def test_one_hot_encoding(self):
        found = read(PEOPLE, categorical="one-hot")
        assert found.feature_names == ("height", "sex=f", "sex=m", "weight")
        assert found.X.tolist() == [[1.8, 0, 1, 80], [1.6, 1, 0, 60], [1.7, 1, 0, 65]]
        assert found.categories == {"sex": ("f", "m")}

    def test_the_same_columns_for_other_data(self):
        categories = read(PEOPLE, categorical="one-hot").categories
        found = read("height,sex,weight\n1.5,m,50\n", categorical=categories, n_features=4)
        assert found.X.tolist() == [[1.5, 0, 1, 50]]
        assert found.y is None
        with pytest.raises(
            DataFileError, match="line 3: 'x' is not a category of column 'sex'; the categories are f, m"
        ):
            read("height,sex,weight,class\n1.5,m,50,a\n1.5,x,50,a\n", categorical=categories)
        with pytest.raises(DataFileError, match="no column named 'sex'"):
            read("height,weight,class\n1.5,50,a\n", categorical=categories)
        with pytest.raises(DataFileError, match="column 'weight'"):
            read("height,sex,weight,class\n1.5,m,much,a\n", categorical=categories)

    def test_numbers_as_categories(self):
        assert read("a,b\n1,2\n3,4\n", categorical={"a": ("1", "3")}).X.tolist() == [[1.0, 0.0], [0.0, 1.0]]

    def test_too_many_categories(self):
        rows = "".join(f"category {row},1\n" for row in range(MAX_CATEGORIES + 1))
        with pytest.raises(DataFileError, match="too many for categories"):
            read("a,b\n" + rows, categorical="one-hot")

    def test_labels(self):
        assert read("1,a\n2, a b \n").y.tolist() == ["a", "a b"]
        assert read("1,1e1\n2,-3\n").y.tolist() == [10.0, -3.0]
        assert read("1,3\n2,3+\n").y.tolist() == ["3", "3+"]
        assert read("1,NA\n2,US\n").y.tolist() == ["NA", "US"]
        assert read("1,é\n2,β\n").y.tolist() == ["é", "β"]


ERRORS = [
    ("a,b\n", None, "no samples below it"),
    ("a,b,c\n1,2,3\n1,,3\n", 3, "the value of column 'b' is missing"),
    ("a,b,c\n1,2,3\n1,NaN,3\n", 3, "the value of column 'b' is missing"),
    ("a,b,c\n1,?,3\n", 2, "the value of column 'b' is missing"),
    ("a,b,c\n1,2,3\n1,inf,3\n", 3, "'inf' in column 'b' is not finite"),
    ("a,b,c\n1,2,3\n1,1e999,3\n", 3, "'1e999' in column 'b' is not finite"),
    ("1,2,3\n1,x,3\n", 2, "'x' in column '2' is not a number"),
    ("1,2,3\n1,1_0,3\n", 2, "'1_0' in column '2' is not a number"),
    ("1,2,3\n1,2,3\n1,2\n", 3, "2 values, but the first line has 3"),
    ("1,2,3\n1,2,3,4\n", 2, "4 values, but the first line has 3"),
    ('1,2,3\n\n1,"2,3\n', 3, "invalid CSV quoting"),
    ('1,2,3\n1,"2"2,3\n', 2, "invalid CSV quoting"),
    ("1,2,3\n1,2,\n", 2, "the value of column '3' is missing"),
    ("1,2,3\n1,2,NA\n", 2, "'NA' in column '3' is not a finite number"),
    ("1,2,3\n1,2,inf\n", 2, "'inf' in column '3' is not a finite number"),
    (b"1,2,a\n1,2,\xff\n", 2, "not valid UTF-8"),
    (b"1,2,a\n1,\xff,b\n", 2, "is not a number"),
    ("a,b\n1,2\n".encode("utf-16"), 1, "save it as UTF-8"),
    ('a,b,c\n"1\n",2,3\n1,x,3\n', 4, "'x' in column 'b'"),
    ("1\n2\n", None, "no feature column is left"),
]


@pytest.mark.parametrize(("text", "line", "message"), ERRORS)
def test_errors_have_a_line(text, line, message):
    with pytest.raises(DataFileError, match=message) as caught:
        read(text)
    assert caught.value.line == line
    assert problems(text)[0] == (line, caught.value.message)


def problems(text, limit=100, **selection):
    data = text if isinstance(text, bytes) else text.encode()
    found = find_csv_problems(io.BytesIO(data), "data", ColumnSelection(**selection), limit=limit)
    return [(problem.line, problem.message) for problem in found]


class TestProblems:
    def test_every_line(self):
        rows = [f"{row},{row}" for row in range(3 * BLOCK_LINES)]
        for place, row in ((5, "x,1"), (BLOCK_LINES - 2, ",1"), (BLOCK_LINES + 7, "1"), (2 * BLOCK_LINES, "1,inf")):
            rows[place] = row
        found = problems("a,b\n" + "\n".join(rows) + '\n1,"\n')
        assert [line for line, _ in found] == [
            7,
            BLOCK_LINES,
            BLOCK_LINES + 9,
            3 * BLOCK_LINES + 2,
            2 * BLOCK_LINES + 2,
        ]
        assert len(problems("a,b\n" + "\n".join(rows), limit=2)) == 2

    def test_none(self):
        assert problems("a,b\n1,2\n3,4\n") == []
        assert problems(PEOPLE, categorical="one-hot") == []

    def test_categorical_columns_and_lines(self):
        found = problems(PEOPLE + "1,x\n,f,3,a\n")
        assert [line for line, _ in found] == [None, 5, 6]
        assert "column 'sex'" in found[0][1]

    def test_no_valid_line(self):
        assert [line for line, _ in problems("a,b\n1\n2\n")] == [2, 3]


#: Cells that are not numbers; the first seven are not valid labels either.
UNUSUAL = ["", " ", "1,2", '"1', "\xff", "nan", "1e999", "x", "1_0", "1#2", "1 2", "1 2:3", "0x10"]


def read_both_ways(text, **options):
    """Read with pyarrow from the second line on, and with the csv module only; return both results or errors."""
    found = []
    for parser in (parse_block, lambda *arguments: None):
        with (
            patch.object(csv_files, "parse_block", parser),
            patch.object(csv_files, "FIRST_LINES", 2),
            patch.object(csv_blocks, "MIN_BYTES", 0),
        ):
            try:
                found.append(read(text, **options))
            except DataFileError as error:
                found.append(str(error))
    return found


def assert_equal(found, expected):
    """Assert that two results of `read_both_ways` are equal to the bit."""
    assert type(found) is type(expected)
    if isinstance(found, str):
        assert found == expected
        return
    assert found.X.tobytes() == expected.X.tobytes()
    assert found.y.dtype == expected.y.dtype
    assert found.y.tobytes() == expected.y.tobytes()
    assert found.categories == expected.categories


class TestBlocks:
    """pyarrow and the csv module agree on every block, and doubtful blocks are left to the csv module."""

    @pytest.fixture(autouse=True)
    def small_blocks(self, monkeypatch):
        monkeypatch.setattr(csv_lines, "LINE_BYTES", 1000)
        monkeypatch.setattr(csv_lines, "BLOCK_BYTES", 5000)

    @staticmethod
    def lines(change=lambda cells, row: cells, columns=5, count=500):
        values = np.random.default_rng(0).normal(size=(count, columns)).tolist()
        return [change([*map(repr, row), "ab"[at % 2]], at) for at, row in enumerate(values)]

    @pytest.mark.parametrize(
        ("change", "options"),
        [
            (lambda row, at: row, {}),
            (lambda row, at: row[-1:] + row[:-1], {"label": "first"}),
            (lambda row, at: [row[0], row[-1], *row[1:-1]], {"label": 1}),
            (lambda row, at: [*row[:-1], f'"{row[-1]}"'], {}),
            (lambda row, at: [*row[:-1], f'"{row[-1]}, or"'], {}),
            (lambda row, at: [*row[:-1], f'"{row[-1]} ""or"""'], {}),
            (lambda row, at: [f'"{row[0]}"', *row[1:]], {}),
            (lambda row, at: [f" {row[0]} ", *row[1:]], {}),
            (lambda row, at: [f"+{row[0].lstrip('-')}", *row[1:]], {}),
            (lambda row, at: [*row[:-1], f"  {row[-1]} "], {}),
            (lambda row, at: [*row[:-1], row[-1] + "#"], {}),
            (lambda row, at: [*row[:-1], row[-1] + 'x"x'], {}),
            (lambda row, at: [*row[:-1], row[-1] + "β"], {}),
            (lambda row, at: [*row[:-1], str(at % 3)], {}),
            (lambda row, at: ["id:" + row[-1], *row], {"ignore": [0]}),
            (lambda row, at: ["\udcff" if at == 300 else "id", *row], {"ignore": [0]}),
            (lambda row, at: [row[-1] + "x", *row], {"categorical": "one-hot"}),
            (lambda row, at: [*row[:2], row[-1], *row[2:]], {"categorical": "one-hot"}),
            (lambda row, at: ["\n", *row] if at % 100 == 99 else row, {"blank": True}),
            (lambda row, at: [*row[:-1], f'"{row[-1]}\nx"' if at > 300 else row[-1]], {}),
            (lambda row, at: [*row[:-1], "x" * 9000 if at == 300 else row[-1]], {}),
        ],
    )
    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    def test_agrees_with_the_csv_module(self, change, options, end):
        cells = self.lines(change)
        blank = {key: value for key, value in options.items() if key != "blank"}
        text = (end.join(",".join(row).replace("\n,", end) for row in cells) + end).encode(errors="surrogateescape")
        found, expected = read_both_ways(text, header=False, **blank)
        assert_equal(found, expected)
        assert len(found) == 500

    @pytest.mark.parametrize("cell", UNUSUAL)
    @pytest.mark.parametrize("place", [0, 4, 5])
    def test_errors_have_the_right_line(self, cell, place, monkeypatch):
        cells = self.lines()
        cells[321][place] = cell
        text = "\n".join(",".join(row) for row in cells).encode("latin-1") + b"\n"
        monkeypatch.setattr(csv_blocks, "MIN_BYTES", 0)
        if place == 5 and cell in UNUSUAL[7:]:
            assert read(text).y[321] == cell
            return
        with pytest.raises(DataFileError) as caught:
            read(text)
        assert caught.value.line == (500 if cell == '"1' else 322)

    @pytest.mark.parametrize(
        "cell", ["+1", " 1\t", "1.", ".5", "1e-400", "4.9e-324", "0." + 900 * "1", "-0", "1E5", "07"]
    )
    def test_numbers_in_unusual_notation(self, cell):
        rows = [f"{cell},1,{row % 2}" for row in range(100)]
        found, expected = read_both_ways("\n".join(rows))
        assert_equal(found, expected)
        assert found.X[50, 0] == float(cell)

    def test_byte_order_mark_within_the_file(self, monkeypatch):
        monkeypatch.setattr(csv_lines, "LINE_BYTES", 4)  # every line starts a block
        monkeypatch.setattr(csv_lines, "BLOCK_BYTES", 4)
        text = "1,2\n" * 100 + "\ufeff1,2\n" + "1,2\n" * 100
        found, expected = read_both_ways(text)
        assert found == expected
        assert "line 101" in found

    @pytest.mark.parametrize(
        "row",
        [
            "1,0." + "3" * 131_100 + ",1",
            "1,2," + "x" * 131_100,
            "1,2,1," + "x" * 131_100,
            "1,2,1," + '"' + "x," * 65_600 + '"',
        ],
        ids=["number", "label", "ignored", "ignored, in quotes"],
    )
    def test_cells_that_are_too_long(self, row):
        first = "1,2,1" + ",x" * (row.count(",") > 2)
        options = {"label": 2, "ignore": [3] if first.endswith("x") else []}
        found, expected = read_both_ways("\n".join([first] * 100 + [row]), header=False, **options)
        assert found == expected
        assert "field larger than field limit (131072)" in found

    @pytest.mark.parametrize("delimiter", ["§", "→", "|", " "])
    def test_delimiters(self, delimiter, monkeypatch):
        monkeypatch.setattr(csv_blocks, "MIN_BYTES", 0)
        rows = self.lines()
        text = "\n".join(delimiter.join(row) for row in rows).encode()
        found = read_csv(io.BytesIO(text), "a file", ColumnSelection(), delimiter=delimiter, header=False)
        assert_equal(found, read("\n".join(",".join(row) for row in rows), header=False))
        assert found.X.shape == (500, 5)

    @given(st.data())
    @settings(max_examples=300, deadline=None)
    def test_arbitrary_cells(self, data):
        """Cells of numbers, quotes, blanks, line ends: the same samples, or the same error."""
        cell = st.one_of(
            st.floats(allow_nan=False, allow_infinity=False).map(repr),
            st.text('1.5e-+ \t"', max_size=5),
            st.sampled_from(
                ['"a"', '"a,b"', '"a""b"', '"a\nb"', '"a"b', 'a"b"', ' "a"', '""', '"', "a\rb", "nan", "?"]
            ),
        )
        end = data.draw(st.sampled_from(["\n", "\r\n", "\r", "\n\n"]))
        rows = data.draw(st.lists(st.lists(cell, min_size=3, max_size=3), max_size=4))
        text = end.join(["1,x,2", *map(",".join, rows)])
        assert_equal(*read_both_ways(text, header=False, categorical="one-hot"))

    @pytest.mark.parametrize(
        ("change", "parsed"),
        [
            (lambda row, at: row, "all"),
            (lambda row, at: [f'"{cell}"' for cell in row], "all"),
            (lambda row, at: [*row[:-1], '"a\nb"' if at == 300 else row[-1]], "most"),
            (lambda row, at: [*row[:-1], '"a\nb"'], "none"),
        ],
    )
    def test_reads_all_blocks_but_doubtful_ones(self, change, parsed, monkeypatch):
        blocks = []
        monkeypatch.setattr(csv_blocks, "MIN_BYTES", 0)
        monkeypatch.setattr(csv_files, "BLOCK_LINES", 10)
        monkeypatch.setattr(csv_files, "parse_block", lambda *given: blocks.append(parse_block(*given)) or blocks[-1])
        assert len(read("\n".join(",".join(row) for row in self.lines(change)), header=False)) == 500
        rows = sum(len(block.numbers) for block in blocks if block is not None)
        assert {"all": rows == 400, "most": 250 < rows < 400, "none": rows == 0}[parsed]

    def test_without_pyarrow(self, monkeypatch):
        text = "\n".join(",".join(row) for row in self.lines())
        expected = read(text)
        monkeypatch.setattr(csv_blocks, "MIN_BYTES", 0)
        monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
        assert_equal(read(text), expected)

    def test_pyarrow_is_imported_for_large_files_only(self):
        code = (
            "import io, sys; from maxmargin.datasets import read_samples;"
            "read = lambda lines: read_samples(io.BytesIO(b'1.5,2.5,1\\n' * lines), format='csv');"
            "read(20_000); assert 'pyarrow' not in sys.modules;"
            "read(200_000); assert 'pyarrow' in sys.modules"
        )
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_threads(self):
        text = "".join("1.5,2.5,1\n" for _ in range(200_000)).encode()
        assert_equal(read(text, n_jobs=1), read(text))

    def test_lines_of_several_megabytes(self, monkeypatch):
        monkeypatch.setattr(csv_lines, "BLOCK_BYTES", 1 << 23)
        row = ",".join(["1.5"] * 600_000)
        found, expected = read_both_ways("\n".join([row] * 4))
        assert_equal(found, expected)
        assert found.X.shape == (4, 599_999)


def test_numbers_are_rounded_correctly():
    random = np.random.default_rng(0)
    values = random.integers(0, 2**64, 3 * BLOCK_LINES + 5, dtype=np.uint64).view(np.float64)
    values = values[np.isfinite(values)]
    text = "".join(f"{value!r},{value:.25e}\n" for value in values.tolist())
    found = read(text)
    assert np.array_equal(found.X[:, 0], values)
    assert np.array_equal(found.y, values)


@given(st.binary(max_size=60), st.sampled_from([b",", b"\n", b'"', b"1", b"\r", b";"]))
@settings(max_examples=300, deadline=None)
def test_arbitrary_bytes_give_samples_or_an_error(noise, more):
    text = b"a,b,c\n1,2,3\n" + noise.replace(b"\x00", more) + more
    try:
        found = read(text, categorical="one-hot")
    except DataFileError:
        assert problems(text, categorical="one-hot")
    else:
        assert np.isfinite(found.X).all()
        assert problems(text, categorical="one-hot") == []
