"""The terminology check finds discouraged words in text, comments and identifiers, and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))  # the tools are not installed

from tools.terminology import findings_in, main, scan  # noqa: E402


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("def _speak_up(self):", "speak"),
        ("The judge computes", "judge"),
        ("gap 2e-12 (1e-14 of the optimum)", "4 of the optimum"),
        ("# where steps creep", "creep"),
        ("const double bend = 0.0;", "bend"),
        ("# a problem that came\n# to a halt", "came to a halt"),
        ("PATIENCE = 3", "PATIENCE"),
    ],
)
def test_discouraged_words_are_found(text, word):
    assert [finding.word for finding in findings_in(text, "file")] == [word]


@pytest.mark.parametrize(
    "text",
    [
        "append, depending, amended, recommended",
        "misjudged is another word, prejudged too",
        "a data race; a race condition",
        "the patience of early stopping",
        "bracket, trace, embrace, grace",
        "one-vs-one and one-vs-rest",
        "an event listener",
    ],
)
def test_other_words_are_not_found(text):
    assert not list(findings_in(text, "file"))


def test_line_and_replacement_are_named(tmp_path):
    (tmp_path / "page.md").write_text("fine\nfine\nwhere steps creep\n", encoding="utf-8")
    (tmp_path / "picture.png").write_bytes(b"\xff creep")
    (finding,) = scan([tmp_path], tmp_path)
    assert str(finding) == "page.md:3: 'creep' -> converge slowly"


def test_exit_code(capsys):
    assert main(["LICENSE", "tests/tools/test_import_graph.py"]) == 0
    assert main(["tools/terminology.py"]) == 1  # the list itself
    assert "tools/terminology.py:" in capsys.readouterr().out
