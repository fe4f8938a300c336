"""Write an .npy file piece by piece, without its length or final type being known."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import numpy as np

from maxmargin.storage.output_files import flush_file, naming

#: Size of the header in bytes, which is written last; it has room for any length.
HEADER_BYTES = 128

#: Number of values that are converted at once when the type changes.
PIECE = 2**20


class NpyWriter:
    """An .npy file that grows; values of a wider type, such as longer strings, convert those before.

    Parameters
    ----------
    path : Path
    name : path
        For messages; the file may have a temporary name.
    dtype : dtype
        Of the first values.
    width : int, optional
        Values of a row of a table, of two dimensions, whose rows are written one after another.
    """

    def __init__(self, path: Path, name: str | os.PathLike[str], dtype: Any, width: int | None = None) -> None:
        self._path, self._name, self._width = path, name, width
        self.dtype = np.dtype(dtype).newbyteorder("=")
        self.count = 0
        with naming(name):
            self._stream = open(path, "wb")  # noqa: SIM115 (closed by __exit__)
            self._stream.write(bytes(HEADER_BYTES))

    def __enter__(self) -> Self:
        return self

    def append(self, values: np.ndarray[Any, Any]) -> None:
        """Write more values."""
        wider = np.promote_types(self.dtype, values.dtype)
        if (values.dtype.kind in "US") != (self.dtype.kind in "US"):
            raise ValueError(f"{os.fspath(self._name)}: values are strings in some blocks and numbers in others")
        if wider != self.dtype:
            self._convert(wider)
        with naming(self._name):
            self._write(values)
        self.count += len(values)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None:
            with suppress(OSError):  # a full disk once more, when the rest is written: the first error is raised
                self._stream.close()
            return
        with naming(self._name):
            try:
                self._stream.seek(0)
                shape = (self.count,) if self._width is None else (self.count // self._width, self._width)
                self._stream.write(_header(self.dtype, shape))
            finally:
                self._stream.close()
            flush_file(self._path)

    def _write(self, values: np.ndarray[Any, Any]) -> None:
        if len(values):
            self._stream.write(np.ascontiguousarray(values, self.dtype).view(np.uint8).data)

    def _convert(self, dtype: np.dtype[Any]) -> None:
        """Write all values again, in another type."""
        narrow, self.dtype = self.dtype, dtype
        before = self._path.with_suffix(".before")
        with naming(self._name):
            self._stream.close()
            os.replace(self._path, before)
            self._stream = open(self._path, "wb")  # noqa: SIM115 (closed by __exit__)
            self._stream.write(bytes(HEADER_BYTES))
            with open(before, "rb") as stream:
                stream.seek(HEADER_BYTES)
                while len(piece := np.frombuffer(stream.read(PIECE * narrow.itemsize), narrow)):
                    self._write(piece)
            before.unlink()


def _header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return a header of version 1.0 of the format, of fixed size."""
    text = f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': {shape}, }}"
    start = np.lib.format.magic(1, 0) + (HEADER_BYTES - 10).to_bytes(2, "little")
    return start + text.encode("ascii").ljust(HEADER_BYTES - 11) + b"\n"
