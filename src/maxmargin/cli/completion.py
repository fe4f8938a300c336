"""`maxmargin completion`: print a shell completion script, made by shtab."""

from __future__ import annotations

import argparse

#: How to install the script, for the help.
HINTS = {
    "bash": "maxmargin completion bash > ~/.local/share/bash-completion/completions/maxmargin",
    "zsh": 'maxmargin completion zsh > "${fpath[1]}/_maxmargin"',
    "tcsh": "maxmargin completion tcsh > ~/.maxmargin.tcsh, and source that in ~/.tcshrc",
}

#: Metavariables of arguments that are file names.
FILE_METAVARS = frozenset(["DATA", "MODEL", "OUT", "IN", "FILE", "TRAIN", "TEST", "RANGE"])


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("shell", choices=list(HINTS), help="; ".join(HINTS.values()))


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    import shtab

    from maxmargin.cli.main import make_parser

    parser = make_parser()
    for action in _all_actions(parser):
        if action.metavar in FILE_METAVARS and action.choices is None:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # an attribute that shtab reads
    print(shtab.complete(parser, shell=options.shell))
    return 0


def _all_actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the actions of a parser and of all its subparsers."""
    actions = []
    for action in parser._actions:
        actions.append(action)
        if isinstance(action, argparse._SubParsersAction):
            actions += [inner for subparser in action.choices.values() for inner in _all_actions(subparser)]
    return actions
