"""How long a fit will take: estimates from reports whose end is known."""

import io
import math

import pytest
from rich.console import Console

from maxmargin import SVC, LinearSVC, Progress
from maxmargin.cli.training_run import Outlook, TrainingBar, clock, spinner
from maxmargin.datasets import chessboard


def report(iteration, violation, gap=1.0, active=100, **others):
    return Progress(
        iteration=iteration, violation=violation, primal=gap, dual=0.0, active=active, seconds=0.0, **others
    )


class TestOutlook:
    def test_a_steady_fall_is_foreseen(self):
        outlook = Outlook(1e-3)
        for step in range(61):  # a decade in ten seconds: from 1 to 1e-3 in thirty
            outlook.hear(report(step, 10 ** (-step / 20)), now=5 + step / 2)
            if step < 4:
                assert outlook.seconds_left is None
            elif step < 60:
                assert outlook.seconds_left == pytest.approx(30 - step / 2)
            assert outlook.done == pytest.approx(step / 60)

    def test_ups_and_downs_count_by_the_best(self):
        outlook = Outlook(1e-3)
        for step in range(20):
            outlook.hear(report(step, 10 ** (-step / 10) * (3 if step % 2 else 1)), now=step)
        assert outlook.seconds_left == pytest.approx(12, abs=3)

    def test_nobody_knows_if_it_does_not_fall(self):
        outlook = Outlook(1e-3)
        for step in range(20):
            outlook.hear(report(step, 0.5), now=step)
        assert outlook.seconds_left is None
        assert outlook.done == 0
        outlook.hear(report(21, math.inf), now=21)
        assert outlook.seconds_left is None

    def test_a_part_of_the_data_says_nothing_of_the_whole(self):
        outlook = Outlook(1e-3, samples=1000)
        for step in range(20):
            outlook.hear(report(step, 10 ** (-step / 10), active=250), now=step)
            assert (outlook.in_part, outlook.done, outlook.seconds_left) == (True, 0, None)
        for step in range(20, 26):
            outlook.hear(report(step, 10 ** (-(step - 20) / 10), active=1000), now=step)
        assert not outlook.in_part
        assert outlook.done == pytest.approx(0.5 / 3)
        assert outlook.seconds_left == pytest.approx(25)

    def test_linear_models_go_by_the_relative_gap(self):
        outlook = Outlook(1e-4, linear=True)
        for step in range(11):
            gap = 10 ** (-step / 5)
            outlook.hear(Progress(step, 1.0, primal=1.0, dual=1.0 - gap, active=9, seconds=0.0), now=step)
        assert outlook.done == pytest.approx(0.5)
        assert outlook.seconds_left == pytest.approx(10)

    def test_several_models_are_counted(self):
        outlook = Outlook(1e-3)
        outlook.hear(report(3, 1.0, finished=0, problems=10), now=0)
        assert outlook.seconds_left is None
        outlook.hear(report(1, 1.0, finished=4, problems=10), now=8)
        assert outlook.done == pytest.approx(0.4)
        assert outlook.seconds_left == pytest.approx(12)


def test_estimators_say_which_machine_it_is():
    X, y = chessboard(3000, noise=0.1)
    y = y + 2 * (X[:, 0] > 2)
    for model, machines in ((SVC(C=100, gamma=1, n_jobs=1), 6), (LinearSVC(n_jobs=2), 4)):
        heard = []
        model.set_params(callback=heard.append).fit(X, y)
        assert {told.problems for told in heard} == {machines}
        finished = [told.finished for told in heard]
        assert finished == sorted(finished)
        assert 0 == finished[0] <= finished[-1] < machines


def test_the_bar_fits_the_terminal_and_names_the_limit(monkeypatch):
    monkeypatch.setattr("maxmargin.cli.training_run.WORTH_SHOWING", 0.0)
    for width in (80, 120):
        console = Console(file=io.StringIO(), force_terminal=True, width=width, height=20, color_system=None)
        bar = TrainingBar(console, Outlook(1e-3), max_seconds=7200.0)
        for step in range(5):
            bar(report(step, 10.0**-step, gap=1e8))
        bar.close()
        written = console.file.getvalue()
        assert "violation 1.0e-04  gap 1.0e+08  0:00, left: ≤ 2:00:00" in written
        assert max(len(line) for line in written.replace("\r", "\n").splitlines()) <= width + 20  # with movements


def test_nothing_is_drawn_without_a_terminal(monkeypatch):
    monkeypatch.setattr("maxmargin.cli.training_run.WORTH_SHOWING", 0.0)
    console = Console(file=io.StringIO())
    bar = TrainingBar(console, Outlook(1e-3))
    bar(report(1, 0.1))
    bar.close()
    with spinner(console, "waiting"):
        pass
    assert console.file.getvalue() == ""


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (754, "12:34"), (3661, "1:01:01"), (10**6, "12 days")]
)
def test_clock(seconds, text):
    assert clock(seconds) == text
