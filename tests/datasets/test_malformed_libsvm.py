"""Malformed LIBSVM files: the result or the error line always agrees with a reference parser."""

import io
import random
import struct
import tracemalloc
from itertools import islice, pairwise

import numpy as np
import pytest

from maxmargin.datasets import DataFileError, find_libsvm_problems, iterate_libsvm, load_libsvm
from reference import libsvm_text as reference

MUTATIONS = 100_000

TEXTS = [
    b"+1 1:0.5 3:-2 11:1e-3\n-1 2:1\n\n2.5 # note\n-1 1:1 2:2 3:3 4:4 5:5\n",
    b"# heading\r\n3 qid:1 1:1 2:0.25\r\n1 qid:1 2:.5\r\n0 qid:22 10:123456789.125\r\n",
    b"1 0:1 1:0.1 2:0.30000000000000004\n2 0:2 1:1.7976931348623157e308 2:5e-324\n",
    b"-1 2147483646:1 2147483647:2 2147483648:3 999999999999999999:4\n1\t7:inf\t8:nan",
]
WORDS = [
    *(bytes([c]) for c in b": \n#\r\t\0\xff-+.e09_\v"),
    *(
        b"qid:",
        b"1:1",
        b"\n1 1:1",
        b"nan",
        b"inf",
        b"e999",
        b"e-999",
        b"0x1p3",
        b"9" * 30,
        b"0" * 30,
        b"1,2",
        b"nan(1)",
    ),
    *(b"\n\n", b"1e", b"\xc3\xa9", b" 1:2 1:3", b" 5:1 4:1", b" -1:1", b"\xef\xbb\xbf", b"+-1", b"2147483648:1"),
    b"99999999999999999999:1",
]


def mutated(text, source):
    """Return a text with one to four changes."""
    text = bytearray(text)
    for _ in range(source.randint(1, 4)):
        at = source.randrange(len(text) + 1)
        change = source.randrange(5)
        if change == 0:
            text[at:at] = source.choice(WORDS)
        elif change == 1:
            text[at : at + 1] = source.choice(WORDS)
        elif change == 2:
            del text[at : at + source.randint(1, 4)]
        elif change == 3:
            text[at:at] = text[source.randrange(len(text) + 1) :][: source.randint(1, 12)]
        elif at < len(text):
            text[at] = source.randrange(256)
    return bytes(text)


def bits(value):
    return struct.pack("<d", value)


def reference_outcome(text):
    """Return the samples, or the number of the first malformed line, by the reference parser."""
    if text.startswith(b"\xef\xbb\xbf"):
        text = b"   " + text[3:]
    try:
        samples = reference.read(text)
    except reference.BadLineError as error:
        return error.line
    base = 0 if any(row and row[0][0] == 0 for _, _, row in samples) else 1
    return [(bits(label), query, [(i - base, bits(value)) for i, value in row]) for label, query, row in samples]


def outcome(text):
    """Return the samples, or the error, of load_libsvm."""
    try:
        X, y, query = load_libsvm(io.BytesIO(text), return_query_id=True, n_jobs=1)
    except DataFileError as error:
        return error
    pairs = list(zip(X.indices.tolist(), map(bits, X.data.tolist()), strict=True))
    rows = [pairs[begin:end] for begin, end in pairwise(X.indptr.tolist())]
    queries = [None] * len(y) if query is None else query.tolist()
    return list(zip(map(bits, y.tolist()), queries, rows, strict=True))


@pytest.mark.parametrize("part", range(10))
def test_mutations(part):
    source = random.Random(part)
    errors = 0
    for number in range(MUTATIONS // 10):
        text = mutated(TEXTS[number % len(TEXTS)], source)
        got = outcome(text)
        error = isinstance(got, DataFileError)
        assert (got.line if error else got) == reference_outcome(text), text
        errors += error
        if number % 10 == 0:
            problems = find_libsvm_problems(io.BytesIO(text), 10_000)
            assert not error or (got.line, got.message) in problems, text
    assert 0.2 < errors / (MUTATIONS // 10) < 0.95  # both outcomes occur


def test_every_byte_at_every_position():
    text = b"1 2:0.5 4:7\n"
    for at in range(len(text)):
        for value in range(256):
            changed = text[:at] + bytes([value]) + text[at + 1 :]
            got = outcome(changed)
            assert (got.line if isinstance(got, DataFileError) else got) == reference_outcome(changed), changed


@pytest.mark.parametrize(
    "text",
    [
        b":" * 1_000_000,
        b"1 " + b"1" * 1_000_000,
        b"1 " + b"0" * 1_000_000 + b"7:1",
        b"1 1:" + b"9" * 1_000_000,
        b"1 1:" + b"0" * 1_000_000 + b"x",
        b"\n" * 1_000_000,
        b"#" * 1_000_000,
        b" " * 1_000_000,
        b"1 qid:" + b"0" * 1_000_000,
        b"1 2:1 1:1" * 100_000,
    ],
)
def test_long_lines_take_little_memory(text):
    tracemalloc.start()
    try:
        got = outcome(text)
        assert len(find_libsvm_problems(io.BytesIO(text))) <= 100
        assert tracemalloc.get_traced_memory()[1] < 50 * len(text)
    finally:
        tracemalloc.stop()
    if isinstance(got, DataFileError):
        assert got.line == 1
        assert len(str(got)) < 300
    else:
        assert sum(len(row) for _, _, row in got) <= 1


class Endless(io.RawIOBase):
    """An endless file that counts the bytes read."""

    def __init__(self, line):
        self.line, self.taken = line, 0

    def readable(self):
        return True

    def readinto(self, buffer):
        at = self.taken % len(self.line)
        buffer[:] = (self.line * (len(buffer) // len(self.line) + 2))[at : at + len(buffer)]
        self.taken += len(buffer)
        return len(buffer)


def test_blocks_of_an_endless_file():
    file = Endless(b"1 1:2 2:3\n")
    blocks = list(islice(iterate_libsvm(file, block_bytes=100_000), 10))
    assert all(np.array_equal(X.data, np.tile([2.0, 3.0], len(y))) for X, y in blocks)
    assert file.taken < 2_000_000
