"""What is found in the columns of a table, compared with pandas, and what becomes of them."""

import io
import itertools

import numpy as np
import pandas as pd
import pytest

from maxmargin.datasets import ColumnTable, DataFileError, read_columns
from maxmargin.preparation import (
    DateParts,
    TablePlan,
    column_transformer,
    plan_columns,
    read_plan,
    write_plan,
)
from maxmargin.preparation.column_values import find_date_formats, to_days, to_number
from maxmargin.preparation.transformers import feature_names


def read(content, /, **options):
    stream = io.BytesIO(content if isinstance(content, bytes) else content.encode())
    return read_columns(stream, **{"format": "csv", **options})


def found(name, cells, **options):
    """Return the plan of a column of a table with labels."""
    lines = [f"{name};label", *(f'"{cell}";{number % 2}' for number, cell in enumerate(cells))]
    return plan_columns(read("\n".join(lines) + "\n", header=True), **options).columns[0]


class TestNumbers:
    @pytest.mark.parametrize(
        ("cell", "decimal", "number"),
        [
            ("1,5", ",", 1.5), ("1.234,5", ",", 1234.5), ("1.234.567", ",", 1234567.0), ("-3", ",", -3.0),
            ("2,5e3", ",", 2500.0), ("1,234.5", ".", 1234.5), ("1'234", ".", 1234.0), ("12 %", ".", 12.0),
            ("€ 3.50", ".", 3.5), (",5", ",", 0.5), ("1,5", ".", None), ("1.5", ",", None), ("x", ".", None),
            (".", ".", None), ("1e999", ".", None), ("1_000", ".", None), ("nan", ".", None), ("1,23,4", ".", None),
        ],
    )  # fmt: skip
    def test_cells(self, cell, decimal, number):
        assert to_number(cell, decimal) == number

    def test_decimal_comma_is_found_and_agrees_with_pandas(self):
        text = "a;b;label\n1.234,5;1;x\n;2;y\n3,25;3;x\n"
        table = read(text)
        plan = plan_columns(table)
        expected = pd.read_csv(io.StringIO(text), sep=";", decimal=",", thousands=".")
        np.testing.assert_array_equal(plan.values(table), expected[["a", "b"]].to_numpy(float))

    def test_words_among_numbers_count_as_missing_and_are_named(self):
        plan = found("minutes", [*range(5, 50), "unlimited"])
        assert (plan.type, plan.missing, plan.text_is_missing) == ("number", 1, True)
        assert "1 words that count as missing: unlimited" in plan.reason

    def test_codes_with_leading_zeros_are_categories(self):
        plan = found("zip", ["01067", "10115"] * 15)
        assert plan.type == "category"

    def test_an_integer_that_float64_cannot_hold_is_no_number_of_an_arrow_file(self, tmp_path):
        pd.DataFrame({"key": [2**60 + 1, 2**60 + 2], "x": [1.0, 2.0], "y": ["a", "b"]}).to_parquet(
            tmp_path / "t.parquet"
        )
        table = read_columns(tmp_path / "t.parquet")
        assert list(table.columns["key"]) == [str(2**60 + 1), str(2**60 + 2)]


