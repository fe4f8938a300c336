"""Kernel matrix sorted by class: if the kernel suits the classes, the blocks on the diagonal stand out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform
from sklearn.base import is_classifier

from maxmargin._typing import Floats, Indices
from maxmargin.interchange.sklearn_models import from_sklearn
from maxmargin.kernels import Kernel, Points
from maxmargin.machines.kernel.kernel_estimator import KernelEstimator
from maxmargin.plotting.margin_positions import class_indices, final_estimator, is_sklearn_machine, sample_margins
from maxmargin.plotting.style import Display, axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass
class KernelMatrixDisplay(Display):
    """Kernel values of all pairs of samples, sorted by class and within each class.

    Create it with `from_estimator` or `from_kernel`.

    Attributes
    ----------
    matrix : float array of shape (shown, shown)
    order : int array
        Index of the sample in each row and column.
    classes : list of str
    borders : int array
        End of each class.
    ax_, figure_
        Axes and figure of the last `plot`.

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

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sort_by: str = "margin",
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
        sort_by : {"margin", "cluster", "input"}
            Order within a class: by descending margin y f(x), by hierarchical clustering, or as in `X`.
        max_samples : int
            Maximum number of samples shown, evenly spaced among the sorted ones.
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure is created.

        Returns
        -------
        KernelMatrixDisplay
        """
        model, transformed = final_estimator(estimator, X if hasattr(X, "shape") else np.asarray(X))
        model = getattr(model, "best_estimator_", model)  # of one that has chosen its parameters
        if is_sklearn_machine(model):
            model = from_sklearn(model)
        if not (isinstance(model, KernelEstimator) and is_classifier(model)):
            raise ValueError(f"{type(model).__name__} is not a kernel classifier; use from_kernel(kernel, X, y)")
        indices = class_indices(model, y)
        keys = -sample_margins(model, transformed, indices) if sort_by == "margin" else None
        return cls._sorted(model._kernel_, transformed, indices, model.classes_, sort_by, keys, max_samples).plot(ax)

    @classmethod
    def from_kernel(
        cls,
        kernel: Kernel,
        X: Any,
        y: Any,
        *,
        sort_by: str = "input",
        max_samples: int = 1000,
        ax: Axes | None = None,
    ) -> KernelMatrixDisplay:
        """Draw the kernel matrix of samples without a fitted model.

        Parameters
        ----------
        kernel : Kernel
            For example ``maxmargin.kernels.Gaussian(0.5)``.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sort_by : {"input", "cluster"}
        max_samples : int
        ax : matplotlib Axes, optional

        Returns
        -------
        KernelMatrixDisplay
        """
        if sort_by == "margin":
            raise ValueError("sort_by='margin' requires a fitted model; use from_estimator, or sort_by='cluster'")
        classes, indices = np.unique(np.asarray(y), return_inverse=True)
        table = X if hasattr(X, "shape") else np.asarray(X)
        return cls._sorted(kernel, table, indices, classes, sort_by, None, max_samples).plot(ax)

    @classmethod
    def _sorted(
        cls,
        kernel: Kernel | None,
        X: Any,
        indices: Indices,
        classes: Any,
        sort_by: str,
        keys: Floats | None,
        max_samples: int,
    ) -> KernelMatrixDisplay:
        """Return the display of the matrix sorted by class and within each class."""
        if sort_by not in ("margin", "cluster", "input"):
            raise ValueError(f"sort_by must be 'margin', 'cluster' or 'input', not {sort_by!r}")
        order = np.lexsort((np.arange(len(indices)) if keys is None else keys, indices))
        if len(order) > max_samples:
            order = order[np.linspace(0, len(order) - 1, max_samples).round().astype(np.intp)]
        if kernel is None:
            matrix = np.asarray(X, dtype=float)[np.ix_(order, order)]
        else:
            points = Points.wrap(X.to_numpy() if hasattr(X, "to_numpy") else X).take(order)
            matrix = np.asarray(kernel.evaluate(points, points), dtype=float)
        if sort_by == "cluster":
            classwise = np.split(np.arange(len(order)), np.flatnonzero(np.diff(indices[order])) + 1)
            inside = np.concatenate([_cluster_order(matrix, rows) for rows in classwise])
            matrix, order = matrix[np.ix_(inside, inside)], order[inside]
        borders = np.cumsum(np.bincount(indices[order], minlength=len(classes)))
        return cls(matrix, order, [str(label) for label in classes], borders)

    def plot(self, ax: Axes | None = None, *, colorbar: bool = True) -> KernelMatrixDisplay:
        """Draw on the given axes, by default on a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        colorbar : bool
            Whether to draw a colour bar.

        Returns
        -------
        self
        """
        ax = axes_for(ax, (6.0, 5.2))
        low, high = float(self.matrix.min()), float(self.matrix.max())
        if low < 0:  # diverging colour map with 0 in the centre
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
        return self._drawn_on(ax)


def _cluster_order(matrix: Floats, rows: Indices) -> Indices:
    """Return rows in the leaf order of a hierarchical clustering by distance in feature space."""
    if len(rows) < 3:
        return rows
    block = matrix[np.ix_(rows, rows)]
    norms = np.diag(block)
    squared = np.maximum(0.0, norms[:, None] + norms - block - block.T)
    np.fill_diagonal(squared, 0.0)
    return np.asarray(rows[leaves_list(linkage(squareform(np.sqrt(squared), checks=False), "average"))])
