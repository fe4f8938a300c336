"""LIBSVM's model files: what is in them, and the estimators that predict the same."""

import lazy_loader as _lazy

# The names stand in __init__.pyi. Those that read and write text need no estimators, and do not wait for scikit-learn.
__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
