"""Cholesky factorisation without the interpreter lock.

The functions of SciPy's LAPACK hold the lock, so that the problems of several classes, a thread each, would factorise
one after the other. The same routine is called by its address, which SciPy exports for Cython.
"""

from __future__ import annotations

import ctypes
from typing import Any, cast

import numpy as np
from scipy.linalg import cython_lapack, lapack

from maxmargin._typing import Floats
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.precision import DOUBLE_EPSILON


def factorise(square: Floats) -> Floats:
    """Return the Cholesky factor of a lower triangle; the diagonal grows while rounding makes the matrix indefinite.

    The factor is an upper triangle in Fortran order, as `solve` takes it.
    """
    more = DOUBLE_EPSILON * len(square)
    while True:
        factor = square.copy()
        if not _factorise_in_place(factor):
            return factor.T
        if not (np.isfinite(square).all() and more < 1.0):
            raise ValueError(NON_FINITE_MESSAGE)
        square.flat[:: len(square) + 1] *= 1.0 + more
        more *= 10.0


def solve(factor: Floats, right: Floats) -> Floats:
    """Return the solution of the equations whose matrix has this factor."""
    return cast(Floats, lapack.dpotrs(factor, right, lower=0)[0])


def _exported(name: str, arguments: list[Any]) -> Any:
    """Return a routine of LAPACK by its address; ctypes releases the interpreter lock while it runs."""
    capsule = cython_lapack.__pyx_capi__[name]
    get_name, get_pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.CFUNCTYPE(None, *arguments)(get_pointer(capsule, get_name(capsule)))


_INT = ctypes.POINTER(ctypes.c_int)
_dpotrf = _exported("dpotrf", [ctypes.c_char_p, _INT, ctypes.c_void_p, _INT, _INT])


def _factorise_in_place(square: Floats) -> bool:
    """Replace a lower triangle by its factor; return whether the matrix is indefinite."""
    size, failed = ctypes.c_int(len(square)), ctypes.c_int()
    # In Fortran order the rows are columns, and the triangle is an upper one.
    _dpotrf(b"U", ctypes.byref(size), square.ctypes.data, ctypes.byref(size), ctypes.byref(failed))
    return failed.value != 0
