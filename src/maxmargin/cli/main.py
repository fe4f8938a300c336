"""The `maxmargin` command."""

from __future__ import annotations

import argparse
import sys

from maxmargin import __version__
from maxmargin.cli import compare, demo


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code: 0 for success, 1 for an error, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="maxmargin", description="Support vector machines with a proof of optimality."
    )
    parser.add_argument("--version", action="version", version=f"maxmargin {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    demo.add_to(commands)
    compare.add_to(commands)
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except (ValueError, OSError, ImportError, MemoryError) as error:
        print(f"maxmargin: {error}", file=sys.stderr)
        return 1
