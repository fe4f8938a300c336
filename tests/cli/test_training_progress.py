"""Estimates of the remaining time, and the progress bar."""

import io
import math

import pytest
from rich.console import Console

from maxmargin import SVC, LinearSVC, Progress
from maxmargin.cli.training_progress import ProgressEstimate, TrainingProgressBar, format_duration, spinner
from maxmargin.datasets import chessboard


def report(iteration, violation, gap=1.0, active=100, **others):
    return Progress(
        iteration=iteration, violation=violation, primal=gap, dual=0.0, active=active, seconds=0.0, **others
    )


class TestProgressEstimate:
    def test_geometric_decrease_is_extrapolated(self):
        estimate = ProgressEstimate(1e-3)
        for step in range(61):  # one decade in ten seconds: 1e-3 after thirty
            estimate.update(report(step, 10 ** (-step / 20)), now=5 + step / 2)
            if step < 4:
                assert estimate.seconds_left is None
            elif step < 60:
                assert estimate.seconds_left == pytest.approx(30 - step / 2)
            assert estimate.fraction_done == pytest.approx(step / 60)

    def test_oscillations_count_by_the_least_violation(self):
        estimate = ProgressEstimate(1e-3)
        for step in range(20):
            estimate.update(report(step, 10 ** (-step / 10) * (3 if step % 2 else 1)), now=step)
        assert estimate.seconds_left == pytest.approx(12, abs=3)

    def test_no_estimate_without_a_decrease(self):
        estimate = ProgressEstimate(1e-3)
        for step in range(20):
            estimate.update(report(step, 0.5), now=step)
        assert estimate.seconds_left is None
        assert estimate.fraction_done == 0
        estimate.update(report(21, math.inf), now=21)
        assert estimate.seconds_left is None

    def test_no_estimate_from_auxiliary_problems(self):
        estimate = ProgressEstimate(1e-3, samples=1000)
        for step in range(20):
            estimate.update(report(step, 10 ** (-step / 10), active=250), now=step)
            assert (estimate.is_auxiliary, estimate.fraction_done, estimate.seconds_left) == (True, 0, None)
        for step in range(20, 26):
            estimate.update(report(step, 10 ** (-(step - 20) / 10), active=1000), now=step)
        assert not estimate.is_auxiliary
        assert estimate.fraction_done == pytest.approx(0.5 / 3)
        assert estimate.seconds_left == pytest.approx(25)

    def test_linear_models_use_the_relative_gap(self):
        estimate = ProgressEstimate(1e-4, linear=True)
        for step in range(11):
            gap = 10 ** (-step / 5)
            estimate.update(Progress(step, 1.0, primal=1.0, dual=1.0 - gap, active=9, seconds=0.0), now=step)
        assert estimate.fraction_done == pytest.approx(0.5)
        assert estimate.seconds_left == pytest.approx(10)

    def test_finished_problems_are_counted(self):
        estimate = ProgressEstimate(1e-3)
        estimate.update(report(3, 1.0, finished=0, problems=10), now=0)
        assert estimate.seconds_left is None
        estimate.update(report(1, 1.0, finished=4, problems=10), now=8)
        assert estimate.fraction_done == pytest.approx(0.4)
        assert estimate.seconds_left == pytest.approx(12)


def test_estimators_report_the_number_of_finished_problems():
    X, y = chessboard(3000, noise=0.1)
    y = y + 2 * (X[:, 0] > 2)
    for model, problems in ((SVC(C=100, gamma=1, n_jobs=1), 6), (LinearSVC(n_jobs=2), 4)):
        reports = []
        model.set_params(callback=reports.append).fit(X, y)
        assert {progress.problems for progress in reports} == {problems}
        finished = [progress.finished for progress in reports]
        assert finished == sorted(finished)
        assert 0 == finished[0] <= finished[-1] < problems


def test_bar_fits_the_terminal_and_shows_the_limit(monkeypatch):
    monkeypatch.setattr("maxmargin.cli.training_progress.DISPLAY_DELAY", 0.0)
    for width in (80, 120):
        console = Console(file=io.StringIO(), force_terminal=True, width=width, height=20, color_system=None)
        bar = TrainingProgressBar(console, ProgressEstimate(1e-3), max_seconds=7200.0)
        for step in range(5):
            bar(report(step, 10.0**-step, gap=1e8))
        bar.close()
        written = console.file.getvalue()
        assert "violation 1.0e-04  gap 1.0e+08  0:00, left: ≤ 2:00:00" in written
        assert max(len(line) for line in written.replace("\r", "\n").splitlines()) <= width + 20  # and control codes


def test_nothing_is_drawn_without_a_terminal(monkeypatch):
    monkeypatch.setattr("maxmargin.cli.training_progress.DISPLAY_DELAY", 0.0)
    console = Console(file=io.StringIO())
    bar = TrainingProgressBar(console, ProgressEstimate(1e-3))
    bar(report(1, 0.1))
    bar.close()
    with spinner(console, "waiting"):
        pass
    assert console.file.getvalue() == ""


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (754, "12:34"), (3661, "1:01:01"), (10**6, "12 days")]
)
def test_format_duration(seconds, text):
    assert format_duration(seconds) == text
