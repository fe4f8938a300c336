"""The regularisation path of a kernel machine: dual coefficients, support vectors and errors against C."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.estimators.regularization_path import LeftOutErrors, RegularizationPath
from maxmargin.plotting.style import GREY, INK, LINES, Display, axes_for, colour, hide_spines, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Coefficients that are drawn at most: more lines hide each other.
MAX_LINES = 200

#: Coefficients that are drawn in colour.
COLOURED = 6


@dataclass
class RegularizationPathDisplay(Display):
    """Dual coefficients relative to C, the number of support vectors, and errors on validation data, against C.

    Create it with `from_path`. A coefficient α_i/C is 1 where a sample is inside the margin or misclassified, 0 where
    it is beyond it, and in between on the edge.

    Attributes
    ----------
    Cs : float array
        Break points in ascending order.
    coefficients : float array of shape (n_breaks, n_lines)
        |α_i|/C of the samples that are drawn.
    samples : int array
        Their numbers.
    n_support : int array
        The number of support vectors at each break point.
    errors : tuple of two float arrays, optional
        Values of C and the validation error from each up to the next.
    best : float, optional
        The C of least validation error.
    ax_, figure_
        The first of the axes and the figure of the last `plot`.

    Examples
    --------
    >>> from maxmargin import SVC, regularization_path
    >>> from maxmargin.plotting import RegularizationPathDisplay
    >>> path = regularization_path([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1], estimator=SVC(kernel="linear"))
    >>> RegularizationPathDisplay.from_path(path).coefficients.shape[1]
    4
    """

    Cs: Floats
    coefficients: Floats = field(repr=False)
    samples: Indices = field(repr=False)
    n_support: Indices = field(repr=False)
    errors: tuple[Floats, Floats] | None = field(default=None, repr=False)
    best: float | None = None

    @classmethod
    def from_path(
        cls, path: RegularizationPath, X: Any = None, y: Any = None, *, axes: Any = None
    ) -> RegularizationPathDisplay:
        """Draw the result of `maxmargin.regularization_path`.

        Parameters
        ----------
        path : RegularizationPath
        X, y : optional
            Validation data, for the curve of their errors.
        axes : two matplotlib Axes, or three with validation data, optional
            Axes to draw on; by default a new figure is created.

        Returns
        -------
        RegularizationPathDisplay
        """
        relative = np.abs(path.dual_coefs) / path.Cs[:, None]
        varying = np.flatnonzero(np.ptp(relative, axis=0) > 0)
        order = varying[np.argsort(-np.abs(np.diff(relative[:, varying], axis=0)).sum(axis=0), kind="stable")]
        drawn = order[:MAX_LINES]
        errors = None if X is None else path.errors(X, y)
        best = None if X is None else path.best(X, y)
        return cls(path.Cs, relative[:, drawn], drawn, path.n_support, errors, best).plot(axes)

    def plot(self, axes: Any = None) -> RegularizationPathDisplay:
        """Draw on the given axes, by default on a new figure.

        Parameters
        ----------
        axes : two matplotlib Axes, or three with validation data, optional

        Returns
        -------
        self
        """
        count = 2 if self.errors is None else 3
        if axes is None:
            heights = [2.2, 1.0, 1.2][:count]
            _, axes = pyplot().subplots(count, sharex=True, figsize=(6.0, 1.5 * sum(heights)), layout="constrained",
                                        height_ratios=heights)  # fmt: skip
        axes = np.ravel(axes)
        if len(axes) != count:
            raise ValueError(f"there are {count} plots, but {len(axes)} axes were given")
        self._plot_coefficients(axes[0])
        axes[1].plot(self.Cs, self.n_support, color=INK, linewidth=1.3, drawstyle="steps-post")
        axes[1].set(ylabel="support\nvectors", ylim=(0, None))
        if self.errors is not None:
            self._plot_errors(axes[2])
        axes[-1].set(xlabel="C", xlim=self.Cs[[0, -1]] if len(self.Cs) > 1 else None)
        for ax in axes:
            ax.set_xscale("log")
            hide_spines(ax)
        return self._drawn_on(axes[0])

    def _plot_coefficients(self, ax: Axes) -> None:
        # Coefficients are linear in C, so their ratio to C is not: it is drawn through more values.
        for number in range(len(self.samples) - 1, -1, -1):
            chosen = number < COLOURED
            Cs, values = curve_between(self.Cs, self.coefficients[:, number])
            ax.plot(Cs, values, color=colour(number) if chosen else GREY, linewidth=1.5 if chosen else 0.6,
                    alpha=1.0 if chosen else 0.45, zorder=2 if chosen else 1)  # fmt: skip
        ax.set(ylabel="|dual coefficient| / C", ylim=(-0.03, 1.05 * max(1.0, float(self.coefficients.max(initial=0)))))

    def _plot_errors(self, ax: Axes) -> None:
        assert self.errors is not None
        Cs, errors = self.errors
        ax.plot(np.append(Cs, self.Cs[-1]), np.append(errors, errors[-1]), color=colour(1), linewidth=1.5,
                drawstyle="steps-post")  # fmt: skip
        if self.best is not None:
            ax.axvline(self.best, color=INK, linewidth=0.9, linestyle=LINES[1])
            ax.annotate(f"C = {self.best:.3g}", (self.best, 1.0), xycoords=("data", "axes fraction"), xytext=(4, -2),
                        textcoords="offset points", va="top", fontsize="small", color=INK)  # fmt: skip
        ax.set(ylabel="validation\nerror", ylim=(0, None))


def curve_between(Cs: Floats, ratios: Floats, between: int = 8) -> tuple[Floats, Floats]:
    """Return more points of β(C)/C, where β is linear between the given values of C."""
    if len(Cs) < 2:
        return Cs, ratios
    long = np.diff(np.log(Cs)) > 0.02
    weights = np.linspace(0.0, 1.0, between, endpoint=False)
    points, values = [], []
    beta = ratios * Cs
    for k in range(len(Cs) - 1):
        some = weights if long[k] else weights[:1]
        at = Cs[k] + some * (Cs[k + 1] - Cs[k])
        points.append(at)
        values.append((beta[k] + some * (beta[k + 1] - beta[k])) / at)
    return np.append(np.concatenate(points), Cs[-1]), np.append(np.concatenate(values), ratios[-1])


@dataclass
class LeaveOneOutDisplay(Display):
    """The leave-one-out error and its estimates against C.

    Create it with `from_path`.

    Attributes
    ----------
    Cs : float array
    curves : dict of float arrays
        The errors by their names.
    measure : str
        What the errors are.
    ax_, figure_
        Axes and figure of the last `plot`.

    Examples
    --------
    >>> from maxmargin import SVC, regularization_path
    >>> from maxmargin.plotting import LeaveOneOutDisplay
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [2.5]], [0, 1, 0, 1, 1]
    >>> path = regularization_path(X, y, estimator=SVC(kernel="linear"))
    >>> display = LeaveOneOutDisplay.from_path(path, Cs=[0.1, 1, 10])
    >>> list(display.curves)
    ['leave-one-out', 'span', 'ξα', 'support vectors', 'training']
    """

    Cs: Floats
    curves: dict[str, Floats] = field(repr=False)
    measure: str = "error"

    @classmethod
    def from_path(cls, path: RegularizationPath, Cs: Any = None, *, ax: Axes | None = None) -> LeaveOneOutDisplay:
        """Compute the leave-one-out error along a path and draw it.

        Parameters
        ----------
        path : RegularizationPath
        Cs : iterable of float, optional
            Values of C, by default 25 evenly on a log scale.
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure is created.

        Returns
        -------
        LeaveOneOutDisplay
        """
        return cls.from_errors(path.leave_one_out(Cs), ax=ax)

    @classmethod
    def from_errors(cls, found: LeftOutErrors, *, ax: Axes | None = None) -> LeaveOneOutDisplay:
        """Draw the result of `RegularizationPath.leave_one_out`.

        Parameters
        ----------
        found : LeftOutErrors
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure is created.

        Returns
        -------
        LeaveOneOutDisplay
        """
        named = {
            "leave-one-out": "leave_one_out",
            "span": "span",
            "ξα": "xi_alpha",
            "support vectors": "support_vectors",
            "training": "training",
        }
        order = np.argsort(found.Cs, kind="stable")
        curves = {label: found.values(name)[order] for label, name in named.items()}
        known = {label: values for label, values in curves.items() if not np.isnan(values).all()}
        return cls(found.Cs[order], known, found.estimates[0].measure).plot(ax)

    def plot(self, ax: Axes | None = None) -> LeaveOneOutDisplay:
        """Draw on the given axes, by default on a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self
        """
        ax = axes_for(ax, (6.0, 3.6))
        for number, (label, values) in enumerate(self.curves.items()):
            width, order = (2.2, 3) if label == "leave-one-out" else (1.5, 2)
            ax.plot(self.Cs, values, color=colour(number), linestyle=LINES[number], linewidth=width, zorder=order,
                    label=label)  # fmt: skip
        best = self.Cs[int(np.nanargmin(self.curves["leave-one-out"]))]
        ax.plot([best], [np.nanmin(self.curves["leave-one-out"])], marker="o", color=colour(0), zorder=4)
        ax.set_xscale("log")
        ax.set(xlabel="C", ylabel=self.measure, ylim=(0, None))
        hide_spines(ax)
        ax.legend(frameon=False, fontsize="small", ncols=1, loc="center left", bbox_to_anchor=(1.0, 0.5))
        return self._drawn_on(ax)
