"""`maxmargin svm-predict`: replacement of LIBSVM's svm-predict, for files of any size, on all cores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats
from maxmargin.cli.libsvm.classes import discard
from maxmargin.cli.libsvm.program_data import FeatureRows, open_output, read_blocks
from maxmargin.cli.libsvm.program_options import ProgramError, read_predict_arguments, run_program
from maxmargin.cli.metrics import RunningMetrics
from maxmargin.datasets.compressed_rows import CompressedRows

if TYPE_CHECKING:
    from maxmargin.interchange.libsvm import LibsvmModel

USAGE = """\
Usage: svm-predict [options] test_file model_file output_file
options:
-b probability_estimates : whether to predict probability estimates, 0 or 1 (default 0)
-q : quiet mode (no output)
"""


def main(arguments: Sequence[str]) -> int:
    """Predict, and print accuracy or error."""
    return run_program(USAGE, lambda: run(*read_predict_arguments(arguments)))


def run(files: tuple[str, str, str], probability: bool, quiet: bool) -> int:
    """Predict, and return the exit code."""
    from maxmargin.interchange.errors import ModelFileError
    from maxmargin.interchange.libsvm import read_text

    log = discard if quiet else print
    data, model_file, output_file = files
    blocks = read_blocks(data)
    with open_output(output_file) as output:
        try:
            model = read_text(model_file)
        except (OSError, ModelFileError) as error:
            more = f"\n{error}" if isinstance(error, ModelFileError) else ""
            raise ProgramError(f"can't open model file {model_file}{more}") from error
        if probability and not model.has_probabilities:
            raise ProgramError("Model does not support probabiliy estimates")
        if not probability and model.has_probabilities:
            log("Model supports probability estimates, but disabled in prediction.")
        regression = model.svm_type in ("epsilon_svr", "nu_svr")
        if probability and regression and model.probA is not None:
            log("Prob. model for test data: target value = predicted value + z,")
            log(f"z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma={model.probA[0]:g}")
        predict = _predict_probabilities if probability and not regression else _predict_labels
        evaluation = RunningMetrics()
        for predicted, y in predict(model, blocks, output):
            evaluation.add(predicted, y)
    correct = f" ({evaluation.correct}/{evaluation.count}) (classification)"
    for line in evaluation.lines(regression, suffixes=(correct, " (regression)")):
        log(line)
    return 0


def _predict_labels(
    model: Any, blocks: Iterator[tuple[CompressedRows, Floats]], output: IO[str]
) -> Iterator[tuple[Floats, Floats]]:
    """Write the label or value of each sample."""
    for rows, y in blocks:
        matched, X = match_columns(model, FeatureRows.of(rows))
        predicted = np.asarray(matched.predict(X), dtype=np.float64)
        output.writelines(f"{value:.17g}\n" for value in predicted.tolist())
        yield predicted, y


def _predict_probabilities(
    model: Any, blocks: Iterator[tuple[CompressedRows, Floats]], output: IO[str]
) -> Iterator[tuple[Floats, Floats]]:
    """Write the most probable label and the probabilities of each sample."""
    if model.labels is None:
        labels = np.array([1, -1])
        output.write("label normal outlier\n")
    else:
        labels = model.labels
        output.write(f"labels {' '.join(map(str, labels.tolist()))}\n")
    for rows, y in blocks:
        matched, X = match_columns(model, FeatureRows.of(rows))
        decisions = matched.decision_values(X)
        probabilities = matched.probabilities(decisions)
        predicted = labels[np.argmax(probabilities, axis=1)].astype(np.float64)
        if model.labels is None:
            predicted = np.asarray(matched.decide(decisions), dtype=np.float64)
        for label, row in zip(predicted.tolist(), probabilities.tolist(), strict=True):
            output.write(" ".join(f"{value:g}" for value in (label, *row)) + "\n")
        yield predicted, y


def match_columns(model: LibsvmModel, rows: FeatureRows) -> tuple[LibsvmModel, Any]:
    """Return a model and samples of the same columns: index 0 is that of both, or of neither.

    Samples for a precomputed kernel lose the column of index 0, which has numbers that prediction ignores.
    """
    if model.kernel == "precomputed":
        return model, rows.X[:, 1:] if rows.zero_based else rows.X
    if model.zero_based and not rows.zero_based:
        return model, _with_first_column(rows.X)
    if rows.zero_based and not model.zero_based:
        model = replace(model, support_vectors=_with_first_column(model.support_vectors), zero_based=True)
    return model, rows.X


def _with_first_column(X: Any) -> Any:
    """Return rows with a first column of zeros."""
    if sparse.issparse(X):
        return sparse.csr_matrix(sparse.hstack([sparse.csr_matrix((X.shape[0], 1)), X]))
    return np.hstack([np.zeros((len(X), 1)), X])
