"""`maxmargin completion`: what makes a shell complete commands, options, their choices and file names, by shtab."""

from __future__ import annotations

import argparse

#: Where completions go, for the help.
HINTS = {
    "bash": "maxmargin completion bash > ~/.local/share/bash-completion/completions/maxmargin",
    "zsh": 'maxmargin completion zsh > "${fpath[1]}/_maxmargin"',
    "tcsh": "maxmargin completion tcsh > ~/.maxmargin.tcsh, and source that in ~/.tcshrc",
}

#: Arguments that are files: what stands for them in the usage.
FILES = frozenset(["DATA", "MODEL", "OUT", "IN", "FILE", "TRAIN", "TEST", "RANGE"])


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("shell", choices=list(HINTS), help="; ".join(HINTS.values()))


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    import shtab

    from maxmargin.cli.main import make_parser

    parser = make_parser()
    for action in _all_actions(parser):
        if action.metavar in FILES and action.choices is None:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # how shtab is told
    print(shtab.complete(parser, shell=options.shell))
    return 0


def _all_actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the arguments and options of a parser and of all its commands."""
    found = []
    for action in parser._actions:
        found.append(action)
        if isinstance(action, argparse._SubParsersAction):
            found += [inner for one in action.choices.values() for inner in _all_actions(one)]
    return found
