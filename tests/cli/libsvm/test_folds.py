"""The random generator of the GNU C library, and the folds of the programs."""

import ctypes
import sys
from itertools import islice

import numpy as np
import pytest
from liblinear.liblinearutil import train
from libsvm.svmutil import svm_read_problem, svm_train
from threadpoolctl import threadpool_limits

from maxmargin.cli.libsvm.folds import clip_folds, plain_folds, random_numbers, stratified_folds
from reference.libsvm_programs import ours, write_data

GLIBC = sys.platform == "linux" and hasattr(ctypes.CDLL(None), "gnu_get_libc_version")


def test_numbers_of_the_c_library():
    # The beginning of what rand() returns in every program on Linux.
    assert list(islice(random_numbers(), 5)) == [1804289383, 846930886, 1681692777, 1714636915, 1957747793]


@pytest.mark.skipif(not GLIBC, reason="rand() is that of the GNU C library on Linux alone")
@pytest.mark.parametrize("seed", [1, 2, 12345])
def test_many_numbers_of_the_c_library(seed):
    library = ctypes.CDLL(None)
    library.srand(seed)
    assert [library.rand() for _ in range(5000)] == list(islice(random_numbers(seed), 5000))


def test_every_sample_is_held_out_once():
    for folds in (plain_folds(23, 4), stratified_folds([np.arange(0, 10), np.arange(10, 23)], 4)):
        assert sorted(np.concatenate(folds).tolist()) == list(range(23))
        assert max(map(len, folds)) - min(map(len, folds)) <= 2


def test_folds_are_stratified():
    members = [np.arange(40), np.arange(40, 47), np.arange(47, 50)]
    for fold in stratified_folds(members, 5):
        counts = [np.isin(fold, rows).sum() for rows in members]
        assert counts[0] == 8
        assert counts[1] in (1, 2)
        assert counts[2] in (0, 1)


def test_a_fold_may_be_empty(tmp_path, capsys):
    (tmp_path / "few").write_text("1 1:1\n2 1:2\n3 1:3\n1 1:1\n2 1:2\n", encoding="ascii")
    assert [len(fold) for fold in stratified_folds([np.arange(2), np.arange(2, 4), np.arange(4, 5)], 3)] == [0, 2, 3]
    assert ours(capsys, "svm-train", "-v", 3, "-q", tmp_path / "few")[::2] == (0, "")


def test_at_most_as_many_folds_as_samples(capsys):
    assert clip_folds(5, 9) == 5
    assert clip_folds(10, 9) == 9
    assert "# folds > # data" in capsys.readouterr().err


@pytest.mark.skipif(not GLIBC, reason="LIBSVM shuffles with rand(), which is another one here")
@pytest.mark.parametrize(
    ("data", "options"),
    [("board", "-v 5 -g 2 -c 3"), ("iris", "-v 4 -c 10"), ("iris", "-s 1 -n 0.2 -v 3"), ("overlap", "-v 7 -t 0"),
     ("board", "-s 2 -v 5 -n 0.3"), ("targets", "-s 3 -v 5"), ("iris", "-v 150"), ("iris", "-v 5 -w3 7")],
)  # fmt: skip
def test_cross_validation_of_libsvm(data, options, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    code, out, err = ours(capsys, "svm-train", *options.split(), "-e", "1e-5", "-q", data)
    assert (code, err) == (0, "")
    ctypes.CDLL(None).srand(1)
    with threadpool_limits(1):
        found = svm_train(*svm_read_problem(data), f"{options} -e 1e-5 -q")
    if "-s 3" in options:
        assert float(out.split("= ")[1].split()[0]) == pytest.approx(found, rel=1e-4)
        return
    # Next to a boundary the last digits decide, so that a sample may fall on the other side.
    allowed = 100.0 / 150 if "-s 2" in options else 0.0
    assert float(out.split("= ")[1].strip("%\n")) == pytest.approx(found, abs=allowed + 0.001)


@pytest.mark.skipif(not GLIBC, reason="LIBSVM shuffles with rand(), which is another one here")
@pytest.mark.parametrize("program", ["svm-train", "liblinear-train"])
def test_ties_are_won_by_the_class_that_occurs_first(program, tmp_path, capsys):
    random = np.random.default_rng(8)
    labels, features = random.permutation(np.arange(60) % 5 - 2), random.normal(size=(60, 2))
    features[::4] = 0.0  # samples about which a linear machine without a bias has nothing to say
    lines = [f"{label} 1:{a!r} 2:{b!r}\n" for label, (a, b) in zip(labels, features.tolist(), strict=True)]
    (tmp_path / "ties").write_text("".join(lines), encoding="ascii")
    options = "-v 3 -e 0.000001 -q" + (" -t 0" if program == "svm-train" else " -s 2")
    code, out, _ = ours(capsys, program, *options.split(), tmp_path / "ties")
    assert code == 0
    ctypes.CDLL(None).srand(1)
    y, x = svm_read_problem(str(tmp_path / "ties"))
    with threadpool_limits(1):
        found = svm_train(y, x, options) if program == "svm-train" else train(y, x, options)
    assert out == f"Cross Validation Accuracy = {found:g}%\n"
