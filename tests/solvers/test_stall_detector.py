import numpy as np

from maxmargin.solvers.stall_detector import StallDetector


def test_halving_within_the_patience_is_progress():
    detector = StallDetector(patience=10)
    violation = 1.0
    for step in range(0, 100, 10):
        assert not detector.stalled(violation, step)
        violation *= 0.49


def test_a_violation_that_does_not_halve_stalls_after_the_patience():
    detector = StallDetector(patience=10)
    assert not detector.stalled(1.0, 5)
    assert not detector.stalled(0.5, 15)
    assert detector.stalled(0.5, 16)


def test_restart_and_infinite_patience():
    detector = StallDetector(patience=10, step=100)
    assert not detector.stalled(1.0, 105)
    detector.restart(1.0, 115)
    assert not detector.stalled(1.0, 125)
    assert detector.stalled(1.0, 126)
    assert not StallDetector(np.inf).stalled(1.0, 10**9)
