"""The `maxmargin` command: finds the command that is meant, and answers for what goes wrong.

Only the module of that command is imported, so that quick commands stay quick; a module imports what is heavy where it
needs it.

Exit codes: 0 for success, 1 for an error, 2 for a command line that makes no sense, 3 for work that a limit has ended
(what there was is kept), 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

from maxmargin import __version__


class Command(NamedTuple):
    """Where a command lives, and what it does in one line."""

    module: str
    help: str


#: Commands with options of our kind: a module has `add_options(parser)` and `run(options) -> int`.
COMMANDS: dict[str, Command] = {
    "easy": Command("easy", "scale, choose machine and parameters, train, test, and write a report"),
    "train": Command("train", "train a machine on data, prove how good it is, write the model"),
    "predict": Command("predict", "ask a model about new samples"),
    "evaluate": Command("evaluate", "measure how good a model is on labelled data, or a machine by cross-validation"),
    "grid": Command("grid", "search for C and gamma by cross-validation, with a map of the scores"),
    "info": Command("info", "tell what is in a file of a model or of data"),
    "check": Command("check", "find what is wrong with a file of samples, line by line"),
    "scale": Command("scale", "bring features to a common range, and keep the ranges for other data"),
    "convert": Command("convert", "write data or a model in another format"),
    "compare": Command("compare", "run several solvers on the same data and compare their ways to the optimum"),
    "demo": Command("demo", "train on a generated chessboard, print the certificate, save a picture"),
    "completion": Command("completion", "print what makes a shell complete the words of this command"),
}

#: Commands that speak another program's language: a module has `main(arguments) -> int`.
DROP_INS: dict[str, Command] = {
    "svm-train": Command("libsvm.svm_train", "LIBSVM's program that trains: its options, files and final lines"),
    "svm-predict": Command("libsvm.svm_predict", "LIBSVM's program that predicts"),
    "svm-scale": Command("libsvm.svm_scale", "LIBSVM's program that scales features"),
    "svm-grid": Command("libsvm.svm_grid", "LIBSVM's search for C and gamma, grid.py"),
    "liblinear-train": Command("libsvm.liblinear_train", "LIBLINEAR's program that trains linear machines"),
    "liblinear-predict": Command("libsvm.liblinear_predict", "LIBLINEAR's program that predicts"),
}


#: What the options of commands are called in estimators, whose messages begin with it.
PARAMETERS = {"cache_size": "--memory", "max_iter": "--max-iter", "max_seconds": "--max-seconds", "n_jobs": "--threads"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if sys.stdout is None:  # a shell's >&-; the next file that is opened would take its place
        print("maxmargin: standard output is closed; /dev/null takes what nobody wants", file=sys.stderr)
        return 1
    try:
        if words and words[0] in DROP_INS:
            return int(_module(DROP_INS[words[0]]).main(words[1:]))
        parser = make_parser([word for word in words[:1] if word in COMMANDS])
        options = parser.parse_args(words, argparse.Namespace(words=words))
        return int(options.run(options))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (ValueError, OSError, ImportError, MemoryError) as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # while a compiled module was imported
            print("interrupted", file=sys.stderr)
            return 130
        print(f"maxmargin: {_sentence(error)}", file=sys.stderr)
        return 1


def _sentence(error: Exception) -> str:
    """Return what is wrong, and with which file if the system says so."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    first, blank, rest = str(error).partition(" ")
    return f"{PARAMETERS.get(first, first)}{blank}{rest}"


def make_parser(whole: Sequence[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """Return the parser of all commands, with the options of some."""
    parser = argparse.ArgumentParser(
        prog="maxmargin", description="Support vector machines with a proof of optimality."
    )
    parser.add_argument("--version", action="version", version=f"maxmargin {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        added = commands.add_parser(
            name,
            help=command.help,
            description=f"{command.help[0].upper()}{command.help[1:]}.",
            allow_abbrev=False,
        )
        if name in whole:
            module = _module(command)
            module.add_options(added)
            added.set_defaults(run=module.run)
    for name, command in DROP_INS.items():
        commands.add_parser(name, help=command.help, add_help=False)
    return parser


def _module(command: Command) -> Any:
    return import_module(f"maxmargin.cli.{command.module}")
