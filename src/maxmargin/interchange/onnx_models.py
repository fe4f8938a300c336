"""Fitted models as ONNX operators: decision values, votes, probabilities and predictions.

Computations are in float64, with the same voting and tie-breaking as `predict`. `maxmargin.interchange.onnx_graph` has
the kernels.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats
from maxmargin.interchange.onnx_graph import Graph, kernel_block, kernel_diagonal, without_factor
from maxmargin.interchange.onnx_probabilities import add_class_probabilities, add_pairwise_probabilities
from maxmargin.kernels import Linear
from maxmargin.machines.kernel.function_estimator import KernelRegressor
from maxmargin.machines.kernel.kernel_classifier import KernelClassifier
from maxmargin.machines.kernel.mkl_one_class_svm import MKLOneClassSVM
from maxmargin.machines.kernel.one_class_svm import OneClassSVM
from maxmargin.machines.kernel.quantile_svr import QuantileSVR
from maxmargin.machines.kernel.rank_svc import RankSVC
from maxmargin.machines.kernel.svdd import SVDD
from maxmargin.machines.linear.kernel_approximation_svc import KernelApproximationSVC
from maxmargin.machines.linear.linear_estimator import LinearEstimator
from maxmargin.machines.linear.linear_svc import LinearSVC
from maxmargin.machines.linear.linear_svr import LinearSVR
from maxmargin.precision import DECISION_TOLERANCE

#: Estimators that predict a number.
REGRESSORS = (KernelRegressor, LinearSVR, RankSVC)

#: Estimators that predict a class.
CLASSIFIERS = (KernelClassifier, LinearSVC, KernelApproximationSVC)


def check_exportable(model: Any) -> None:
    """Raise unless it is a fitted estimator that has operators."""
    if not isinstance(model, (*CLASSIFIERS, LinearEstimator, OneClassSVM, MKLOneClassSVM, SVDD, *REGRESSORS)):
        raise ValueError(f"{type(model).__name__} cannot be exported to ONNX; the other estimators of maxmargin can")
    if not hasattr(model, "intercept_"):
        raise ValueError(f"this {type(model).__name__} is not fitted yet; fit it before exporting")


def knows_probabilities(model: Any) -> bool:
    """Return whether a model predicts the most probable class."""
    return isinstance(model, CLASSIFIERS) and bool(model._knows_probabilities)


def add_model(graph: Graph, model: Any, samples: str, labels: Any = None) -> dict[str, str]:
    """Add the outputs of a model: "label", "scores" and "probabilities", or "prediction"."""
    results = _results(graph, model, samples)
    if "label" in results:
        labels = class_labels(model) if labels is None else labels
        results["label"] = graph("Gather", graph.constant(labels), results["label"])
    return results


def _results(graph: Graph, model: Any, samples: str) -> dict[str, str]:
    """Add the outputs of the model; a label is the index of its class."""
    decision = _decide(graph, model, samples)
    if isinstance(model, CLASSIFIERS):
        results = _classify(graph, model, decision)
        if not model._knows_probabilities:
            return results
        add_probabilities = add_pairwise_probabilities if _votes(model) else add_class_probabilities
        probabilities = add_probabilities(graph, decision, model.probA_, model.probB_, len(model.classes_))
        label = graph("ArgMax", probabilities, axis=1, keepdims=0)
        return {"label": label, "scores": results["scores"], "probabilities": probabilities}
    if isinstance(model, QuantileSVR) and model._several:
        count = graph.constant(np.array([len(model.intercept_)], dtype=np.int64))
        return {"prediction": graph.several("TopK", 2, decision, count, axis=1, largest=0, sorted=1)[0]}
    if isinstance(model, REGRESSORS):
        return {"prediction": decision if len(model.intercept_) > 1 else _flat(graph, decision)}
    if isinstance(model, SVDD):
        assert model._kernel_ is not None
        lengths = kernel_diagonal(graph, model._kernel_, samples)
        size = graph("Add", graph("Abs", decision), lengths)
        decision = _rounded(
            graph, graph("Sub", decision, lengths), graph("Mul", size, graph.number(DECISION_TOLERANCE))
        )
    else:
        decision = _rounded(graph, decision, graph.number(DECISION_TOLERANCE * abs(float(model.offset_[0]))))
    return _by_sign(graph, decision)


def _votes(model: Any) -> bool:
    """Return whether there is a decision value for each pair of classes."""
    return isinstance(model, KernelClassifier) and model._multi_class_ == "ovo"


def _classify(graph: Graph, model: Any, decisions: str) -> dict[str, str]:
    count = len(model.classes_)
    if count == 2:
        return _by_sign(graph, decisions, "GreaterOrEqual" if isinstance(model, KernelClassifier) else "Greater")
    if not _votes(model):
        return {"label": graph("ArgMax", decisions, axis=1, keepdims=0), "scores": decisions}
    pairs = list(combinations(range(count), 2))
    first, second = np.zeros((len(pairs), count)), np.zeros((len(pairs), count))
    for p, (a, b) in enumerate(pairs):
        first[p, a] = second[p, b] = 1.0
    gain, base = graph.constant(first - second), graph.constant(second.sum(axis=0))

    def votes(comparison: str) -> str:
        won = graph("Cast", graph(comparison, decisions, graph.number(0.0)), to=graph.onnx.TensorProto.DOUBLE)
        return graph("Add", graph("MatMul", won, gain), base)

    confidence = graph("MatMul", decisions, gain)
    bound = graph("Mul", graph("Add", graph("Abs", confidence), graph.number(1.0)), graph.number(3.0))
    scores = graph("Add", votes("GreaterOrEqual"), graph("Div", confidence, bound))
    label = graph("ArgMax", scores if model.break_ties else votes("Greater"), axis=1, keepdims=0)
    return {"label": label, "scores": decisions if model.decision_function_shape == "ovo" else scores}


def _decide(graph: Graph, model: Any, samples: str) -> str:
    """Add the decision values: a column for each pair of classes, class or output."""
    offsets = graph.constant(model.intercept_)
    landmarks = isinstance(model, KernelApproximationSVC)
    if isinstance(model, LinearEstimator) or (isinstance(model._kernel_, Linear) and not landmarks):
        weights = graph.constant(np.atleast_2d(_dense(model.coef_)).T)
        return graph("Add", graph("MatMul", samples, weights), offsets)
    coefficients = _dense(model.dual_coef_)
    if landmarks:
        factor, kernel = without_factor(model._kernel_)
        values = kernel_block(graph, kernel, samples, _dense(model.landmarks_))
        return graph("Add", graph("MatMul", values, graph.constant(factor * coefficients.T)), offsets)
    if model._kernel_ is None:
        values = graph("Gather", samples, graph.constant(model.support_.astype(np.int64)), axis=1)
    else:
        factor, kernel = without_factor(model._kernel_)
        coefficients = factor * coefficients
        values = kernel_block(graph, kernel, samples, _dense(model.support_vectors_))
    if getattr(model, "_multi_class_", "ovr") != "ovo" or len(coefficients) == 1:
        return graph("Add", graph("MatMul", values, graph.constant(coefficients.T)), offsets)
    # As in `OneVsOneVote`: the pair a < b has row b − 1 of the vectors of class a and row a of those of class b.
    count = len(model.n_support_)
    edges = np.concatenate([[0], np.cumsum(model.n_support_)])
    parts = graph.several("Split", count, values, graph.constant(model.n_support_.astype(np.int64)), axis=1)
    products = [
        graph("MatMul", part, graph.constant(coefficients[:, edges[c] : edges[c + 1]].T))
        for c, part in enumerate(parts)
    ]
    every = graph("Concat", *products, axis=1)
    pairs = list(combinations(range(count), 2))
    of_first = np.array([a * (count - 1) + b - 1 for a, b in pairs], dtype=np.int64)
    of_second = np.array([b * (count - 1) + a for a, b in pairs], dtype=np.int64)
    halves = (graph("Gather", every, graph.constant(columns), axis=1) for columns in (of_first, of_second))
    return graph("Add", graph("Add", *halves), offsets)


def class_labels(model: Any) -> Any:
    """Return the labels as strings, integers, floats or booleans."""
    if not isinstance(model, CLASSIFIERS):
        return np.array([-1, 1], dtype=np.int64)
    labels = np.asarray(model.classes_)
    return labels.astype(object) if labels.dtype.kind == "U" else labels


def shape_of_scores(model: Any) -> list[int | None]:
    """Return the shape of scores or predictions: per sample one number, or one per output, class or pair of classes."""
    if not isinstance(model, CLASSIFIERS):
        return [None, len(model.intercept_)] if len(model.intercept_) > 1 else [None]
    count = len(model.classes_)
    if count == 2:
        return [None]
    pairs = isinstance(model, KernelClassifier) and model.decision_function_shape == "ovo"
    return [None, count * (count - 1) // 2 if pairs else count]


def _rounded(graph: Graph, decision: str, threshold: str) -> str:
    """Add the decision values with rounding errors set to 0, for samples on the boundary."""
    return graph("Where", graph("LessOrEqual", graph("Abs", decision), threshold), graph.number(0.0), decision)


def _by_sign(graph: Graph, decision: str, comparison: str = "GreaterOrEqual") -> dict[str, str]:
    """Add the labels of two classes by the sign of the decision values."""
    flat = _flat(graph, decision)
    side = graph(comparison, flat, graph.constant(np.zeros(1)))
    return {"label": graph("Cast", side, to=graph.onnx.TensorProto.INT64), "scores": flat}


def _flat(graph: Graph, column: str) -> str:
    return graph("Squeeze", column, graph.constant(np.array([1])))


def _dense(matrix: Any) -> Floats:
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix, dtype=np.float64)
