"""Models for commands: which program wrote a file, and which format a name asks for.

What a file is, its first bytes say, whatever its name. What is written, the name says:

    .onnx                 a graph for other runtimes; it is written only
    .libsvm, .liblinear   text of that program
    .model                LIBLINEAR's text for linear machines, else LIBSVM's, as both programs name their files
    anything else         our own format, which keeps everything; .maxmargin by custom
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Formats that can be written.
FORMATS = ("maxmargin", "libsvm", "liblinear", "onnx")

#: The format of a name; two for ".model".
SUFFIXES = {".libsvm": "libsvm", ".liblinear": "liblinear", ".onnx": "onnx"}

#: How many bytes, and of text how many lines, say what a file is.
FIRST_BYTES, HEADER_LINES = 4096, 8


def model_format(path: str | os.PathLike[str]) -> str | None:
    """Return whose model a file is: "maxmargin", "libsvm", "liblinear", "svmlight", or None if it is no model."""
    from maxmargin.interchange import model_file, svmlight_model

    with open(path, "rb") as opened:
        start = opened.read(FIRST_BYTES)
    if start.startswith(model_file.MAGIC):
        return "maxmargin"
    if start.startswith(svmlight_model.FIRST_WORDS.encode()):
        return "svmlight"
    words = {line.split()[0].decode("ascii", "replace") for line in start.split(b"\n")[:HEADER_LINES] if line.strip()}
    if "solver_type" in words:
        return "liblinear"
    return "libsvm" if words & {"svm_type", "kernel_type"} else None


def read_model(path: str | os.PathLike[str], n_features: int = 0) -> Any:
    """Return the model in a file of maxmargin, LIBSVM, LIBLINEAR or SVMlight.

    Other programs' files do not say how many features there were: there are at least `n_features`, and those that the
    model mentions. A model of SVMlight is taken for a classifier.
    """
    from maxmargin.interchange import ModelFileError, load, read_svmlight_model
    from maxmargin.interchange.liblinear_model import linear_estimator_of, read_liblinear_text
    from maxmargin.interchange.libsvm import estimator_of, read_text

    found = model_format(path)
    if found == "maxmargin":
        return load(path)
    if found == "libsvm":
        model = read_text(path)
        return estimator_of(model, max(n_features, model.n_features))
    if found == "liblinear":
        linear = read_liblinear_text(path)
        return linear_estimator_of(linear, max(n_features, linear.weights.shape[1], 1))
    if found == "svmlight":
        classifier = read_svmlight_model(path)
        narrow = classifier.n_features_in_ < n_features
        return read_svmlight_model(path, n_features=n_features) if narrow else classifier
    raise ModelFileError(
        f"{os.fspath(path)}: this is no model of maxmargin, LIBSVM, LIBLINEAR or SVMlight; files of other formats "
        "(pickles, which are programs, and ONNX graphs) are not read"
    )


def write_model(model: Any, path: str | os.PathLike[str], format: str | None = None) -> str:
    """Write a fitted model in a format, by default that which its name asks for; return the format."""
    from maxmargin.interchange import save, to_onnx, write_liblinear_model, write_libsvm_model

    chosen = format_for(model, path) if format is None else format
    writers: dict[str, Callable[..., Any]] = {
        "maxmargin": save,
        "libsvm": write_libsvm_model,
        "liblinear": write_liblinear_model,
        "onnx": to_onnx,
    }
    if chosen not in writers:
        raise ValueError(f"models are written as {', '.join(FORMATS)}, not as {chosen!r}")
    writers[chosen](model, path)
    return chosen


def format_for(model: Any, path: str | os.PathLike[str]) -> str:
    """Return the format that a name asks for."""
    suffix = Path(path).suffix.lower()
    if suffix != ".model":
        return SUFFIXES.get(suffix, "maxmargin")
    from maxmargin.estimators.linear.linear_estimator import LinearEstimator

    return "liblinear" if isinstance(model, LinearEstimator) else "libsvm"


def convert_model(source: str | os.PathLike[str], target: str | os.PathLike[str], format: str | None = None) -> str:
    """Read a model of any known format, write it in another, and return which one that is."""
    return write_model(read_model(source), target, format)
