"""Read published data files into arrays: LIBSVM text, packed images, tables.

Every function takes the folder with the files and returns samples (dense float64 in C order, or compressed sparse rows)
and labels.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

Data = tuple[Any, np.ndarray]

_OPENERS = {".bz2": bz2.open, ".xz": lzma.open, ".gz": gzip.open}


def read_bytes(path: Path) -> bytes:
    """Return the content of a file, decompressed according to its suffix."""
    with _OPENERS.get(path.suffix, open)(path, "rb") as file:
        return file.read()


def libsvm_text(folder: Path, *names: str, features: int | None = None, dense: bool = True) -> Data:
    """Return the concatenated rows of one or several files in LIBSVM's format."""
    parts = [load_svmlight_file(io.BytesIO(read_bytes(folder / name)), n_features=features) for name in names]
    width = max(X.shape[1] for X, _ in parts)
    for X, _ in parts:
        X.resize(X.shape[0], width)
    rows = sparse.vstack([X for X, _ in parts], format="csr")
    rows.sum_duplicates()
    labels = np.concatenate([y for _, y in parts])
    return (np.ascontiguousarray(rows.toarray()) if dense else rows), labels


def mnist(folder: Path, count: int) -> Data:
    """Return the first training images of MNIST with grey values from 0 to 1."""
    pixels = np.frombuffer(read_bytes(folder / "mnist_train-images-idx3-ubyte.gz"), np.uint8, offset=16)
    labels = np.frombuffer(read_bytes(folder / "mnist_train-labels-idx1-ubyte.gz"), np.uint8, offset=8)
    return pixels.reshape(-1, 784)[:count] / 255.0, labels[:count].astype(np.int64)


def covtype(folder: Path, count: int) -> Data:
    """Return random rows of the forest cover types, two classes, unscaled; larger samples contain smaller ones."""
    table = np.load(io.BytesIO(read_bytes(folder / "covtype_binary.npy.xz")))
    chosen = np.random.default_rng(0).permutation(len(table))[:count]
    picked = table[chosen]
    return np.ascontiguousarray(picked[:, 1:], dtype=np.float64), picked[:, 0].astype(np.int64)


def banana(folder: Path) -> Data:
    """Return the banana set: two features, two overlapping classes."""
    table = np.loadtxt(folder / "banana.csv", delimiter=",", skiprows=1)
    return np.ascontiguousarray(table[:, :2]), table[:, 2].astype(np.int64)


def standardised(data: Data) -> Data:
    """Return the data with columns of mean 0 and standard deviation 1; constant columns become 0."""
    X, y = data
    deviation = X.std(axis=0)
    deviation[deviation == 0] = 1.0
    return (X - X.mean(axis=0)) / deviation, y
