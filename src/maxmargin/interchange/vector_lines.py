"""Lines with a support vector each: coefficients, then features as index:value."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from maxmargin._typing import Floats, Indices
from maxmargin.datasets import dump_libsvm, load_libsvm
from maxmargin.interchange.text_lines import LARGEST_INDEX, NUMBER, SHOWN, TextLines

_FEATURE = re.compile(rf"[0-9]{{1,10}}:{NUMBER}")

#: How many vectors are written together.
ROWS = 2**14

#: Characters of which decimal numbers and blanks consist, to be taken away.
_HARMLESS = dict.fromkeys(map(ord, "0123456789+-.eE: \t\r\n"))

#: So many digits bring back every number.
EXACT = 17


@dataclass(frozen=True)
class VectorLines:
    """Coefficients, one line each, and the features as they stand in the file.

    Attributes
    ----------
    coefficients : float array of shape (vectors, coefficients of each)
    starts, indices : int arrays
        Where the features of each vector start, and their indices.
    values : float array
    """

    coefficients: Floats
    starts: Indices
    indices: Indices
    values: Floats

    def matrix(self, base: int, width: int) -> Any:
        """Return the vectors as compressed rows, in which column 0 is the index `base`."""
        shape = len(self.starts) - 1, width
        return sparse.csr_matrix((self.values, (self.indices - base).astype(np.int32), self.starts), shape=shape)


def read_vectors(text: TextLines, first: int, count: int, width: int) -> VectorLines:
    """Return the vectors on all lines from number `first` on, of which there must be `count`.

    Each has `width` coefficients. Indices ascend, and are at least 0.
    """
    found = len(text) - first + 1
    if found < count:
        text.refuse(len(text), f"the file ends after {found} support vectors, but says that there are {count}")
    if found > count:
        text.refuse(first + count, f"there is more behind the {count} support vectors that the file says there are")
    quickly = _read_as_samples(text.lines[first - 1 :], width)
    return _read_word_by_word(text, first, count, width) if quickly is None else quickly


def _read_as_samples(lines: list[str], width: int) -> VectorLines | None:
    """Return the vectors, read natively as samples are; None if a line is not as it should be, or might not be."""
    if "\n".join(lines).translate(_HARMLESS):
        return None
    parts = [line.split(None, width) for line in lines]
    try:
        coefficients = np.array([[float(word) for word in part[:width]] for part in parts]).reshape(-1, width)
        samples = "".join(f"0 {' '.join(part[width:])}\n" for part in parts).encode("ascii")
        X, _ = load_libsvm(io.BytesIO(samples), zero_based=True, n_features=LARGEST_INDEX + 1)
    except ValueError:
        return None
    if not (np.isfinite(coefficients).all() and np.isfinite(X.data).all()):
        return None
    return VectorLines(coefficients, X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data)


def _read_word_by_word(text: TextLines, first: int, count: int, width: int) -> VectorLines:
    """Return the vectors, or raise with the line that is wrong."""
    line_of = re.compile(rf"\s*{NUMBER}(?:\s+{NUMBER}){{{width - 1}}}(?:\s+[0-9]{{1,10}}:{NUMBER})*\s*")
    numbers: list[float] = []
    lengths = np.empty(count, dtype=np.int64)
    for k in range(count):
        line = text.lines[first - 1 + k]
        if line_of.fullmatch(line) is None:
            _say_why(text, first + k, line, width)
        words = line.replace(":", " ").split()
        lengths[k] = len(words)
        numbers.extend(map(float, words))
    table = np.array(numbers)
    bad = np.flatnonzero(~np.isfinite(table))
    ends = np.cumsum(lengths)
    if len(bad):
        text.refuse(first + int(np.searchsorted(ends, bad[0], side="right")), "a number is too large")
    position = np.arange(len(table)) - np.repeat(ends - lengths, lengths)  # within the line
    starts = np.concatenate([[0], np.cumsum((lengths - width) // 2)])
    indices = table[(position >= width) & ((position - width) % 2 == 0)].astype(np.int64)
    values = table[(position >= width) & ((position - width) % 2 == 1)]
    _check_indices(text, first, starts, indices)
    return VectorLines(table[position < width].reshape(count, width), starts, indices, values)


def _check_indices(text: TextLines, first: int, starts: Indices, indices: Indices) -> None:
    """Raise unless indices ascend within each vector and none is too large."""
    opens = np.zeros(len(indices) + 1, dtype=bool)
    opens[starts] = True
    bad = np.flatnonzero((indices > LARGEST_INDEX) | (np.diff(indices, prepend=-1) <= 0) & ~opens[:-1])
    if len(bad):
        line = first + int(np.searchsorted(starts, bad[0], side="right")) - 1
        text.refuse(line, f"indices must ascend and be at most {LARGEST_INDEX}; {indices[bad[0]]} does not fit")


def _say_why(text: TextLines, line: int, content: str, width: int) -> None:
    """Raise the error about a line that is no support vector."""
    words = content.split()
    if len(words) < width:
        text.refuse(line, f"a support vector must start with {width} coefficients, but this line has {len(words)}")
    for word in words[:width]:
        text.number(line, word, "a coefficient")
    for word in words[width:]:
        if _FEATURE.fullmatch(word) is None:
            text.refuse(line, f"a feature must be index:value, for example 3:0.5, not {word[:SHOWN]!r}")
    text.refuse(line, "this is no support vector")


def write_vectors(coefficients: Floats, vectors: Any, base: int, digits: int) -> Iterator[bytes]:
    """Yield the lines of support vectors: coefficients exactly, values that are stored to so many digits."""
    rows = sparse.csr_matrix(vectors)
    for start in range(0, rows.shape[0], ROWS):
        some = slice(start, start + ROWS)
        features = io.BytesIO()
        dump_libsvm(rows[some], np.zeros(len(coefficients[some])), features, zero_based=base == 0, digits=digits)
        lines = zip(
            coefficients[some].tolist(), features.getvalue().split(b"\n"), strict=False
        )  # each has a label of 0
        yield b"".join(" ".join(map("{:.17g}".format, own)).encode() + line[1:] + b" \n" for own, line in lines)
