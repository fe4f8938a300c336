"""The sessions in docs/command_line.md and docs/tables.md are what the commands print."""

import re
import runpy
import shlex
from pathlib import Path

import pytest
from sklearn.datasets import load_iris

from maxmargin.cli.main import main

ROOT = Path(__file__).parents[2]
PAGE, TABLES = ROOT / "docs/command_line.md", ROOT / "docs/tables.md"
SECTIONS = ("train", "predict", "evaluate", "info", "grid", "advise", "easy")
LIMITED, FAILED = "limit reached", "maxmargin: "


def sessions():
    """Return the commands of each section, each with the lines shown after it."""
    page = PAGE.read_text(encoding="utf-8")
    texts = [re.search(rf"^## {section}\n(.*?)(?=^## )", page, re.M | re.S)[1] for section in SECTIONS]
    return [found for text in texts for found in commands(text)]


def commands(text):
    """Return the commands of a text, each with the lines shown after it."""
    found = []
    for block in re.findall(r"^```\n(\$ .*?)^```", text, re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, *shown = part.splitlines()
            found.append((command, shown))
    return found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = load_iris()
    lines = [
        ",".join([*map(str, x), data.target_names[label]]) for x, label in zip(data.data, data.target, strict=True)
    ]
    Path("iris.csv").write_text("\n".join(["a,b,c,d,species", *lines, ""]), encoding="utf-8")
    return tmp_path


def without_numbers(line):
    """Return a line without numbers, which differ between processors."""
    return re.sub(r"[-+]?\d[\d.,]*(e[-+]\d+)?", "0", " ".join(line.split()))


def test_commands_print_what_the_page_shows(folder, capsys):
    found = sessions()
    assert {command.split()[1] for command, _ in found} >= set(SECTIONS)
    check(found, capsys)


def test_the_walk_through_of_three_tables(folder, capsys):
    found = commands(TABLES.read_text(encoding="utf-8"))
    assert {command.split()[1] for command, _ in found} >= {"easy", "train", "predict", "info"}
    check(found, capsys)


def check(found, capsys):
    """Run commands, and compare what they print with what is shown after them."""
    for command, shown in found:
        name, *words = shlex.split(command)
        if name == "maxmargin":
            code = main(words)
            failed = any(line.startswith(FAILED) for line in shown)
            assert code == (3 if any(line.startswith(LIMITED) for line in shown) else int(failed))
            out, err = capsys.readouterr()
        elif name == "python":
            runpy.run_path(str(ROOT / words[0]))["main"](Path())
            out = err = ""
        else:
            assert name == "head"
            count = -int(words[0]) if words[0].startswith("-") else 2
            data = Path(words[-1]).read_bytes()
            text = data.decode("latin-1" if words[-1] == "rents.csv" else "utf-8-sig")
            out, err = "".join(text.splitlines(True)[:count]), ""
        printed = {without_numbers(line) for line in (out + err).splitlines()}
        for line in shown:
            assert line == "…" or without_numbers(line) in printed, (line, printed)
