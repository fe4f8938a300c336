"""Files that say what the package is, agree: versions, workflows, lists of what is built."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_versions_agree():
    assert load(ROOT / "packaging" / "check_version.py").problems() == []


def test_another_tag_is_found():
    [found, *_] = load(ROOT / "packaging" / "check_version.py").problems("v9.9.9")
    assert "v9.9.9" in found


@pytest.mark.parametrize("workflow", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.stem)
def test_workflows_run_what_exists(workflow):
    text = workflow.read_text(encoding="utf-8")
    scripts = re.findall(r"(?:run: |python )((?:packaging|\.ci)/[\w.]+)", text)
    quick = re.findall(r"@(tests/[\w.]+)", text)
    called = re.findall(r"uses: \./(\S+)", text)
    modules = [f"{name.replace('.', '/')}" for name in re.findall(r"python -m (tests\.\w+)", text)]
    for path in [*scripts, *quick, *called]:
        assert (ROOT / path).is_file(), path
    for module in modules:
        assert (ROOT / f"{module}.py").is_file() or (ROOT / module / "__main__.py").is_file(), module
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for names in re.findall(r"'\.\[([\w,-]+)\]'", text):
        assert set(names.split(",")) <= set(extras)
