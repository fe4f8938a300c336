"""The result of a comparison: table, pandas DataFrame, JSON, figure or HTML page."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from maxmargin.comparison import report
from maxmargin.comparison.solver_run import SolverRun
from maxmargin.problems import Progress, Status
from maxmargin.solvers import StoppingRule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Columns of a trace in JSON.
TRACE_COLUMNS = tuple(field.name for field in fields(Progress) if field.name not in ("point", "finished", "problems"))


@dataclass(frozen=True, repr=False)
class Comparison:
    """The runs of several solvers on one problem.

    Attributes
    ----------
    problem : dict
        Description of the problem: data, size, kernel, estimator.
    stopping : StoppingRule
        Common to all solvers.
    runs : tuple of SolverRun
        In the order in which they ran.
    """

    problem: dict[str, Any]
    stopping: StoppingRule
    runs: tuple[SolverRun, ...]

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the comparison."""
        return any(run.status is Status.INTERRUPTED for run in self.runs)

    def __getitem__(self, label: str) -> SolverRun:
        for run in self.runs:
            if run.label == label:
                return run
        raise KeyError(f"there is no solver {label!r}; the labels are {', '.join(run.label for run in self.runs)}")

    def __str__(self) -> str:
        return report.plain_table(self.runs)

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.runs)} solvers on {self.problem['variables']:,} variables>\n{self}"

    def records(self) -> list[dict[str, Any]]:
        """Return a dict per solver of values that JSON can hold; unknown values are None."""
        return [run.record() for run in self.runs]

    def frame(self) -> Any:
        """Return the records as a pandas DataFrame with a row per solver."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("frame() needs pandas: pip install pandas; records() works without") from error
        return pandas.DataFrame(self.records()).set_index("solver")

    def to_json(self) -> str:
        """Return problem, stopping rule, records and traces (by column) as JSON."""
        runs = [
            {**run.record(), "trace": {name: [getattr(entry, name) for entry in run.trace] for name in TRACE_COLUMNS}}
            for run in self.runs
        ]
        content = {
            "maxmargin": version("maxmargin"),
            "problem": self.problem,
            "stopping": asdict(self.stopping),
            "runs": runs,
        }
        return json.dumps(_finite(content), allow_nan=False)

    def plot(self, figure: Figure | None = None) -> Figure:
        """Plot the gap over time, iterations and kernel evaluations, and both objectives over time.

        Parameters
        ----------
        figure : matplotlib Figure, optional
            Where to draw; a new one by default.

        Returns
        -------
        matplotlib Figure
        """
        from maxmargin.comparison.figure import draw

        return draw(self.runs, report.title_of(self.problem), figure)

    def to_html(self) -> str:
        """Return a self-contained page with the table, the figure and the description of the problem."""
        return report.html_page(self.problem, self.stopping, self.runs)


def _finite(value: Any) -> Any:
    """Return values with null in place of infinities and NaN, which JSON cannot hold."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
