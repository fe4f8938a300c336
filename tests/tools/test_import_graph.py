"""The import graph of small packages: cycles between modules and packages are found and named."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))  # the tools are not installed

from tools.import_graph import ROOT as TOOL_ROOT  # noqa: E402
from tools.import_graph import main, package_rows, read_import_graph, shortest_cycle, strong_components  # noqa: E402


@pytest.fixture
def write_package(tmp_path, monkeypatch):
    def write(name, files):
        for path, text in files.items():
            file = tmp_path / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            (file.parent / "__init__.py").touch()
            file.write_text(text, encoding="utf-8")
        (tmp_path / name / "__init__.py").touch()
        return ["--package", name, "--source", str(tmp_path)]

    monkeypatch.setattr(sys, "path", list(sys.path))
    return write


def test_acyclic_package_passes(write_package, capsys):
    options = write_package("acyclic_package", {"low/a.py": "x = 1\n", "high/b.py": "from ..low import a\n"})
    assert main(options) == 0
    printed = capsys.readouterr().out
    assert "acyclic_package.high" in printed
    assert "cycles between modules: none" in printed
    assert "cycles between packages: none" in printed


def test_rows_count_lines_modules_and_fans(write_package, tmp_path):
    write_package("counted_package", {"low/a.py": "x = 1\ny = 2\n", "high/b.py": "from ..low import a\n"})
    rows = {name: counts for name, *counts in package_rows(read_import_graph("counted_package", tmp_path))}
    assert rows["counted_package.low"] == [2, 2, 1, 0]
    assert rows["counted_package.high"] == [1, 2, 0, 1]


def test_module_cycle_under_type_checking_is_named(write_package, capsys):
    guarded = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import a\n"
    options = write_package("module_cycle_package", {"a.py": "from . import b\n", "b.py": guarded})
    assert main([*options, "--modules"]) == 1
    name = "module_cycle_package"
    assert f"{name}.a -> {name}.b -> {name}.a" in capsys.readouterr().out


def test_package_cycle_without_a_module_cycle_is_named(write_package, capsys):
    files = {"p/a.py": "from ..q import b\n", "p/c.py": "", "q/b.py": "", "q/d.py": "from ..p import c\n"}
    assert main(write_package("package_cycle_package", files)) == 1
    printed = capsys.readouterr().out
    name = "package_cycle_package"
    assert "cycles between modules: none" in printed
    assert f"{name}.p -> {name}.q -> {name}.p" in printed
    assert f"{name}.q.d imports {name}.p.c" in printed


def test_shortest_cycle_of_a_component():
    edges = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "b"), ("c", "d")]
    (component,) = strong_components(edges)
    assert component == ["a", "b", "c"]
    assert shortest_cycle(component, edges) == ["b", "c", "b"]


def test_graph_of_the_project_has_all_packages():
    graph = read_import_graph("maxmargin", TOOL_ROOT / "src")
    assert {"maxmargin.solvers", "maxmargin.estimators", "maxmargin.problems"} <= graph.packages
    assert ("maxmargin.problems.certificate", "maxmargin.problems.dual_problem") in graph.imports