class TestDates:
    @pytest.mark.parametrize(
        "format",
        ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d %b %Y", "%B %d, %Y", "%d.%m.%Y %H:%M", "%Y-%m-%dT%H:%M"],
    )  # fmt: skip
    def test_formats_agree_with_pandas(self, format):
        dates = pd.date_range("2019-11-17 08:30", periods=60, freq="31D")
        cells = [date.strftime(format) for date in dates]
        formats = find_date_formats(cells)
        expected = pd.to_datetime(pd.Series(cells), format=format)
        days = (expected - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
        assert [to_days(cell, formats) for cell in cells] == pytest.approx(list(days))

    def test_two_formats_in_a_column(self):
        plan = found("when", ["2024-01-31", "28.02.2023"] * 10)
        assert (plan.type, set(plan.formats)) == ("date", {"ISO", "%d.%m.%Y"})

    def test_day_and_month_that_could_be_the_other_way_round_are_mentioned(self):
        assert "could be the other way round" in found("when", ["01/02/2024", "03/04/2023"] * 10).reason
        assert "other way round" not in found("when", ["01/02/2024", "03/24/2023"] * 10).reason

    def test_time_zones_are_those_of_utc(self):
        assert to_days("1970-01-02T01:00:00+01:00", ["ISO"]) == 1.0

    def test_words_and_numbers_are_no_dates(self):
        assert find_date_formats(["a-1", "b-2", "c 3"]) == ()
        assert find_date_formats(["1.5", "2.5"]) == ()

    def test_parts_agree_with_pandas(self):
        dates = pd.to_datetime(["1969-12-31 23:59", "1970-01-01 00:00", "2000-02-29 12:00", "2024-12-30 06:00"])
        days = ((dates - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)).to_numpy()[:, None]
        parts = DateParts(parts=("year", "month", "day", "weekday", "hour")).fit_transform(days)
        expected = np.column_stack([dates.year, dates.month, dates.day, dates.day_of_week, dates.hour])
        np.testing.assert_array_equal(parts, expected)

    def test_cyclic_parts_have_a_distance_of_one_month_between_december_and_january(self):
        days = np.array([["2023-12-15"], ["2024-01-15"], ["2024-02-15"]], dtype="M8[D]").astype(float)
        points = DateParts(parts=("month",), cyclic=True).fit_transform(days)
        assert np.linalg.norm(points[0] - points[1]) == pytest.approx(np.linalg.norm(points[1] - points[2]))

    def test_missing_dates_stay_missing(self):
        assert np.isnan(DateParts().fit_transform([[np.nan]])).all()

    def test_errors(self):
        with pytest.raises(ValueError, match="parts must be some of days"):
            DateParts(parts=("century",)).fit([[1.0]])
        with pytest.raises(ValueError, match="1 columns|2 columns"):
            DateParts().fit([[1.0]]).transform([[1.0, 2.0]])


class TestLeftOut:
    @pytest.mark.parametrize(
        ("cells", "reason"),
        [
            (["7"] * 30, "constant: 7"),
            (["x"] * 30, "constant: 'x'"),
            ([""] * 30, "no values"),
            ([str(number) for number in range(30)], "identifier: a different integer in every row"),
            ([f"A-{number}" for number in range(30)], "identifier: different text in every row"),
            ([f"text {number // 2}" for number in range(240)], "text: 120 different values in 240 rows"),
        ],
    )
    def test_columns_without_information(self, cells, reason):
        lines = ["other;column;label", *(f"{n % 3};{cell};{n % 2}" for n, cell in enumerate(cells))]
        plan = plan_columns(read("\n".join(lines) + "\n")).columns[1]
        assert plan.type == "ignored"
        assert plan.reason.startswith(reason)

    def test_shuffled_integers_are_an_identifier_by_their_name_alone(self):
        values = np.random.default_rng(0).permutation(1000)[:50] * 3
        assert found("customer_id", values, given={"customer_id": {}}).type in ("ignored", "number")
        lines = ["customer_id,size,label", *(f"{v},{v % 4},{v % 2}" for v in values)]
        assert [c.type for c in plan_columns(read("\n".join(lines) + "\n")).columns] == ["ignored", "number"]
        lines[0] = "weight,size,label"
        assert [c.type for c in plan_columns(read("\n".join(lines) + "\n")).columns] == ["number", "number"]

    def test_a_column_of_different_integers_is_kept_if_there_is_no_other(self):
        assert found("x", range(30)).type == "number"

    def test_nothing_to_learn_from_is_an_error(self):
        with pytest.raises(DataFileError, match="no column is left to learn from: a: constant: 1"):
            plan_columns(read("a,label\n1,x\n1,y\n"))


class TestPlan:
    TEXT = "age,town,since,label\n41,Ulm,2024-01-01,a\n?,Bonn,,b\n17,Ulm,2023-05-05,a\n30,Bonn,2022-01-01,b\n"

    def test_file_and_json_give_the_plan_again(self, tmp_path):
        table = read(self.TEXT)
        plan = plan_columns(table, scaling="range")
        assert TablePlan.from_json(plan.to_json()) == plan
        write_plan(plan, tmp_path / "plan.toml")
        given = read_plan(tmp_path / "plan.toml")
        again = plan_columns(table, label=given.label, given=given.columns, scaling=given.scaling)
        assert [(c.name, c.type, c.formats, c.parts) for c in again.columns] == [
            (c.name, c.type, c.formats, c.parts) for c in plan.columns
        ]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("scaling = 3\n", "scaling must be text"),
            ("nonsense\n", "not a TOML file"),
            ("colums = 3\n", "'colums' is unknown"),
            ("[columns.age]\ntype = 'numbers'\n", "type must be number, date, category, ignored, not 'numbers'"),
            ("[columns.age]\nkind = 'number'\n", "kind is unknown; the fields are type, cyclic"),
            ("[columns.age]\nparts = ['century']\n", "parts must be days"),
            ("[columns.age]\nmin_count = 0\n", "min_count must be an integer above 0"),
            ("[columns]\nage = 3\n", "column 'age': 3 is unknown"),
        ],
    )
    def test_files_that_are_wrong(self, text, message, tmp_path):
        (tmp_path / "plan.toml").write_text(text)
        with pytest.raises(DataFileError, match=message):
            read_plan(tmp_path / "plan.toml")

    def test_a_column_that_the_table_has_not_is_an_error(self):
        with pytest.raises(DataFileError, match="there is no column named 'size'"):
            plan_columns(read(self.TEXT), given={"size": {"type": "number"}})

    def test_given_types(self):
        plan = plan_columns(read(self.TEXT), given={"age": {"type": "category"}, "since": {"type": "ignored"}})
        assert [column.type for column in plan.columns] == ["category", "category", "ignored"]

    @pytest.mark.parametrize("order", list(itertools.permutations(["age", "town", "since", "more"]))[::5])
    def test_order_and_further_columns_do_not_matter(self, order):
        table = read(self.TEXT)
        plan = plan_columns(table)
        frame = pd.read_csv(io.StringIO(self.TEXT), dtype=str, keep_default_na=False).assign(more="x")
        other = read(frame[list(order)].to_csv(index=False))
        np.testing.assert_array_equal(plan.values(other).astype(str), plan.values(table).astype(str))

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("age,town\n1,Ulm\n", "there is no column 'since', which the model needs; the columns are age, town"),
            ("town\nUlm\n", "there are no columns 'age', 'since'"),
            ("age,town,since\nold,Ulm,2024-01-01\n", "line 2: column 'age' has 'old', but the model expects numbers"),
            ("age,town,since\n1,Ulm,soon\n", "line 2: column 'since' has 'soon', but the model expects dates such as"),
        ],
    )  # fmt: skip
    def test_columns_that_are_missing_or_of_another_type_are_one_error(self, text, message):
        with pytest.raises(DataFileError, match=message):
            plan_columns(read(self.TEXT)).values(read(text, text=["since"]))

    def test_a_table_without_header_may_lack_its_label(self):
        plan = plan_columns(read("1,2,0\n3,4,1\n5,7,0\n"))
        np.testing.assert_array_equal(plan.values(read("1,2\n3,4\n")), [[1, 2], [3, 4]])
        with pytest.raises(DataFileError, match="1 columns, but the training data have 3"):
            plan.values(read("1\n2\n"))


