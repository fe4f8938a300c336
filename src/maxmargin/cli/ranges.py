"""The scaling of training data by a range file: `maxmargin train --ranges`."""

from __future__ import annotations

import argparse
from typing import Any

from maxmargin import _sparse as sparse
from maxmargin.cli.output import Output
from maxmargin.datasets import Scaling


def ranges_of(options: argparse.Namespace, X: Any, output: Output) -> Scaling:
    """Return the scaling of the range file, which is computed from X and written if it does not exist.

    X is an array, a sparse matrix or a table of blocks. Sparse features are scaled to [0, 1], which keeps zeros of
    nonnegative features, others to [-1, 1].
    """
    if options.ranges.exists():
        scaling = Scaling.read(options.ranges)
        if scaling.target is not None:
            raise ValueError(f"{options.ranges} scales labels, too, which is not undone here; use maxmargin scale")
        if len(scaling.unseen(X)):
            output.remark(f"features without a range in {options.ranges} become 0")
        return scaling
    keeps_zeros = sparse.issparse(X) or getattr(X, "is_sparse", False)
    scaling = Scaling.fit(X, lower=0.0) if keeps_zeros else Scaling.fit(X)
    scaling.write(options.ranges)
    output.remark(f"features are scaled to [{scaling.lower:g}, {scaling.upper:g}]; the ranges are in {options.ranges}")
    return scaling
