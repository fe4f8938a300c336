"""The file of a checkpoint: round trip, replacement, and crafted contents with a valid checksum."""

import numpy as np
import pytest

from maxmargin.problems import Counters, Solution, Status
from maxmargin.storage.array_table import ArrayWriter
from maxmargin.training.checkpoint_file import (
    FORMAT,
    CheckpointError,
    FitIdentity,
    FitState,
    ProblemState,
    read_checkpoint,
    remove_checkpoint,
    temporary_of,
    write_checkpoint,
)

IDENTITY = FitIdentity("SVC", {"C": "1", "kernel": "'größe'"}, {"X": "ab", "y": "cd"})


def test_round_trip(tmp_path):
    dual, start = np.arange(3.0), np.array([0.5, -0.25])
    finished = Solution(dual, dual + 1.0, Status.CONVERGED, Counters(), np.ones(2))
    problems = {
        "one": ProblemState(None, finished, Counters(5, 6, seconds=0.5)),
        "two": ProblemState(start, None, Counters(7)),
        "empty": ProblemState(np.empty(0), None, Counters()),
    }
    write_checkpoint(tmp_path / "file", FitState(IDENTITY, problems, seed=3))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    found = read_checkpoint(tmp_path / "file")
    assert found.identity == IDENTITY
    assert found.seed == 3
    assert list(found.problems) == list(problems)
    one, two = found.problems["one"], found.problems["two"]
    np.testing.assert_array_equal(one.finished.dual, dual)
    np.testing.assert_array_equal(one.finished.gradient, dual + 1.0)
    np.testing.assert_array_equal(one.finished.weights, np.ones(2))
    assert one.counters == Counters(5, 6, seconds=0.5)
    assert one.start is None
    assert two.finished is None
    np.testing.assert_array_equal(two.start, start)


def test_no_file(tmp_path):
    assert read_checkpoint(tmp_path / "file") is None


def test_a_failed_write_keeps_the_old_file(tmp_path):
    file = tmp_path / "file"
    write_checkpoint(file, FitState(IDENTITY))
    before = file.read_bytes()
    temporary_of(file).mkdir()  # as if it could not be written
    with pytest.raises(OSError, match="Is a directory"):
        write_checkpoint(file, FitState(IDENTITY, seed=1))
    assert file.read_bytes() == before


def test_what_a_killed_process_left_is_replaced_and_removed(tmp_path):
    file = tmp_path / "file"
    temporary_of(file).write_bytes(b"half")
    write_checkpoint(file, FitState(IDENTITY))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    temporary_of(file).write_bytes(b"half")
    remove_checkpoint(file)
    remove_checkpoint(file)
    assert not list(tmp_path.iterdir())


VALID = {"iterations": 1, "kernel_evaluations": 2, "seconds": 0.5}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"estimator": 3}, "description of the fit"),
        ({"parameters": {"C": 1}}, "description of the fit"),
        ({"parameters": []}, "description of the fit"),
        ({"data": None}, "description of the fit"),
        ({"seed": -1}, "seed is invalid"),
        ({"seed": 2**40}, "seed is invalid"),
        ({"seed": True}, "seed is invalid"),
        ({"problems": []}, "not a JSON object"),
        ({"problems": {"a": []}}, "state of a problem is invalid"),
        ({"problems": {"a": VALID}}, "state of a problem is invalid"),
        ({"problems": {"a": VALID | {"start": 0, "dual": 0}}}, "state of a problem is invalid"),
        ({"problems": {"a": VALID | {"start": 0, "weights": 0}}}, "state of a problem is invalid"),
        ({"problems": {"a": VALID | {"start": 0, "code": 0}}}, "state of a problem is invalid"),
        ({"problems": {"a": VALID | {"start": 0, "iterations": -1}}}, "state of a problem is invalid"),
        ({"problems": {"a": VALID | {"start": 0, "iterations": 2**70}}}, "state of a problem is invalid"),
        ({"problems": {"a": VALID | {"start": 0, "seconds": "1"}}}, "state of a problem is invalid"),
        ({"problems": {"a": {"start": 0}}}, "state of a problem is invalid"),
        ({"problems": {"a": VALID | {"start": 9}}}, "refers to no array"),
        ({"problems": {"a": VALID | {"start": -1}}}, "refers to no array"),
        ({"problems": {"a": VALID | {"start": [0]}}}, "refers to no array"),
        ({"problems": {"a": VALID | {"start": 1}}}, "not a vector of numbers"),
        ({"problems": {"a": VALID | {"start": 2}}}, "not a vector of numbers"),
        ({"problems": {"a": VALID | {"dual": 0, "gradient": 3}}}, "not a vector of numbers"),
        ({"extra": 1}, "the header must have the keys"),
    ],
)
def test_crafted_files(change, message, tmp_path):
    header = {"maxmargin": "1", "estimator": "SVC", "parameters": {}, "data": {}, "seed": None, "problems": {}}
    arrays = ArrayWriter()
    for array in (np.ones(2), np.ones((2, 1)), np.ones(2, dtype=np.float32), np.array([np.inf, 1.0])):
        arrays.add(array)
    file = tmp_path / "file"
    file.write_bytes(b"".join(FORMAT.pieces(header | change, arrays)))
    with pytest.raises(CheckpointError, match=message):
        read_checkpoint(file)
