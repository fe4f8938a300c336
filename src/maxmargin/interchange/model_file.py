"""Fitted models in files that are safe to read: `save` and `load`.

A pickle is a program, and loading one runs it. A model file holds numbers and words from a closed vocabulary, in the
manner of safetensors: a prefix of fixed size, a header in JSON, and the raw bytes of arrays. `docs/model_file.md`
describes every byte. Reading allocates no more than a small multiple of the size of the file, whatever the file claims.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from maxmargin.interchange.array_table import aligned, read_arrays
from maxmargin.interchange.errors import ModelFileError
from maxmargin.interchange.fitted_schema import ESTIMATORS, PARAMETERS, check_fitted, fitted_attributes
from maxmargin.interchange.values import DEPTH, Decoder, Encoder, UnknownValueError
from maxmargin.interchange.whole_file import write_whole

#: How a file starts: bytes that a transfer as text would change, as in PNG.
MAGIC = b"\x89MXMG\r\n\x1a"

#: The version of the format that is written, and the newest that is read.
VERSION = 1

#: The version of this package, which a file mentions.
WRITER = version("maxmargin")

#: Magic, version, zero, bytes of the header, bytes of the file; then the SHA-256 of everything else.
PREFIX = struct.Struct("<8sIIQQ")
PREFIX_BYTES = 64

#: How deep JSON may be nested: an object with a name takes two levels for each of ours.
JSON_DEPTH = 2 * DEPTH + 8

#: What every header has; it may have "notes" too.
PARTS = frozenset(["maxmargin", "estimator", "parameters", "fitted", "arrays"])

#: What to do about parameters that a file cannot hold.
ADVICE = {
    "kernel": "fit with a kernel by its name or with an object of maxmargin.kernels",
    "callback": "take it off with set_params(callback=None)",
    "random_state": "replace it with set_params(random_state=None) or a whole number",
}


def save(
    model: Any, file: str | os.PathLike[str] | BinaryIO, notes: Mapping[str, str | int | float] | None = None
) -> None:
    """Write a fitted model to a file that `load` reads.

    The file holds numbers, strings and arrays, no code. It keeps everything that prediction, the certificate and a warm
    start need, not the training data; a certificate that nobody has read yet is computed now.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this package.
    file : path or binary file
        A path is written beside its place and moved there when it is complete, so that there is never half a model.
    notes : mapping, optional
        Words and numbers that stay with the model, for `read_notes`: where its data came from, for example.

    Raises
    ------
    ModelFileError
        If the model is not fitted, or holds something that a file cannot, such as a function.

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
    """
    name = type(model).__name__
    if ESTIMATORS.get(name) is not type(model):
        known = ", ".join(ESTIMATORS)
        raise ModelFileError(f"{name} is no estimator that model files know; those are {known}. Pickle keeps others")
    fitted = fitted_attributes(model)
    if not fitted:
        raise ModelFileError(f"this {name} is not fitted yet; only fitted models have files")
    encoder = Encoder()
    header: dict[str, Any] = {
        "maxmargin": WRITER,
        "estimator": name,
        "parameters": _encode_all(encoder, name, model.get_params(deep=False)),
        "fitted": _encode_all(encoder, name, fitted),
    }
    check_fitted(model)
    if notes:
        header["notes"] = _checked_notes(dict(notes))
    header["arrays"] = encoder.arrays.table()
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode("ascii")
    text += b" " * (aligned(len(text)) - len(text))
    start = PREFIX.pack(MAGIC, VERSION, 0, len(text), PREFIX_BYTES + len(text) + encoder.arrays.size)
    checksum = _checksum([start, text, *encoder.arrays.pieces()])
    write_whole(file, [start, checksum, text, *encoder.arrays.pieces()])


def load(file: str | os.PathLike[str] | BinaryIO) -> Any:
    """Return the model that `save` wrote.

    Nothing in the file is run, and everything is checked: a file that is damaged or crafted is an error, not a crash.
    What a file cannot prove is that its numbers were fitted to any data.

    Parameters
    ----------
    file : path or binary file
        A binary file is read to its end.

    Returns
    -------
    estimator
        It predicts as the saved one, bit for bit on the same machine.

    Raises
    ------
    ModelFileError
        With a sentence that says what is wrong with the file.
    """
    header, arrays = _read(file)
    return _restore(header, Decoder(arrays))


def read_notes(file: str | os.PathLike[str] | BinaryIO) -> dict[str, str | int | float]:
    """Return the notes that `save` has put beside a model; none are an empty dict."""
    notes: dict[str, str | int | float] = _read(file)[0].get("notes", {})
    return notes


def _encode_all(encoder: Encoder, name: str, values: dict[str, Any]) -> dict[str, Any]:
    encoded = {}
    for attribute, value in values.items():
        try:
            encoded[attribute] = encoder.encode(value)
        except UnknownValueError as error:
            advice = ADVICE.get(attribute.strip("_"), f"replace {attribute} by something that it can hold")
            raise ModelFileError(
                f"{attribute} of {name} holds {error}, which a model file does not hold (see docs/model_file.md): "
                f"{advice}, or keep this model with pickle or joblib"
            ) from None
    return encoded


def _read(file: str | os.PathLike[str] | BinaryIO) -> tuple[dict[str, Any], list[NDArray[Any]]]:
    """Return the header of a file and its arrays."""
    if isinstance(file, str | os.PathLike):
        with open(file, "rb") as opened:
            return _read(opened)
    start = file.read(PREFIX_BYTES)
    if not isinstance(start, bytes):
        raise ModelFileError("a model file must be opened in binary mode, for example open(path, 'rb')")
    header_bytes = _check_prefix(start)
    rest = memoryview(file.read())
    if PREFIX_BYTES + len(rest) != PREFIX.unpack_from(start)[4]:
        raise ModelFileError("the model file is cut off, or something was added to it: its length is not what it says")
    if _checksum([start[: PREFIX.size], rest]) != start[PREFIX.size :]:
        raise ModelFileError("the model file is damaged: its checksum does not match its contents")
    header = _parse(bytes(rest[:header_bytes]))
    return header, read_arrays(header["arrays"], rest[header_bytes:])


def _check_prefix(start: bytes) -> int:
    """Return the size of the header, if this is the start of a model file that this version reads."""
    if start[: len(MAGIC)] != MAGIC:
        raise ModelFileError("this is not a model file of maxmargin")
    if len(start) < PREFIX_BYTES:
        raise ModelFileError("the model file is cut off")
    _, found, zero, header_bytes, file_bytes = PREFIX.unpack_from(start)
    if not 1 <= found <= VERSION:
        raise ModelFileError(
            f"the model file has format {found}, and this version of maxmargin reads formats up to {VERSION}; "
            "a newer version of maxmargin reads it"
        )
    if zero or aligned(header_bytes) != header_bytes or PREFIX_BYTES + header_bytes > file_bytes:
        raise ModelFileError("the model file is damaged: the sizes in its first bytes are impossible")
    return int(header_bytes)


def _parse(text: bytes) -> dict[str, Any]:
    """Return the header: plain JSON, not nested too deep, without a key that occurs twice."""
    if _depth(text) > JSON_DEPTH:
        raise ModelFileError("the header of the model file is nested too deep")
    try:
        header = json.loads(text, object_pairs_hook=_without_repetition, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"the header of the model file cannot be read: {error}") from error
    if not isinstance(header, dict) or header.keys() - {"notes"} != PARTS:
        raise ModelFileError("the header of the model file lacks a part or has one too many")
    if "notes" in header:
        _checked_notes(header["notes"])
    return header


def _checked_notes(notes: Any) -> dict[str, Any]:
    """Return notes if they are words and finite numbers by name."""
    good = isinstance(notes, dict) and all(
        isinstance(name, str) and (type(value) in (str, int) or (type(value) is float and math.isfinite(value)))
        for name, value in notes.items()
    )
    if not good:
        raise ModelFileError("the notes of a model file must be strings and finite numbers by name")
    found: dict[str, Any] = notes
    return found


def _depth(text: bytes) -> int:
    """Return how deep brackets are nested outside of strings, before a parser descends into them."""
    marks = np.frombuffer(text.replace(b"\\\\", b"").replace(b'\\"', b""), np.uint8)  # only quotes that count remain
    outside = np.cumsum(marks == ord('"'), dtype=np.uint8) % 2 == 0
    opening = outside & ((marks == ord("[")) | (marks == ord("{")))
    closing = outside & ((marks == ord("]")) | (marks == ord("}")))
    return int(np.cumsum(opening.view(np.int8) - closing.view(np.int8), dtype=np.int32).max(initial=0))


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ModelFileError("the header of the model file has a key twice")
    return found


def _no_constant(word: str) -> None:
    raise ModelFileError(f"the header of the model file contains {word}, which is not JSON")


def _restore(header: dict[str, Any], decoder: Decoder) -> Any:
    """Return the estimator that a header describes."""
    name, parameters, fitted = header["estimator"], header["parameters"], header["fitted"]
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise ModelFileError(f"the model file holds an estimator that this version does not know: {str(name)[:40]!r}")
    if not isinstance(parameters, dict) or not isinstance(fitted, dict):
        raise ModelFileError("the parameters and the fitted attributes in a model file must be named")
    kind = ESTIMATORS[name]
    for parameter in parameters:
        if parameter not in PARAMETERS[kind]:
            raise ModelFileError(f"{name} has no parameter {parameter[:40]!r} in this version of maxmargin")
    model = kind(**{parameter: decoder.decode(value) for parameter, value in parameters.items()})
    vars(model).update({attribute: decoder.decode(value) for attribute, value in fitted.items()})
    check_fitted(model)
    return model


def _checksum(pieces: Iterable[bytes | memoryview]) -> bytes:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.digest()
