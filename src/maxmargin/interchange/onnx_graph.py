"""Kernels as ONNX operators.

Standard operators in float64, not the SVM operators of ``ai.onnx.ml``: those store coefficients and support vectors in
float32, and support only four kernels.

    linear, polynomial, sigmoid     X Zᵀ as a matrix product, then a function of it
    Gaussian                        exp(2γ (x−c)·(z−c) − γ‖x−c‖² − γ‖z−c‖²), c the mean of the support vectors, if that
                                    is accurate; otherwise from differences
    Laplacian, chi-squared          Σ_k distance(x_k, z_k) by a Scan over the features, which needs memory for the
                                    kernel values only
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.interchange.class_registry import KERNELS
from maxmargin.kernels import (
    ChiSquared,
    Combination,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    OnFeatures,
    Polynomial,
    Product,
    Scaled,
    Sigmoid,
    Sum,
    UnitDiagonal,
)

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto

#: Largest γ‖z − c‖² for the product form of the Gaussian, whose exponent has an error of a few 1e-16 of it.
MAX_PRODUCT_EXPONENT = 1e4


class Graph:
    """Builder of an ONNX graph. Methods return the name of a result."""

    def __init__(self, prefix: str = "") -> None:
        import onnx

        self.onnx = onnx
        self.prefix = prefix
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def __call__(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator with one result."""
        return self.several(operator, 1, *inputs, **attributes)[0]

    def several(self, operator: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        """Add an operator with several results."""
        results = [f"{self.prefix}{operator}_{len(self.nodes)}_{k}" for k in range(count)]
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, results, **attributes))
        return results

    def constant(self, values: Any) -> str:
        """Add a constant array."""
        name = f"{self.prefix}constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(values, order="C"), name))
        return name

    def number(self, value: float) -> str:
        """Add a float64 constant."""
        return self.constant(np.array(value, dtype=np.float64))

    def value(self, name: str, kind: int, shape: list[int | None] | None) -> ValueInfoProto:
        """Return the declaration of an input or output."""
        return self.onnx.helper.make_tensor_value_info(name, kind, shape)

    def finish(self, name: str, inputs: list[ValueInfoProto], outputs: dict[str, ValueInfoProto]) -> GraphProto:
        """Return the graph; `outputs` maps names of results to declarations of outputs."""
        copies = [self.onnx.helper.make_node("Identity", [result], [it.name]) for result, it in outputs.items()]
        return self.onnx.helper.make_graph([*self.nodes, *copies], name, inputs, list(outputs.values()), self.constants)


def without_factor(kernel: Kernel) -> tuple[float, Kernel]:
    """Split a kernel into a factor and a kernel that is not scaled.

    A factor must not follow a matrix product: onnxruntime fuses both and rounds the factor to float32.
    """
    factor = 1.0
    while isinstance(kernel, Scaled):
        factor, kernel = factor * kernel.factor, kernel.kernel
    return factor, kernel


def kernel_block(graph: Graph, kernel: Kernel, samples: str, support: Floats) -> str:
    """Add the kernel values k(x, z), with a row per sample and a column per support vector."""
    factor, kernel = without_factor(kernel)
    if type(kernel) not in KERNELS:
        raise ValueError(
            f"the kernel {type(kernel).__name__} cannot be exported to ONNX; use a kernel of maxmargin.kernels, a sum, "
            "product or multiple of them, or kernel='precomputed'"
        )
    if isinstance(kernel, Linear):
        return graph("MatMul", samples, graph.constant(factor * support.T))
    block = _block(graph, kernel, samples, support)
    return block if factor == 1.0 else graph("Mul", block, graph.number(factor))


def _block(graph: Graph, kernel: Kernel, samples: str, support: Floats) -> str:
    if isinstance(kernel, Sum | Product):
        parts = (kernel_block(graph, part, samples, support) for part in (kernel.first, kernel.second))
        return graph("Add" if isinstance(kernel, Sum) else "Mul", *parts)
    if isinstance(kernel, Combination):
        return _weighted_sum(graph, kernel, lambda part: kernel_block(graph, part, samples, support))
    if isinstance(kernel, OnFeatures):
        return kernel_block(graph, kernel.kernel, _columns(graph, kernel, samples), support[:, list(kernel.features)])
    if isinstance(kernel, UnitDiagonal):
        block = kernel_block(graph, kernel.kernel, samples, support)
        of_samples = _unit_factors(graph, kernel_diagonal(graph, kernel.kernel, samples))
        of_support = _unit_factors(graph, kernel_diagonal(graph, kernel.kernel, graph.constant(support)))
        return graph("Mul", graph("Mul", block, of_samples), graph("Transpose", of_support))
    if isinstance(kernel, Polynomial | Sigmoid):
        product = graph("MatMul", samples, graph.constant(float(kernel.gamma) * support.T))
        return _of_product(graph, kernel, product)
    assert isinstance(kernel, Gaussian | Laplacian | ChiSquared)
    if kernel.formula.gammas is not None:
        factors = kernel.formula.factors_of(support.shape[1])
        samples, support, kernel = graph("Mul", samples, graph.constant(factors)), support * factors, type(kernel)(1.0)
    gamma = float(kernel.gamma)
    if isinstance(kernel, Gaussian):
        centre = support.mean(axis=0) if len(support) else np.zeros(support.shape[1])
        if gamma * float(np.square(support - centre).sum(axis=1).max(initial=0.0)) <= MAX_PRODUCT_EXPONENT:
            return _gaussian_of_product(graph, gamma, samples, support, centre)
    total = _sum_over_features(graph, DISTANCES[type(kernel)], samples, support)
    return graph("Exp", graph("Mul", total, graph.number(-gamma)))