class TestLabels:
    @pytest.mark.parametrize(
        ("cells", "expected"),
        [
            (["1,5", "", "2,5"], [1.5, np.nan, 2.5]),
            (["yes", "no", ""], ["yes", "no", ""]),
            ([*(f"{n}.25" for n in range(60)), "unknown"], [*(n + 0.25 for n in range(60)), np.nan]),
            (["1", "2", "x"] * 10, ["1", "2", "x"] * 10),
            ([*"0123" * 20, "x"], [*"0123" * 20, "x"]),
        ],
    )
    def test_labels_are_numbers_or_text(self, cells, expected):
        lines = ["a;label", *(f"{n % 3};{cell}" for n, cell in enumerate(cells))]
        table = read("\n".join(lines) + "\n")
        np.testing.assert_array_equal(
            plan_columns(table).labels(table),
            np.array(expected, dtype=object).astype(float if isinstance(expected[0], float) else object),
        )

    def test_dates_and_lists_are_no_labels(self, tmp_path):
        frame = pd.DataFrame({"a": [1, 2], "b": pd.to_datetime(["2024-01-01", "2024-01-02"]), "c": [[1], [2]]})
        frame.to_parquet(tmp_path / "t.parquet")
        table = read_columns(tmp_path / "t.parquet")
        with pytest.raises(DataFileError, match="the label column 'c' has type list"):
            plan_columns(table)
        with pytest.raises(DataFileError, match="the labels in column 'b' are dates"):
            plan_columns(table, label="b").labels(table)


class TestTransformer:
    def test_result_agrees_with_pandas(self):
        text = "age,town,label\n41,Ulm,a\n,Bonn,b\n17,Ulm,a\n30,Bonn,b\n"
        table = read(text)
        plan = plan_columns(table, scaling="none")
        transformer = column_transformer(plan)
        X = transformer.fit_transform(plan.values(table))
        frame = pd.read_csv(io.StringIO(text))
        expected = pd.concat(
            [frame.age.fillna(frame.age.median()), frame.age.isna(), pd.get_dummies(frame.town)], axis=1
        ).to_numpy(float)
        np.testing.assert_array_equal(X, expected)
        assert feature_names(transformer, plan) == ("age", "age is missing", "town_Bonn", "town_Ulm")

    def test_rare_and_unknown_categories_share_a_column(self):
        cells = ["Ulm"] * 40 + ["Bonn"] * 50 + [f"town {n}" for n in range(10)]
        lines = ["town,label", *(f"{cell},{n % 2}" for n, cell in enumerate(cells))]
        table = read("\n".join(lines) + "\n")
        plan = plan_columns(table)
        transformer = column_transformer(plan)
        X = transformer.fit_transform(plan.values(table))
        assert X.shape[1] == 3
        new = transformer.transform(plan.values(read("town\nHof\ntown 3\n", header=True)))
        np.testing.assert_array_equal(new[0], new[1])

    def test_missing_cells_where_the_training_data_had_none(self):
        table = read("a,b,label\n1,2,x\n3,5,y\n4,9,x\n")
        plan = plan_columns(table)
        transformer = column_transformer(plan).fit(plan.values(table))
        new = ColumnTable("new", {"a": np.array([np.nan]), "b": np.array([1.0])})
        assert np.isfinite(transformer.transform(plan.values(new))).all()
