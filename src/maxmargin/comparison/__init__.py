"""Comparison of solvers: the same problem, the same stopping rule, and one certificate for all.

Public: `compare`, `Comparison`, `SolverRun`, `ComparisonObserver`.

- `solver_comparison`: `compare`, which runs the solvers one after another.
- `solver_selection`: from names and objects to labelled solvers with a common stopping rule.
- `solver_run`: outcome, cost, certificate and trace of one solver.
- `comparison`: the result, with its text, JSON, pandas, matplotlib and HTML forms.
- `report`: table cells, plain text and the HTML page.
- `figure`: convergence plots.
"""

from maxmargin.comparison.comparison import Comparison
from maxmargin.comparison.solver_comparison import ComparisonObserver, compare
from maxmargin.comparison.solver_run import SolverRun

__all__ = ["Comparison", "ComparisonObserver", "SolverRun", "compare"]
