"""All suites by name, and the division of their cases into those that may be used for tuning and those held aside.

Thresholds and algorithms are chosen on the first group only. The data sets of the second group are named here before
any tuning, so that their figures show what users can expect on other data.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.peers import cases
from benchmarks.peers.cases import Case
from benchmarks.peers.linear.cases import LINEAR_SUITES, LinearCase
from benchmarks.peers.machine_cases import machines, machines_quick
from benchmarks.peers.small_cases import small, small_quick

SUITES: dict[str, Callable[[Path], list[Case]]] = {
    "small": small,
    "small-quick": small_quick,
    "kernel": cases.kernel,
    "machines": machines,
    "machines-quick": machines_quick,
    "large": cases.large,
    "growth": cases.growth,
    "quick": cases.quick,
}

EVERY_SUITE: dict[str, Callable[[Path], list[Case] | list[LinearCase]]] = {**SUITES, **LINEAR_SUITES}

#: The data sets that are not used for tuning.
HELD_ASIDE = (
    "cpusmall",
    "german.numer",
    "housing",
    "ijcnn1",
    "letter",
    "mushrooms",
    "reuters",
    "sonar",
    "splice",
    "usps",
)

GROUPS = ("tuned", "held aside")


def group_of(case: str) -> str:
    """Return the group of a case by its name, which starts with that of the data."""
    return GROUPS[any(case == data or case.startswith(f"{data}_") for data in HELD_ASIDE)]
