"""What a fitted model is, in names and values: machine, kernel, kinds of support vectors, what is proved about it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import numpy as np
from scipy import sparse

#: How many classes are named.
NAMED = 20

#: Fields of a geometry that say which training samples are of a kind.
KINDS = ("free", "bounded", "edge", "outside", "inside", "above", "below", "on", "non_support")


def describe(model: Any) -> dict[str, Any]:
    """Return what there is to know of a fitted model, as names and values that JSON knows."""
    facts: dict[str, Any] = {"machine": type(model).__name__}
    if hasattr(model, "_kernel_"):
        facts["kernel"] = "precomputed" if model._kernel_ is None else str(model._kernel_)
    facts["parameters"] = _parameters(model)
    if hasattr(model, "n_features_in_"):
        facts["features"] = int(model.n_features_in_)
    if hasattr(model, "classes_"):
        facts |= _classes(model)
    if getattr(model, "_outputs_", None) is not None:
        facts["outputs"] = int(model._outputs_)
    facts |= _size(model)
    facts["probabilities"] = bool(getattr(model, "_sigmoids_", None)) or hasattr(model, "density_marks_")
    if hasattr(model, "noise_scale_"):
        facts["noise scale"] = np.asarray(model.noise_scale_).tolist()
    return facts | _proof(model)


def _parameters(model: Any) -> dict[str, Any]:
    """Return the parameters that are not what they are by default."""
    defaults = type(model)().get_params(deep=False)
    own = model.get_params(deep=False).items()
    return {name: _plain(value) for name, value in own if not _same(value, defaults[name])}


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(np.all(value == default)))


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool | int | str | None) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value)


def _classes(model: Any) -> dict[str, Any]:
    labels = model.classes_.tolist()
    facts: dict[str, Any] = {"classes": len(labels), "labels": [_plain(label) for label in labels[:NAMED]]}
    if len(labels) > 2 and hasattr(model, "_multi_class_"):
        facts["multi_class"] = model._multi_class_
    if hasattr(model, "n_support_"):
        facts["support vectors by class"] = model.n_support_.tolist()[:NAMED]
    return facts


def _size(model: Any) -> dict[str, Any]:
    """Return how much the model consists of."""
    if hasattr(model, "support_"):
        vectors = model.support_vectors_
        stored = _stored([vectors, model.dual_coef_, model.intercept_])
        return {"support vectors": len(model.support_), "sparse": sparse.issparse(vectors), "stored numbers": stored}
    if hasattr(model, "landmarks_"):
        stored = _stored([model.landmarks_, model.dual_coef_, model.intercept_])
        return {"landmarks": len(model.dual_coef_.T), "stored numbers": stored}
    weights = model.coef_.data if sparse.issparse(model.coef_) else model.coef_
    stored = _stored([model.coef_, model.intercept_])
    return {"weights other than 0": int(np.count_nonzero(weights)), "stored numbers": stored}


def _stored(arrays: Iterable[Any]) -> int:
    return sum(int(array.nnz if sparse.issparse(array) else np.size(array)) for array in arrays)


def _proof(model: Any) -> dict[str, Any]:
    """Return what is proved about all machines together: values are added up, of the rest the worst is told."""
    try:
        certificates = _as_list(model.certificate_)
    except AttributeError:
        return {"certificate": "none: the model was not trained by fit here, and its training data are unknown"}
    except RuntimeError as error:  # the data have changed since
        return {"certificate": f"none: {error}"}
    facts = {
        "machines": len(certificates),
        "primal": sum(one.primal for one in certificates),
        "dual": sum(one.dual for one in certificates),
        "gap": sum(one.gap for one in certificates),
        "relative gap": max(one.relative_gap for one in certificates),
        "violation": max(one.violation for one in certificates),
    }
    unfinished = [status for status in _as_list(getattr(model, "status_", [])) if not status.converged]
    ended = unfinished[0].value if unfinished else "the stopping tolerance was reached"
    if unfinished and len(certificates) > 1:
        ended = f"{ended} ({len(unfinished)} of {len(certificates)} machines)"
    return _kinds(model) | {name: _plain(value) for name, value in facts.items()} | {"ended": ended}


def _kinds(model: Any) -> dict[str, Any]:
    """Return how many training samples are of each kind; in several machines a sample may be of several."""
    if not hasattr(model, "geometry_"):
        return {}
    geometries = _as_list(model.geometry_)
    names = [field.name for field in fields(geometries[0]) if field.name in KINDS]
    if len(geometries) > 1:  # a sample that some machine does not need may be one of another's
        names = [name for name in names if name not in ("non_support", "inside")]
    facts: dict[str, Any] = {
        name.replace("_", "-"): len(np.unique(np.concatenate([getattr(one, name) for one in geometries])))
        for name in names
    }
    if len(geometries) == 1:
        facts |= {name: _plain(getattr(geometries[0], name)) for name in ("margin",) if hasattr(geometries[0], name)}
    return facts


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
