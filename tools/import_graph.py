"""Print the import graph of a package and fail on an import cycle.

    python -m tools.import_graph              # one row per package
    python -m tools.import_graph --modules    # one row per module

Imports inside functions and under ``TYPE_CHECKING`` count like all others. Two kinds of cycles are reported: between
modules, and between packages, that is, between children of one package of which at least one is a package. The exit
code is 1 if there is a cycle.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import grimp
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, shortest_path

ROOT = Path(__file__).resolve().parents[1]

Edge = tuple[str, str]  # importer, imported


@dataclass(frozen=True)
class ImportGraph:
    """The modules of a package, their imports of one another, and their numbers of lines."""

    package: str
    lines: dict[str, int]
    packages: frozenset[str]
    imports: frozenset[Edge]

    def package_of(self, module: str) -> str:
        """Return the package that holds a module; a package holds its own ``__init__``."""
        return module if module in self.packages else module.rpartition(".")[0]

    def imports_between_packages(self) -> set[Edge]:
        """Return the imports with each module replaced by its package."""
        edges = {(self.package_of(importer), self.package_of(imported)) for importer, imported in self.imports}
        return {(importer, imported) for importer, imported in edges if importer != imported}

    def imports_between_children(self, package: str) -> set[Edge]:
        """Return the imports with each module replaced by the child of ``package`` that contains it."""

        def child(module: str) -> str | None:
            if not module.startswith(package + "."):
                return None
            return package + "." + module.removeprefix(package + ".").partition(".")[0]

        edges = {(child(importer), child(imported)) for importer, imported in self.imports}
        return {(a, b) for a, b in edges if a is not None and b is not None and a != b}

    def module_cycles(self) -> list[list[str]]:
        """Return one shortest cycle for each set of modules that import one another."""
        return [shortest_cycle(component, self.imports) for component in strong_components(self.imports)]

    def package_cycles(self) -> list[list[str]]:
        """Return one shortest cycle for each set of sibling packages that import one another."""
        cycles = []
        for package in sorted(self.packages):
            edges = self.imports_between_children(package)
            for component in strong_components(edges):
                if self.packages.intersection(component):  # else it is a cycle between modules
                    cycles.append(shortest_cycle(component, edges))
        return cycles

    def modules_behind(self, importer: str, imported: str) -> list[Edge]:
        """Return the imports between modules that make up an import between two modules or packages."""

        def inside(module: str, container: str) -> bool:
            return module == container or module.startswith(container + ".")

        return sorted((a, b) for a, b in self.imports if inside(a, importer) and inside(b, imported))


def read_import_graph(package: str, source: Path) -> ImportGraph:
    """Read the import graph of the package in the folder ``source``."""
    if str(source) not in sys.path:
        sys.path.insert(0, str(source))
    graph = grimp.build_graph(package, cache_dir=None)
    lines, packages = {}, set()
    for module in graph.modules:
        file = source.joinpath(*module.split("."))
        if file.is_dir():
            packages.add(module)
            file = file / "__init__"
        lines[module] = len(file.with_suffix(".py").read_text(encoding="utf-8").splitlines())
    imports = frozenset(
        (importer, imported)
        for importer in graph.modules
        for imported in graph.find_modules_directly_imported_by(importer)
    )
    return ImportGraph(package, lines, frozenset(packages), imports)


def strong_components(edges: Iterable[Edge]) -> list[list[str]]:
    """Return the strongly connected components of more than one node, sorted."""
    nodes, matrix = _adjacency(edges)
    _, labels = connected_components(matrix, connection="strong")
    members = defaultdict(list)
    for node, label in zip(nodes, labels, strict=True):
        members[label].append(node)
    return sorted(component for component in members.values() if len(component) > 1)


def shortest_cycle(component: Collection[str], edges: Iterable[Edge]) -> list[str]:
    """Return a shortest cycle within a strongly connected component; its first node is repeated at the end."""
    inside = [(a, b) for a, b in edges if a in component and b in component]
    nodes, matrix = _adjacency(inside)
    distances, predecessors = shortest_path(matrix, unweighted=True, return_predecessors=True)
    index = {node: i for i, node in enumerate(nodes)}
    start, after = min(inside, key=lambda edge: (distances[index[edge[1]], index[edge[0]]], edge))
    path = [start]
    while path[-1] != after:
        path.append(nodes[predecessors[index[after], index[path[-1]]]])
    return [start, *reversed(path)]


def _adjacency(edges: Iterable[Edge]) -> tuple[list[str], csr_array]:
    edges = sorted(edges)
    nodes = sorted({node for edge in edges for node in edge})
    index = {node: i for i, node in enumerate(nodes)}
    rows, columns = ([index[edge[side]] for edge in edges] for side in (0, 1))
    return nodes, csr_array((np.ones(len(edges)), (rows, columns)), shape=(len(nodes), len(nodes)))


def package_rows(graph: ImportGraph) -> list[tuple[str, int, int, int, int]]:
    """Return name, lines, modules, fan-in and fan-out of each package; fans count packages."""
    modules: dict[str, list[str]] = defaultdict(list)
    for module in graph.lines:
        modules[graph.package_of(module)].append(module)
    fan_in, fan_out = _fans(graph.imports_between_packages())
    return [
        (package, sum(graph.lines[module] for module in held), len(held), fan_in[package], fan_out[package])
        for package, held in sorted(modules.items())
    ]


def module_rows(graph: ImportGraph) -> list[tuple[str, int, int, int]]:
    """Return name, lines, fan-in and fan-out of each module; fans count modules."""
    fan_in, fan_out = _fans(graph.imports)
    return [(module, lines, fan_in[module], fan_out[module]) for module, lines in sorted(graph.lines.items())]


def _fans(edges: Iterable[Edge]) -> tuple[dict[str, int], dict[str, int]]:
    fan_in: dict[str, int] = defaultdict(int)
    fan_out: dict[str, int] = defaultdict(int)
    for importer, imported in edges:
        fan_out[importer] += 1
        fan_in[imported] += 1
    return fan_in, fan_out


def report(graph: ImportGraph, by_module: bool = False) -> str:
    """Return the table of packages or modules, the totals and the cycles as text."""
    header: tuple[str, ...]
    rows: list[tuple[str | int, ...]]
    if by_module:
        header, rows = ("module", "lines", "fan-in", "fan-out"), [*module_rows(graph)]
    else:
        header, rows = ("package", "lines", "modules", "fan-in", "fan-out"), [*package_rows(graph)]
    width = max(len(str(row[0])) for row in rows)
    text = [f"{row[0]:<{width}}" + "".join(f"{cell:>9}" for cell in row[1:]) for row in [header, *rows]]
    text += ["", f"{sum(graph.lines.values())} lines, {len(graph.lines)} modules, {len(graph.imports)} imports"]
    for kind, cycles in ("modules", graph.module_cycles()), ("packages", graph.package_cycles()):
        text.append(f"cycles between {kind}: {len(cycles) or 'none'}")
        text += [line for cycle in cycles for line in _describe(graph, cycle)]
    return "\n".join(text)


def _describe(graph: ImportGraph, cycle: list[str]) -> list[str]:
    lines = ["  " + " -> ".join(cycle)]
    for importer, imported in pairwise(cycle):
        behind = graph.modules_behind(importer, imported)
        if behind != [(importer, imported)]:
            lines += [f"    {a} imports {b}" for a, b in behind]
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Print the import graph; return 1 if it has a cycle."""
    parser = argparse.ArgumentParser(prog="python -m tools.import_graph", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--modules", action="store_true", help="one row per module instead of one per package")
    parser.add_argument("--package", default="maxmargin", help="name of the package (default: %(default)s)")
    parser.add_argument("--source", type=Path, default=ROOT / "src", help="folder that contains it (default: src)")
    options = parser.parse_args(arguments)
    graph = read_import_graph(options.package, options.source.resolve())
    print(report(graph, options.modules))
    return 1 if graph.module_cycles() or graph.package_cycles() else 0


if __name__ == "__main__":
    sys.exit(main())
