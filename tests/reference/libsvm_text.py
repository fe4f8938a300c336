"""LIBSVM's text format, read word by word: the slow and obvious reference of the native reader."""

from __future__ import annotations

import re

NUMBER = re.compile(r"[+-]?((\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|(inf|infinity|nan))", re.ASCII | re.IGNORECASE)
WHOLE = re.compile(r"0*\d{1,18}", re.ASCII)
QUERY = re.compile(r"-?0*\d{1,18}", re.ASCII)


class BadLineError(Exception):
    """A line that is not as it should be."""

    def __init__(self, line):
        self.line = line


def read(text, zero_allowed=True, most=10**18):
    """Return label, query and (index, value) pairs of each sample."""
    samples = []
    for number, line in enumerate(text.split(b"\n"), 1):
        words = re.split("[ \t\r]+", line.split(b"#")[0].decode("latin-1"))
        words = [word for word in words if word]
        if not words:
            continue
        label, *pairs = words
        query = pairs.pop(0)[4:] if pairs and pairs[0].startswith("qid:") else None
        right = NUMBER.fullmatch(label) and (query is None or QUERY.fullmatch(query))
        right = right and (not samples or (samples[0][1] is None) == (query is None))
        row = []
        for pair in pairs:
            index, _, value = pair.partition(":")
            right = right and WHOLE.fullmatch(index) and NUMBER.fullmatch(value)
            right = right and (zero_allowed or int(index) > 0) and int(index) <= most
            right = right and (not row or int(index) > row[-1][0])
            if right:
                row.append((int(index), float(value)))
        if not right:
            raise BadLineError(number)
        samples.append((float(label), None if query is None else int(query), row))
    return samples
