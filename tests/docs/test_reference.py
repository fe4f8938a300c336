"""The API reference lists every public name, and nothing that does not exist."""

import importlib
import re
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[2] / "docs/reference"
PACKAGES = ["", "blocks", "dask", "datasets", "feature_maps", "interchange", "kernels", "matrices", "online"]
PACKAGES += ["liblinearutil", "plotting", "problems", "search", "solvers", "svmutil"]
#: Constants and types, which have no page of their own, and a class of scikit-learn.
WITHOUT_PAGE = {"Callback", "KERNELS", "NON_FINITE_MESSAGE", "QUERY_STRATEGIES", "SOLVERS", "STOPPING_RULES"}
WITHOUT_PAGE |= {"CalibrationDisplay"}


def listed():
    """Return the objects that the pages list, and the names by which they do."""
    objects = {}
    for page in PAGES.glob("*.rst"):
        module = ""
        for line in page.read_text(encoding="utf-8").splitlines():
            if found := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = found[1]
            elif (found := re.match(r"   (\w+)$", line)) and module:
                objects[f"{module}.{found[1]}"] = getattr(importlib.import_module(module), found[1])
    return objects


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_in_the_reference(package):
    module = importlib.import_module(f"maxmargin.{package}".rstrip("."))
    pages = {id(thing) for thing in listed().values()}
    names = [name for name in module.__all__ if name not in WITHOUT_PAGE and not name.startswith("__")]
    things = {name: getattr(module, name) for name in names}
    submodules = {name for name, thing in things.items() if isinstance(thing, type(importlib))}
    assert not [name for name in names if name not in submodules and id(things[name]) not in pages]


def test_names_are_listed_once():
    objects = listed()
    assert len(objects) > 150
    assert len({id(thing) for thing in objects.values()}) == len(objects)
