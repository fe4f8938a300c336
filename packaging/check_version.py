"""Check that version numbers agree.

    python packaging/check_version.py [TAG]

The versions of pyproject.toml, CITATION.cff and the recipe for conda, the newest section of CHANGELOG.md, the tag of
a release if one is given; and that minimum-versions.txt and the recipe have the lower bounds of pyproject.toml.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def problems(tag: str | None = None) -> list[str]:
    """Return what does not agree, a sentence each."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version, found = project["version"], []
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.M)[1]
    recipe = (ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8")
    if f'version: "{version}"' not in recipe:
        found.append(f"recipe/recipe.yaml has another version than pyproject.toml, {version}")
    for requirement in project["dependencies"]:
        if f"- {requirement.replace('>=', ' >=')}\n" not in recipe:
            found.append(f"recipe/recipe.yaml does not need {requirement}")
    if cited != version:
        found.append(f"CITATION.cff has version {cited}, pyproject.toml {version}")
    section = re.search(r"^## \[?(\d[\w.]*)\]? - (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    if section[1] != version:
        found.append(f"the newest section of CHANGELOG.md is {section[1]}, pyproject.toml has {version}")
    if tag is not None and tag != f"v{version}":
        found.append(f"the tag is {tag}, pyproject.toml has {version}")
    if tag is not None and not re.fullmatch(r"\d{4}-\d\d-\d\d", section[2]):
        found.append(f"the section {section[1]} of CHANGELOG.md has no date")
    lowest = dict(line.split("==") for line in (ROOT / "packaging" / "minimum-versions.txt").read_text().split())
    requirements = [*project["dependencies"], *project["optional-dependencies"]["quick-test"]]
    needed = dict(requirement.split(">=") for requirement in requirements)
    for name in sorted({*lowest, *needed}):
        if name not in lowest or name not in needed or not f"{lowest[name]}.".startswith(f"{needed[name]}."):
            found.append(f"{name}: minimum-versions.txt has {lowest.get(name)}, pyproject.toml {needed.get(name)}")
    return found


if __name__ == "__main__":
    found = problems(*sys.argv[1:])
    print("\n".join(found) or "versions agree")
    sys.exit(bool(found))
