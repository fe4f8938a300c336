"""Tables in .npz files: sparse matrices of ``scipy.sparse.save_npz``, or an array X, with y beside them or not.

Arrays that are stored without compression are read block by block; others are read at once, after a check
that they fit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from maxmargin.blocks.array_sources import ArraySource
from maxmargin.blocks.csr_sources import CsrSource
from maxmargin.blocks.file_arrays import FileArray
from maxmargin.blocks.sources import Source
from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.numpy_files import ARRAYS, PARTS, read_archive

#: Size of the header of a member, and where the lengths of its two last fields are.
LOCAL_HEADER, LENGTHS = 30, slice(26, 30)


def open_npz(path: Path) -> Source:
    """Return the source of an archive."""
    name = str(path)
    arrays = _arrays(path)
    y = arrays.get("y")
    if "X" in arrays:
        return ArraySource(arrays["X"], name, y)
    if not set(PARTS) <= set(arrays):
        raise DataFileError(name, f"the archive must contain X or a CSR matrix, not {', '.join(arrays) or 'nothing'}")
    if arrays["format"].shape != () or arrays["shape"].shape != (2,):
        raise DataFileError(name, "the sparse matrix is invalid: its format or shape is not a single one")
    layout = _text(arrays["format"])
    if layout != "csr":
        raise DataFileError(name, f"rows are read from matrices in the format csr, not {layout}; save X.tocsr()")
    shape = arrays["shape"][:].tolist()
    return CsrSource(arrays["data"], arrays["indices"], arrays["indptr"], shape, name, y)


def _arrays(path: Path) -> Mapping[str, Any]:
    """Return the arrays of an archive, read by ranges if none that is needed is compressed."""
    try:
        with ZipFile(path) as archive:
            members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
    except OSError:
        raise
    except Exception as error:  # damaged archives raise many kinds
        raise DataFileError(path, f"not a valid archive of NumPy arrays: {error}") from error
    members = {key: member for key, member in members.items() if key in ARRAYS}
    if all(member.compress_type == ZIP_STORED for member in members.values()):
        return {key: _stored(path, member) for key, member in members.items()}
    with open(path, "rb") as stream:
        return {key: values for key, values in read_archive(stream, str(path)).items() if key in ARRAYS}


def _stored(path: Path, member: ZipInfo) -> FileArray:
    """Return a member without compression; its values follow a header in front of it."""
    with open(path, "rb") as stream:
        stream.seek(member.header_offset)
        lengths = stream.read(LOCAL_HEADER)[LENGTHS]
    start = member.header_offset + LOCAL_HEADER + sum(int.from_bytes(lengths[at : at + 2], "little") for at in (0, 2))
    if len(lengths) < 4 or start + member.file_size > os.path.getsize(path):
        raise DataFileError(path, "the archive is truncated")
    return FileArray(path, start, member.file_size, f"{path} ({member.filename})")


def _text(values: Any) -> str:
    """Return the text of an array without dimensions."""
    found = values.item()
    return found.decode("ascii", "replace") if isinstance(found, bytes) else str(found)
