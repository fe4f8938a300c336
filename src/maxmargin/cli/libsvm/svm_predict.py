"""`maxmargin svm-predict`: LIBSVM's program that predicts, for files of any size, on all cores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import IO, Any

import numpy as np
from scipy import sparse

from maxmargin._typing import Floats
from maxmargin.cli.libsvm.classes import say_nothing
from maxmargin.cli.libsvm.evaluation import Evaluation
from maxmargin.cli.libsvm.option_words import ProgramError, UsageError, answer, split_options
from maxmargin.cli.libsvm.problem import as_table
from maxmargin.cli.libsvm.streaming import open_output, read_blocks

USAGE = """\
Usage: svm-predict [options] test_file model_file output_file
options:
-b probability_estimates : also write probabilities, 0 or 1 (default 0)
-q : say nothing
"""


def main(arguments: Sequence[str]) -> int:
    """Predict, and say how many predictions are right."""

    def work() -> int:
        options, files = split_options(arguments, {"b": 1, "q": 0})
        if len(files) < 3:
            raise UsageError("")
        asked = [option.whole for option in options if option.letter == "b"]
        quiet = any(option.letter == "q" for option in options)
        return run(files[0], files[1], files[2], bool(asked and asked[-1]), quiet)

    return answer(USAGE, work)


def run(data: str, model_file: str, output_file: str, probability: bool, quiet: bool) -> int:
    """Predict, and return the exit code."""
    from maxmargin.interchange.errors import ModelFileError
    from maxmargin.interchange.libsvm import read_text

    say = say_nothing if quiet else print
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
            say("Model supports probability estimates, but disabled in prediction.")
        regression = model.svm_type in ("epsilon_svr", "nu_svr")
        if probability and regression and model.probA is not None:
            say("Prob. model for test data: target value = predicted value + z,")
            say(f"z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma={model.probA[0]:g}")
        found = _predict_probabilities if probability and not regression else _predict_labels
        evaluation = Evaluation()
        for predicted, y in found(model, blocks, output):
            evaluation.add(predicted, y)
    correct = f" ({evaluation.correct}/{evaluation.count}) (classification)"
    for line in evaluation.lines(regression, suffixes=(correct, " (regression)")):
        say(line)
    return 0


def _predict_labels(
    model: Any, blocks: Iterator[tuple[Any, Floats]], output: IO[str]
) -> Iterator[tuple[Floats, Floats]]:
    """Write a label or a value for each sample."""
    for X, y in blocks:
        predicted = np.asarray(_ask(model, X, "predict"), dtype=np.float64)
        output.writelines(f"{value:.17g}\n" for value in predicted.tolist())
        yield predicted, y


def _predict_probabilities(
    model: Any, blocks: Iterator[tuple[Any, Floats]], output: IO[str]
) -> Iterator[tuple[Floats, Floats]]:
    """Write the most probable label of each sample, and the probabilities of all."""
    if model.labels is None:
        labels = np.array([1, -1])
        output.write("label normal outlier\n")
    else:
        labels = model.labels
        output.write(f"labels {' '.join(map(str, labels.tolist()))}\n")
    for X, y in blocks:
        probabilities = _ask(model, X, "predict_probability")
        predicted = labels[np.argmax(probabilities, axis=1)].astype(np.float64)
        if model.labels is None:
            predicted = np.asarray(_ask(model, X, "predict"), dtype=np.float64)
        for label, row in zip(predicted.tolist(), probabilities.tolist(), strict=True):
            output.write(" ".join(f"{value:g}" for value in (label, *row)) + "\n")
        yield predicted, y


def _ask(model: Any, X: Any, what: str) -> Any:
    """Return what a model says about samples whose column is the index: most models know indices from 1 on."""
    if model.kernel == "precomputed" or not (model.zero_based or X[:, :1].nnz):
        X = X[:, 1:]
    elif not model.zero_based:
        vectors = sparse.hstack([sparse.csr_matrix((model.support_vectors.shape[0], 1)), model.support_vectors])
        model = replace(model, support_vectors=sparse.csr_matrix(vectors), zero_based=True)
    return getattr(model, what)(as_table(X))
