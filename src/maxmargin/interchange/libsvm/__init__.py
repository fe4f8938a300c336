"""LIBSVM model files.

- `text`: read and write the text format
- `model`: `LibsvmModel`, the content of a file, with LIBSVM's predictions
- `probability`: LIBSVM's algorithms for probabilities
- `content`: conversion of machines and estimators; `estimators`: conversion to them

Public: `LibsvmModel`, `read_text`, `write_text`, `read_libsvm_model`, `write_libsvm_model`.
"""

import lazy_loader as _lazy

# The names are in __init__.pyi; text files can be read and written without importing scikit-learn.
__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
