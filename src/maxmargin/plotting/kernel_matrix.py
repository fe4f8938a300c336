"""A picture of the kernel matrix, sorted by class: what the machine knows of the data.

Where a kernel suits the classes, samples of one class are alike and the blocks on the diagonal stand out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform
from sklearn.base import is_classifier

from maxmargin._typing import Floats, Indices
from maxmargin.estimators.kernel.kernel_estimator import KernelMachine
from maxmargin.estimators.validation.samples import points_of
from maxmargin.kernels import Kernel
from maxmargin.plotting.sides import class_numbers, machine_of, margins_of
from maxmargin.plotting.style import axes_for, figure_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass
class KernelMatrixDisplay:
    """Kernel values of all pairs of samples, sorted by class and within each class.

    Make it with `from_estimator` or `from_kernel`.

    Attributes
    ----------
    matrix : float array of shape (shown, shown)
    order : int array
        Which sample stands in each row and column.
    classes : list of str
    borders : int array
        Where each class ends.
    ax_, figure_
        What `plot` drew on.

    Examples
    --------
    >>> from maxmargin.kernels import Gaussian
    >>> from maxmargin.plotting import KernelMatrixDisplay
    >>> display = KernelMatrixDisplay.from_kernel(Gaussian(1.0), [[0.0], [5.0], [0.1], [5.1]], ["a", "b", "a", "b"])
    >>> display.order, display.borders
    (array([0, 2, 1, 3]), array([2, 4]))
    """

    matrix: Floats = field(repr=False)
    order: Indices = field(repr=False)
    classes: list[str]
    borders: Indices
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        within: str = "margin",
        max_samples: int = 1000,
        ax: Axes | None = None,
    ) -> KernelMatrixDisplay:
        """Draw the kernel matrix of samples with the kernel of a fitted classifier.

        Parameters
        ----------
        estimator : kernel classifier, or a pipeline that ends with one
        X : array-like of shape (n_samples, n_features)
            With ``kernel="precomputed"`` the square matrix itself.
        y : array-like of shape (n_samples,)
        within : {"margin", "cluster", "given"}
            The order within a class: by the margin y f(x), the surest first; by likeness, neighbours in a tree of
            clusters; or as the samples were given.
        max_samples : int
            Of more, as many are shown, evenly taken from the sorted ones.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        KernelMatrixDisplay
        """
        machine, seen = machine_of(estimator, X if hasattr(X, "shape") else np.asarray(X))
        if not (isinstance(machine, KernelMachine) and is_classifier(machine)):
            raise ValueError(f"{type(machine).__name__} is no classifier with a kernel; use from_kernel(kernel, X, y)")
        numbers = class_numbers(machine, y)
        known = -margins_of(machine, seen, numbers) if within == "margin" else None
        kernel = machine._kernel_
        return cls._of(kernel, seen, numbers, machine.classes_, within, known, max_samples).plot(ax)

    @classmethod
    def from_kernel(
        cls,
        kernel: Kernel,
        X: Any,
        y: Any,
        *,
        within: str = "given",
        max_samples: int = 1000,
        ax: Axes | None = None,
    ) -> KernelMatrixDisplay:
        """Draw the kernel matrix of samples, before any fit.

        Parameters
        ----------
        kernel : Kernel
            Such as ``maxmargin.kernels.Gaussian(0.5)``.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        within : {"given", "cluster"}
        max_samples : int
        ax : matplotlib Axes, optional

        Returns
        -------
        KernelMatrixDisplay
        """
        if within == "margin":
            raise ValueError("margins are those of a fitted machine: use from_estimator, or within='cluster'")
        classes, numbers = np.unique(np.asarray(y), return_inverse=True)
        table = X if hasattr(X, "shape") else np.asarray(X)
        return cls._of(kernel, table, numbers, classes, within, None, max_samples).plot(ax)

    @classmethod
    def _of(
        cls,
        kernel: Kernel | None,
        X: Any,
        numbers: Indices,
        classes: Any,
        within: str,
        known: Floats | None,
        max_samples: int,
    ) -> KernelMatrixDisplay:
        if within not in ("margin", "cluster", "given"):
            raise ValueError(f"within must be 'margin', 'cluster' or 'given', not {within!r}")
        order = np.lexsort((np.arange(len(numbers)) if known is None else known, numbers))
        if len(order) > max_samples:
            order = order[np.linspace(0, len(order) - 1, max_samples).round().astype(np.intp)]
        if kernel is None:
            matrix = np.asarray(X, dtype=float)[np.ix_(order, order)]
        else:
            points = points_of(X.to_numpy() if hasattr(X, "to_numpy") else X).take(order)
            matrix = np.asarray(kernel.evaluate(points, points), dtype=float)
        if within == "cluster":
            inside = np.concatenate([_by_likeness(matrix, rows) for rows in _runs(numbers[order])])
            matrix, order = matrix[np.ix_(inside, inside)], order[inside]
        borders = np.cumsum(np.bincount(numbers[order], minlength=len(classes)))
        return cls(matrix, order, [str(label) for label in classes], borders)

    def plot(self, ax: Axes | None = None, *, colorbar: bool = True) -> KernelMatrixDisplay:
        """Draw on the given axes, or on new ones.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        colorbar : bool
            Whether a scale is drawn beside.

        Returns
        -------
        self
        """
        ax = axes_for(ax, (6.0, 5.2))
        low, high = float(self.matrix.min()), float(self.matrix.max())
        if low < 0:  # values of both signs: 0 is white
            low, high, colours, line = -max(-low, high), max(-low, high), "PuOr_r", "black"
        else:
            low, colours, line = min(low, 0.0), "cividis", "white"
        size = len(self.matrix)
        image = ax.imshow(self.matrix, cmap=colours, vmin=low, vmax=high, extent=(0, size, size, 0),
                          interpolation="nearest" if size <= 300 else "antialiased")  # fmt: skip
        for border in self.borders[:-1]:
            ax.axhline(border, color=line, linewidth=1.2)
            ax.axvline(border, color=line, linewidth=1.2)
        middles = 0.5 * (self.borders + np.concatenate([[0], self.borders[:-1]]))
        counts = np.diff(self.borders, prepend=0)
        ax.set_xticks(middles, self.classes)
        ax.set_yticks(middles, [f"{name}\n({count})" for name, count in zip(self.classes, counts, strict=True)])
        ax.tick_params(length=0)
        ax.set(xlabel="class", ylabel="class (samples)")
        if colorbar:
            scale = ax.figure.colorbar(image, ax=ax, shrink=0.85, label="kernel value")
            scale.outline.set_visible(False)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self


def _runs(numbers: Indices) -> list[Indices]:
    """Return the positions of each class, in a sorted list of them."""
    return np.split(np.arange(len(numbers)), np.flatnonzero(np.diff(numbers)) + 1)


def _by_likeness(matrix: Floats, rows: Indices) -> Indices:
    """Return rows in the order of a tree of clusters, by their distance in feature space."""
    if len(rows) < 3:
        return rows
    block = matrix[np.ix_(rows, rows)]
    lengths = np.diag(block)
    squared = np.maximum(0.0, lengths[:, None] + lengths - block - block.T)
    np.fill_diagonal(squared, 0.0)
    return np.asarray(rows[leaves_list(linkage(squareform(np.sqrt(squared), checks=False), "average"))])
