"""The result of a comparison, as a table, a frame, JSON, a picture or a page."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from maxmargin.comparison.run import Run
from maxmargin.comparison.tables import plain_table
from maxmargin.problems import Progress, Status
from maxmargin.solvers import StoppingRule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What is told of each entry of a trace.
ENTRY = tuple(field.name for field in fields(Progress) if field.name not in ("point", "finished", "machines"))


@dataclass(frozen=True, repr=False)
class Comparison:
    """What became of several solvers on one problem.

    Attributes
    ----------
    about : dict
        What the problem is.
    stopping : StoppingRule
        What was asked of every solver.
    runs : tuple of Run
        In the order in which they ran.
    """

    about: dict[str, Any]
    stopping: StoppingRule
    runs: tuple[Run, ...]

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return any(run.status is Status.INTERRUPTED for run in self.runs)

    def __getitem__(self, label: str) -> Run:
        for run in self.runs:
            if run.label == label:
                return run
        raise KeyError(f"no solver is called {label!r}; there are {', '.join(run.label for run in self.runs)}")

    def __str__(self) -> str:
        return plain_table(self.runs)

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.runs)} solvers on {self.about['variables']:,} variables>\n{self}"

    def records(self) -> list[dict[str, Any]]:
        """Return a dict of plain values for each solver; what is not known is None."""
        return [run.record() for run in self.runs]

    def frame(self) -> Any:
        """Return the records as a pandas DataFrame, a line for each solver."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("a frame needs pandas: pip install pandas; records() does without") from error
        return pandas.DataFrame(self.records()).set_index("solver")

    def to_json(self) -> str:
        """Return everything as JSON: the problem, the rule, the records, and for each run its trace in columns."""
        runs = [
            {**run.record(), "trace": {name: [getattr(entry, name) for entry in run.trace] for name in ENTRY}}
            for run in self.runs
        ]
        content = {
            "maxmargin": version("maxmargin"),
            "about": self.about,
            "stopping": asdict(self.stopping),
            "runs": runs,
        }
        return json.dumps(_finite(content), allow_nan=False)

    def plot(self, figure: Figure | None = None) -> Figure:
        """Draw how the gap fell against seconds, iterations and kernel values, and how both values met.

        Parameters
        ----------
        figure : matplotlib Figure, optional
            Where to draw; a new one by default.

        Returns
        -------
        matplotlib Figure
        """
        from maxmargin.comparison.picture import draw

        return draw(self, figure)

    def to_html(self) -> str:
        """Return a page with the table, the picture and the description, which needs no other file."""
        from maxmargin.comparison.page import page

        return page(self)


def _finite(value: Any) -> Any:
    """Return plain values as JSON can hold them: what is infinite or no number becomes null."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
