"""A picture of the weights of a linear machine against its cost C: from all at 0 to those of the unregularised fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.estimators.linear.linear_path import LinearPath
from maxmargin.plotting.style import GREY, INK, LINES, axes_for, bare, colour, figure_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: How far apart the names of two lines are, in parts of the height.
APART = 0.06


@dataclass
class CoefficientPathDisplay:
    """Weights of a linear machine against C, the largest with their names and the rest in grey.

    Make it with `from_path`.

    Attributes
    ----------
    Cs : float array
        Costs, from the smallest to the largest.
    coefficients : float array of shape (costs, features)
    names : list of str
        Of the features.
    ax_, figure_
        What `plot` drew on.

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
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    @classmethod
    def from_path(
        cls,
        path: LinearPath,
        *,
        output: int | None = None,
        feature_names: Sequence[Any] | None = None,
        labelled: int = 6,
        ax: Axes | None = None,
    ) -> CoefficientPathDisplay:
        """Draw the result of `maxmargin.linear_path`.

        Parameters
        ----------
        path : LinearPath
        output : int, optional
            Which class, or which target; needed where there are several functions.
        feature_names : sequence of str, optional
            By default the names that the data came with, or numbers.
        labelled : int
            How many of the largest weights are drawn in colour and named.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        CoefficientPathDisplay
        """
        order = np.argsort(path.Cs, kind="stable")
        weights = path.coefs[order].reshape(len(order), -1, path.models[0].n_features_in_)
        functions = weights.shape[1]
        if output is None and functions > 1:
            raise ValueError(
                f"these machines have {functions} functions; say which to draw, output=0 to {functions - 1}"
            )
        known = feature_names if feature_names is not None else getattr(path.models[0], "feature_names_in_", None)
        names = [str(name) for name in (range(weights.shape[2]) if known is None else known)]
        if len(names) != weights.shape[2]:
            raise ValueError(f"there are {weights.shape[2]} features, but {len(names)} feature_names")
        return cls(path.Cs[order], weights[:, output or 0], names).plot(ax, labelled=labelled)

    def plot(self, ax: Axes | None = None, *, labelled: int = 6) -> CoefficientPathDisplay:
        """Draw on the given axes, or on new ones.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        labelled : int
            How many of the largest weights are drawn in colour and named.

        Returns
        -------
        self
        """
        ax = axes_for(ax, (6.0, 3.8))
        largest = np.argsort(-np.abs(self.coefficients).max(axis=0), kind="stable")
        for feature in largest[labelled:]:
            ax.plot(self.Cs, self.coefficients[:, feature], color=GREY, linewidth=0.7, alpha=0.6, zorder=1)
        ax.axhline(0.0, color=INK, linewidth=0.8, zorder=0)
        chosen = largest[:labelled]
        for number, feature in enumerate(chosen):
            ax.plot(self.Cs, self.coefficients[:, feature], color=colour(number), linestyle=LINES[number % len(LINES)],
                    linewidth=1.9, zorder=2, label=self.names[feature])  # fmt: skip
        ax.set_xscale("log")
        ax.set(xlabel="cost C", ylabel="weight", xlim=self.Cs[[0, -1]] if len(self.Cs) > 1 else None)
        bare(ax)
        self._name_lines(ax, chosen)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self

    def _name_lines(self, ax: Axes, chosen: Indices) -> None:
        """Write the names at the right ends of the lines, moved apart where they would overlap."""
        low, high = ax.get_ylim()
        ends = (self.coefficients[-1, chosen] - low) / (high - low)
        for number, (feature, height) in enumerate(zip(chosen, spread(ends, APART), strict=True)):
            ax.annotate(self.names[feature], (1.0, ends[number]), xycoords="axes fraction", xytext=(1.05, height),
                        textcoords="axes fraction", va="center", fontsize="small", color=colour(number),
                        arrowprops={"arrowstyle": "-", "color": colour(number), "linewidth": 0.7,
                                    "shrinkA": 1, "shrinkB": 0})  # fmt: skip


def spread(heights: Floats, apart: float) -> Floats:
    """Return heights in the same order, at least so far apart, and as near to the given ones as that allows.

    From below upwards each is put above the one before; a run of neighbours that touch stays centred on its mean.
    """
    order = np.argsort(heights, kind="stable")
    runs: list[tuple[float, int]] = []  # the middle of each run, and its length
    for height in heights[order]:
        middle, count = float(height), 1
        while runs and middle - 0.5 * apart * (count - 1) < runs[-1][0] + 0.5 * apart * (runs[-1][1] + 1):
            before, members = runs.pop()
            middle = (before * members + middle * count) / (members + count)
            count += members
        runs.append((middle, count))
    placed = (
        np.concatenate([middle + apart * (np.arange(n) - 0.5 * (n - 1)) for middle, n in runs]) if runs else heights
    )
    out = np.empty(len(heights))
    out[order] = placed
    return out
