"""Read and write LIBSVM model files: a header of keywords, then the support vectors.

    svm_type c_svc            nr_class 3               nr_sv 1 1 1
    kernel_type polynomial    total_sv 3               SV
    degree 3                  rho 0 -0.5 -0.5          0.14 0.05 1:1 2:0.5
    gamma 1                   label 2 0 7              -0.14 0.05 1:0.25
    coef0 1                   probA … probB …          -0.05 -0.05 2:-1

Keywords may come in any order; ``SV`` is the last. LIBSVM's own reader trusts the counts and reads beyond its arrays if
they are wrong (version 3.37 crashes on two kinds of files). Here all counts are validated.
"""

from __future__ import annotations

import os
from typing import Any, BinaryIO

import numpy as np

from maxmargin.interchange.libsvm.model import CLASSIFIERS, KERNEL_PARAMETERS, SVM_TYPES, LibsvmModel
from maxmargin.interchange.libsvm.probability import MARKS
from maxmargin.interchange.model_text import MAX_INT32, KeywordHeader, ModelText, format_number
from maxmargin.interchange.support_vector_lines import EXACT_DIGITS, SupportVectors, read_vectors, write_vectors
from maxmargin.storage.output_files import write_atomically

#: First words of a file, unless it was reordered.
FIRST_WORDS = ("svm_type", "kernel_type")

KEYWORDS = (
    *("svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv", "rho", "label", "probA", "probB"),
    *("prob_density_marks", "nr_sv"),
)


def read_text(file: str | os.PathLike[str] | BinaryIO) -> LibsvmModel:
    """Read a LIBSVM model file.

    Parameters
    ----------
    file : path or binary file
        A binary file is read to its end.

    Returns
    -------
    LibsvmModel
        The content of the file; its predictions are those of LIBSVM.

    Raises
    ------
    ModelFileError
        If the file is malformed; the message names the line and the problem.
    """
    text = ModelText(file)
    header = KeywordHeader(text, KEYWORDS, "SV", "LIBSVM")
    svm_type = header.choice("svm_type", SVM_TYPES)
    kernel = header.choice("kernel_type", tuple(KERNEL_PARAMETERS))
    classes = header.integer("nr_class", 1)
    classifier = svm_type in CLASSIFIERS
    if not classifier and classes != 2:
        text.fail(header.line("nr_class"), f"nr_class of {svm_type} must be 2, as LIBSVM writes it")
    pairs = classes * (classes - 1) // 2 if classifier else 1
    total = header.integer("total_sv", 0)
    rho = header.numbers("rho", pairs)
    labels, counts = _classes(header, classes, total) if classifier else (None, None)
    vectors = read_vectors(text, header.end + 1, total, max(1, classes - 1) if classifier else 1)
    return LibsvmModel(
        svm_type=svm_type,
        kernel=kernel,
        rho=rho,
        coefficients=np.ascontiguousarray(vectors.coefficients.T),
        **_support(text, header.end + 1, kernel, vectors),
        **_kernel_parameters(header, kernel),
        labels=labels,
        counts=counts,
        **_probabilities(header, svm_type, pairs),
    )


