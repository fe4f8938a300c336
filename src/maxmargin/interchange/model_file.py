"""Save and load fitted models in a safe binary format.

Unlike a pickle, a model file contains no code: it is a JSON header and the raw bytes of arrays (`maxmargin.storage`).
`docs/model_file.md` specifies the format.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, BinaryIO

from numpy.typing import NDArray

from maxmargin.interchange import sklearn_classes
from maxmargin.interchange.errors import ModelFileError
from maxmargin.interchange.estimator_encoding import EstimatorDecoder, EstimatorEncoder, is_machine
from maxmargin.interchange.fitted_schema import MACHINES, fitted_attributes
from maxmargin.interchange.value_encoding import MAX_DEPTH, type_name
from maxmargin.storage.file_format import FileFormat
from maxmargin.storage.output_files import write_atomically

#: Version of this package, stored in the file for information.
WRITER = version("maxmargin")

#: Maximum nesting depth of the JSON text: an object takes two levels.
MAX_JSON_DEPTH = 2 * MAX_DEPTH + 8

#: Key of the version of scikit-learn, in files with objects of its classes.
SKLEARN = "scikit-learn"

#: Prefix, header and arrays of the file.
FORMAT = FileFormat(
    "model file",
    b"\x89MXMG\r\n\x1a",
    2,
    ModelFileError,
    MAX_JSON_DEPTH,
    advice="copy it again",
    version_advice="load it with the version that wrote it, or fit again",
    keys=frozenset(["maxmargin", "estimator", "parameters", "fitted", "arrays"]),
    optional_keys=frozenset(["notes", SKLEARN]),
)


def save(
    model: Any, file: str | os.PathLike[str] | BinaryIO, notes: Mapping[str, str | int | float] | None = None
) -> None:
    """Write a fitted model to a file for `load`.

    The file contains no code and no training data. It stores what predictions and a warm start need, and the
    certificate if it was computed: read ``certificate_`` before saving to store it.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this package, or a fitted `Pipeline` or `ColumnTransformer` of scikit-learn's usual
        transformers with it. Of one that has chosen its parameters or its threshold, such as `SVCCV`, `GridSearchCV` or
        `TunedThresholdClassifierCV`, the best model is written, and `load` returns for example an `SVC`.
    file : path or binary file
        A path is written atomically.
    notes : mapping, optional
        Strings and numbers stored with the model, for `read_notes`: for example the source of its data.

    Raises
    ------
    ModelFileError
        If the model is not fitted, or contains something that a file cannot store, such as a function.

    Examples
    --------
    >>> import io
    >>> import maxmargin
    >>> model = maxmargin.SVC(kernel="linear").fit([[0.0], [1.0]], ["low", "high"])
    >>> file = io.BytesIO()
    >>> maxmargin.save(model, file)
    >>> _ = file.seek(0)
    >>> maxmargin.load(file).predict([[0.9]])
    array(['high'], dtype='<U4')

    A pipeline remembers the names of the columns and how to prepare them:

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> pipeline = make_pipeline(OneHotEncoder(handle_unknown="ignore"), model)
    >>> _ = pipeline.fit([["cold"], ["hot"]], ["low", "high"])
    >>> file = io.BytesIO()
    >>> maxmargin.save(pipeline, file)
    >>> _ = file.seek(0)
    >>> maxmargin.load(file).predict([["hot"]])
    array(['high'], dtype='<U4')
    """
    model = sklearn_classes.chosen_model(model)
    name = type(model).__name__
    fitted = bool(fitted_attributes(model)) if is_machine(model) else _is_fitted_pipeline(model)
    if not fitted:
        raise ModelFileError(f"this {name} is not fitted yet; fit it before saving")
    encoder = EstimatorEncoder()
    header: dict[str, Any] = {"maxmargin": WRITER, "estimator": name, **encoder.state(model)}
    if encoder.uses_sklearn:
        header[SKLEARN] = version("scikit-learn")
    if notes:
        header["notes"] = _checked_notes(dict(notes))
    write_atomically(file, FORMAT.pieces(header, encoder.arrays))


def load(file: str | os.PathLike[str] | BinaryIO) -> Any:
    """Return the model written by `save`.

    No code in the file is executed and everything is validated: a damaged or crafted file raises an error. Validation
    cannot show that the numbers were fitted to data.

    Parameters
    ----------
    file : path or binary file
        A binary file is read to its end.

    Returns
    -------
    estimator
        Its predictions are bitwise those of the saved model on the same computer. If the certificate was not computed
        before saving, reading ``certificate_`` raises an error.

    Raises
    ------
    ModelFileError
        If the file is damaged, not a model file, of another version of the format, or contains objects of another
        major version of scikit-learn; another minor version is a warning.
    """
    model = load_machine(file)
    if not is_machine(model):
        return model
    from maxmargin.estimators.from_machine import as_estimator  # loads scikit-learn

    return as_estimator(model)


def load_machine(file: str | os.PathLike[str] | BinaryIO) -> Any:
    """Return the model written by `save`: a machine, which does not need scikit-learn, or a pipeline."""
    header, arrays = _read(file)
    if SKLEARN in header:
        sklearn_classes.check_version(header[SKLEARN])
    return _restore(header, EstimatorDecoder(arrays, SKLEARN in header))


def read_notes(file: str | os.PathLike[str] | BinaryIO) -> dict[str, str | int | float]:
    """Return the notes stored by `save`, an empty dict if there are none."""
    notes: dict[str, str | int | float] = _read(file)[0].get("notes", {})
    return notes


def _is_fitted_pipeline(model: Any) -> bool:
    """Return whether an estimator of scikit-learn is fitted; raise if it is not one that a file may contain."""
    if not (sklearn_classes.is_storable(model) and hasattr(model, "get_params")):
        raise ModelFileError(
            f"{type_name(model)} cannot be stored in a model file, only {', '.join(MACHINES)}, and pipelines of the "
            "classes of scikit-learn listed in docs/model_file.md; use pickle for other estimators"
        )
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def _read(file: str | os.PathLike[str] | BinaryIO) -> tuple[dict[str, Any], list[NDArray[Any]]]:
    """Return the header and the arrays of a file."""
    header, arrays = FORMAT.read(file)
    if "notes" in header:
        _checked_notes(header["notes"])
    return header, arrays


def _checked_notes(notes: Any) -> dict[str, Any]:
    """Return notes, which must be strings and finite numbers by name."""
    valid = isinstance(notes, dict) and all(
        isinstance(name, str) and (type(value) in (str, int) or (type(value) is float and math.isfinite(value)))
        for name, value in notes.items()
    )
    if not valid:
        raise ModelFileError("the notes of a model file must be strings and finite numbers by name")
    found: dict[str, Any] = notes
    return found


def _restore(header: dict[str, Any], decoder: EstimatorDecoder) -> Any:
    """Return the machine or the pipeline described by a header."""
    name = header["estimator"]
    if not isinstance(name, str):
        raise ModelFileError(f"the estimator {str(name)[:40]!r} is unknown to this version of maxmargin")
    return decoder.model(name, header["parameters"], header["fitted"])
