"""Random data sets: samples, targets and weights, ordinary ones and such that have caused trouble."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .draws import Draw


def samples(draw: Draw, most: int) -> np.ndarray:
    """Return a dense float64 table."""
    n, d = draw.count(2 if draw.chance(0.1) else 6, most), draw.count(1, 9)
    rng = draw.rng
    kind = draw.pick("normal", "normal", "clusters", "integers", "uniform", "heavy", "low rank", "binary", "equal")
    if kind == "normal":
        X = rng.normal(size=(n, d))
    elif kind == "clusters":
        X = rng.normal(size=(3, d))[rng.integers(3, size=n)] * 3 + rng.normal(size=(n, d)) * draw.power(-6, 0)
    elif kind == "integers":
        X = rng.integers(-3, 4, size=(n, d)).astype(np.float64)
    elif kind == "uniform":
        X = rng.random((n, d))
    elif kind == "heavy":
        X = rng.standard_cauchy((n, d))
    elif kind == "low rank":
        X = rng.normal(size=(n, 1)) @ rng.normal(size=(1, d))
    elif kind == "binary":
        X = (rng.random((n, d)) < 0.3).astype(np.float64)
    else:
        X = np.tile(rng.normal(size=d), (n, 1))
        X[: max(1, n // 5)] += 1
    if draw.chance(0.15):
        X = X[rng.integers(n, size=n)]  # duplicates, with equal or opposite labels
    if draw.chance(0.1):
        X[:, rng.integers(d)] = draw.pick(0.0, 1.0, -7.5)
    if draw.chance(0.15):
        X = X * 10.0 ** rng.integers(-4, 5, size=d)  # columns of different units
    if draw.chance(0.1):
        X = X + draw.pick(2026.0, 1e6, 1e9)  # years, time stamps
    return X * draw.factor("samples", draw.mostly(1.0, draw.power(-4, 4), 100.0, probability=0.4))


def presented(draw: Draw, X: np.ndarray, sparse_allowed: bool = True) -> Any:
    """Return the table as float64 or float32, dense in C or Fortran order or with strides, or sparse."""
    with np.errstate(over="ignore", under="ignore"):
        single = X.astype(np.float32)
    if draw.chance(0.25) and np.isfinite(single).all() and (np.count_nonzero(single) == np.count_nonzero(X)):
        X = single
    layout = draw.pick("C", "C", "F", "strided", "csr") if sparse_allowed else "C"
    if layout == "F":
        return np.asfortranarray(X)
    if layout == "strided":
        wide = np.zeros((2 * len(X), X.shape[1]), dtype=X.dtype)
        wide[::2] = X
        return wide[::2]
    return sparse.csr_array(X) if layout == "csr" else X


def labels(draw: Draw, X: np.ndarray) -> np.ndarray:
    """Return class labels: two or more classes, at random or by a function, balanced or almost empty, of any type."""
    n, rng = len(X), draw.rng
    classes = min(n, draw.pick(2, 2, 2, 3, 4))
    with np.errstate(all="ignore"):
        score = X[:, 0] / max(float(np.abs(X).max()), 1e-300)
    noise = draw.pick(0.0, 0.3, 3.0) * rng.normal(size=n) * (float(score.std()) + 1e-3)
    order = np.argsort(np.argsort(score + noise, kind="stable"), kind="stable")
    y = order * classes // n
    if draw.chance(0.1):
        y = np.minimum(np.arange(n), classes - 1)[rng.permutation(n)]  # all but one class have one sample
    y[rng.permutation(n)[:classes]] = np.arange(classes)
    names = draw.mostly(None, ["no", "yes", "maybe", "never"], [-1.0, 1.0, 7.5, 1e6], [-5, 3, 4, 2**40])
    return y if names is None else np.array(names)[y]


def targets(draw: Draw, X: np.ndarray) -> np.ndarray:
    """Return targets of a regression: linear or not, exact or with noise, constant, of any scale."""
    n, rng = len(X), draw.rng
    with np.errstate(all="ignore"):
        Z = X / max(float(np.abs(X).max()), 1e-300)
    kind = draw.pick("linear", "linear", "wave", "exact", "constant", "integers", "heavy")
    t = Z @ rng.normal(size=Z.shape[1])
    if kind == "wave":
        t = np.sin(6 * t)
    if kind in ("linear", "wave"):
        t = t + rng.normal(size=n) * draw.power(-3, 0)
    elif kind == "constant":
        t = np.full(n, draw.pick(0.0, 1.0, -3.7))
    elif kind == "integers":
        t = rng.integers(-4, 5, size=n).astype(np.float64)
    elif kind == "heavy":
        t = rng.standard_cauchy(n)
    t = t + draw.mostly(0.0, 1e4, 2026.0)
    return t * draw.factor("targets", draw.mostly(1.0, draw.power(-4, 4)))


def weights(draw: Draw, n: int) -> np.ndarray | None:
    """Return sample weights, or none."""
    factor = draw.factor("weights", 1.0)
    if factor == 1.0 and draw.chance(0.65):
        return None
    w = draw.rng.random(n) + 0.01
    kind = draw.pick("random", "integers", "zeros", "wide")
    if kind == "integers":
        w = draw.rng.integers(1, 4, size=n).astype(np.float64)
    elif kind == "zeros" and n > 8:
        w[draw.rng.permutation(n)[: n // 4]] = 0.0
    elif kind == "wide":
        w = 10.0 ** draw.rng.uniform(-4, 4, size=n)
    elif factor != 1.0:
        w = np.ones(n)
    return w * factor
