"""`maxmargin completion`: the scripts work in a real shell."""

import shutil
import subprocess

import pytest

from maxmargin.cli.main import COMMANDS, main

#: What bash does when the tab key is pressed after some words.
PRESS_TAB = """
source ./completion.bash
COMP_WORDS=({words}); COMP_CWORD={number}; COMPREPLY=()
$(complete -p maxmargin | sed 's/.* -F \\([^ ]*\\) .*/\\1/')
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["completion", "bash"]) == 0
    (tmp_path / "completion.bash").write_text(capsys.readouterr().out, encoding="utf-8")
    (tmp_path / "heart_scale").touch()
    return tmp_path


def completions(*words):
    quoted = " ".join(f"'{word}'" for word in words)
    script = PRESS_TAB.format(words=quoted, number=len(words) - 1)
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.split()


def test_bash_completes_commands_options_choices_and_files(folder):
    assert set(COMMANDS) <= set(completions("maxmargin", ""))
    assert completions("maxmargin", "tra") == ["train"]
    assert completions("maxmargin", "train", "--res") == ["--resume"]
    assert completions("maxmargin", "train", "heart_scale", "--estimator", "nu-") == ["nu-svc", "nu-svr"]
    assert "heart_scale" in completions("maxmargin", "train", "hea")
    assert completions("maxmargin", "completion", "b") == ["bash"]


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_scripts_of_other_shells(shell, capsys, tmp_path):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "evaluate" in script
    if shutil.which(shell):
        (tmp_path / "script").write_text(script, encoding="utf-8")
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True, timeout=60)
