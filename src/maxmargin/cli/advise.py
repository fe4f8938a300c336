"""`maxmargin advise`: which machine, which scaling and which parameters `maxmargin easy` would try for a file, and why.

The plan is that of `maxmargin easy` itself. Nothing is fitted, so that the answer takes as long as reading the file.
"""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING

from maxmargin.cli import data, easy
from maxmargin.cli.output import Output, add_output_options
from maxmargin.cli.prepared_data import SCALING_TEXTS, add_table_options, read_prepared

if TYPE_CHECKING:
    from maxmargin.search.data_summary import DataSummary
    from maxmargin.search.selection_plan import Candidate, SelectionPlan


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("data", metavar="DATA", help=data.DATA_HELP)
    parser.add_argument("--task", choices=["classification", "regression"], help="[depending on the labels]")
    add_table_options(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from maxmargin.search.data_summary import summarize, typical_gamma
    from maxmargin.search.fold_scoring import assign_folds
    from maxmargin.search.selection_plan import plan_selection

    output = Output(options)
    prepared = read_prepared(options, output, need_labels=True)
    classification = easy.is_classification(options, prepared.samples)
    prepared, decisions = easy.prepare(prepared, classification)
    samples = prepared.samples
    assign_folds(samples.y, easy.FOLDS, 0, classification)  # raises what the cross-validation would
    summary = summarize(samples.X, samples.y, classification)
    plan = plan_selection(summary)
    tried = [plan.linear, *([] if plan.kernel is None else [plan.kernel])]
    facts = {
        "data": decisions[0],
        "task": "classification" if classification else "regression",
        "scaling": decisions[1] if prepared.plan is None else f"numbers {SCALING_TEXTS[prepared.plan.scaling]}",
        "machines to compare": "; ".join(_describe(one, typical_gamma(samples.X)) for one in tried),
        "model selection": _describe_search(plan, summary),
        "final fit": _describe_fit(plan, summary),
        "command": shlex.join(["maxmargin", "easy", *(word for word in options.words[1:] if word not in _OWN_OPTIONS)]),
    }
    reasons = list(plan.reasons)
    output.facts(facts)
    for reason in reasons:
        output.line(f"note\t{reason}")
    output.result({**facts, "notes": reasons})
    return 0


#: Options that do not belong in the command that is advised.
_OWN_OPTIONS = ("--json", "-q", "--quiet")


def _describe(candidate: Candidate, typical_gamma: float) -> str:
    """Return the name of an estimator and the ranges of its parameters."""
    name = type(candidate.estimator).__name__
    ranges = f"C from {candidate.Cs[0]:.3g} to {candidate.Cs[-1]:.3g}"
    if candidate.relative_gammas is None:
        return f"{name}, {ranges}"
    low, high = (typical_gamma * relative for relative in (candidate.relative_gammas[0], candidate.relative_gammas[-1]))
    return f"{name} with a Gaussian kernel, {ranges}, gamma from about {low:.3g} to {high:.3g}"


def _describe_search(plan: SelectionPlan, summary: DataSummary) -> str:
    if plan.search_samples == summary.rows:
        return "cross-validation on all samples"
    subset = f"cross-validation on {plan.search_samples:,} of {summary.rows:,} samples"
    confirmed = "all" if plan.confirmation_samples == summary.rows else f"{plan.confirmation_samples:,}"
    return f"{subset}; the best points again on {confirmed}"


def _describe_fit(plan: SelectionPlan, summary: DataSummary) -> str:
    best = "the better machine" if plan.kernel is not None else type(plan.linear.estimator).__name__
    best += " on all samples"
    if plan.landmarks:
        best += f"; a kernel is approximated by landmarks, since {summary.rows:,} samples are too many for an exact fit"
    elif type(plan.kernel.estimator if plan.kernel else None).__name__ == "SVC":
        best += "; a kernel is approximated by landmarks if an exact fit would exceed the time limit"
    return best