def kernel_diagonal(graph: Graph, kernel: Kernel, samples: str) -> str:
    """Add the column of the values k(x, x)."""
    if isinstance(kernel, Sum | Product):
        parts = (kernel_diagonal(graph, part, samples) for part in (kernel.first, kernel.second))
        return graph("Add" if isinstance(kernel, Sum) else "Mul", *parts)
    if isinstance(kernel, Scaled):
        return graph("Mul", kernel_diagonal(graph, kernel.kernel, samples), graph.number(kernel.factor))
    if isinstance(kernel, Combination):
        return _weighted_sum(graph, kernel, lambda part: kernel_diagonal(graph, part, samples))
    if isinstance(kernel, OnFeatures):
        return kernel_diagonal(graph, kernel.kernel, _columns(graph, kernel, samples))
    if isinstance(kernel, UnitDiagonal):
        positive = graph("Greater", kernel_diagonal(graph, kernel.kernel, samples), graph.number(0.0))
        return graph("Where", positive, graph.number(1.0), graph.number(0.0))
    squares = _sum_of_squares(graph, samples)
    if isinstance(kernel, Linear):
        return squares
    if isinstance(kernel, Polynomial | Sigmoid):
        return _of_product(graph, kernel, graph("Mul", squares, graph.number(float(kernel.gamma))))
    return graph("Exp", graph("Mul", squares, graph.number(0.0)))  # 1 for each


def _weighted_sum(graph: Graph, kernel: Combination, term: Callable[[Kernel], str]) -> str:
    """Add the sum of the terms of the weighted kernels; those of weight 0 are left out."""
    pairs = zip(kernel.weights, kernel.kernels, strict=True)
    terms = [term(Scaled(weight, part)) for weight, part in pairs if weight > 0]
    if not terms:
        return graph("Mul", term(kernel.kernels[0]), graph.number(0.0))
    return reduce(lambda total, one: graph("Add", total, one), terms)


def _columns(graph: Graph, kernel: OnFeatures, samples: str) -> str:
    """Add the samples with the features of a kernel only."""
    return graph("Gather", samples, graph.constant(np.array(kernel.features, dtype=np.int64)), axis=1)


def _unit_factors(graph: Graph, diagonal: str) -> str:
    """Add 1/√k(x, x), 0 where k(x, x) is not above 0."""
    positive, one = graph("Greater", diagonal, graph.number(0.0)), graph.number(1.0)
    factors = graph("Div", one, graph("Sqrt", graph("Where", positive, diagonal, one)))
    return graph("Where", positive, factors, graph.number(0.0))


def _of_product(graph: Graph, kernel: Polynomial | Sigmoid, product: str) -> str:
    """Add a polynomial or sigmoid kernel, a function of γ x·z."""
    shifted = graph("Add", product, graph.number(float(kernel.coef0)))
    if isinstance(kernel, Sigmoid):
        return graph("Tanh", shifted)
    return graph("Pow", shifted, graph.number(float(kernel.degree)))


def _gaussian_of_product(graph: Graph, gamma: float, samples: str, support: Floats, centre: Floats) -> str:
    centred = support - centre
    left = graph("Sub", samples, graph.constant(centre))
    product = graph("MatMul", left, graph.constant(2.0 * gamma * centred.T))
    norms = graph("Mul", _sum_of_squares(graph, left), graph.number(gamma))
    exponent = graph("Sub", graph("Sub", product, norms), graph.constant(gamma * np.square(centred).sum(axis=1)))
    return graph("Exp", graph("Min", exponent, graph.number(0.0)))


def _sum_of_squares(graph: Graph, samples: str) -> str:
    """Add the column of the values ‖x‖²."""
    return graph("ReduceSum", graph("Mul", samples, samples), graph.constant(np.array([1])), keepdims=1)


def _sum_over_features(graph: Graph, distance: Callable[[Graph, str, str], str], samples: str, support: Floats) -> str:
    """Add Σ_k distance(x_k, z_k) by a Scan over the features."""
    double = graph.onnx.TensorProto.DOUBLE
    body = Graph(f"{graph.prefix}step_")
    partial, x, z = (f"{body.prefix}{name}" for name in ("partial", "x", "z"))
    total = body("Add", partial, distance(body, x, z))
    shapes: dict[str, list[int | None]] = {partial: [None, len(support)], x: [None, 1], z: [len(support)]}
    inputs = [body.value(name, double, shape) for name, shape in shapes.items()]
    step = body.finish("feature", inputs, {total: body.value(f"{body.prefix}total", double, shapes[partial])})
    count = graph("Shape", samples, start=0, end=1)
    shape = graph("Concat", count, graph.constant(np.array([len(support)])), axis=0)
    zero = graph.onnx.numpy_helper.from_array(np.zeros(1))
    start = graph("ConstantOfShape", shape, value=zero)
    columns = graph("Unsqueeze", samples, graph.constant(np.array([2])))  # scan over columns
    features = graph.constant(support.T)
    return graph("Scan", start, columns, features, body=step, num_scan_inputs=2, scan_input_axes=[1, 0])


def _squared(graph: Graph, x: str, z: str) -> str:
    difference = graph("Sub", x, z)
    return graph("Mul", difference, difference)


def _absolute(graph: Graph, x: str, z: str) -> str:
    return graph("Abs", graph("Sub", x, z))


def _chi_squared(graph: Graph, x: str, z: str) -> str:
    both = graph("Add", x, z)
    zero = graph("Equal", both, graph.number(0.0))  # 0/0 counts as 0
    return graph("Div", _squared(graph, x, z), graph("Where", zero, graph.number(1.0), both))


DISTANCES: dict[type[Kernel], Callable[[Graph, str, str], str]] = {
    Gaussian: _squared,
    Laplacian: _absolute,
    ChiSquared: _chi_squared,
}
