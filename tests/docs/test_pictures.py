"""Pictures of the site: drawn by the code of their page, and none of them committed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "docs/_extensions/pictures.py"
DRAW = "import matplotlib.pyplot as plt\nplt.figure(figsize=(2, 1)); plt.figure(figsize=(3, 1))"


def draw(text, folder):
    """Return what the site shows in place of the comments of a page, and what was wrong."""
    (folder / "work").mkdir()
    command = [sys.executable, str(EXTENSION), str(folder / "page")]
    done = subprocess.run(
        command, input=text, cwd=folder / "work", env={"MPLBACKEND": "agg", "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout, done.stderr


def test_figures_files_commands_and_examples(tmp_path):
    shown, errors = draw(
        f"```python\n{DRAW}\nprint('noise')\n```\n<!-- picture: One -->\n\n<!-- picture: Two -->\n"
        "```python\nopen('b.gif', 'w').write('moving')\n```\n<!-- picture b.gif: Moving -->\n"
        "```\n$ echo drawing > c.svg\n$ false other.svg\n```\n<!-- picture c.svg: A drawing -->\n"
        "<!-- picture examples/gallery/solvers/step_sizes.py: Rules -->\n",
        tmp_path,
    )
    assert not errors.replace("noise\n", "")
    assert shown.split("\n\n") == [
        "![One](/generated/pictures/page-1.png){width=200px}",
        "![Two](/generated/pictures/page-2.png){width=300px}",
        "![Moving](/generated/pictures/page-3.gif)",
        "![A drawing](/generated/pictures/page-4.svg)",
        "![Rules](/generated/gallery/solvers/images/sphx_glr_step_sizes_001.png)",
    ]
    assert (tmp_path / "page-3.gif").read_text() == "moving"
    assert (tmp_path / "page-4.svg").read_text() == "drawing\n"
    assert (tmp_path / "page-2.png").stat().st_size > 100


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            f"```python\n{DRAW}\n```\n```python\n1\n```\n<!-- picture: Third -->\n",
            "no figure of the code above is left",
        ),
        ("```python\n1 / 0\n```\n<!-- picture: One -->\n", "ZeroDivisionError"),
        ("<!-- picture missing.png: One -->\n", "missing.png"),
        ("```\n$ false a.png\n```\n<!-- picture a.png: One -->\n", "returned non-zero exit status 1"),
    ],
)
def test_errors_end_the_build(text, error, tmp_path):
    assert error in draw(text, tmp_path)[1]


def test_every_comment_is_understood():
    for page in sorted((ROOT / "docs").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        assert text.count("<!-- picture") == len(re.findall(r"^<!-- picture(?: \S+)?: .+? -->$", text, re.MULTILINE)), (
            page
        )
        for example in re.findall(r"<!-- picture (examples/\S+):", text):
            assert (ROOT / example).exists(), example


def test_committed_pictures_are_those_of_the_readme_and_of_measurements():
    found = subprocess.run(["git", "ls-files", "docs"], cwd=ROOT, capture_output=True, text=True)
    if found.returncode:
        pytest.skip("not a git repository")
    pictures = {file for file in found.stdout.split() if file.endswith((".png", ".gif", ".svg", ".jpg"))}
    others = {file for file in pictures if not file.startswith("docs/experiments/")}
    assert others == {"docs/demo.png", "docs/memory-curve.png", "docs/_static/logo.svg"}
