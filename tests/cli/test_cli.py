import re
import subprocess

import pytest

from cli.terminal import COMMAND, ENVIRONMENT
from maxmargin import __version__
from maxmargin.cli import main as command_line
from maxmargin.cli.main import COMMANDS, main


def test_demo_prints_the_certificate_and_saves_a_plot(tmp_path, capsys):
    plot = tmp_path / "demo.png"
    assert main(["demo", "-n", "300", "-o", str(plot)]) == 0
    out = capsys.readouterr().out
    for words in (
        "primal objective",
        "dual objective",
        "duality gap",
        "KKT violation",
        "free support vectors",
        "bounded",
    ):
        assert words in out
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert plot.stat().st_size > 20_000


def test_demo_without_plot(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "-n", "200", "--no-plot"]) == 0
    assert not list(tmp_path.iterdir())
    assert re.search(r"test accuracy\s+\d+\.\d+%", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "-n", "0"], "at least one sample"),
        (["demo", "-C", "-1", "--no-plot"], "C must be a number above 0"),
        (["train", "chessboard:50", "-q", "--threads", "0"], "--threads must not be 0; use -1 for all cores"),
        (["train", "chessboard:50", "-q", "--memory", "0"], "--memory must be a number above 0"),
    ],
)
def test_errors_are_one_line(arguments, message, capsys):
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    assert COMMANDS[command].help[1:20] in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], r"maxmargin: error: there is no command 'trian'; did you mean train\? See maxmargin --help$"),
        (["TRAIN"], r"there is no command 'TRAIN'; did you mean train\? See maxmargin --help$"),
        (["help"], r"there is no command 'help'; did you mean --help\?"),
        (["version"], r"there is no command 'version'; did you mean --version\?"),
        (["xyz"], "there is no command 'xyz'; choose from easy, advise, .*; see maxmargin --help$"),
        (["--verison"], r"maxmargin: error: unrecognized option --verison; did you mean --version\?"),
        (["--foo"], "unrecognized option --foo; options of a command come after the command; see maxmargin --help$"),
        (["--epsilon", "1", "train"], "option --epsilon; options of a command come after the command;"),
        (["--kernel", "rbf", "train", "d.csv"], "option --kernel; options of a command come after the command;"),
        (["train", "--quite"], r"maxmargin train: error: unrecognized option --quite; did you mean --quiet\?"),
        (
            ["train", "bananas", "--gama=1"],
            r"maxmargin train: error: unrecognized option --gama; did you mean --gamma\?",
        ),
        (["train", "bananas", "model", "-gamma", "1"], r"unrecognized option -gamma; did you mean --gamma\?"),
        (["train", "-gamma=1", "bananas"], r"unrecognized option -gamma; did you mean --gamma\?"),
        (["train", "bananas", "--xyz"], "unrecognized option --xyz; see maxmargin train --help"),
        (["train", "bananas", "model", "more"], "unrecognized argument more;"),
        (["train", "bananas", "--estimator", "svcc"], r"invalid choice: 'svcc'; did you mean svc\?"),
        (["train", "bananas", "--estimator", "SVC"], r"invalid choice: 'SVC'; did you mean svc\?"),
        (["train", "bananas", "--estimator", "xyz"], "invalid choice: 'xyz'; choose from svc, .*; see maxmargin train"),
        (["train", "bananas", "-C", "many"], "invalid float value: 'many'"),
        (["train"], "required: DATA; see maxmargin train --help"),
    ],
)
def test_mistyped_words_have_suggestions(arguments, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    error = capsys.readouterr().err
    assert re.search(message, error)
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize("words", [["--foo", "--help"], ["train", "--foo", "-h"]])
def test_help_despite_unknown_options(words, capsys):
    with pytest.raises(SystemExit, match="0"):
        main(words)
    assert capsys.readouterr().out.startswith("usage: maxmargin")


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["-C10"], "C", 10),
        (["-C", "10"], "C", 10),
        (["-qC", "10"], "C", 10),
        (["-g.5"], "gamma", 0.5),
        (["-g", "auto"], "gamma", "auto"),
        (["--gamma=scale"], "gamma", "scale"),
        (["--", "-x"], "model", "-x"),
    ],
)
def test_options_in_all_notations(words, name, value):
    options = command_line.make_parser(["train"]).parse_args(["train", "bananas", *words])
    assert vars(options)[name] == value


def test_negative_numbers_are_values():
    options = command_line.make_parser(["scale"]).parse_args(["scale", "-", "-l", "-2", "--upper", "-.5"])
    assert (options.data, options.lower, options.upper) == ("-", -2, -0.5)


def test_without_arguments_the_commands_are_listed(capsys):
    assert main([]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert all(command in error for command in COMMANDS)


def test_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert __version__ in capsys.readouterr().out


@pytest.mark.parametrize(("words", "advice"), [(["demo"], "--no-plot"), (["easy", "bananas:50"], "--no-report")])
def test_missing_matplotlib_is_reported_immediately(words, advice, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(f"maxmargin.cli.{words[0]}.find_spec", lambda name: None)
    assert main(words) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "pip install 'maxmargin[plot]'" in err
    assert advice in err
    assert not list(tmp_path.iterdir())


def test_closed_standard_output():
    line = 'exec "$@" >&-'
    done = subprocess.run(
        ["sh", "-c", line, "sh", *COMMAND, "info", "chessboard", "--json"],
        capture_output=True, text=True, timeout=60, env=ENVIRONMENT,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "maxmargin: standard output is closed; redirect it to /dev/null instead\n"


def test_ctrl_c_during_an_import(monkeypatch, capsys):
    def module(command):
        raise ImportError("initialization failed") from KeyboardInterrupt()

    monkeypatch.setattr(command_line, "_module", module)
    assert main(["demo"]) == 130
    assert capsys.readouterr().err == "interrupted\n"
