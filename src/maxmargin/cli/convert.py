"""`maxmargin convert`: convert data or a model to another format.

A model is recognised by its content. Data formats are those of `maxmargin.datasets`; models are read in the formats of
maxmargin, LIBSVM, LIBLINEAR and SVMlight, and written in those of maxmargin, LIBSVM, LIBLINEAR and ONNX.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from maxmargin.cli import data
from maxmargin.cli.output import Output, add_output_options
from maxmargin.datasets import write_samples
from maxmargin.datasets.sample_files import FORMATS, format_by_name

#: Data formats without text labels.
NUMERIC_FORMATS = ("libsvm", "npy")

#: Suffixes of model files.
MODEL_SUFFIXES = (".maxmargin", ".onnx", ".liblinear", ".model")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("data", metavar="IN", help="data or a model; - for data from standard input")
    parser.add_argument("out", metavar="OUT", help="output file, or - for standard output")
    parser.add_argument(
        "--to",
        metavar="FORMAT",
        help="output format [by the suffix of OUT]: for data {}; for models maxmargin, libsvm, liblinear, onnx".format(
            ", ".join(FORMATS)
        ),
    )
    data.add_data_options(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    return _convert_model(options) if _is_model(options) else _convert_data(options)


def _is_model(options: argparse.Namespace) -> bool:
    """Return whether IN is a model.

    The suffix or the first byte often excludes a model: LIBSVM text starts with a number, models do not. This avoids
    importing the estimators, which takes longer than converting most data.
    """
    if options.format is not None or format_by_name(options.data) not in (None, "libsvm"):
        return False
    if not Path(options.data).is_file():
        return False
    with open(options.data, "rb") as file:
        if file.read(1) in b"+-.0123456789# \t\n":
            return False
    from maxmargin.cli.model_files import model_format

    return model_format(options.data) is not None


def _convert_model(options: argparse.Namespace) -> int:
    """Convert a model."""
    from maxmargin.cli.model_files import convert_model

    if options.out == "-":
        raise ValueError("a model cannot be written to standard output; OUT must be a file")
    if options.to is None and format_by_name(options.out) not in (None, "libsvm"):
        raise ValueError(f"{options.data} is a model, but {options.out} has the suffix of a data file")
    output = Output(options)
    facts = {"format": convert_model(options.data, options.out, options.to), "written": options.out}
    output.facts(facts)
    output.result(facts)
    return 0


def _convert_data(options: argparse.Namespace) -> int:
    """Convert data."""
    output = Output(options)
    if options.json and options.out == "-":
        raise ValueError("--json needs a file OUT, because the data go to standard output")
    samples = data.read_data(options)
    format = options.to or format_by_name(options.out) or "libsvm"
    if options.to is None and Path(options.out).suffix in MODEL_SUFFIXES:
        raise ValueError(
            f"{options.data} contains data, but {options.out} has the suffix of a model; use maxmargin train"
        )
    classes: list[str] = []
    if format in NUMERIC_FORMATS and samples.y is not None and samples.y.dtype.kind == "U":
        names, numbers = np.unique(samples.y, return_inverse=True)
        samples, classes = replace(samples, y=numbers + 1.0), names.tolist()
        mapping = ", ".join(f"{number} {word}" for number, word in enumerate(classes, 1))
        output.remark(f"{format} has no text labels; they are replaced by numbers: {mapping}")
    write_samples(samples, options.out, format)
    if options.out != "-":
        facts = {"samples": len(samples), "features": samples.n_features, "format": format, "written": options.out}
        output.facts(facts)
        output.result(facts | {"classes": classes})
    return 0
