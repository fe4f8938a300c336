"""Contracts that a kernel or a solver of your own must fulfil: test classes to inherit from, with pytest.

``maxmargin new kernel NAME`` and ``maxmargin new solver NAME`` write a file and such a test. Needs
``pip install pytest 'maxmargin[qp]'``.

- `kernel_contract`: `KernelContract`, symmetry, positive semi-definiteness, blocks, sparse and float32 samples
- `solver_contract`: `SolverContract`, certificates of all named problems, limits, callbacks, starts
- `named_problems`: the small problems, by name
- `quadratic_program`: the reference solution of a generic solver

Public: the names below.
"""

from maxmargin.testing.kernel_contract import KernelContract
from maxmargin.testing.named_problems import CONVEX
from maxmargin.testing.solver_contract import SolverContract

__all__ = ["CONVEX", "KernelContract", "SolverContract"]
