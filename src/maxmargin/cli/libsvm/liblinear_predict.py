"""`maxmargin liblinear-predict`: LIBLINEAR's program that predicts, for files of any size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maxmargin.cli.libsvm.classes import say_nothing
from maxmargin.cli.libsvm.evaluation import Evaluation
from maxmargin.cli.libsvm.option_words import ProgramError, UsageError, answer, split_options
from maxmargin.cli.libsvm.streaming import open_output, read_blocks

USAGE = """\
Usage: liblinear-predict [options] test_file model_file output_file
options:
-b probability_estimates : 0 (default); 1 is for logistic regression, which is not there
-q : say nothing
"""


def main(arguments: Sequence[str]) -> int:
    """Predict, and say how many predictions are right."""

    def work() -> int:
        options, files = split_options(arguments, {"b": 1, "q": 0}, "unknown option: -{}")
        if len(files) < 3:
            raise UsageError("")
        asked = [option.whole for option in options if option.letter == "b"]
        quiet = any(option.letter == "q" for option in options)
        return run(files[0], files[1], files[2], bool(asked and asked[-1]), quiet)

    return answer(USAGE, work)


def run(data: str, model_file: str, output_file: str, probability: bool, quiet: bool) -> int:
    """Predict, and return the exit code."""
    from maxmargin.interchange.errors import ModelFileError
    from maxmargin.interchange.liblinear_model import REGRESSORS, read_liblinear_text

    blocks = read_blocks(data, zero_based=False)
    with open_output(output_file) as output:
        try:
            model = read_liblinear_text(model_file)
        except (OSError, ModelFileError) as error:
            more = f"\n{error}" if isinstance(error, ModelFileError) else ""
            raise ProgramError(f"can't open model file {model_file}{more}") from error
        if probability:
            raise ProgramError("probability output is only supported for logistic regression")
        evaluation = Evaluation()
        for X, y in blocks:
            predicted = np.asarray(model.predict(X), dtype=np.float64)
            output.writelines(f"{value:.17g}\n" for value in predicted.tolist())
            evaluation.add(predicted, y)
    say = say_nothing if quiet else print
    correct = f" ({evaluation.correct}/{evaluation.count})"
    for line in evaluation.lines(model.solver_type in REGRESSORS, suffixes=(correct, " (regression)")):
        say(line)
    return 0
