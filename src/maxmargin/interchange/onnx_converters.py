"""Converters of our estimators for skl2onnx, which converts pipelines of scikit-learn.

A converter adds the graph of `maxmargin.interchange.onnx_models`. As skl2onnx does for the SVMs of scikit-learn, a
classifier has the outputs ``label`` and ``probabilities``, which are decision values without ``probability=True`` (of
two classes f and −f; with the option ``raw_scores`` −f and f; of `LinearSVC` without this option f); a novelty detector
``label`` and ``scores``; a regression ``variable``, a column for each output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.interchange.fitted_schema import MACHINES
from maxmargin.interchange.onnx_graph import Graph
from maxmargin.interchange.onnx_models import (
    CLASSIFIERS,
    REGRESSORS,
    add_model,
    check_exportable,
    class_labels,
    knows_probabilities,
    shape_of_scores,
)
from maxmargin.interchange.sklearn_classes import chosen_model
from maxmargin.machines.linear.linear_svc import LinearSVC

if TYPE_CHECKING:
    from onnx import ModelProto

#: The least version of the operators of a graph.
MIN_OPSET_VERSION = 15

#: Estimators that choose their parameters.
SEARCHES = ("LinearSVCCV", "LinearSVRCV", "OneClassSVMCV", "SVCCV", "SVRCV")

#: Options of skl2onnx for classifiers.
CLASSIFIER_OPTIONS = {
    "zipmap": [True, False, "columns"],
    "nocl": [True, False],
    "output_class_labels": [False, True],
    "raw_scores": [True, False],
}


def register_onnx_converters() -> None:
    """Let skl2onnx convert pipelines that contain our estimators.

    Call it once before ``skl2onnx.to_onnx`` or ``skl2onnx.convert_sklearn``; `maxmargin.interchange.to_onnx` calls it.
    Converters of scikit-learn's classes are not changed.

    Examples
    --------
    >>> import numpy as np
    >>> import skl2onnx
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from maxmargin import SVC
    >>> from maxmargin.interchange import register_onnx_converters
    >>> register_onnx_converters()
    >>> X = np.array([[0.0], [1.0], [2.0]], dtype=np.float32)
    >>> pipeline = make_pipeline(StandardScaler(), SVC()).fit(X, [0, 1, 1])
    >>> [output.name for output in skl2onnx.to_onnx(pipeline, X[:1]).graph.output]
    ['label', 'probabilities']
    """
    skl2onnx = _skl2onnx()
    import maxmargin  # the public names: estimators and searches

    for name in (*MACHINES, *SEARCHES):
        _register(skl2onnx, getattr(maxmargin, name))


def convert_pipeline(model: Any, dtype: str, X: Any = None) -> ModelProto:
    """Return the graph of a pipeline of scikit-learn with our estimators."""
    skl2onnx = _skl2onnx()
    from skl2onnx.common import data_types
    from sklearn.base import is_classifier
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    register_onnx_converters()
    chosen = data_types.FloatTensorType if dtype == "float32" else data_types.DoubleTensorType
    if X is None:
        types = [("X", chosen([None, model.n_features_in_]))]
    else:
        floats = (data_types.FloatTensorType, data_types.DoubleTensorType)
        found = skl2onnx.algebra.type_helper.guess_initial_types(X, None)
        types = [(name, chosen(kind.shape) if isinstance(kind, floats) else kind) for name, kind in found]
    options = {"zipmap": False} if is_classifier(model) else None
    made: ModelProto = skl2onnx.convert_sklearn(model, initial_types=types, options=options)
    return made


def _skl2onnx() -> Any:
    try:
        import skl2onnx
        import skl2onnx.algebra.type_helper
    except ImportError as error:
        raise ImportError("pipelines are converted to ONNX by skl2onnx: pip install 'maxmargin[onnx]'") from error
    return skl2onnx


def _register(skl2onnx: Any, kind: type[Any]) -> None:
    alias = f"Maxmargin{kind.__name__}"
    is_classifier = issubclass(kind, CLASSIFIERS) or kind.__name__ in ("SVCCV", "LinearSVCCV")
    skl2onnx.update_registered_converter(
        kind,
        alias,
        _set_types,
        _convert,
        parser=_parser(alias),
        options=CLASSIFIER_OPTIONS if is_classifier else None,
    )


def _parser(alias: str) -> Any:
    """Return the function that declares the outputs of an estimator."""

    def parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
        from skl2onnx._parse import _parse_sklearn_classifier  # adds what the option "zipmap" asks for
        from skl2onnx.common import data_types

        chosen = chosen_model(model)
        check_exportable(chosen)
        if knows_probabilities(chosen):
            return _parse_sklearn_classifier(scope, model, inputs, custom_parsers=custom_parsers)
        operator = scope.declare_local_operator(alias, model)
        operator.inputs = inputs
        kind = data_types.guess_tensor_type(inputs[0].type)
        names = ["variable"] if isinstance(chosen, REGRESSORS) else ["label", "scores"]
        if isinstance(chosen, CLASSIFIERS):
            names = ["label", "probabilities"]
        for name in names:
            type_of = data_types.Int64TensorType() if name == "label" else kind
            operator.outputs.append(scope.declare_local_variable(name, type_of))
        return operator.outputs

    return parse


def _set_types(operator: Any) -> None:
    """Set types and shapes of the outputs."""
    from skl2onnx.common import data_types

    model = chosen_model(operator.raw_operator)
    rows = operator.inputs[0].get_first_dimension()
    kind = data_types.guess_tensor_type(operator.inputs[0].type)
    if len(operator.outputs) == 2:
        label = data_types.StringTensorType if _labels(model).dtype == object else data_types.Int64TensorType
        operator.outputs[0].type = label([rows])
    operator.outputs[-1].type = type(kind)([rows, _columns(model)])


def _columns(model: Any) -> int:
    """Return the number of columns of scores, probabilities or predictions."""
    if knows_probabilities(model):
        return len(model.classes_)
    shape = shape_of_scores(model)
    return shape[1] or 1 if len(shape) == 2 else 1 + _has_opposite(model)


def _has_opposite(model: Any, raw_scores: bool = False) -> bool:
    """Return whether the scores of two classes are followed by their opposites, as in skl2onnx's graph of an SVC."""
    two = _classifies(model) and len(model.classes_) == 2 and not knows_probabilities(model)
    return two and (raw_scores or not isinstance(model, LinearSVC))


