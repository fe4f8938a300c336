"""The sessions in docs/command_line.md are what the commands print."""

import re
import shlex
from pathlib import Path

import pytest
from sklearn.datasets import load_iris

from maxmargin.cli.main import main

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/command_line.md"
SECTIONS = ("train", "predict", "evaluate", "info", "grid", "advise", "easy")
LIMITED = "limit reached"


def sessions():
    """Return the commands of each section, each with the lines shown after it."""
    found = []
    for section in SECTIONS:
        text = re.search(rf"^## {section}\n(.*?)(?=^## )", PAGE.read_text(encoding="utf-8"), re.M | re.S)[1]
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
    for command, shown in found:
        name, *words = shlex.split(command)
        if name == "maxmargin":
            code = main(words)
            assert code == (3 if any(line.startswith(LIMITED) for line in shown) else 0)
            out, err = capsys.readouterr()
        else:
            assert name == "head"
            out, err = "".join(Path(words[-1]).read_text(encoding="utf-8").splitlines(True)[:2]), ""
        printed = {without_numbers(line) for line in (out + err).splitlines()}
        for line in shown:
            assert line == "…" or without_numbers(line) in printed, (line, printed)
