"""Coefficients of a linear model along the regularisation path, from 0 at small C to the unregularised fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.estimators.linear_path import LinearPath
from maxmargin.plotting.style import GREY, INK, LINES, Display, axes_for, colour, hide_spines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Smallest distance of two labels, as a fraction of the height of the axes.
MIN_LABEL_DISTANCE = 0.06


@dataclass
class CoefficientPathDisplay(Display):
    """Coefficients of a linear model against C, the largest with their names and the others in grey.

    Create it with `from_path`.

    Attributes
    ----------
    Cs : float array
        Values of C in ascending order.
    coefficients : float array of shape (n_Cs, n_features)
    names : list of str
        Names of the features.
    ax_, figure_
        Axes and figure of the last `plot`.

    Examples
    --------
    >>> from maxmargin import linear_path
    >>> from maxmargin.plotting import CoefficientPathDisplay
    >>> path = linear_path([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0], [3.0, 2.0]], [0, 1, 0, 1], Cs=[0.1, 1, 10])
    >>> CoefficientPathDisplay.from_path(path).coefficients.shape
    (3, 2)
    """

    Cs: Floats
    coefficients: Floats = field(repr=False)
    names: list[str]

    @classmethod
    def from_path(
        cls,
        path: LinearPath,
        *,
        output: int | None = None,
        feature_names: Sequence[Any] | None = None,
        max_labels: int = 6,
        ax: Axes | None = None,
    ) -> CoefficientPathDisplay:
        """Draw the result of `maxmargin.linear_path`.

        Parameters
        ----------
        path : LinearPath
        output : int, optional
            Index of the class or target; required if there are several decision functions.
        feature_names : sequence of str, optional
            By default ``feature_names_in_``, or the column indices.
        max_labels : int
            Number of the largest coefficients that are drawn in colour and labelled.
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure is created.

        Returns
        -------
        CoefficientPathDisplay
        """
        order = np.argsort(path.Cs, kind="stable")
        weights = path.coefs[order].reshape(len(order), -1, path.models[0].n_features_in_)
        functions = weights.shape[1]
        if output is None and functions > 1:
            raise ValueError(
                f"the models have {functions} decision functions; choose one with output=0 to {functions - 1}"
            )
        given = feature_names if feature_names is not None else getattr(path.models[0], "feature_names_in_", None)
        names = [str(name) for name in (range(weights.shape[2]) if given is None else given)]
        if len(names) != weights.shape[2]:
            raise ValueError(f"the models have {weights.shape[2]} features, but there are {len(names)} feature_names")
        return cls(path.Cs[order], weights[:, output or 0], names).plot(ax, max_labels=max_labels)

    def plot(self, ax: Axes | None = None, *, max_labels: int = 6) -> CoefficientPathDisplay:
        """Draw on the given axes, by default on a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        max_labels : int
            Number of the largest coefficients that are drawn in colour and labelled.

        Returns
        -------
        self
        """
        ax = axes_for(ax, (6.0, 3.8))
        largest = np.argsort(-np.abs(self.coefficients).max(axis=0), kind="stable")
        for feature in largest[max_labels:]:
            ax.plot(self.Cs, self.coefficients[:, feature], color=GREY, linewidth=0.7, alpha=0.6, zorder=1)
        ax.axhline(0.0, color=INK, linewidth=0.8, zorder=0)
        chosen = largest[:max_labels]
        for number, feature in enumerate(chosen):
            ax.plot(self.Cs, self.coefficients[:, feature], color=colour(number), linestyle=LINES[number % len(LINES)],
                    linewidth=1.9, zorder=2, label=self.names[feature])  # fmt: skip
        ax.set_xscale("log")
        ax.set(xlabel="C", ylabel="coefficient", xlim=self.Cs[[0, -1]] if len(self.Cs) > 1 else None)
        hide_spines(ax)
        self._label_lines(ax, chosen)
        return self._drawn_on(ax)

    def _label_lines(self, ax: Axes, chosen: Indices) -> None:
        """Label the lines at their right ends, moving labels apart where they would overlap."""
        low, high = ax.get_ylim()
        ends = (self.coefficients[-1, chosen] - low) / (high - low)
        for number, (feature, height) in enumerate(zip(chosen, spread_labels(ends, MIN_LABEL_DISTANCE), strict=True)):
            ax.annotate(self.names[feature], (1.0, ends[number]), xycoords="axes fraction", xytext=(1.05, height),
                        textcoords="axes fraction", va="center", fontsize="small", color=colour(number),
                        arrowprops={"arrowstyle": "-", "color": colour(number), "linewidth": 0.7,
                                    "shrinkA": 1, "shrinkB": 0})  # fmt: skip


def spread_labels(heights: Floats, distance: float) -> Floats:
    """Return the heights closest to the given ones with at least this distance and the same order.

    Heights are placed in ascending order; a run of labels at the minimum distance is centred on its mean.
    """
    order = np.argsort(heights, kind="stable")
    runs: list[tuple[float, int]] = []  # centre and length of each run
    for height in heights[order]:
        middle, count = float(height), 1
        while runs and middle - 0.5 * distance * (count - 1) < runs[-1][0] + 0.5 * distance * (runs[-1][1] + 1):
            before, members = runs.pop()
            middle = (before * members + middle * count) / (members + count)
            count += members
        runs.append((middle, count))
    placed = (
        np.concatenate([middle + distance * (np.arange(n) - 0.5 * (n - 1)) for middle, n in runs]) if runs else heights
    )
    out = np.empty(len(heights))
    out[order] = placed
    return out
