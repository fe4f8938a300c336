"""The `maxmargin` command: parse the command line, run the command, print errors as one line.

Only the module of the given command is imported, and modules import scikit-learn and matplotlib where they need them,
so that commands which need neither start quickly.

Exit codes: 0 for success, 1 for an error, 2 for an invalid command line, 3 if a limit ended the computation (results so
far are kept), 130 after Ctrl-C or SIGTERM (the same), 141 if the reader of a pipe has closed it.
"""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from maxmargin.cli.option_parser import OptionParser
from maxmargin.resources import UNEXPLAINED, available_memory, format_bytes


class Command(NamedTuple):
    """Module and one-line description of a command."""

    module: str
    help: str


#: Commands whose modules have `add_options(parser)` and `run(options) -> int`.
COMMANDS: dict[str, Command] = {
    "easy": Command("easy", "scale data, choose an estimator and its parameters, train, test, and write a report"),
    "advise": Command("advise", "say which estimators, scaling and parameters easy would try for a file, and why"),
    "train": Command("train", "train an estimator, verify the solution, write the model"),
    "predict": Command("predict", "predict new samples with a model"),
    "evaluate": Command(
        "evaluate", "compute metrics of a model on labelled data, or of an estimator by cross-validation"
    ),
    "grid": Command("grid", "grid search for C and gamma by cross-validation, with a heat map of the scores"),
    "info": Command("info", "describe a model file or a data file"),
    "check": Command("check", "validate a data file and list its errors by line"),
    "scale": Command("scale", "scale features to a common range, and save the ranges for other data"),
    "convert": Command("convert", "convert data or a model to another format"),
    "compare": Command("compare", "compare the convergence of several solvers on the same data"),
    "new": Command("new", "write a kernel, solver or machine of your own that works, and the test of its contract"),
    "demo": Command("demo", "train on a generated chessboard, print the certificate, save a plot"),
    "completion": Command("completion", "print a shell completion script"),
}

#: Replacements of other programs, with their own options: a module has `main(arguments) -> int`.
DROP_INS: dict[str, Command] = {
    "svm-train": Command("libsvm.svm_train", "replacement of LIBSVM's svm-train"),
    "svm-predict": Command("libsvm.svm_predict", "replacement of LIBSVM's svm-predict"),
    "svm-scale": Command("libsvm.svm_scale", "replacement of LIBSVM's svm-scale"),
    "svm-grid": Command("libsvm.svm_grid", "replacement of LIBSVM's grid.py"),
    "liblinear-train": Command("libsvm.liblinear_train", "replacement of LIBLINEAR's train"),
    "liblinear-predict": Command("libsvm.liblinear_predict", "replacement of LIBLINEAR's predict"),
}


#: Options of parameters with which error messages of estimators start.
OPTIONS_OF_PARAMETERS = {
    "cache_size": "--memory",
    "max_iter": "--max-iter",
    "max_seconds": "--max-seconds",
    "n_jobs": "--threads",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if sys.stdout is None:  # >&- in a shell; the next opened file would become standard output
        print("maxmargin: standard output is closed; redirect it to /dev/null instead", file=sys.stderr)
        return 1
    with _sigterm_as_interrupt():
        try:
            code = _run(words)
            sys.stdout.flush()
            return code
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return 130
        except BrokenPipeError:  # the reader of a pipe has closed it
            _abandon_output()
            return 141
        except (ValueError, OSError, ImportError, MemoryError) as error:
            if isinstance(error.__cause__, KeyboardInterrupt):  # during the import of a compiled module
                print("interrupted", file=sys.stderr)
                return 130
            print(f"maxmargin: {_error_message(error)}", file=sys.stderr)
            if _is_write_error(error):
                _abandon_output()
            return 1


def _run(words: list[str]) -> int:
    """Run the command of a command line."""
    if words and words[0] in DROP_INS:
        return int(_module(DROP_INS[words[0]]).main(words[1:]))
    parser = make_parser([word for word in words if word in COMMANDS][:1])
    if not words:
        parser.print_help(sys.stderr)
        return 2
    options = parser.parse_args(words, argparse.Namespace(words=words))
    return int(options.run(options))


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """Treat SIGTERM, which batch systems and containers send, as Ctrl-C."""
    # Handlers can be set in the main thread only; one that the caller has set is left alone.
    unset = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not unset or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _is_write_error(error: BaseException) -> bool:
    """Whether standard output could not be written; errors of other files have their names."""
    write_errors = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
    return isinstance(error, OSError) and error.filename is None and error.errno in write_errors


def _abandon_output() -> None:
    """Redirect standard output, so that the interpreter does not fail again when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _error_message(error: Exception) -> str:
    """Return the message of an error, with the file name if it is known."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if _is_write_error(error):
        return f"standard output: {os.strerror(error.errno)}"  # type: ignore[attr-defined]
    if isinstance(error, MemoryError) and str(error) in UNEXPLAINED:
        available = format_bytes(available_memory())
        return f"this needs more memory than the {available} that are available; use fewer samples or features"
    first, blank, rest = str(error).partition(" ")
    return f"{OPTIONS_OF_PARAMETERS.get(first, first)}{blank}{rest}"


def make_parser(complete: Sequence[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """Return the parser of all commands; only those of `complete` have their options."""
    description = "Support vector machines with a certificate of optimality."
    parser = OptionParser(prog="maxmargin", description=description, allow_abbrev=False)
    parser.add_argument("--version", action=_ShowVersion, nargs=0, help="show program's version number and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        added = commands.add_parser(
            name,
            help=command.help,
            description=f"{command.help[0].upper()}{command.help[1:]}.",
            allow_abbrev=False,
        )
        if name in complete:
            module = _module(command)
            module.add_options(added)
            added.set_defaults(run=module.run)
    for name, command in DROP_INS.items():
        commands.add_parser(name, help=command.help, add_help=False)
    return parser


class _ShowVersion(argparse.Action):
    """Print the version, which is looked up only if it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from maxmargin import __version__

        print(f"maxmargin {__version__}")
        parser.exit()


def run_by_name() -> int:
    """Run the replacement program whose name this process has; for the scripts of ``packaging/libsvm-names``."""
    return main([Path(sys.argv[0]).stem, *sys.argv[1:]])


def _module(command: Command) -> Any:
    return import_module(f"maxmargin.cli.{command.module}")
