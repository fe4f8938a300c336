"""Smoke tests of the experiments: each writes its table and plot, and exact properties hold."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))  # the examples are not installed

from examples.experiments import common, duality, growth  # noqa: E402
from examples.experiments.__main__ import NAMES  # noqa: E402
from examples.experiments.common import BEGIN, DOCS, END, Options, write_part  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("experiments")


def measured(name, folder):
    """Run the smoke test of an experiment, check its files, and return its results."""
    results = common.run(import_module(f"examples.experiments.{name}"), Options(quick=True, output=folder))
    page = (folder / f"{name}.md").read_text(encoding="utf-8")
    assert f"![{name}]({name}.png)" in page
    assert page.count("\n| ") >= 5
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    return results


def test_second_order_takes_fewer_steps_than_first_order(folder):
    results = measured("selection", folder)
    rules = import_module("examples.experiments.selection")
    for problems in (rules.by_problem(results.runs), rules.by_problem(results.small)):
        for runs in problems.values():
            assert runs["second order"].steps < runs["first order"].steps
    for runs in rules.by_problem(results.small).values():
        assert runs[rules.EXHAUSTIVE].steps < runs["first order"].steps


def test_growth_follows_the_laws(folder):
    results = measured("growth", folder)
    for error in growth.ERRORS:
        shares = [run.support / run.n for run in results.counting if run.error == error]
        assert shares == sorted(shares, reverse=True)
        assert 2 * error < shares[-1] < 2 * error + 0.06  # n = 4,000
    for (regime, _), runs in growth.series(results.timing).items():
        assert 0.8 < growth.power(runs, "support") < 1.1
        law = 2.0 if regime == "small C" else 3.0
        assert law - 0.3 < growth.power(runs, "work") < law + 0.3
        assert runs[-1].free > 0.95 * runs[-1].support or regime == "small C"


def test_few_more_kernel_evaluations_than_needed(folder):
    runs = measured("kernel_values", folder)
    for run in runs:
        assert run.ratio >= 1.0  # every row of a support vector is needed
        if (run.solver, run.cache) == ("pairwise, row by row", "all"):
            assert run.ratio <= 1.5
            others = [other for other in runs if (other.problem, other.solver) == (run.problem, run.solver)]
            assert all(other.values >= run.values for other in others)
            counts = [other.support for other in runs if other.problem == run.problem]
            assert np.ptp(counts) <= 0.02 * run.support  # all solvers find the same machine


def test_larger_cache_saves_evaluations_and_changes_no_step(folder):
    experiment = import_module("examples.experiments.cache_and_shrinking")
    for runs in experiment.series(measured("cache_and_shrinking", folder)).values():
        assert len({run.steps for run in runs}) == 1
        values = [run.values for run in runs]
        assert values == sorted(values, reverse=True)


def test_large_costs_take_more_steps(folder):
    runs = measured("small_and_large_c", folder)
    by_solver = {name: [run for run in runs if run.solver == name] for name in dict.fromkeys(r.solver for r in runs)}
    for own in by_solver.values():
        steps = [run.steps for run in own]
        assert steps == sorted(steps)
    for first, second, solved in zip(*list(by_solver.values())[:3], strict=True):
        if first.cost >= 1:
            assert solved.steps <= second.steps <= first.steps
    done = [run for run in by_solver["block"] if run.done]
    assert all(early.support >= late.support and early.free <= late.free for early, late in pairwise(done))


def test_more_data_with_less_accuracy_wins(folder):
    results = measured("three_errors", folder)
    for parts in results.parts:
        assert sum(parts.parts) == pytest.approx(parts.loose)
    assert results.parts[1].best < results.parts[0].best - 0.05  # a larger family approximates better
    fits = {(fit.tolerance, fit.n): fit for fit in results.fits}
    loose, tight = 0.1, 1e-5
    for n in (500, 1000):
        assert fits[loose, n].steps < 0.5 * fits[tight, n].steps
        assert abs(fits[loose, n].error - fits[tight, n].error) < 0.01
        assert fits[loose, n].error < fits[tight, n // 2].error


def test_primal_and_dual_converge(folder):
    for way in measured("duality", folder):
        dual, primal = (np.array([getattr(entry, side) for entry in way.trace]) for side in ("dual", "primal"))
        rounding = 1e-9 * way.optimum
        assert (np.diff(dual) >= -rounding).all()
        assert (dual <= way.optimum + rounding).all()
        assert (primal >= way.optimum - rounding).all()
        violation = np.array([entry.violation for entry in way.trace[1:]])
        assert (primal - dual)[1:] == pytest.approx(np.minimum((primal - dual)[1:], way.cost * way.n * violation))
        assert way.trace[-1].violation <= duality.TOLERANCE
        assert way.trace[-1].gap < 2e-4 * way.optimum


def test_second_order_is_better_after_one_pass(folder):
    results = measured("online_learning", folder)
    first, second, batch = results.rows
    assert second.support_vectors < 0.6 * first.support_vectors
    assert second.rate > first.rate
    assert second.primal < first.primal
    assert first.dual < second.dual < batch.dual * (1 + 1e-9)
    for way in results.ways:
        assert all(primal >= way.optimum * (1 - 1e-6) for primal in way.primal)
        assert all(dual <= way.optimum * (1 + 1e-6) for dual in way.dual)


def test_handwritten_parts_of_a_page_are_kept(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Claim\n\n{BEGIN}\nold\n{END}\n\nComment.\n")
    write_part(page, "page", "new")
    assert page.read_text() == f"# Claim\n\n{BEGIN}\nnew\n\n![page](page.png)\n{END}\n\nComment.\n"
    page.write_text("# No marks\n")
    with pytest.raises(ValueError, match="must have each of these lines once"):
        write_part(page, "page", "new")


def test_active_learning_writes_its_table_and_plot(tmp_path):
    command = [sys.executable, "-m", "examples.experiments.active_learning", "--quick", "--output", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "margin among 50" in (tmp_path / "active_learning.md").read_text(encoding="utf-8")
    assert (tmp_path / "active_learning.png").exists()


@pytest.mark.parametrize("name", [*NAMES, "active_learning"])
def test_every_experiment_has_a_page(name):
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    assert f"python -m examples.experiments.{name}" in page
    assert "| --- |" in page.split(BEGIN)[1].split(END)[0]
    assert f"({name}.md)" in (DOCS / "README.md").read_text(encoding="utf-8")


def test_command_line(tmp_path):
    command = [sys.executable, "-m", "examples.experiments.selection", "--quick"]
    done = subprocess.run([*command, "--output", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "second order" in done.stdout
    assert (tmp_path / "selection.png").exists()
    refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "--quick needs --output" in refused.stderr
