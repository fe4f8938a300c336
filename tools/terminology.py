"""Find discouraged words in the sources, and name the standard term to use instead.

    python -m tools.terminology                 # the whole project
    python -m tools.terminology docs README.md  # some folders or files

Prints ``file:line: word -> replacement`` for each finding; the exit code is 1 if there is one. ``CONTRIBUTING.md`` has
the rules on terminology and ``docs/glossary.md`` the standard terms. A word belongs in the list only if it has no
legitimate use in this project.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCANNED = ["src", "native", "docs", "README.md", "CONTRIBUTING.md", "tests", "benchmarks", "examples", "packaging"]
SUFFIXES = {".py", ".pyi", ".md", ".hpp", ".cpp", ".toml", ".txt"}
EXEMPT = ("tests/tools/test_terminology.py", "docs/generated/")  # the words as inputs; copies of other files

#: Regular expression and replacement. Part of an identifier counts as a word: ``_speak_up`` contains ``speak``.
DISCOURAGED = [
    ("judge[sd]?|judging|judge?ments?", "certificate, verify, verified"),
    ("at the door", "input validation"),
    ("looks? at the gap", "gap evaluation, convergence check"),
    ("called off", "BLAS thread limit"),
    ("(?:come|comes|came|brought) to a halt", "stalled"),
    ("found no way", "failed to make progress"),
    ("dear", "expensive"),
    ("creeps?|creeping|crept", "converge slowly"),
    ("part of (?:the )?margin errors", "fraction of margin errors"),
    (r"\d of the optimum", "relative gap"),
    (r"\d no support vectors", "non-support vectors"),
    ("(?:tells?|told|telling) apart", "distinguish; multi-class strategy"),
    ("whoever", "name the component: the caller, the callback, the solver"),
    ("somebody", "name the component: the caller, the user"),
    ("who (?:hears|listens|watches|asks|asked)", "callback, observer"),
    ("listens|listened", "has a callback, calls the callback"),
    ("hears?|heard", "receive, be called with, be checked"),
    ("let go", "drop, remove"),
    ("(?:give|gives|given|gave|giving) up", "stop, abandon"),
    ("rounded problems?", "smoothed problem"),
    ("wish(?:es|ed)?", "unclipped value"),
    ("too large for a number", "overflows float64"),
    ("F1 of the classes", "macro F1"),
    ("taken for which", "confusion matrix"),
    ("films?", "animation"),
    ("surroundings", "environment limits"),
    ("climb(?:s|ed|ing)?", "increase, ascent"),
    ("speaks?|speak up|spoke", "warn, report"),
    ("mend(?:s|ed|ing)?", "repair"),
    ("bend(?:s|ing)?", "curvature"),
    ("pupils?", "incremental learner"),
    ("end game", "final phase"),
    ("one against (?:one|the rest|all)", "one-vs-one, one-vs-rest"),
    ("contestants?", "library, solver"),
    ("referees?", "verification"),
    ("leagues?", "group of libraries"),
    ("races?|raced|racing", "benchmark"),
    ("(?-i:PATIENCE|FEW|REACH|WORTH_A_THREAD)", "a name that says what the constant bounds"),
]
ALLOWED = re.compile(r"data races?|race conditions?", re.IGNORECASE)


@dataclass(frozen=True)
class Finding:
    """A discouraged word in a line of a file."""

    file: str
    line: int
    word: str
    replacement: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.word!r} -> {self.replacement}"


def _compiled() -> list[tuple[re.Pattern[str], str]]:
    return [
        (re.compile(rf"(?<![a-z])(?:{pattern})(?![a-z])", re.IGNORECASE), replacement)
        for pattern, replacement in DISCOURAGED
    ]


def findings_in(text: str, file: str) -> Iterator[Finding]:
    """Yield the discouraged words of a text; a phrase may span two lines."""
    flat = ALLOWED.sub(lambda match: " " * len(match.group()), text)
    flat = re.sub(r"\n[ #/*>|]*", lambda match: " " + "\x00" * (len(match.group()) - 1), flat)
    squeezed = flat.replace("\x00", "")
    positions = [position for position, character in enumerate(flat) if character != "\x00"]
    for pattern, replacement in _compiled():
        for match in pattern.finditer(squeezed):
            line = text.count("\n", 0, positions[match.start()]) + 1
            yield Finding(file, line, match.group(), replacement)


def scan(paths: Iterable[Path], root: Path = ROOT) -> list[Finding]:
    """Return the findings in files and folders, in the order of the files."""
    found: list[Finding] = []
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            name = file.relative_to(root).as_posix()
            if file.is_file() and file.suffix in SUFFIXES and not name.startswith(EXEMPT):
                found += sorted(findings_in(file.read_text(encoding="utf-8"), name), key=lambda one: one.line)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print the findings; return 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tools.terminology", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="*", default=SCANNED, help=f"default: {' '.join(SCANNED)}")
    options = parser.parse_args(arguments)
    found = scan(ROOT / path for path in options.paths)
    for finding in found:
        print(finding)
    print(f"{len(found)} discouraged words" if found else "no discouraged words")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
