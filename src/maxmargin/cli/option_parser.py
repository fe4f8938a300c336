"""A parser of options whose errors are one sentence: what is wrong, and what was probably meant."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import Any, NoReturn


class OptionParser(argparse.ArgumentParser):
    """An `ArgumentParser` that suggests similar names, and names its help instead of printing all options.

    An unknown option is reported before anything else, since it often is the reason why an argument is missing.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        words = list(sys.argv[1:] if args is None else args)
        if not {"-h", "--help"} & set(words):
            for word in words:
                if word == "--" or (self._commands() and not word.startswith("-")):
                    break
                if self._is_unknown(word):
                    self._report_unknown(word)
        options, unknown = super().parse_known_args(words, namespace)
        if unknown:  # the parser of a command would leave it to that of all commands, which has other options
            self._report_unknown(unknown[0])
        return options, unknown

    def error(self, message: str) -> NoReturn:
        see = " See" if message.endswith("?") else "; see"
        self.exit(2, f"{self.prog}: error: {message}{see} {self.prog} --help\n")

    def _is_unknown(self, word: str) -> bool:
        """Return whether a word is meant as an option, but is none."""
        name = _option_name(word)
        if len(word) < 2 or not word.startswith("-") or " " in word or _is_number(word):
            return False
        if word.startswith("--") or f"-{name}" in self._option_string_actions:  # -gamma is not -g with the value amma
            return name not in self._option_string_actions
        return word[:2] not in self._option_string_actions

    def _report_unknown(self, word: str) -> NoReturn:
        """Exit with an error about an unknown option, or an argument too many."""
        name = _option_name(word)
        known = [option for command in self._commands().values() for option in command._option_string_actions]
        suggestion = _suggestion(name, self._option_string_actions)
        if not name.startswith("-"):
            self.error(f"unrecognized argument {name}{suggestion}")
        if name in known or (self._commands() and not suggestion):
            suggestion = "; options of a command come after the command"
        self.error(f"unrecognized option {name}{suggestion}")

    def _commands(self) -> dict[str, argparse.ArgumentParser]:
        """Return the parsers of the commands, if this is the parser of all commands."""
        groups = (action.choices for action in self._actions if isinstance(action, argparse._SubParsersAction))
        return next(groups, {})

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        choices = [str(choice) for choice in action.choices or ()]
        if action.choices is None or value in action.choices:
            return
        if isinstance(action, argparse._SubParsersAction):
            suggestion = _suggestion(value, [*choices, *self._option_string_actions])
            raise argparse.ArgumentError(None, f"there is no command {value!r}{suggestion or _list_of(choices)}")
        suggestion = _suggestion(str(value), choices)
        raise argparse.ArgumentError(action, f"invalid choice: {value!r}{suggestion or _list_of(choices)}")


def _option_name(word: str) -> str:
    """Return a word of the command line without the value after =."""
    return word.split("=")[0]


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _list_of(names: Iterable[str]) -> str:
    """Return the end of a sentence that lists possible names."""
    return f"; choose from {', '.join(names)}"


def _suggestion(word: str, names: Iterable[str]) -> str:
    """Return a question that ends a sentence, if a name is similar to a word."""
    from difflib import get_close_matches

    folded = {name.lower(): name for name in names}
    found = get_close_matches(word.lower(), folded, n=1, cutoff=0.7)
    return f"; did you mean {folded[found[0]]}?" if found else ""
