"""The sensitivity benchmark: its thresholds exist and are documented, and it changes the value that fits use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))  # the benchmarks are not installed

from benchmarks.tuned_thresholds import KEPT, MAXIMA, THRESHOLDS, Threshold, comment_of, present_value  # noqa: E402

ALL = [threshold for thresholds in THRESHOLDS.values() for threshold in thresholds]


def run(*arguments: str) -> str:
    """Run Python from the root of the repository, in a process of its own: the benchmark imports the package again."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.mark.parametrize("threshold", ALL, ids=lambda threshold: threshold.label)
def test_threshold_is_a_positive_number_with_a_comment(threshold: Threshold) -> None:
    value = present_value(threshold)
    assert isinstance(value, int | float)
    assert 0 < value <= threshold.maximum
    assert comment_of(threshold)


def test_limits_and_reasons_name_thresholds() -> None:
    assert set(MAXIMA) <= {threshold.name for threshold in ALL}
    assert set(KEPT) <= {threshold.label for threshold in ALL}


def test_table_contains_all_thresholds() -> None:
    table = (ROOT / "docs" / "thresholds.md").read_text(encoding="utf-8")
    for threshold in ALL:
        assert f"| `{threshold.label}` = {present_value(threshold):,g} |" in table


@pytest.mark.parametrize(("value", "factor", "expected"), [(3, 0.5, 2), (1, 0.1, 1), (0.3, 2.0, 0.6), (0.6, 2.0, 0.9)])
def test_multiples_keep_the_type_and_the_maximum(value: float, factor: float, expected: float) -> None:
    scaled = Threshold("module", "NAME", maximum=0.9 if isinstance(value, float) else 100).scaled(value, factor)
    assert scaled == expected
    assert type(scaled) is type(value)


def test_scaled_package_changes_default_arguments_and_derived_constants() -> None:
    program = """
from benchmarks.threshold_sensitivity import scaled_package
from benchmarks.tuned_thresholds import Threshold
with scaled_package(Threshold("solvers.linear.linear_solver", "NEWTON_STEPS"), 2.0):
    from maxmargin.solvers.linear import linear_solver
    print(linear_solver.NEWTON_STEPS, linear_solver.MIN_NEWTON_PASSES)
with scaled_package(Threshold("solvers.block.block_solver", "BlockSolver.working_set"), 0.5):
    from maxmargin.solvers import BlockSolver
    print(BlockSolver().working_set)
from maxmargin.solvers import BlockSolver
print(BlockSolver().working_set)
"""
    assert run("-c", program).split() == ["12", "18.0", "2048", "4096"]


def test_quick_run_prints_one_row() -> None:
    rows = [line for line in run("-m", "benchmarks.threshold_sensitivity", "--quick").splitlines() if "| `" in line]
    assert len(rows) == 1
    assert "`block_solver.BlockSolver.working_set` = 4,096" in rows[0]
