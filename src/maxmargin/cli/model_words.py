"""What `info_model.describe` knows of a model, as a person reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from maxmargin.cli.data import label_name

#: Kinds of samples that have a name of their own in a geometry.
KINDS = ("free", "bounded", "edge", "outside", "inside", "above", "below", "on", "non-support")

#: What is told in other words, or nowhere.
ELSEWHERE = frozenset(
    [*KINDS, "support vectors by class", "labels", "machines", "primal", "dual", "gap", "relative gap", "violation",
     "ended", "stored numbers", "sparse"]
)  # fmt: skip


def in_words(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return facts about a model in words."""
    found: dict[str, str] = {}
    for name, value in facts.items():
        if name not in ELSEWHERE:
            found[name.replace("_", " ")] = _words(value)
        if name == "classes" and "labels" in facts:
            more = ", …" if value > len(facts["labels"]) else ""
            found[name] = f"{value}: {', '.join(map(label_name, facts['labels']))}{more}"
        if name == "support vectors":
            found[name] = f"{value:,}{_kinds(facts)}"
        if name == "parameters":
            found[name] = ", ".join(f"{key} {_words(part)}" for key, part in value.items()) or "those by default"
    if "gap" in facts:
        found |= _proof(facts)
    return found


def for_programs(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts under names without blanks, as JSON has them."""
    return {name.replace(" ", "_").replace("-", "_"): value for name, value in facts.items()}


def _kinds(facts: Mapping[str, Any]) -> str:
    parts = [f"{facts[kind]:,} {kind}" for kind in KINDS if kind in facts and kind not in ("inside", "non-support")]
    where = " in some machine" if facts.get("machines", 1) > 1 else ""
    return f" ({', '.join(parts)}{where})" if parts else ""


def _proof(facts: Mapping[str, Any]) -> dict[str, str]:
    machines = facts["machines"]
    worst = f" in the worst of {machines} machines" if machines > 1 else ""
    return {
        "primal value": _number(facts["primal"], 9),
        "dual value": _number(facts["dual"], 9),
        "duality gap": f"{_number(facts['gap'])} ({_number(facts['relative gap'], 2)} of the optimum{worst})",
        "largest violation": f"{_number(facts['violation'])}{worst}",
        "ended": str(facts["ended"]),
    }


def _number(value: Any, digits: int = 3) -> str:
    return f"{value:.{digits}g}" if isinstance(value, float | int) else str(value)


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return _number(value, 6) if isinstance(value, float) else str(value)
