"""Backends: the operations over all samples, or over a working set, that solvers of the dual problem are written on.

`interface`
    `BlockBackend`, `BlockState` and `Subproblem`: the operations that the block solver calls.
`native_backend`, `numpy_backend`
    The implementations: compiled loops on the CPU, and plain NumPy as a readable twin for tests.
`cuda_backend`
    The implementation on a GPU, imported when it is asked for; `device_state`, `device_subproblem`: its arrays.
`host_state`, `host_subproblem`, `selection`
    Arrays in host memory, working-set selection and the double-precision audit, shared by both.
`optimality`, `free_equations`
    KKT violations and the duality gap from a known gradient; the linear equations of the free variables.

Public are `BACKENDS` and `get_backend`.
"""

from maxmargin.backends.interface import BlockBackend
from maxmargin.backends.native_backend import NativeBackend
from maxmargin.backends.numpy_backend import NumpyBackend

__all__ = ["BACKENDS", "get_backend"]

#: The backends by name.
BACKENDS: dict[str, BlockBackend] = {"native": NativeBackend(), "numpy": NumpyBackend()}


def get_backend(name: str) -> BlockBackend:
    """Return a backend by name, also "cuda" or "cuda:1"; raise ValueError for an unknown name."""
    if name.partition(":")[0] == "cuda":
        from maxmargin.backends.cuda_backend import CudaBackend

        return CudaBackend(name)
    if name not in BACKENDS:
        raise ValueError(f"unknown backend {name!r}; the backends are {', '.join(map(repr, BACKENDS))}, 'cuda'")
    return BACKENDS[name]
