"""Scorers of scikit-learn for a search, and the metadata that splitter, fit and scorer take."""

from __future__ import annotations

import warnings
from inspect import signature
from typing import Any, NamedTuple

from sklearn import get_config
from sklearn.metrics import check_scoring, get_scorer
from sklearn.utils.metadata_routing import process_routing


class Metadata(NamedTuple):
    """Arguments of a fit, of the method ``split`` of the splitter, and of the scorer."""

    fit: dict[str, Any]
    split: dict[str, Any]
    score: dict[str, Any]
    routed: bool


def make_scorer(estimator: Any, scoring: Any) -> Any:
    """Return the scorer of a name, of a function, or of several of them as a list or dict."""
    if callable(scoring):
        return scoring
    if isinstance(scoring, str):
        return get_scorer(scoring)
    if isinstance(scoring, list | tuple | set | dict):
        return check_scoring(estimator, scoring=set(scoring) if isinstance(scoring, tuple) else scoring)
    raise ValueError(
        "scoring must be the name of a scorer, a function of (estimator, X, y), or a list or dict of these, not "
        f"{scoring!r}"
    )


def score_name(scoring: Any) -> str:
    """Return what a score is called in tables and figures."""
    if isinstance(scoring, str):
        return scoring
    if isinstance(scoring, list | tuple | set | dict):
        return ", ".join(scoring)
    return str(getattr(scoring, "__name__", None) or type(scoring).__name__)


def metric_of(scorer: Any, refit: Any) -> str:
    """Return the metric that ranks points during the search."""
    if isinstance(refit, str):
        return refit
    return next(iter(scorer._scorers)) if hasattr(scorer, "_scorers") else "score"


def route(owner: Any, scorer: Any, weights: Any, params: dict[str, Any], caller: str = "fit") -> Metadata:
    """Return where metadata go: as requested if metadata routing is enabled, else groups and weights as usual."""
    fit = {} if weights is None else {"sample_weight": weights}
    if get_config()["enable_metadata_routing"]:
        given = {**params, **fit}
        routed = process_routing(owner, caller, **given)
        return Metadata(fit, dict(routed.get("splitter", {}).get("split", {})), dict(routed.scorer.score), True)
    params = dict(params)
    groups = params.pop("groups", None) if caller == "fit" else None
    if params:
        raise TypeError(
            f"{type(owner).__name__}.{caller} got unexpected arguments {sorted(params)}; other metadata than "
            "sample_weight and groups need sklearn.set_config(enable_metadata_routing=True)"
        )
    if weights is None:
        return Metadata(fit, {"groups": groups}, {}, False)
    if _takes_weights(scorer):
        # A row without a weight is left out of training, and counts nothing here.
        return Metadata(fit, {"groups": groups}, {"sample_weight": weights}, False)
    warnings.warn(
        f"The scoring {scorer} does not support sample_weight, which may lead to statistically incorrect results when "
        f"fitting {type(owner).__name__} with sample_weight.",
        UserWarning,
        stacklevel=5,
    )
    return Metadata(fit, {"groups": groups}, {}, False)


def _takes_weights(scorer: Any) -> bool:
    """Whether a scorer takes the weights of samples."""
    own = getattr(scorer, "_accept_sample_weight", None)
    if own is not None:
        return bool(own())
    return "sample_weight" in signature(getattr(scorer, "_score_func", scorer)).parameters
