"""`maxmargin scale`: bring features to a common range, and keep the ranges for other data.

The file of ranges is that of LIBSVM's svm-scale, and so are the values: a model trained on data that one of them has
scaled fits data that the other has scaled with the same ranges.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from maxmargin.cli import data
from maxmargin.cli.output import Output, add_output_options
from maxmargin.datasets import Samples, Scaling, write_samples
from maxmargin.datasets.sample_files import FORMATS, find_format, format_by_name


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("data", metavar="DATA", help=data.DATA_HELP)
    parser.add_argument("out", metavar="OUT", nargs="?", default="-", help="a file; else standard output")
    ranges = parser.add_argument_group("the ranges")
    keep = ranges.add_mutually_exclusive_group()
    keep.add_argument("-s", "--save", type=Path, metavar="RANGE", help="write the ranges to this file, for other data")
    keep.add_argument("-r", "--restore", type=Path, metavar="RANGE", help="use the ranges of this file")
    ranges.add_argument("-l", "--lower", type=float, help="what the smallest value becomes [-1]")
    ranges.add_argument("-u", "--upper", type=float, help="what the largest value becomes [1]")
    ranges.add_argument("--standardise", action="store_true", help="mean 0 and deviation 1 in place of limits")
    ranges.add_argument(
        "-y", "--targets", type=float, nargs=2, metavar=("LOWER", "UPPER"), help="scale the labels too, for regression"
    )
    parser.add_argument("--to", choices=FORMATS, metavar="FORMAT", help="of OUT; else by its name, or that of DATA")
    data.add_data_options(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Read, find or restore the ranges, scale, write."""
    output = Output(options)
    _check(options)
    samples = data.read_data(options)
    scaling = _find(options, samples) if options.restore is None else Scaling.read(options.restore)
    if options.restore is not None:
        unseen = scaling.unseen(samples.X) + 1
        if len(unseen):
            listed = ", ".join(map(str, unseen[:10])) + (", …" if len(unseen) > 10 else "")
            output.remark(f"{options.restore} has no range for some features, which become 0: {listed}")
    scaled = _scaled(samples, scaling)
    if options.save is not None:
        scaling.write(options.save)
    write_samples(scaled, options.out, options.to or format_by_name(options.out) or _format_of(options))
    stored = [int(np.count_nonzero(X.data if hasattr(X, "nnz") else X)) for X in (samples.X, scaled.X)]
    if samples.is_sparse and stored[1] > stored[0]:
        output.remark(
            f"{stored[1]:,} values are not 0, before {stored[0]:,} were; --lower 0 keeps zeros where none is negative"
        )
    if options.out != "-":
        facts = {
            "samples": len(samples),
            "features": samples.n_features,
            "scaled": len(scaling.columns),
            "not zero before": stored[0],
            "not zero after": stored[1],
        }
        output.facts({name: f"{count:,}" for name, count in facts.items()})
        output.result({name.replace(" ", "_"): count for name, count in facts.items()} | {"written": options.out})
    return 0


def _check(options: argparse.Namespace) -> None:
    if options.json and options.out == "-":
        raise ValueError("--json needs a file OUT: standard output has the data")
    given = [name for name in ("lower", "upper", "targets") if getattr(options, name) is not None]
    if options.restore is not None and (given or options.standardise):
        raise ValueError(
            "--restore takes limits and ranges from the file; leave out --lower, --upper, --targets, --standardise"
        )
    if options.standardise and {"lower", "upper"} & set(given):
        raise ValueError("--standardise has no limits; leave out --lower and --upper")


def _find(options: argparse.Namespace, samples: Samples) -> Scaling:
    """Return the scaling that these samples ask for."""
    if options.standardise:
        scaling = Scaling.standardise(samples.X)
    else:
        lower = -1.0 if options.lower is None else options.lower
        upper = 1.0 if options.upper is None else options.upper
        scaling = Scaling.fit(samples.X, lower, upper)
    if options.targets is None:
        return scaling
    if samples.y is None or samples.y.dtype.kind != "f":
        raise ValueError("--targets needs labels that are numbers")
    return scaling.with_target(samples.y, *options.targets)


def _scaled(samples: Samples, scaling: Scaling) -> Samples:
    X = scaling.apply(samples.X)
    y = samples.y
    if y is not None and scaling.target is not None:
        if y.dtype.kind != "f":
            raise ValueError("the file of ranges scales labels, and these are words")
        y = scaling.apply_to_target(y)
    names = samples.feature_names if X.shape[1] == samples.n_features else None
    return replace(samples, X=X, y=y, feature_names=names)


def _format_of(options: argparse.Namespace) -> str | None:
    """Return the format that DATA has, if it is a file."""
    if options.format is not None:
        return str(options.format)
    return find_format(options.data) if Path(options.data).is_file() else None
