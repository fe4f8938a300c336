"""`maxmargin scale`: scale features to a common range, and save the ranges for other data.

Range files and scaled values are those of LIBSVM's svm-scale.
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
    parser.add_argument("out", metavar="OUT", nargs="?", default="-", help="output file [standard output]")
    ranges = parser.add_argument_group("scaling")
    keep = ranges.add_mutually_exclusive_group()
    keep.add_argument(
        "-s", "--save", type=Path, metavar="RANGE", help="write the ranges to this file, to scale other data"
    )
    keep.add_argument("-r", "--restore", type=Path, metavar="RANGE", help="scale by the ranges of this file")
    ranges.add_argument("-l", "--lower", type=float, help="lower end of the range [-1]")
    ranges.add_argument("-u", "--upper", type=float, help="upper end of the range [1]")
    ranges.add_argument("--standardise", action="store_true", help="scale to mean 0 and standard deviation 1")
    ranges.add_argument(
        "-y", "--targets", type=float, nargs=2, metavar=("LOWER", "UPPER"), help="scale the labels, too, for regression"
    )
    parser.add_argument(
        "--to", choices=FORMATS, metavar="FORMAT", help="output format [by the suffix of OUT, or that of DATA]"
    )
    data.add_data_options(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    output = Output(options)
    _check(options)
    samples = data.read_data(options)
    scaling = _fit(options, samples) if options.restore is None else Scaling.read(options.restore)
    if options.restore is not None:
        unseen = scaling.unseen(samples.X) + 1
        if len(unseen):
            output.remark(f"features without a range in {options.restore} become 0: {data.listed([*map(str, unseen)])}")
    scaled = _scaled(samples, scaling)
    if options.save is not None:
        scaling.write(options.save)
    write_samples(scaled, options.out, options.to or format_by_name(options.out) or _format_of(options))
    nonzeros = [int(np.count_nonzero(X.data if hasattr(X, "nnz") else X)) for X in (samples.X, scaled.X)]
    if samples.is_sparse and nonzeros[1] > nonzeros[0]:
        counts = f"from {nonzeros[0]:,} to {nonzeros[1]:,}"
        output.remark(f"the number of nonzeros grew {counts}; --lower 0 keeps zeros of nonnegative features")
    if options.out != "-":
        facts = {
            "samples": len(samples),
            "features": samples.n_features,
            "scaled features": len(scaling.columns),
            "nonzeros before": nonzeros[0],
            "nonzeros after": nonzeros[1],
        }
        output.facts({name: f"{count:,}" for name, count in facts.items()})
        output.result({name.replace(" ", "_"): count for name, count in facts.items()} | {"written": options.out})
    return 0


def _check(options: argparse.Namespace) -> None:
    if options.json and options.out == "-":
        raise ValueError("--json needs a file OUT, because the data go to standard output")
    given = [name for name in ("lower", "upper", "targets") if getattr(options, name) is not None]
    if options.restore is not None and (given or options.standardise):
        raise ValueError("--restore takes the ranges from the file; omit --lower, --upper, --targets and --standardise")
    if options.standardise and {"lower", "upper"} & set(given):
        raise ValueError("--standardise has no range; omit --lower and --upper")


def _fit(options: argparse.Namespace, samples: Samples) -> Scaling:
    """Return the scaling fitted to samples."""
    if options.standardise:
        scaling = Scaling.standardise(samples.X)
    else:
        lower = -1.0 if options.lower is None else options.lower
        upper = 1.0 if options.upper is None else options.upper
        scaling = Scaling.fit(samples.X, lower, upper)
    if options.targets is None:
        return scaling
    if samples.y is None or samples.y.dtype.kind != "f":
        raise ValueError("--targets needs numeric labels")
    return scaling.with_target(samples.y, *options.targets)


def _scaled(samples: Samples, scaling: Scaling) -> Samples:
    X = scaling.apply(samples.X)
    y = samples.y
    if y is not None and scaling.target is not None:
        if y.dtype.kind != "f":
            raise ValueError("the range file scales labels, but these are text")
        y = scaling.apply_to_target(y)
    names = samples.feature_names if X.shape[1] == samples.n_features else None
    return replace(samples, X=X, y=y, feature_names=names)


def _format_of(options: argparse.Namespace) -> str | None:
    """Return the format of DATA, if it is a file."""
    if options.format is not None:
        return str(options.format)
    return find_format(options.data) if Path(options.data).is_file() else None
