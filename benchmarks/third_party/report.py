"""The table of results of other projects' tests."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from benchmarks.third_party.suites import SUITES

REASONS = Path(__file__).with_name("reasons.toml")

Outcomes = dict[str, dict[str, str]]


@dataclass(frozen=True)
class Comparison:
    """The outcomes of a suite with scikit-learn's classes and with ours."""

    suite: str
    theirs: Outcomes
    ours: Outcomes

    @property
    def differences(self) -> list[str]:
        """The tests that fail with our classes only."""
        failed = [name for name, test in self.ours.items() if test["outcome"] == "failed"]
        return [name for name in failed if self.theirs.get(name, {}).get("outcome") != "failed"]

    def count(self, outcomes: Outcomes, outcome: str) -> int:
        """Return the number of tests with an outcome."""
        return sum(test["outcome"] == outcome for test in outcomes.values())

    def reasons(self) -> tuple[dict[str, list[str]], list[str]]:
        """Return the tests that differ by reason, and those without one."""
        known = tomllib.loads(REASONS.read_text(encoding="utf-8")).get(self.suite, {})
        by_reason: dict[str, list[str]] = {}
        unexplained = []
        for name in self.differences:
            reason = next((reason for pattern, reason in known.items() if re.search(pattern, name)), None)
            if reason is None:
                unexplained.append(name)
            else:
                by_reason.setdefault(reason, []).append(name)
        return by_reason, unexplained

    def row(self) -> str:
        """Return the line of the table."""
        by_reason, unexplained = self.reasons()
        parts = [f"{len(names)}: {reason}" for reason, names in by_reason.items()]
        parts += [f"{len(unexplained)}: without a reason"] if unexplained else []
        note = f"; {SUITES[self.suite].note}" if SUITES[self.suite].note else ""
        counts = [
            f"{self.count(outcomes, 'passed')} of {len(outcomes) - self.count(outcomes, 'skipped')}"
            for outcomes in (self.theirs, self.ours)
        ]
        return f"| {self.suite}{note} | {' | '.join(counts)} | {'<br>'.join(parts) or 'none'} |"


def update_table(path: Path, comparison: Comparison) -> None:
    """Replace the line of a suite in a page, or add it after the last line of the table."""
    lines = path.read_text(encoding="utf-8").splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("| suite |"))
    end = next((k for k in range(start, len(lines)) if not lines[k].startswith("|")), len(lines))
    rows = [line for line in lines[start + 2 : end] if not re.match(rf"\| {re.escape(comparison.suite)}[;| ]", line)]
    rows = sorted([*rows, comparison.row()])
    path.write_text("\n".join([*lines[: start + 2], *rows, *lines[end:]]) + "\n", encoding="utf-8")
