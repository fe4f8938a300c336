"""Description of a fitted model: estimator, kernel, support vectors and certificate, as values and as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin.cli.data import label_name
from maxmargin.deadline import Deadline, TimeLimitReachedError
from maxmargin.problems import Status

#: Limit on the listed classes.
MAX_LISTED_CLASSES = 20

#: Fields of a geometry with the indices of the training samples of a kind.
SAMPLE_KINDS = ("free", "bounded", "edge", "outside", "inside", "above", "below", "on", "non_support")

#: Entries of a description that are not rows of their own in the text.
NOT_ROWS = frozenset(
    [*(kind.replace("_", "-") for kind in SAMPLE_KINDS), "support vectors by class", "labels", "problems", "primal",
     "dual", "gap", "relative gap", "violation", "stopping reason", "stored values", "sparse"]
)  # fmt: skip


def describe(model: Any, deadline: Deadline | None = None) -> dict[str, Any]:
    """Return the description of a fitted model as values that JSON can hold.

    The certificate of a kernel model may take as long as its training; if the deadline passes, it is left out.
    """
    facts: dict[str, Any] = {"estimator": type(model).__name__}
    if hasattr(model, "_kernel_"):
        facts["kernel"] = "precomputed" if model._kernel_ is None else str(model._kernel_)
    facts["parameters"] = _parameters(model)
    if getattr(model, "device_", "cpu") != "cpu":
        facts["device"] = model.device_
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
    try:
        with (Deadline() if deadline is None else deadline).in_force():
            return facts | _certificate(model)
    except TimeLimitReachedError:
        return facts | _without_certificate(model)


def to_text(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the rows of a table that describes a model, from the result of `describe`."""
    rows: dict[str, str] = {}
    for name, value in facts.items():
        if name not in NOT_ROWS:
            rows[name.replace("_", " ")] = _text(value)
        if name == "classes" and "labels" in facts:
            more = ", …" if value > len(facts["labels"]) else ""
            rows[name] = f"{value}: {', '.join(map(label_name, facts['labels']))}{more}"
        if name == "support vectors":
            rows[name] = f"{value:,}{_kinds_text(facts)}"
        if name == "parameters":
            rows[name] = ", ".join(f"{key} {_text(part)}" for key, part in value.items()) or "defaults"
    if "gap" in facts:
        rows |= _certificate_text(facts)
    elif "stopping reason" in facts:
        rows["status"] = facts["stopping reason"]
        if "dual" in facts:
            rows["dual objective"] = _number(facts["dual"], 9)
        if "violation" in facts:
            rows["KKT violation"] = f"{_number(facts['violation'])}, by the gradient of the solver"
    return rows


