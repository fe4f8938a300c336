"""Probabilities of classes as ONNX operators, as in `maxmargin.models.calibration`."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from maxmargin._typing import Floats
from maxmargin.interchange.onnx_graph import Graph
from maxmargin.models.calibration import MIN_PAIRWISE_PROBABILITY


def add_class_probabilities(graph: Graph, decisions: str, slopes: Floats, shifts: Floats, classes: int) -> str:
    """Add the probabilities by sigmoids of each class against the rest, or of two classes."""
    if classes == 2:
        return _two_classes(graph, decisions, slopes, shifts)
    each = _sigmoids(graph, decisions, slopes, shifts)
    return _shares(graph, graph("Max", each, graph.number(float(np.finfo(np.float64).tiny))))


def add_pairwise_probabilities(graph: Graph, decisions: str, slopes: Floats, shifts: Floats, classes: int) -> str:
    """Add the probabilities that agree best with those of each pair of classes."""
    if classes == 2:
        return _two_classes(graph, decisions, slopes, shifts)
    least = graph.number(MIN_PAIRWISE_PROBABILITY)
    most = graph.number(1.0 - MIN_PAIRWISE_PROBABILITY)
    pairwise = graph("Min", graph("Max", _sigmoids(graph, decisions, slopes, shifts), least), most)
    return _shares(graph, graph("Max", _coupled(graph, pairwise, classes), graph.number(0.0)))


def _coupled(graph: Graph, pairwise: str, classes: int) -> str:
    """Add multiples of the coupled probabilities p.

    With Q of `couple_pairwise`, Q p = −λ 1 and Σ p = 1, so that p is a multiple of the solution of (Q + 1 1ᵀ) x = 1.
    This matrix is positive definite: elimination needs no exchange of rows.
    """
    both = graph("Concat", pairwise, graph("Sub", graph.number(1.0), pairwise), axis=1)
    places = np.zeros((classes, classes), dtype=np.int64)
    pairs = list(combinations(range(classes), 2))
    for number, (a, b) in enumerate(pairs):
        places[a, b], places[b, a] = number, len(pairs) + number
    shape = graph.constant(np.array([-1, classes, classes]))
    every = graph("Reshape", graph("Gather", both, graph.constant(places.ravel()), axis=1), shape)
    every = graph("Mul", every, graph.constant(1.0 - np.eye(classes)))  # every[a, b] = P(a | a or b)
    sums = graph("MatMul", graph.constant(np.ones((1, classes))), graph("Mul", every, every))
    diagonal = graph("Mul", sums, graph.constant(np.eye(classes)))
    products = graph("Mul", every, graph("Transpose", every, perm=[0, 2, 1]))
    system = graph("Add", graph("Sub", diagonal, products), graph.number(1.0))
    zeros = graph("Mul", graph("Gather", system, _index(graph, 0), axis=2), graph.number(0.0))
    system = graph("Concat", system, graph("Add", zeros, graph.number(1.0)), axis=2)
    for k in range(classes):  # Gauss-Jordan elimination
        place = _index(graph, k)
        row, column = (graph("Gather", system, place, axis=axis) for axis in (1, 2))
        pivot = graph("Gather", row, place, axis=2)
        factors = graph("Sub", column, graph.constant(np.eye(classes)[:, k : k + 1]))
        system = graph("Sub", system, graph("Mul", factors, graph("Div", row, pivot)))
    return graph("Squeeze", graph("Gather", system, _index(graph, classes), axis=2), _index(graph, 2))


def _two_classes(graph: Graph, decisions: str, slopes: Floats, shifts: Floats) -> str:
    """Add the probabilities of the first and the second class; decision values are positive for the second."""
    signs = np.array([[1.0, -1.0]])
    exponents = graph("Add", graph("Mul", decisions, graph.constant(slopes * signs)), graph.constant(-shifts * signs))
    return _expit(graph, exponents)


def _sigmoids(graph: Graph, decisions: str, slopes: Floats, shifts: Floats) -> str:
    return _expit(graph, graph("Sub", graph("Mul", decisions, graph.constant(-slopes)), graph.constant(shifts)))


def _expit(graph: Graph, exponents: str) -> str:
    one = graph.number(1.0)
    return graph("Div", one, graph("Add", one, graph("Exp", graph("Neg", exponents))))


def _shares(graph: Graph, parts: str) -> str:
    return graph("Div", parts, graph("ReduceSum", parts, _index(graph, 1), keepdims=1))


def _index(graph: Graph, number: int) -> str:
    return graph.constant(np.array([number], dtype=np.int64))
