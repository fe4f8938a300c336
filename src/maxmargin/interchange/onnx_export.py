"""Export fitted models and pipelines as ONNX graphs.

The graph of an estimator computes `predict` and `decision_function` in float64, with the same voting and tie-breaking:
`maxmargin.interchange.onnx_models`. Pipelines are converted by skl2onnx, with our graph for our estimators:
`maxmargin.interchange.onnx_converters`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, BinaryIO

from maxmargin.interchange.model_file import WRITER
from maxmargin.interchange.onnx_converters import convert_pipeline
from maxmargin.interchange.onnx_graph import Graph
from maxmargin.interchange.onnx_models import add_model, check_exportable, class_labels, shape_of_scores
from maxmargin.interchange.sklearn_classes import chosen_model
from maxmargin.storage.output_files import write_atomically

if TYPE_CHECKING:
    from onnx import ModelProto

#: Versions of the operator set and of the file format, supported by all recent runtimes.
OPSET_VERSION, IR_VERSION = 17, 8


def to_onnx(
    model: Any, file: str | os.PathLike[str] | BinaryIO | None = None, *, dtype: str = "float32", X: Any = None
) -> ModelProto:
    """Return a fitted model or pipeline as an ONNX graph, and optionally write it to a file.

    The input ``X`` has a row for each sample (with ``kernel="precomputed"``, its kernel values with all training
    samples). The outputs are ``label`` and ``scores`` (the decision function) for classifiers and novelty detectors,
    with ``probability=True`` also ``probabilities``, and ``prediction`` for regressions and rankings. Computations are
    in float64.

    Pipelines are converted by skl2onnx, which computes transformers in the type of the input, and names the outputs:
    ``label`` and ``probabilities`` (scores if there are no probabilities), or ``variable``. `register_onnx_converters`
    does the same for ``skl2onnx.to_onnx``.

    Parameters
    ----------
    model : estimator
        A fitted estimator or pipeline; of one that has chosen its parameters, such as `SVCCV`, the model with the best
        parameters. All kernels of `maxmargin.kernels` and their combinations are supported, functions are not.
    file : path or binary file, optional
        Target file.
    dtype : {"float32", "float64"}, default="float32"
        Type of the samples, scores and predictions.
    X : array or data frame, optional
        A sample for a pipeline whose input is not one table of numbers: of a data frame every column is an input.

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
    model = chosen_model(model)
    kinds = {"float32": onnx.TensorProto.FLOAT, "float64": onnx.TensorProto.DOUBLE}
    if dtype not in kinds:
        raise ValueError(f"dtype must be 'float32' or 'float64', not {dtype!r}")
    made = convert_pipeline(model, dtype, X) if _is_pipeline(model) else _converted(model, kinds[dtype])
    if file is not None:
        write_atomically(file, [made.SerializeToString()])
    return made


def _is_pipeline(model: Any) -> bool:
    """Return whether it is an estimator of scikit-learn, which may contain one of ours."""
    return type(model).__module__.startswith("sklearn.")


def _converted(model: Any, kind: int) -> ModelProto:
    """Return the graph of an estimator."""
    import onnx

    check_exportable(model)
    graph = Graph()
    outputs = {}
    for name, result in add_model(graph, model, graph("Cast", "X", to=onnx.TensorProto.DOUBLE)).items():
        if name == "label":
            outputs[result] = graph.value(name, onnx.helper.np_dtype_to_tensor_dtype(class_labels(model).dtype), [None])
        else:
            shape = [None, len(model.classes_)] if name == "probabilities" else shape_of_scores(model)
            outputs[graph("Cast", result, to=kind)] = graph.value(name, kind, shape)
    inputs = [graph.value("X", kind, [None, model.n_features_in_])]
    return onnx.helper.make_model(
        graph.finish(type(model).__name__, inputs, outputs),
        opset_imports=[onnx.helper.make_opsetid("", OPSET_VERSION)],
        ir_version=IR_VERSION,
        producer_name="maxmargin",
        producer_version=WRITER,
    )
