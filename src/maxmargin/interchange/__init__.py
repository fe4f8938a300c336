"""Model files: our own safe format, ONNX, and formats of other programs.

- `model_file`: `save`, `load`, `read_notes`; `value_encoding`, `named_values` and `class_registry` encode arrays,
  values and objects, `fitted_schema` and `attribute_checks` validate fitted attributes; `estimator_encoding` and
  `sklearn_classes` encode pipelines, which `sklearn_checks` validates
- `libsvm`, `liblinear_model`, `svmlight_model`: text formats, parsed by `model_text` and `support_vector_lines`
- `sklearn_models`: conversion from and to scikit-learn
- `onnx_export`: export to ONNX; `onnx_models`, `onnx_probabilities` and `onnx_graph` have the operators of estimators,
  `onnx_converters` those of pipelines
- `errors`: `ModelFileError`

Public: the names in ``__init__.pyi``.
"""

import lazy_loader as _lazy

# The names are in __init__.pyi; text files can be read and written without importing scikit-learn.
__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
