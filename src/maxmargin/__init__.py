"""Support vector machines with a proof of optimality: a drop-in for ``sklearn.svm``.

>>> from maxmargin import SVC                               # doctest: +SKIP
>>> model = SVC(C=10).fit(X, y)                             # doctest: +SKIP
>>> print(model.certificate_)                               # doctest: +SKIP
"""

from typing import Any as _Any

import lazy_loader as _lazy

# The public names stand in __init__.pyi and are imported when they are first asked for: a command that only reads or
# scales data need not wait for scikit-learn.
_public_name, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)


def __getattr__(name: str) -> _Any:
    if name != "__version__":
        return _public_name(name)
    from importlib.metadata import version

    return version("maxmargin")
