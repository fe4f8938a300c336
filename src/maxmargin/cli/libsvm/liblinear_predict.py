"""`maxmargin liblinear-predict`: replacement of LIBLINEAR's predict, for files of any size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maxmargin.cli.libsvm.classes import discard
from maxmargin.cli.libsvm.program_data import open_output, read_blocks
from maxmargin.cli.libsvm.program_options import ProgramError, read_predict_arguments, run_program
from maxmargin.cli.metrics import RunningMetrics

USAGE = """\
Usage: liblinear-predict [options] test_file model_file output_file
options:
-b probability_estimates : 0 (default); 1 is for logistic regression, which is not available
-q : quiet mode (no output)
"""


def main(arguments: Sequence[str]) -> int:
    """Predict, and print accuracy or error."""
    return run_program(USAGE, lambda: run(*read_predict_arguments(arguments, "unknown option: -{}")))


def run(files: tuple[str, str, str], probability: bool, quiet: bool) -> int:
    """Predict, and return the exit code."""
    from maxmargin.interchange.errors import ModelFileError
    from maxmargin.interchange.liblinear_model import REGRESSORS, read_liblinear_text

    data, model_file, output_file = files
    blocks = read_blocks(data, zero_based=False)
    with open_output(output_file) as output:
        try:
            model = read_liblinear_text(model_file)
        except (OSError, ModelFileError) as error:
            more = f"\n{error}" if isinstance(error, ModelFileError) else ""
            raise ProgramError(f"can't open model file {model_file}{more}") from error
        if probability:
            raise ProgramError("probability output is only supported for logistic regression")
        evaluation = RunningMetrics()
        for rows, y in blocks:
            predicted = np.asarray(model.predict(rows.matrix()), dtype=np.float64)
            output.writelines(f"{value:.17g}\n" for value in predicted.tolist())
            evaluation.add(predicted, y)
    log = discard if quiet else print
    correct = f" ({evaluation.correct}/{evaluation.count})"
    for line in evaluation.lines(model.solver_type in REGRESSORS, suffixes=(correct, " (regression)")):
        log(line)
    return 0
