"""Every problem of a file is reported with its line."""

import gzip
import io

import pytest

from maxmargin.datasets import DataFileError, FileProblem, find_libsvm_problems


def find(text, limit=100):
    return find_libsvm_problems(io.BytesIO(text), limit)


def test_valid_files_have_no_problems():
    assert find(b"+1 1:0.5 3:2\n-1 2:1e-5\n0\n" * 50_000) == []
    assert find(b"2 qid:1 1:1\n1 qid:2 2:1\n") == []
    assert find(b"1 0:1 1:1 2:0.5\n2 0:2 1:0.5 2:1\n") == []  # a precomputed kernel


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"", "the line is blank"),
        (b"yes 1:1", "the label 'yes' is not a number; encode the classes"),
        (b"1,3 1:1", "several labels '1,3'"),
        (b"1:1 2:2", "the line begins with '1:1'; a label must come first"),
        (b"1 2", "'2' is not of the form index:value"),
        (b"1 1: 5", "'1:' has no value; it must follow the colon"),
        (b"1 :5", "the index of ':5' is not an integer"),
        (b"1 -4:5", "the index of '-4:5' is negative"),
        (b"1 x:5", "the index of 'x:5' is not an integer"),
        (b"1 1:x", "the value of '1:x' is not a number"),
        (b"1 1:1 1:2", "index 1 occurs twice"),
        (b"1 3:1 2:2", "index 2 comes after 3"),
        (b"1 3000000000:1", "is above 2147483647"),
        (b"1 1000000000000000001:1", "is too large; at most 18 digits"),
        (b"1 1:nan", "the value of '1:nan' is not finite"),
        (b"1 1:1e999", "the value of '1:1e999' is not finite"),
        (b"inf 1:1", "the label 'inf' is not finite"),
        (b"1 1:1\r", "a carriage return at the end of the line (Windows)"),
        (b"1 1:1 # note", "a comment"),
        (b"1 1:1 # \xff", r"the byte '\\xff' is not UTF-8"),
        (b"1 qid:1 1:1", "there is a qid, but the lines before have none"),
        (b"1 0:1", "index 0: indices start at 0"),
        (b"1 1:" + b"\x1b[31m" * 20, r"the value of '1:\x1b[31m"),
    ],
)
def test_each_problem_has_its_line(line, message):
    found = find(b"1 1:1 2:1\n" * 5 + line + b"\n1 1:1\n")
    assert [problem.line for problem in found] == [6] * len(found)
    assert any(message in problem.message for problem in found)
    assert len(found) == (2 if b"\xff" in line or line == b"1 1: 5" else 1)
    assert all(problem.message.isprintable() for problem in found)


def test_whole_files():
    assert find(b"") == [FileProblem(1, "there are no samples")]
    assert [p.line for p in find(b"1 1:1\n1 1:1")] == [2]
    assert "byte order mark" in find(b"\xef\xbb\xbf1 1:1\n")[0].message
    assert len(find(b"1 1:1\r\n" * 1000)) == 1
    assert len(find(b"1 1:1 # here\n" * 1000)) == 1
    assert len(find(b"1 1:x\n" * 1000, limit=7)) == 7
    assert find(gzip.compress(b"1 1:1\nx\n"))[0].line == 2
    with pytest.raises(DataFileError, match="damaged"):
        find(b"\x1f\x8b nothing")


def test_lines_far_into_a_large_file():
    lines = [b"1 1:1 2:3.25\n"] * 900_000
    for number in (70_000, 500_000, 899_999):
        lines[number] = b"1 2:1 1:1\n"
    assert [problem.line for problem in find(b"".join(lines))] == [70_001, 500_001, 900_000]
