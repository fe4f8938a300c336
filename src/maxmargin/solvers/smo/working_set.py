"""Names of the working-set selection rules. The rules themselves are in `native/working_set.hpp`.

Each picks the pair of variables that moves next, and returns the violation of the optimality criterion as well:
it is the stopping test (Bottou & Lin 1.7.1, 1.7.2).

``most_violating_pair``
    Both ends of the violation (1.25): no kernel row is needed to choose, but the steps are often short.
``second_order``
    One end, and the partner that promises the largest gain if there were no box (1.27). The default.
``maximum_gain``
    One index of the previous pair, whose rows are at hand, and the partner of the largest gain inside the box;
    second order when the previous pair rests in a corner (Glasmachers & Igel 2006).
"""

from __future__ import annotations

SELECTION_RULES: dict[str, int] = {"most_violating_pair": 0, "second_order": 1, "maximum_gain": 2}


def selection_code(name: str) -> int:
    """Return the native code of a rule, or say which names exist."""
    if not isinstance(name, str) or name not in SELECTION_RULES:
        names = ", ".join(repr(rule) for rule in SELECTION_RULES)
        raise ValueError(f"unknown selection {name!r}; the rules are {names}")
    return SELECTION_RULES[name]
