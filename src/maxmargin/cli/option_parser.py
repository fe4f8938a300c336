"""A parser of options whose errors are one sentence: what is wrong, and what was probably meant."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any, NoReturn


class OptionParser(argparse.ArgumentParser):
    """An `ArgumentParser` that suggests similar names, and names its help instead of printing all options."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:  # the parser of a command would leave it to that of all commands, which has other options
            first = unknown[0].split("=")[0]
            kind = "option" if first.startswith("-") else "argument"
            self.error(f"unrecognized {kind} {first}{_suggestion(first, self._option_string_actions)}")
        return options, unknown

    def error(self, message: str) -> NoReturn:
        see = " See" if message.endswith("?") else "; see"
        self.exit(2, f"{self.prog}: error: {message}{see} {self.prog} --help\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            choices = map(str, action.choices or ())
            raise argparse.ArgumentError(action, f"{error.message}{_suggestion(str(value), choices)}") from None


def _suggestion(word: str, names: Iterable[str]) -> str:
    """Return a question that ends a sentence, if a name is similar to a word."""
    from difflib import get_close_matches

    found = get_close_matches(word, list(names), n=1, cutoff=0.7)
    return f"; did you mean {found[0]}?" if found else ""
