"""Read and write lines with a support vector each: coefficients, then features as index:value."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.datasets import dump_libsvm, load_libsvm
from maxmargin.interchange.model_text import MAX_INT32, NUMBER, SHOWN_CHARACTERS, ModelText

_FEATURE = re.compile(rf"[0-9]{{1,10}}:{NUMBER}")

#: Number of support vectors formatted at once.
BATCH_ROWS = 2**14

#: Characters of decimal numbers and whitespace, for `str.translate`.
_ALLOWED = dict.fromkeys(map(ord, "0123456789+-.eE: \t\r\n"))

#: Number of digits that restores every float64.
EXACT_DIGITS = 17


@dataclass(frozen=True)
class SupportVectors:
    """Coefficients and features of the support vectors of a file.

    Attributes
    ----------
    coefficients : float array of shape (n_vectors, n_coefficients)
    starts, indices : int arrays
        Row starts and feature indices of the compressed rows.
    values : float array
    """

    coefficients: Floats
    starts: Indices
    indices: Indices
    values: Floats

    def matrix(self, base: int, width: int) -> Any:
        """Return the vectors as a CSR matrix whose first column is the feature with index `base`."""
        shape = len(self.starts) - 1, width
        return sparse.csr_matrix((self.values, (self.indices - base).astype(np.int32), self.starts), shape=shape)


def read_vectors(text: ModelText, first: int, count: int, width: int) -> SupportVectors:
    """Return the support vectors on the lines from `first` to the end, which must be `count`.

    Each line has `width` coefficients, followed by features with ascending indices from 0.
    """
    found = len(text) - first + 1
    if found < count:
        text.fail(len(text), f"the file ends after {found} support vectors, but its header announces {count}")
    if found > count:
        text.fail(first + count, f"there are lines after the {count} support vectors announced in the header")
    vectors = _read_fast(text.lines[first - 1 :], width)
    return _read_checked(text, first, count, width) if vectors is None else vectors


def _read_fast(lines: list[str], width: int) -> SupportVectors | None:
    """Read the vectors with the native reader of LIBSVM format; return None if a line may be malformed."""
    if "\n".join(lines).translate(_ALLOWED):
        return None
    parts = [line.split(None, width) for line in lines]
    try:
        coefficients = np.array([[float(word) for word in part[:width]] for part in parts]).reshape(-1, width)
        samples = "".join(f"0 {' '.join(part[width:])}\n" for part in parts).encode("ascii")
        X, _ = load_libsvm(io.BytesIO(samples), zero_based=True, n_features=MAX_INT32 + 1)
    except ValueError:
        return None
    if not (np.isfinite(coefficients).all() and np.isfinite(X.data).all()):
        return None
    return SupportVectors(coefficients, X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data)


def _read_checked(text: ModelText, first: int, count: int, width: int) -> SupportVectors:
    """Read the vectors, or raise an error about the malformed line."""
    pattern = re.compile(rf"\s*{NUMBER}(?:\s+{NUMBER}){{{width - 1}}}(?:\s+[0-9]{{1,10}}:{NUMBER})*\s*")
    numbers: list[float] = []
    lengths = np.empty(count, dtype=np.int64)
    for k in range(count):
        line = text.lines[first - 1 + k]
        if pattern.fullmatch(line) is None:
            _raise_malformed(text, first + k, line, width)
        words = line.replace(":", " ").split()
        lengths[k] = len(words)
        numbers.extend(map(float, words))
    table = np.array(numbers)
    bad = np.flatnonzero(~np.isfinite(table))
    ends = np.cumsum(lengths)
    if len(bad):
        text.fail(first + int(np.searchsorted(ends, bad[0], side="right")), "a number overflows float64")
    position = np.arange(len(table)) - np.repeat(ends - lengths, lengths)  # within the line
    starts = np.concatenate([[0], np.cumsum((lengths - width) // 2)])
    indices = table[(position >= width) & ((position - width) % 2 == 0)].astype(np.int64)
    values = table[(position >= width) & ((position - width) % 2 == 1)]
    _check_indices(text, first, starts, indices)
    return SupportVectors(table[position < width].reshape(count, width), starts, indices, values)


def _check_indices(text: ModelText, first: int, starts: Indices, indices: Indices) -> None:
    """Raise unless indices are in ascending order within each vector and at most `MAX_INT32`."""
    row_start = np.zeros(len(indices) + 1, dtype=bool)
    row_start[starts] = True
    bad = np.flatnonzero((indices > MAX_INT32) | (np.diff(indices, prepend=-1) <= 0) & ~row_start[:-1])
    if len(bad):
        line = first + int(np.searchsorted(starts, bad[0], side="right")) - 1
        text.fail(line, f"index {indices[bad[0]]}: indices must be in ascending order and at most {MAX_INT32}")


def _raise_malformed(text: ModelText, line: int, content: str, width: int) -> None:
    """Raise the error about a malformed line."""
    words = content.split()
    if len(words) < width:
        text.fail(line, f"a support vector must start with {width} coefficients, but this line has {len(words)}")
    for word in words[:width]:
        text.number(line, word, "a coefficient")
    for word in words[width:]:
        if _FEATURE.fullmatch(word) is None:
            text.fail(line, f"a feature must be index:value, for example 3:0.5, not {word[:SHOWN_CHARACTERS]!r}")
    text.fail(line, "not a valid support vector")


def write_vectors(coefficients: Floats, vectors: Any, base: int, digits: int) -> Iterator[bytes]:
    """Yield the lines of support vectors: coefficients exactly, feature values with the given number of digits."""
    for start in range(0, vectors.shape[0], BATCH_ROWS):
        batch = slice(start, start + BATCH_ROWS)
        features = io.BytesIO()
        dump_libsvm(vectors[batch], np.zeros(len(coefficients[batch])), features, zero_based=base == 0, digits=digits)
        lines = zip(coefficients[batch].tolist(), features.getvalue().split(b"\n"), strict=False)
        # The label "0" of each line is replaced by the coefficients.
        yield b"".join(" ".join(map("{:.17g}".format, own)).encode() + line[1:] + b" \n" for own, line in lines)
