"""Three tables as they come out of a database or a spreadsheet, with everything that usually has to be cleaned first.

    python examples/tables/make_tables.py [FOLDER]

writes for each of them training data (`NAME.csv`), later data with the answers (`NAME-later.csv`), and the same without
the answers and with the columns in another order (`NAME-new.csv`):

- `subscribers`: which customers of a telephone company leave; 7 % do. Commas within quotes, a byte order mark, dates in
  two formats, numbers with words among them, an identifier, a constant column, states that come later.
- `rents`: monthly rents of flats in German towns. Semicolons, decimal commas, Latin-1, postal codes with leading zeros,
  missing cells in several spellings, remarks.
- `patients`: how urgent patients of an emergency ward are, in three degrees. Tabs, dates with times, yes and no,
  measurements that were not taken.

Everything is drawn at random: names by their frequency among adults in the United States (census of 1990), towns by
their number of inhabitants (2022), blood pressure, pulse and temperature by the means and deviations of adults. The
answers follow from formulas below with noise, so it is known what a model can find out.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

#: Surnames and first names with their frequency per 100,000 inhabitants of the United States, 1990.
SURNAMES = {
    "Smith": 1006, "Johnson": 810, "Williams": 699, "Jones": 621, "Brown": 621, "Davis": 480, "Miller": 424,
    "Wilson": 339, "Moore": 312, "Taylor": 311, "Anderson": 311, "Thomas": 311, "Jackson": 310, "White": 279,
    "Harris": 275, "Martin": 273, "Thompson": 269, "Garcia": 254, "Martinez": 234, "Robinson": 233, "O'Brien": 80,
}  # fmt: skip
FIRST_NAMES = {
    "James": 3318, "John": 3271, "Robert": 3143, "Michael": 2629, "Mary": 2629, "William": 2451, "David": 2363,
    "Richard": 1703, "Charles": 1523, "Joseph": 1404, "Thomas": 1380, "Patricia": 1073, "Linda": 1035, "Barbara": 980,
    "Elizabeth": 937, "Jennifer": 932, "Maria": 828, "Susan": 794, "Margaret": 768, "Dorothy": 727,
}  # fmt: skip

#: States by millions of inhabitants, 2020. Alaska and Wyoming come only later.
STATES = {
    "California": 39.5, "Texas": 29.1, "Florida": 21.5, "New York": 20.2, "Pennsylvania": 13.0, "Illinois": 12.8,
    "Ohio": 11.8, "Georgia": 10.7, "North Carolina": 10.4, "Michigan": 10.1,
}  # fmt: skip
LATER_STATES = STATES | {"Alaska": 3.0, "Wyoming": 3.0}

#: Towns by thousands of inhabitants (2022), postal code, and a typical rent in euros per square metre.
TOWNS = {
    "Berlin": (3755, "10115", 13.0), "Hamburg": (1892, "20095", 13.4), "München": (1512, "80331", 19.5),
    "Köln": (1084, "50667", 13.3), "Frankfurt am Main": (773, "60311", 15.6), "Düsseldorf": (629, "40213", 12.6),
    "Leipzig": (616, "04109", 8.6), "Dresden": (563, "01067", 8.8), "Nürnberg": (523, "90402", 11.4),
    "Görlitz": (57, "02826", 6.0),
}  # fmt: skip


def drawn(random: np.random.Generator, frequencies: dict[str, float], count: int) -> np.ndarray:
    """Return names in proportion to their frequencies."""
    weights = np.array(list(frequencies.values()), dtype=float)
    return random.choice(list(frequencies), count, p=weights / weights.sum())


def with_gaps(
    random: np.random.Generator, cells: Sequence[object], fraction: float, spellings: Sequence[str]
) -> list[str]:
    """Return cells of which a fraction is missing, in several spellings."""
    gaps = random.random(len(cells)) < fraction
    words = random.choice(list(spellings), len(cells))
    return [str(word) if gap else str(cell) for cell, gap, word in zip(cells, gaps, words, strict=True)]


def subscribers(random: np.random.Generator, count: int, later: bool) -> dict[str, list[str]]:
    """Return the customers of a telephone company, of whom about 7 % leave."""
    states = drawn(random, LATER_STATES if later else STATES, count)
    months = random.gamma(2.0, 14.0, count)  # with the company
    bill = random.gamma(9.0, 6.5, count)
    calls = random.poisson(1.1, count)  # to the service
    plan = random.choice(["prepaid", "monthly", "two years"], count, p=[0.25, 0.45, 0.3])
    logit = -7.2 + 1.1 * calls + 0.03 * (bill - 58) - 0.045 * (months - 28) + 1.5 * (plan == "monthly")
    logit += 2.2 * ((calls > 2) & (bill > 65))
    leaves = random.random(count) < 1 / (1 + np.exp(-1.6 * (logit + 1.9)))
    signed = [datetime(2024, 6, 30) - timedelta(days=float(30.4 * month)) for month in months]
    shown = [
        day.strftime("%Y-%m-%d" if new else "%m/%d/%Y")
        for day, new in zip(signed, random.random(count) < 0.6, strict=True)
    ]
    names = [
        f"{last}, {first}"
        for last, first in zip(drawn(random, SURNAMES, count), drawn(random, FIRST_NAMES, count), strict=True)
    ]
    minutes = [
        ("unlimited" if free else str(int(used)))
        for free, used in zip(random.random(count) < 0.06, random.gamma(3, 90, count), strict=True)
    ]
    start = 204_118 if later else 100_417
    return {
        "customer_id": [str(start + 7 * place) for place in range(count)],
        "name": names,
        "state": with_gaps(random, states, 0.02, ["", "N/A"]),
        "signed up": with_gaps(random, shown, 0.03, [""]),
        "plan": list(plan),
        "minutes used": with_gaps(random, minutes, 0.04, ["", "n/a"]),
        "monthly bill": with_gaps(random, [f"{value:.2f}" for value in bill], 0.05, ["", "NULL"]),
        "service calls": [str(value) for value in calls],
        "currency": ["USD"] * count,
        "churned": ["yes" if value else "no" for value in leaves],
    }


def rents(random: np.random.Generator, count: int, later: bool) -> dict[str, list[str]]:
    """Return flats of German towns with their rents."""
    towns = drawn(random, {name: people for name, (people, _, _) in TOWNS.items() if later or name != "Görlitz"}, count)
    area = np.clip(random.lognormal(4.2, 0.38, count), 18, 240)
    rooms = np.maximum(1, np.round(area / 27 + random.normal(0, 0.5, count)))
    year = random.choice([1905, 1928, 1955, 1968, 1976, 1988, 1998, 2008, 2018], count) + random.integers(-6, 7, count)
    balcony = random.choice(["ja", "nein"], count, p=[0.62, 0.38])
    heating = random.choice(["Fernwärme", "Gas", "Öl", "Wärmepumpe"], count, p=[0.3, 0.5, 0.15, 0.05])
    since = [datetime(2015, 1, 1) + timedelta(days=int(day)) for day in random.integers(0, 3400, count)]
    metre = np.array([TOWNS[town][2] for town in towns]) * (
        1 + 0.1 * (year > 2000) - 0.06 * ((year > 1950) & (year < 1980))
    )
    metre *= 1.18 - 0.0022 * np.minimum(area, 110) + 0.04 * (balcony == "ja")
    metre *= 1 + 0.035 * (np.array([day.year for day in since]) - 2019)
    rent = area * metre * random.lognormal(0, 0.07, count)
    remarks = ["", "ruhige Lage", "frisch renoviert; EBK", "WG-geeignet", "Altbau, 3. OG ohne Aufzug", "Hinterhof"]
    return {
        "Ort": list(towns),
        "PLZ": [TOWNS[town][1] for town in towns],
        "Wohnfläche": with_gaps(random, [german(value, 1) for value in area], 0.03, ["", "k.A.", "-"]),
        "Zimmer": with_gaps(random, [german(value, 1) for value in rooms], 0.04, ["", "k.A."]),
        "Baujahr": with_gaps(random, year, 0.12, ["", "?"]),
        "Balkon": with_gaps(random, balcony, 0.05, [""]),
        "Heizung": list(heating),
        "Mietbeginn": with_gaps(random, [day.strftime("%d.%m.%Y") for day in since], 0.05, [""]),
        "Bemerkung": [
            f"{remark} #{random.integers(10**6)}" if remark else "" for remark in random.choice(remarks, count)
        ],
        "Kaltmiete": [german(value, 2) for value in rent],
    }


def patients(random: np.random.Generator, count: int, later: bool) -> dict[str, list[str]]:
    """Return the patients of an emergency ward with their urgency: low, medium or high."""
    age = np.clip(random.normal(48, 21, count), 1, 98)
    pulse, systolic = random.normal(78 + 0.05 * age, 14, count), random.normal(112 + 0.4 * age, 17, count)
    temperature = random.normal(36.9, 0.5, count) + (random.random(count) < 0.15) * random.gamma(2, 0.9, count)
    complaints = ["chest pain", "fall", "fever", "headache", "abdominal pain", "cut, hand", "shortness of breath"]
    complaint = random.choice(complaints + (["allergic reaction"] if later else []), count)
    conscious = random.choice(["yes", "no"], count, p=[0.97, 0.03])
    risk = (
        0.028 * (age - 48)
        + 0.045 * np.abs(pulse - 80)
        + 0.032 * np.abs(systolic - 128)
        + 0.9 * np.maximum(0, temperature - 37.8)
    )
    risk += (
        1.5 * np.isin(complaint, ["chest pain", "shortness of breath"])
        - 1.2 * (complaint == "cut, hand")
        + 4.0 * (conscious == "no")
    )
    risk += random.normal(0, 0.5, count)
    urgency = np.where(risk > 3.6, "high", np.where(risk > 1.6, "medium", "low"))
    arrival = [datetime(2023, 1, 1) + timedelta(minutes=int(minute)) for minute in random.integers(0, 800_000, count)]
    return {
        "case": [f"{'B' if later else 'A'}-{place:05d}" for place in random.permutation(count)],
        "arrival": [moment.strftime("%Y-%m-%d %H:%M") for moment in arrival],
        "age": with_gaps(random, [str(int(value)) for value in age], 0.03, ["?"]),
        "complaint": list(complaint),
        "conscious": list(conscious),
        "pulse": with_gaps(random, [str(round(value)) for value in pulse], 0.05, ["?", "refused"]),
        "blood pressure": with_gaps(random, [str(round(value)) for value in systolic], 0.12, ["?", ""]),
        "temperature": with_gaps(random, [f"{value:.1f}" for value in temperature], 0.2, ["?"]),
        "ward": ["emergency"] * count,
        "urgency": list(urgency),
    }


def german(value: float, digits: int) -> str:
    """Return a number with points between thousands and a decimal comma."""
    return f"{value:,.{digits}f}".translate(str.maketrans(",.", ".,"))


#: The tables with their rows of training and later data, answers, delimiters and encodings.
TABLES = {
    "subscribers": (subscribers, 1200, 800, "churned", ",", "utf-8-sig"),
    "rents": (rents, 700, 400, "Kaltmiete", ";", "latin-1"),
    "patients": (patients, 900, 500, "urgency", "\t", "utf-8"),
}


def write(path: Path, columns: dict[str, list[str]], delimiter: str, encoding: str) -> None:
    """Write a table."""
    with open(path, "w", newline="", encoding=encoding) as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def main(folder: Path) -> None:
    """Write all tables."""
    for number, (name, (make, rows, later, answer, delimiter, encoding)) in enumerate(TABLES.items()):
        random = np.random.default_rng(number)
        write(folder / f"{name}.csv", make(random, rows, False), delimiter, encoding)
        columns = make(random, later, True)
        write(folder / f"{name}-later.csv", columns, delimiter, encoding)
        others = {column: cells for column, cells in reversed(columns.items()) if column != answer}
        write(folder / f"{name}-new.csv", others, delimiter, encoding)


if __name__ == "__main__":
    main(Path(*sys.argv[1:2]))
