"""What scorers ask of a model."""

from __future__ import annotations

from typing import Any

from sklearn.metrics._scorer import _BaseScorer, _MultimetricScorer

from maxmargin.search.fold_scoring import SCORERS
from maxmargin.search.novelty_score import BackgroundScore

#: What a scorer may ask of a model.
METHODS = frozenset({"predict", "decision_function"})


def asks_for_values(scorer: Any) -> bool:
    """Whether a scorer asks a model for predictions or decision values only."""
    if isinstance(scorer, BackgroundScore) or scorer in SCORERS.values():
        return True
    if isinstance(scorer, _MultimetricScorer):
        return all(asks_for_values(single) for single in scorer._scorers.values())
    if not isinstance(scorer, _BaseScorer):
        return False
    methods = scorer._response_method
    return (methods if isinstance(methods, str) else methods[0]) in METHODS
