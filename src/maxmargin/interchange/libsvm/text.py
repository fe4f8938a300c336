"""LIBSVM's model files: a keyword a line, then the support vectors.

    svm_type c_svc            nr_class 3               nr_sv 1 1 1
    kernel_type polynomial    total_sv 3               SV
    degree 3                  rho 0 -0.5 -0.5          0.14 0.05 1:1 2:0.5
    gamma 1                   label 2 0 7              -0.14 0.05 1:0.25
    coef0 1                   probA … probB …          -0.05 -0.05 2:-1

Keywords may come in any order; ``SV`` is the last. LIBSVM's own reader trusts the counts: if they are wrong it reads
beyond its arrays (two kinds of files make version 3.37 crash), and takes what is missing for what it read last. Here
every count must be right before anything is made of it.
"""

from __future__ import annotations

import os
from typing import Any, BinaryIO

import numpy as np

from maxmargin.interchange.keyword_header import KeywordHeader, number_word, read_labels
from maxmargin.interchange.libsvm.probability import MARKS
from maxmargin.interchange.libsvm.record import CLASSIFIERS, KERNEL_PARAMETERS, SVM_TYPES, LibsvmModel
from maxmargin.interchange.text_lines import LARGEST_INDEX, TextLines
from maxmargin.interchange.vector_lines import EXACT, VectorLines, read_vectors, write_vectors
from maxmargin.interchange.whole_file import write_whole

#: How a file starts, unless somebody has reordered it.
FIRST_WORDS = ("svm_type", "kernel_type")

KEYWORDS = (
    *("svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv", "rho", "label", "probA", "probB"),
    *("prob_density_marks", "nr_sv"),
)


def read_text(file: str | os.PathLike[str] | BinaryIO) -> LibsvmModel:
    """Return the model in a file of LIBSVM.

    Parameters
    ----------
    file : path or binary file
        A binary file is read to its end.

    Returns
    -------
    LibsvmModel
        Everything that is in the file; it predicts as LIBSVM does.

    Raises
    ------
    ModelFileError
        With file, line and a sentence that says what is wrong.
    """
    text = TextLines(file)
    header = KeywordHeader(text, KEYWORDS, "SV", "LIBSVM")
    svm_type = header.choice("svm_type", SVM_TYPES)
    kernel = header.choice("kernel_type", tuple(KERNEL_PARAMETERS))
    classes = header.whole("nr_class", 1)
    classifier = svm_type in CLASSIFIERS
    if not classifier and classes != 2:
        text.refuse(header.line("nr_class"), f"nr_class of {svm_type} must be 2, as LIBSVM writes it")
    pairs = classes * (classes - 1) // 2 if classifier else 1
    total = header.whole("total_sv", 0)
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
    """Write a model as LIBSVM does.

    Parameters
    ----------
    model : LibsvmModel
    file : path or binary file
        A path is written beside its place and moved there when it is complete.
    digits : int, default=8
        Of the values of features. LIBSVM writes 8, which changes the model a little; 17 keep it. All other numbers are
        exact.
    """
    if not 1 <= digits <= EXACT:
        raise ValueError(f"digits must be a whole number from 1 to {EXACT}, not {digits!r}")
    lines: list[tuple[str, Any]] = [("svm_type", [model.svm_type]), ("kernel_type", [model.kernel])]
    lines += [(name, [number_word(getattr(model, name))]) for name in KERNEL_PARAMETERS[model.kernel]]
    lines += [("nr_class", [str(2 if model.labels is None else len(model.labels))])]
    lines += [("total_sv", [str(model.coefficients.shape[1])]), ("rho", map(number_word, model.rho))]
    arrays = {"label": model.labels, "probA": model.probA, "probB": model.probB}
    arrays |= {"prob_density_marks": model.density_marks, "nr_sv": model.counts}
    lines += [(name, map(number_word, values)) for name, values in arrays.items() if values is not None]
    head = "".join(f"{name} {' '.join(words)}".rstrip() + "\n" for name, words in lines) + "SV\n"
    precomputed = model.kernel == "precomputed"  # its only values are whole numbers
    base = 0 if model.zero_based or precomputed else 1
    vectors = write_vectors(model.coefficients.T, model.support_vectors, base, EXACT if precomputed else digits)
    write_whole(file, [head.encode("ascii"), *vectors])


def _classes(header: KeywordHeader, classes: int, total: int) -> tuple[Any, Any]:
    """Return the labels and how many support vectors each has."""
    labels = read_labels(header, classes)
    counts = header.wholes("nr_sv", classes, 0)
    if counts.sum() != total:
        sentence = f"nr_sv counts {counts.sum()} support vectors, but total_sv says {total}"
        header.text.refuse(header.line("nr_sv"), sentence)
    return labels, counts


def _kernel_parameters(header: KeywordHeader, kernel: str) -> dict[str, Any]:
    """Return those parameters that the kernel has."""
    names = KERNEL_PARAMETERS[kernel]
    found: dict[str, Any] = {}
    if "degree" in names:
        found["degree"] = header.whole("degree", 0)
    for name in ("gamma", "coef0"):
        if name in names:
            found[name] = float(header.numbers(name, 1)[0])
    if found.get("gamma", 0.0) < 0:
        header.text.refuse(header.line("gamma"), "gamma must be at least 0")
    return found


def _probabilities(header: KeywordHeader, svm_type: str, pairs: int) -> dict[str, Any]:
    """Return what a file knows of probabilities; of classifiers both parameters of all sigmoids or none."""
    found = {}
    if svm_type in CLASSIFIERS and ("probA" in header.found or "probB" in header.found):
        found = {name: header.numbers(name, pairs) for name in ("probA", "probB")}
    elif svm_type in ("epsilon_svr", "nu_svr") and "probA" in header.found:
        found = {"probA": header.numbers("probA", 1)}
        if found["probA"][0] < 0:
            header.text.refuse(
                header.line("probA"), "probA of a regression, the scale of the noise, must be at least 0"
            )
    elif svm_type == "one_class" and "prob_density_marks" in header.found:
        found = {"density_marks": header.numbers("prob_density_marks", MARKS)}
        if (np.diff(found["density_marks"]) < 0).any():
            header.text.refuse(header.line("prob_density_marks"), "prob_density_marks must ascend")
    return found


def _support(text: TextLines, first: int, kernel: str, vectors: VectorLines) -> dict[str, Any]:
    """Return the support vectors; of a precomputed kernel their numbers in the training data."""
    if kernel != "precomputed":
        zero_based = not vectors.indices.min(initial=1)
        base = 0 if zero_based else 1
        width = int(vectors.indices.max(initial=base - 1)) + 1 - base
        return {"support_vectors": vectors.matrix(base, width), "zero_based": zero_based}
    sizes = np.diff(vectors.starts)
    bad = np.flatnonzero(sizes != 1)
    if not len(bad):
        whole = (vectors.values == np.floor(vectors.values)) & (np.abs(vectors.values - 1) < LARGEST_INDEX)
        bad = np.flatnonzero(~whole | (vectors.values < 1) | (vectors.indices != 0))
    if len(bad):
        text.refuse(
            first + int(bad[0]), "a support vector of a precomputed kernel must be 0: and its number, from 1 on"
        )
    return {"support_vectors": vectors.matrix(0, 1)}