def write_text(model: LibsvmModel, file: str | os.PathLike[str] | BinaryIO, digits: int = 8) -> None:
    """Write a LIBSVM model file.

    Parameters
    ----------
    model : LibsvmModel
    file : path or binary file
        A path is written atomically.
    digits : int, default=8
        Number of digits of the feature values. LIBSVM writes 8, which changes the model slightly; 17 are exact. All
        other numbers are exact.
    """
    if not 1 <= digits <= EXACT_DIGITS:
        raise ValueError(f"digits must be an integer from 1 to {EXACT_DIGITS}, not {digits!r}")
    lines: list[tuple[str, Any]] = [("svm_type", [model.svm_type]), ("kernel_type", [model.kernel])]
    lines += [(name, [format_number(getattr(model, name))]) for name in KERNEL_PARAMETERS[model.kernel]]
    lines += [("nr_class", [str(2 if model.labels is None else len(model.labels))])]
    lines += [("total_sv", [str(model.coefficients.shape[1])]), ("rho", map(format_number, model.rho))]
    arrays = {"label": model.labels, "probA": model.probA, "probB": model.probB}
    arrays |= {"prob_density_marks": model.density_marks, "nr_sv": model.counts}
    lines += [(name, map(format_number, values)) for name, values in arrays.items() if values is not None]
    head = "".join(f"{name} {' '.join(words)}".rstrip() + "\n" for name, words in lines) + "SV\n"
    precomputed = model.kernel == "precomputed"  # its values are integers
    base = 0 if model.zero_based or precomputed else 1
    vectors = write_vectors(model.coefficients.T, model.support_vectors, base, EXACT_DIGITS if precomputed else digits)
    write_atomically(file, [head.encode("ascii"), *vectors])


def _classes(header: KeywordHeader, classes: int, total: int) -> tuple[Any, Any]:
    """Return the labels and the number of support vectors of each class."""
    labels = header.labels(classes)
    counts = header.integers("nr_sv", classes, 0)
    if counts.sum() != total:
        header.text.fail(header.line("nr_sv"), f"the sum of nr_sv is {counts.sum()}, but total_sv is {total}")
    return labels, counts


def _kernel_parameters(header: KeywordHeader, kernel: str) -> dict[str, Any]:
    """Return the parameters of the kernel."""
    names = KERNEL_PARAMETERS[kernel]
    found: dict[str, Any] = {}
    if "degree" in names:
        found["degree"] = header.integer("degree", 0)
    for name in ("gamma", "coef0"):
        if name in names:
            found[name] = float(header.numbers(name, 1)[0])
    if found.get("gamma", 0.0) < 0:
        header.text.fail(header.line("gamma"), "gamma must be at least 0")
    return found


def _probabilities(header: KeywordHeader, svm_type: str, pairs: int) -> dict[str, Any]:
    """Return the probability parameters; a classifier has both parameters of all sigmoids or none."""
    found = {}
    if svm_type in CLASSIFIERS and ("probA" in header.found or "probB" in header.found):
        found = {name: header.numbers(name, pairs) for name in ("probA", "probB")}
    elif svm_type in ("epsilon_svr", "nu_svr") and "probA" in header.found:
        found = {"probA": header.numbers("probA", 1)}
        if found["probA"][0] < 0:
            header.text.fail(header.line("probA"), "probA of a regression (the noise scale) must be at least 0")
    elif svm_type == "one_class" and "prob_density_marks" in header.found:
        found = {"density_marks": header.numbers("prob_density_marks", MARKS)}
        if (np.diff(found["density_marks"]) < 0).any():
            header.text.fail(header.line("prob_density_marks"), "prob_density_marks must be in ascending order")
    return found


def _support(text: ModelText, first: int, kernel: str, vectors: SupportVectors) -> dict[str, Any]:
    """Return the support vectors; for a precomputed kernel their sample numbers."""
    if kernel != "precomputed":
        zero_based = not vectors.indices.min(initial=1)
        base = 0 if zero_based else 1
        width = int(vectors.indices.max(initial=base - 1)) + 1 - base
        return {"support_vectors": vectors.matrix(base, width), "zero_based": zero_based}
    sizes = np.diff(vectors.starts)
    bad = np.flatnonzero(sizes != 1)
    if not len(bad):
        integers = (vectors.values == np.floor(vectors.values)) & (np.abs(vectors.values - 1) < MAX_INT32)
        bad = np.flatnonzero(~integers | (vectors.values < 1) | (vectors.indices != 0))
    if len(bad):
        text.fail(first + int(bad[0]), "a support vector of a precomputed kernel must be 0:n, n the sample number")
    return {"support_vectors": vectors.matrix(0, 1)}
