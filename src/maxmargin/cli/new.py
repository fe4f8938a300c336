"""`maxmargin new`: a working kernel, solver or machine in a file of the user's own, and the test of its contract.

Both files are templates of the package, `maxmargin/templates`; the tests of this repository run them.
"""

from __future__ import annotations

import argparse
import keyword
import re
from importlib import resources
from pathlib import Path
from string import Template

from maxmargin.cli.output import Output, add_output_options
from maxmargin.storage.output_files import write_atomically

KINDS = ("kernel", "machine", "solver")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("kind", choices=KINDS, help="what the file defines")
    parser.add_argument("name", metavar="NAME", help="name of the class, such as RationalQuadratic")
    parser.add_argument(
        "-d", "--folder", type=Path, default=Path(), help="folder of the two files, which is made if missing [.]"
    )
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    name, folder = options.name, options.folder
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name) or keyword.iskeyword(name):
        raise ValueError(f"NAME is that of a class, such as RationalQuadratic: letters and digits, not {name!r}")
    module = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    paths = [folder / f"{prefix}{module}.py" for prefix in ("", "test_")]
    for path in paths:
        if path.exists():
            raise FileExistsError(f"{path} exists already; choose another name or --folder")
    folder.mkdir(parents=True, exist_ok=True)
    for path, prefix in zip(paths, ("", "test_"), strict=True):
        text = (resources.files("maxmargin") / "templates" / f"{prefix}{options.kind}.py.txt").read_text("utf-8")
        write_atomically(path, [Template(text).substitute(name=name, module=module).encode()])
    output = Output(options)
    command = f"python -m pytest {paths[1]}"
    output.facts({options.kind: str(paths[0]), "test": str(paths[1]), "run it": command})
    output.result({"kind": options.kind, "files": list(map(str, paths)), "command": command})
    return 0
