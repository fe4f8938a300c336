"""The parameter documentation of all estimators, from one table (`tools/parameter_texts.py`).

    python -m tools.parameter_docs            check the docstrings; exit code 1 if one differs from the table
    python -m tools.parameter_docs --write    rewrite the Parameters sections of the docstrings

Constructors stay explicit, and docstrings stay in the source, where editors and `help` find them. A parameter has one
text for all estimators, and further ones only where its meaning differs.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

from maxmargin import StructuredSVC, estimators
from maxmargin.search import estimators as search_estimators
from tools.parameter_texts import TABLE

WIDTH = 120


def section(estimator: type[Any]) -> str:
    """Return the Parameters section of an estimator's docstring, without indentation."""
    lines = ["Parameters", "----------"]
    for parameter in list(inspect.signature(estimator).parameters.values()):
        kind, text = entry(estimator.__name__, parameter.name)
        default = "" if parameter.default is parameter.empty else f", default={_shown(parameter.default)}"
        lines.append(f"{parameter.name} : {kind}{default}")
        lines += textwrap.wrap(text, WIDTH - 8, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    return "\n".join(lines)


def entry(estimator: str, parameter: str) -> tuple[str, str]:
    """Return type and text of a parameter: those of the estimator, or those for all."""
    texts = TABLE[parameter]
    for name in (estimator, estimator.removesuffix("CV")):
        for names, found in texts.items():
            if name in names.split():
                return found
    return texts[""]


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, float) and math.isnan(value):
        return "np.nan"
    return {1e-3: "1e-3", 1e-4: "1e-4"}.get(value, repr(value)) if isinstance(value, float) else repr(value)


def machine_of(estimator: type[Any]) -> type[Any]:
    """Return the class that has the constructor of an estimator, and its docstring."""
    return next(kind for kind in estimator.__mro__ if "__init__" in vars(kind))


def rewritten(estimator: type[Any], source: str) -> str:
    """Return the source of a module with the Parameters section of one of its classes replaced."""
    start = source.index(f"class {estimator.__name__}(")
    found = re.compile(r"    Parameters\n    -+\n.*?\n\n(?=    [A-Z]\w+\n    -+\n)", re.DOTALL).search(source, start)
    if found is None:
        raise ValueError(f"{estimator.__name__} has no Parameters section")
    new = textwrap.indent(section(estimator), "    ", lambda line: bool(line.strip()))
    return f"{source[: found.start()]}{new}\n\n{source[found.end() :]}"


def main(arguments: list[str]) -> int:
    """Check or rewrite the docstrings; return the exit code."""
    outdated = []
    found = [(name, getattr(package, name)) for package in (estimators, search_estimators) for name in package.__all__]
    found.append(("StructuredSVC", StructuredSVC))
    for name, estimator in found:
        path = Path(inspect.getfile(machine_of(estimator)))
        source = path.read_text(encoding="utf-8")
        new = rewritten(estimator, source)
        if new != source:
            outdated.append(name)
            if "--write" in arguments:
                path.write_text(new, encoding="utf-8")
    if outdated and "--write" not in arguments:
        print(
            f"docstrings that differ from the table: {', '.join(outdated)}; run python -m tools.parameter_docs --write"
        )
        return 1
    print(f"{len(outdated)} docstrings rewritten" if outdated else "all docstrings are those of the table")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