def to_json(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description with keys for JSON: underscores instead of blanks and hyphens."""
    return {name.replace(" ", "_").replace("-", "_"): value for name, value in facts.items()}


def _parameters(model: Any) -> dict[str, Any]:
    """Return the parameters that differ from their defaults."""
    defaults = type(model)().get_params(deep=False)
    own = model.get_params(deep=False).items()
    return {name: _plain(value) for name, value in own if not _equal(value, defaults[name])}


def _equal(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(np.all(value == default)))


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool | int | str | None) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value)


def _classes(model: Any) -> dict[str, Any]:
    labels = model.classes_.tolist()
    facts: dict[str, Any] = {"classes": len(labels), "labels": [_plain(label) for label in labels[:MAX_LISTED_CLASSES]]}
    if len(labels) > 2 and hasattr(model, "_multi_class_"):
        facts["multi_class"] = model._multi_class_
    if hasattr(model, "n_support_"):
        facts["support vectors by class"] = model.n_support_.tolist()[:MAX_LISTED_CLASSES]
    return facts


def _size(model: Any) -> dict[str, Any]:
    """Return the number of support vectors, landmarks or weights, and of stored values."""
    if hasattr(model, "support_"):
        vectors = model.support_vectors_
        stored = _stored([vectors, model.dual_coef_, model.intercept_])
        return {"support vectors": len(model.support_), "sparse": sparse.issparse(vectors), "stored values": stored}
    if hasattr(model, "landmarks_"):
        stored = _stored([model.landmarks_, model.dual_coef_, model.intercept_])
        return {"landmarks": len(model.dual_coef_.T), "stored values": stored}
    weights = model.coef_.data if sparse.issparse(model.coef_) else model.coef_
    stored = _stored([model.coef_, model.intercept_])
    return {"nonzero weights": int(np.count_nonzero(weights)), "stored values": stored}


def _stored(arrays: Iterable[Any]) -> int:
    return sum(int(array.nnz if sparse.issparse(array) else np.size(array)) for array in arrays)


def _certificate(model: Any) -> dict[str, Any]:
    """Return the certificate: sums of objectives and gaps over all problems, and the worst of the other values."""
    try:
        certificates = _as_list(model.certificate_)
    except AttributeError:
        return {"certificate": "none: the model was not trained here, and its training data are unknown"}
    except RuntimeError as error:  # the data have changed since
        return {"certificate": f"none: {error}"}
    facts = {
        "problems": len(certificates),
        "primal": sum(certificate.primal for certificate in certificates),
        "dual": sum(certificate.dual for certificate in certificates),
        "gap": sum(certificate.gap for certificate in certificates),
        "relative gap": max(certificate.relative_gap for certificate in certificates),
        "violation": max(certificate.violation for certificate in certificates),
    }
    if math.isnan(facts["violation"]):  # after training on blocks
        del facts["violation"]
    values = {name: _plain(value) for name, value in facts.items()}
    return _sample_kinds(model) | values | {"stopping reason": _stopping_reason(model)}


def _without_certificate(model: Any) -> dict[str, Any]:
    """Return what is known of the solution from the solver alone."""
    values = [trained.known_value for trained in model._models_]
    violations = [trained.known_violation for trained in model._models_]
    facts: dict[str, Any] = {"certificate": "not computed: there was no time left", "problems": len(values)}
    if all(value is not None for value in values):
        facts["dual"] = _plain(sum(values))
    if all(violation is not None for violation in violations):
        facts["violation"] = _plain(max(violations))
    return facts | {"stopping reason": _stopping_reason(model)}


def _stopping_reason(model: Any) -> str:
    statuses = _as_list(getattr(model, "status_", []))
    unconverged = [status for status in statuses if not status.converged]
    reason: str = (unconverged or statuses or [Status.CONVERGED])[0].value
    several = unconverged and len(statuses) > 1
    return f"{reason} ({len(unconverged)} of {len(statuses)} problems)" if several else reason


def _sample_kinds(model: Any) -> dict[str, Any]:
    """Return the number of training samples of each kind, in any of the problems."""
    if not hasattr(model, "geometry_"):
        return {}
    geometries = _as_list(model.geometry_)
    names = [field.name for field in fields(geometries[0]) if field.name in SAMPLE_KINDS]
    if len(geometries) > 1:  # a sample may be a support vector of one problem only
        names = [name for name in names if name not in ("non_support", "inside")]
    facts: dict[str, Any] = {
        name.replace("_", "-"): len(np.unique(np.concatenate([getattr(geometry, name) for geometry in geometries])))
        for name in names
    }
    if len(geometries) == 1 and hasattr(geometries[0], "margin"):
        facts["margin"] = _plain(geometries[0].margin)
    return facts


def _kinds_text(facts: Mapping[str, Any]) -> str:
    kinds = [kind for kind in SAMPLE_KINDS if kind in facts and kind != "inside"]
    several = ", in any problem" if facts.get("problems", 1) > 1 else ""
    return f" ({', '.join(f'{facts[kind]:,} {kind}' for kind in kinds)}{several})" if kinds else ""


def _certificate_text(facts: Mapping[str, Any]) -> dict[str, str]:
    problems = facts["problems"]
    worst = f", worst of {problems} problems" if problems > 1 else ""
    rows = {
        "primal objective": _number(facts["primal"], 9),
        "dual objective": _number(facts["dual"], 9),
        "duality gap": f"{_number(facts['gap'])} (relative gap {_number(facts['relative gap'], 2)}{worst})",
    }
    if "violation" in facts:
        rows["KKT violation"] = f"{_number(facts['violation'])}{worst}"
    return {**rows, "status": str(facts["stopping reason"])}


def _number(value: Any, digits: int = 3) -> str:
    return f"{value:.{digits}g}" if isinstance(value, float | int) else str(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return _number(value, 6) if isinstance(value, float) else str(value)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