def _classifies(model: Any) -> bool:
    return isinstance(model, CLASSIFIERS)


def _labels(model: Any) -> Any:
    """Return the labels as strings or integers, the types that skl2onnx supports."""
    labels = class_labels(model)
    if labels.dtype == object:
        return labels
    if labels.dtype.kind == "f" and np.abs(labels).max() >= 2**53:
        raise ValueError("skl2onnx supports labels that are strings or integers; convert the labels before fit")
    return labels.astype(np.int64)


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the graph of an estimator."""
    from onnx import TensorProto
    from skl2onnx.common.data_types import guess_proto_type

    if container.target_opset < MIN_OPSET_VERSION:
        raise ValueError(f"target_opset must be at least {MIN_OPSET_VERSION} for estimators of maxmargin")
    model = chosen_model(operator.raw_operator)
    graph = Graph(f"{scope.get_unique_operator_name('maxmargin')}_")
    samples = graph("Cast", operator.inputs[0].full_name, to=TensorProto.DOUBLE)
    results = add_model(graph, model, samples, _labels(model) if len(operator.outputs) == 2 else None)
    kind = guess_proto_type(operator.outputs[-1].type)
    values = results.get("probabilities") or results.get("scores") or results["prediction"]
    values = graph("Reshape", values, graph.constant(np.array([-1, _columns(model) - _has_opposite(model)])))
    options = container.get_options(operator.raw_operator, {"raw_scores": False}) if _classifies(model) else {}
    raw = bool(options.get("raw_scores", False))
    if _has_opposite(model, raw):
        signs = np.array([[-1.0, 1.0]] if raw else [[1.0, -1.0]])
        values = graph("Mul", values, graph.constant(signs))
    last = graph("Cast", values, to=kind)
    _embed(scope, container, graph)
    outputs = [results["label"], last] if len(operator.outputs) == 2 else [last]
    for result, output in zip(outputs, operator.outputs, strict=True):
        container.add_node("Identity", result, output.full_name, name=scope.get_unique_operator_name("output"))


def _embed(scope: Any, container: Any, graph: Graph) -> None:
    """Add operators and constants to the graph of skl2onnx."""
    from onnx import TensorProto, helper

    for constant in graph.constants:
        content = list(constant.string_data) if constant.data_type == TensorProto.STRING else constant
        container.add_initializer(constant.name, constant.data_type, list(constant.dims), content)
    for node in graph.nodes:
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        name = scope.get_unique_operator_name(node.op_type)
        container.add_node(node.op_type, list(node.input), list(node.output), name=name, **attributes)
