"""`maxmargin new` writes a kernel, a solver and a machine that work, and tests of their contracts that pass."""

import subprocess
import sys

import pytest

from maxmargin.cli.main import main

#: Of the named problems that the solver's test has, those that take it long are left to the author.
SELECTED = {"kernel": [], "machine": [], "solver": ["-k", "not certifies or separable or overlapping or sample_costs"]}


@pytest.mark.parametrize("kind", SELECTED)
def test_the_test_of_a_template_passes(kind, tmp_path, capsys):
    assert main(["new", kind, "MyOwnThing", "--folder", str(tmp_path / "mine")]) == 0
    printed = capsys.readouterr().out
    command = next(line.split("\t")[1] for line in printed.splitlines() if line.startswith("run it")).split()
    assert command[:3] == ["python", "-m", "pytest"]
    files = [tmp_path / "mine" / name for name in ("my_own_thing.py", "test_my_own_thing.py")]
    assert command[3:] == [str(files[1])]
    assert all("MyOwnThing" in file.read_text(encoding="utf-8") for file in files)
    words = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", *command[3:]]
    done = subprocess.run([*words, *SELECTED[kind]], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


@pytest.mark.parametrize("kind", SELECTED)
def test_templates_follow_the_style_of_the_project(kind, tmp_path):
    assert main(["new", kind, "Mine", "--folder", str(tmp_path), "-q"]) == 0
    for words in (["check", "--ignore", "D,I"], ["format", "--check"]):  # docstrings and order are the author's
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *words, str(tmp_path)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_broken_template_fails_its_test(tmp_path):
    """The contract is in force: a kernel that is not symmetric does not pass."""
    assert main(["new", "kernel", "Broken", "--folder", str(tmp_path), "-q"]) == 0
    path = tmp_path / "broken.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("return 1.0 / (1.0 + cdist", "return A[:, :1] / (1.0 + cdist"), encoding="utf-8")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "symmetric", "test_broken.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "test_is_symmetric" in done.stdout


@pytest.mark.parametrize("name", ["lower", "With-Dash", "2nd", "", "Mine.py", "../Up"])
def test_names_that_are_none_of_a_class(name, tmp_path, capsys):
    assert main(["new", "kernel", name, "--folder", str(tmp_path)]) == 1
    assert "NAME is that of a class" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_existing_files_are_kept(tmp_path, capsys):
    (tmp_path / "test_mine.py").write_text("mine")
    assert main(["new", "solver", "Mine", "--folder", str(tmp_path)]) == 1
    assert "exists already" in capsys.readouterr().err
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]
