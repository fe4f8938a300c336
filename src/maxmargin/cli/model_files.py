"""Formats of model files.

Reading detects the format by content; writing selects it by the suffix of the name:

    .onnx                 ONNX graph for other runtimes; only written
    .libsvm, .liblinear   text format of that program
    .model                LIBLINEAR's format for linear models, LIBSVM's for others
    anything else         the format of maxmargin, usually .maxmargin
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Formats that can be written.
FORMATS = ("maxmargin", "libsvm", "liblinear", "onnx")

#: Formats by suffix; ".model" depends on the model.
SUFFIXES = {".libsvm": "libsvm", ".liblinear": "liblinear", ".onnx": "onnx"}

#: Bytes and lines at the beginning of a file that are examined to detect its format.
FIRST_BYTES, HEADER_LINES = 4096, 8


def model_format(path: str | os.PathLike[str]) -> str | None:
    """Return the format of a model file: "maxmargin", "libsvm", "liblinear", "svmlight"; None if it is no model."""
    from maxmargin.interchange import model_file, svmlight_model

    with open(path, "rb") as opened:
        start = opened.read(FIRST_BYTES)
    if start.startswith(model_file.FORMAT.magic):
        return "maxmargin"
    if start.startswith(svmlight_model.FIRST_WORDS.encode()):
        return "svmlight"
    words = {line.split()[0].decode("ascii", "replace") for line in start.split(b"\n")[:HEADER_LINES] if line.strip()}
    if "solver_type" in words:
        return "liblinear"
    return "libsvm" if words & {"svm_type", "kernel_type"} else None


def read_model(path: str | os.PathLike[str], n_features: int = 0) -> Any:
    """Return the model in a file of maxmargin, LIBSVM, LIBLINEAR or SVMlight, as a machine without scikit-learn.

    Files of other programs do not store the number of features: it is at least `n_features`, and large enough for the
    features of the model. Models of SVMlight are read as classifiers.
    """
    from maxmargin.interchange import ModelFileError
    from maxmargin.interchange.liblinear_model import linear_machine_of, read_liblinear_text
    from maxmargin.interchange.libsvm import machine_of, read_text
    from maxmargin.interchange.model_file import load_machine
    from maxmargin.interchange.svmlight_model import read_svmlight_machine

    format = model_format(path)
    if format == "maxmargin":
        return load_machine(path)
    if format == "libsvm":
        model = read_text(path)
        return machine_of(model, max(n_features, model.n_features))
    if format == "liblinear":
        linear = read_liblinear_text(path)
        return linear_machine_of(linear, max(n_features, linear.weights.shape[1], 1))
    if format == "svmlight":
        classifier = read_svmlight_machine(path)
        narrow = classifier.n_features_in_ < n_features
        return read_svmlight_machine(path, n_features=n_features) if narrow else classifier
    raise ModelFileError(
        f"{os.fspath(path)} is not a model of maxmargin, LIBSVM, LIBLINEAR or SVMlight; pickles and ONNX graphs cannot "
        "be read"
    )


def write_model(model: Any, path: str | os.PathLike[str], format: str | None = None) -> str:
    """Write a fitted model in a format, by default that of the suffix; return the format."""
    from maxmargin.interchange import save, to_onnx, write_liblinear_model, write_libsvm_model

    chosen = format_for(model, path) if format is None else format
    writers: dict[str, Callable[..., Any]] = {
        "maxmargin": save,
        "libsvm": write_libsvm_model,
        "liblinear": write_liblinear_model,
        "onnx": to_onnx,
    }
    if chosen not in writers:
        raise ValueError(f"the format of a model must be {', '.join(FORMATS)}, not {chosen!r}")
    writers[chosen](model, path)
    return chosen


def format_for(model: Any, path: str | os.PathLike[str]) -> str:
    """Return the format of a model by the suffix of its file name."""
    suffix = Path(path).suffix.lower()
    if suffix != ".model":
        return SUFFIXES.get(suffix, "maxmargin")
    from maxmargin.machines.linear.linear_estimator import LinearEstimator

    return "liblinear" if isinstance(model, LinearEstimator) else "libsvm"


def convert_model(source: str | os.PathLike[str], target: str | os.PathLike[str], format: str | None = None) -> str:
    """Convert a model file to another format; return that format."""
    return write_model(read_model(source), target, format)
