"""`maxmargin svm-scale` prints the same bytes as LIBSVM's svm-scale."""

import numpy as np
import pytest

from maxmargin.datasets import dump_libsvm
from reference.libsvm_programs import ours, real, write_data


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_data(tmp_path)
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 6)) * 10.0 ** np.arange(-3, 3) * (random.random((40, 6)) < 0.4)
    X[:, 2] = 7.0  # constant
    dump_libsvm(X, random.normal(size=40), tmp_path / "gaps")
    dump_libsvm(np.abs(X[:, :4]), np.arange(40.0), tmp_path / "narrow")
    (tmp_path / "odd").write_text("1 0:3 1:2 4:1\n2 1:1 3:5 9:1\n0.1 2:1\n")
    (tmp_path / "zeroth").write_text("1 0:3 2:1\n2 0:-1 1:1\n0.1 2:1\n4 0:1\n5 0:0.5 1:2\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Debian's program keeps limits in single precision, so that -0.3 would not be the same.
@pytest.mark.parametrize("data", ["iris", "board", "targets", "gaps", "narrow", "odd", "zeroth"])
@pytest.mark.parametrize("options", ["", "-l 0", "-l -0.25 -u 7", "-y 0 1", "-l 0 -u 1 -y -1 1 -s ranges"])
def test_output_equals_that_of_libsvm(data, options, folder, capsys):
    theirs = real("svm-scale", *options.split(), data, folder=folder)
    ranges = (folder / "ranges").read_bytes() if "-s" in options else b""
    assert ours(capsys, "svm-scale", *options.split(), data) == theirs
    assert not ranges or (folder / "ranges").read_bytes() == ranges


@pytest.mark.parametrize("first", ["gaps", "narrow"])
@pytest.mark.parametrize("second", ["gaps", "narrow", "odd", "zeroth"])
def test_ranges_of_other_data(first, second, folder, capsys):
    for options in (["-s", "ranges"], ["-y", "-2", "5", "-s", "ranges"]):
        assert ours(capsys, "svm-scale", *options, first)[0] == 0
        assert ours(capsys, "svm-scale", "-r", "ranges", second) == real(
            "svm-scale", "-r", "ranges", second, folder=folder
        )


@pytest.mark.parametrize(
    "command",
    ["-l 1 -u 0 iris", "-y 3 3 iris", "-s a -r b iris", "-x iris", "nothing", "-r nothing iris", "-s no/where iris",
     "", "iris board"],
)  # fmt: skip
def test_errors_equal_those_of_libsvm(command, folder, capsys):
    code, out, err = real("svm-scale", *command.split(), folder=folder)
    own_code, own_out, own_err = ours(capsys, "svm-scale", *command.split())
    assert (own_code, own_err) == (code, err)
    assert own_out[:20] == out[:20]


def test_errors_that_libsvm_does_not_report(folder, capsys):
    assert ours(capsys, "svm-scale", "-l")[0] == 1  # LIBSVM has a segmentation fault
    (folder / "bad").write_text("1 1:2\n2 1:a\n")
    code, out, err = ours(capsys, "svm-scale", "bad")
    assert (code, out) == (1, "")
    assert err.startswith("Wrong input format at line 2\nbad, line 2: ")
    (folder / "ranges").write_text("x\n0 1\n1 5 nine\n")
    code, out, err = ours(capsys, "svm-scale", "-r", "ranges", "iris")
    assert (code, out) == (1, "")
    assert err.startswith("ranges, line 3: ")


def test_several_blocks(folder, capsys, monkeypatch):
    whole = ours(capsys, "svm-scale", "gaps")
    monkeypatch.setattr("maxmargin.cli.libsvm.svm_scale.BLOCK_ROWS", 7)
    assert ours(capsys, "svm-scale", "gaps") == whole
