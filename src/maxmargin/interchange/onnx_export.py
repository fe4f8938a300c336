"""Export fitted models as ONNX graphs.

The graph computes `predict` and `decision_function` in float64, with the same voting and tie-breaking.
`maxmargin.interchange.onnx_graph` has the kernels.
"""

from __future__ import annotations

import os
from itertools import combinations
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats
from maxmargin.interchange.model_file import WRITER
from maxmargin.interchange.onnx_graph import Graph, kernel_block, kernel_diagonal, without_factor
from maxmargin.kernels import Linear
from maxmargin.machines.kernel.function_estimator import KernelRegressor
from maxmargin.machines.kernel.kernel_classifier import KernelClassifier
from maxmargin.machines.kernel.one_class_svm import OneClassSVM
from maxmargin.machines.kernel.quantile_svr import QuantileSVR
from maxmargin.machines.kernel.rank_svc import RankSVC
from maxmargin.machines.kernel.svdd import SVDD
from maxmargin.machines.linear.linear_estimator import LinearEstimator
from maxmargin.machines.linear.linear_svc import LinearSVC
from maxmargin.machines.linear.linear_svr import LinearSVR
from maxmargin.precision import DECISION_TOLERANCE
from maxmargin.storage.output_files import write_atomically

if TYPE_CHECKING:
    from onnx import ModelProto

#: Versions of the operator set and of the file format, supported by all recent runtimes.
OPSET_VERSION, IR_VERSION = 17, 8

#: Estimators that predict a number.
REGRESSORS = (KernelRegressor, LinearSVR, RankSVC)

#: Estimators that predict a class.
CLASSIFIERS = (KernelClassifier, LinearSVC)


def to_onnx(model: Any, file: str | os.PathLike[str] | BinaryIO | None = None, *, dtype: str = "float32") -> ModelProto:
    """Return a fitted model as an ONNX graph, and optionally write it to a file.

    The input ``X`` has a row for each sample (with ``kernel="precomputed"``, its kernel values with all training
    samples). The outputs are ``label`` and ``scores`` (the decision function) for classifiers and novelty detectors,
    ``prediction`` for regressions and rankings. Computations are in float64.

    Parameters
    ----------
    model : estimator
        A fitted estimator; of one that has chosen its parameters, such as `SVCCV`, the model with the best parameters.
        All kernels of `maxmargin.kernels` and their combinations are supported, functions are not.
    file : path or binary file, optional
        Target file.
    dtype : {"float32", "float64"}, default="float32"
        Type of the samples, scores and predictions.

    Returns
    -------
    onnx.ModelProto
        The graph.

    Examples
    --------
    >>> from maxmargin import SVC
    >>> from maxmargin.interchange import to_onnx
    >>> model = SVC(kernel="linear").fit([[0.0], [1.0]], ["low", "high"])
    >>> [output.name for output in to_onnx(model).graph.output]
    ['label', 'scores']
    """
    try:
        import onnx
    except ImportError as error:
        raise ImportError("ONNX export requires onnx: pip install 'maxmargin[onnx]'") from error
    model = getattr(model, "best_estimator_", model)
    kinds = {"float32": onnx.TensorProto.FLOAT, "float64": onnx.TensorProto.DOUBLE}
    if dtype not in kinds:
        raise ValueError(f"dtype must be 'float32' or 'float64', not {dtype!r}")
    if not isinstance(model, (KernelClassifier, LinearEstimator, OneClassSVM, SVDD, *REGRESSORS)):
        raise ValueError(f"{type(model).__name__} cannot be exported to ONNX; the other estimators of maxmargin can")
    if not hasattr(model, "intercept_"):
        raise ValueError(f"this {type(model).__name__} is not fitted yet; fit it before exporting")
    if isinstance(model, CLASSIFIERS) and model._knows_probabilities:
        raise ValueError(
            f"a {type(model).__name__} with probability=True predicts the most probable class, but probabilities "
            "cannot be exported; use set_params(probability=False) to predict by votes"
        )
    graph = Graph()
    samples = graph("Cast", "X", to=onnx.TensorProto.DOUBLE)
    outputs = {}
    for name, result in _results(graph, model, samples).items():
        if name == "label":
            labels = _labels(model)
            outputs[graph("Gather", graph.constant(labels), result)] = graph.value(
                name, onnx.helper.np_dtype_to_tensor_dtype(labels.dtype), [None]
            )
        else:
            shape = _shape_of_scores(model)
            outputs[graph("Cast", result, to=kinds[dtype])] = graph.value(name, kinds[dtype], shape)
    inputs = [graph.value("X", kinds[dtype], [None, model.n_features_in_])]
    made = onnx.helper.make_model(
        graph.finish(type(model).__name__, inputs, outputs),
        opset_imports=[onnx.helper.make_opsetid("", OPSET_VERSION)],
        ir_version=IR_VERSION,
        producer_name="maxmargin",
        producer_version=WRITER,
    )
    if file is not None:
        write_atomically(file, [made.SerializeToString()])
    return made


def _results(graph: Graph, model: Any, samples: str) -> dict[str, str]:
    """Add the outputs of the model; a label is the index of its class."""
    if isinstance(model, LinearSVC):
        decisions = _decide(graph, model, samples)
        if len(model.classes_) == 2:
            return _by_sign(graph, decisions, "Greater")
        return {"label": graph("ArgMax", decisions, axis=1, keepdims=0), "scores": decisions}
    if isinstance(model, KernelClassifier):
        return _classify(graph, model, samples)
    decision = _decide(graph, model, samples)
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


def _classify(graph: Graph, model: KernelClassifier, samples: str) -> dict[str, str]:
    decisions = _decide(graph, model, samples)
    count = len(model.classes_)
    if count == 2:
        return _by_sign(graph, decisions)
    if model._multi_class_ != "ovo":
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
    if isinstance(model, LinearEstimator) or isinstance(model._kernel_, Linear):
        weights = graph.constant(np.atleast_2d(_dense(model.coef_)).T)
        return graph("Add", graph("MatMul", samples, weights), offsets)
    coefficients = _dense(model.dual_coef_)
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


def _labels(model: Any) -> Any:
    """Return the labels as strings, integers, floats or booleans."""
    if not isinstance(model, CLASSIFIERS):
        return np.array([-1, 1], dtype=np.int64)
    labels = np.asarray(model.classes_)
    return labels.astype(object) if labels.dtype.kind == "U" else labels


def _shape_of_scores(model: Any) -> list[int | None]:
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
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)
