"""The deadline in force: who sees it, and what it ends."""

import threading
import time

import pytest

from maxmargin.deadline import (
    Deadline,
    TimeLimitReachedError,
    check_deadline,
    inheriting_deadline,
    postpone_deadline,
    require_seconds,
    seconds_until_deadline,
    until_deadline,
)


def test_without_a_deadline_nothing_ends():
    check_deadline()
    postpone_deadline(1.0)
    require_seconds(1e9)
    assert seconds_until_deadline() == float("inf")
    assert until_deadline(lambda: 3) == 3
    deadline = Deadline.after(None)
    assert (deadline.at, deadline.reached, deadline.seconds_left()) == (None, False, None)
    with deadline.in_force():
        check_deadline()


def test_a_deadline_in_force_ends_what_checks_it():
    with Deadline.after(0.0).in_force():
        for check in (check_deadline, lambda: require_seconds(1.0), lambda: until_deadline(lambda: 3)):
            with pytest.raises(TimeLimitReachedError):
                check()
    check_deadline()
    with Deadline.after(1e6).in_force():
        check_deadline()
        require_seconds(1.0)
        assert until_deadline(lambda: 3) == 3
        assert 9e5 < seconds_until_deadline() <= 1e6


def test_the_earlier_of_two_deadlines_holds():
    outer = Deadline.after(100.0)
    with outer.in_force():
        assert Deadline.after(200.0) is outer
        assert Deadline.after(None) is outer
        assert Deadline.after(50.0).at < outer.at


def test_the_time_counts_from_the_given_start():
    assert Deadline.after(1.0, time.perf_counter() - 2.0).reached


def test_a_postponed_deadline():
    deadline = Deadline.after(0.0)
    with deadline.in_force():
        postpone_deadline(100.0)
        check_deadline()
    assert deadline.seconds_left() > 90


def test_other_threads_inherit_it_on_request():
    found = {}

    def task(name):
        try:
            check_deadline()
            found[name] = "went on"
        except TimeLimitReachedError:
            found[name] = "ended"

    with Deadline.after(0.0).in_force():
        for name, target in {"own": task, "inherited": inheriting_deadline(task)}.items():
            thread = threading.Thread(target=target, args=(name,))
            thread.start()
            thread.join()
    assert found == {"own": "went on", "inherited": "ended"}


def test_a_long_call_is_not_awaited():
    may_end = threading.Event()
    with Deadline.after(0.05).in_force(), pytest.raises(TimeLimitReachedError):
        until_deadline(lambda: may_end.wait(60))
    may_end.set()


def test_an_error_of_a_long_call_is_raised():
    with Deadline.after(60.0).in_force(), pytest.raises(ZeroDivisionError):
        until_deadline(lambda: 1 // 0)


def test_an_earlier_deadline_leaves_time_for_what_follows():
    deadline = Deadline.after(100.0)
    earlier = deadline.before(40.0)
    assert 59.0 < earlier.seconds_left() <= 60.0
    earlier.postpone(10.0)
    assert 109.0 < deadline.seconds_left() <= 110.0
    assert deadline.before(0.0) is deadline
    unlimited = Deadline()
    assert unlimited.before(40.0) is unlimited
