"""`maxmargin convert`: the same data, or the same model, in another format.

Whether a file is a model, its first bytes say. Formats of data are those of `maxmargin.datasets`; models are read from
our own format, LIBSVM's, LIBLINEAR's and SVMlight's, and written as our own, LIBSVM's, LIBLINEAR's or ONNX.
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

#: Formats that have no place for labels that are words.
NUMBERS_ONLY = ("libsvm", "npy")

#: Suffixes of files that hold a model and never samples.
MODELS = (".maxmargin", ".onnx", ".liblinear", ".model")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("data", metavar="IN", help="data or a model; - for data from standard input")
    parser.add_argument("out", metavar="OUT", help="a file whose name tells its format, or - for standard output")
    parser.add_argument(
        "--to",
        metavar="FORMAT",
        help="of OUT, if its name does not tell: for data {}; for models maxmargin, libsvm, liblinear, onnx".format(
            ", ".join(FORMATS)
        ),
    )
    data.add_data_options(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Look which it is, read and write."""
    return _convert_model(options) if _is_model(options) else _convert_data(options)


def _is_model(options: argparse.Namespace) -> bool:
    """Tell whether IN is a model.

    The name or the first byte often tells that it is none: numbers begin LIBSVM's text, and no model. That spares
    loading all kinds of models, which takes longer than to convert most data.
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
    """Read a model, write it."""
    from maxmargin.cli.model_files import convert_model

    if options.out == "-":
        raise ValueError("a model is written to a file, not to standard output")
    if options.to is None and format_by_name(options.out) not in (None, "libsvm"):
        raise ValueError(f"{options.data} is a model, and {options.out} is the name of a file of samples")
    output = Output(options)
    facts = {"format": convert_model(options.data, options.out, options.to), "written": options.out}
    output.facts(facts)
    output.result(facts)
    return 0


def _convert_data(options: argparse.Namespace) -> int:
    """Read samples, write them."""
    output = Output(options)
    if options.json and options.out == "-":
        raise ValueError("--json needs a file OUT: standard output has the data")
    samples = data.read_data(options)
    wanted = options.to or format_by_name(options.out) or "libsvm"
    if options.to is None and Path(options.out).suffix in MODELS:
        raise ValueError(f"{options.data} has samples, and {options.out} is the name of a model; train makes one")
    classes: list[str] = []
    if wanted in NUMBERS_ONLY and samples.y is not None and samples.y.dtype.kind == "U":
        found, numbers = np.unique(samples.y, return_inverse=True)
        samples, classes = replace(samples, y=numbers + 1.0), found.tolist()
        named = ", ".join(f"{number} {word}" for number, word in enumerate(classes, 1))
        output.remark(f"{wanted} has no words, so the labels are numbers: {named}")
    write_samples(samples, options.out, wanted)
    if options.out != "-":
        facts = {"samples": len(samples), "features": samples.n_features, "format": wanted, "written": options.out}
        output.facts(facts)
        output.result(facts | {"classes": classes})
    return 0
