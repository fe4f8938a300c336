"""Weights of the kernels of an estimator that learns them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.kernels import FunctionKernel, Kernel, OnFeatures, UnitDiagonal
from maxmargin.plotting.shares import draw_shares
from maxmargin.plotting.style import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The most features of a kernel that are named.
MAX_NAMES = 3

#: Parameters as they are written, others by their names.
SYMBOLS = {"gamma": "γ"}


@dataclass
class KernelWeightsDisplay(Display):
    """Weight of each kernel of `MKLSVC`, `MKLSVR` or `MKLOneClassSVM`, the largest on top.

    Create it with `from_estimator`.

    Attributes
    ----------
    weights : float array
        One for each kernel; the sum is 1.
    names : list of str
    max_kernels : int
        As many are drawn, at most.
    ax_, figure_
        Axes and figure of the last `plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import MKLSVC
    >>> from maxmargin.plotting import KernelWeightsDisplay
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> model = MKLSVC([{"kernel": "rbf", "features": "each"}]).fit(X, X[:, 0] ** 2 > 0.5)
    >>> KernelWeightsDisplay.from_estimator(model).names[0]
    'Gaussian, γ = 0.82, x0'
    """

    weights: Floats = field(repr=False)
    names: list[str] = field(repr=False)
    max_kernels: int = 30

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, names: Sequence[str] | None = None, max_kernels: int = 30, ax: Axes | None = None
    ) -> KernelWeightsDisplay:
        """Draw the weights of the kernels of a fitted estimator.

        Parameters
        ----------
        estimator : MKLSVC, MKLSVR or MKLOneClassSVM
            Fitted; or a search with such a `best_estimator_`.
        names : list of str, optional
            A name for each kernel; by default the kernel and its parameters.
        max_kernels : int, default=30
            As many are drawn, at most.
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure is created.

        Returns
        -------
        KernelWeightsDisplay
        """
        estimator = getattr(estimator, "best_estimator_", estimator)
        if not hasattr(estimator, "kernel_weights_"):
            raise ValueError("the weights of kernels are those of a fitted MKLSVC, MKLSVR or MKLOneClassSVM")
        weights = np.asarray(estimator.kernel_weights_)
        if names is None:
            of_features = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
            found = [name_of(kernel, of_features) for kernel in estimator.kernels_]
            names = found or [f"matrix {m}" for m in range(len(weights))]
        if len(names) != len(weights):
            raise ValueError(f"there are {len(weights)} kernels, but {len(names)} names")
        return cls(weights, list(names), max_kernels).plot(ax)

    def plot(self, ax: Axes | None = None) -> KernelWeightsDisplay:
        """Draw on the given axes, by default on a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self
        """
        ax, shown, used = draw_shares(ax, self.weights, self.names, self.max_kernels)
        count = len(self.weights)
        title = f"all {count} kernels have a weight" if used == count else f"{used} of {count} kernels have a weight"
        ax.set(xlabel="weight", title=title if shown == used else f"{title}, of which {shown} are shown")
        ax.title.set_fontsize("medium")
        return self._drawn_on(ax)


def name_of(kernel: Kernel, features: Sequence[str] = ()) -> str:
    """Return the name of a kernel: its class, its parameters, and its features if they are not all."""
    if isinstance(kernel, UnitDiagonal):
        return name_of(kernel.kernel, features)
    if isinstance(kernel, OnFeatures):
        chosen = [features[j] if features else f"x{j}" for j in kernel.features]
        few = ", ".join(chosen[:MAX_NAMES])
        more = f" and {len(chosen) - MAX_NAMES} more" if len(chosen) > MAX_NAMES else ""
        return f"{name_of(kernel.kernel, features)}, {few}{more}"
    if isinstance(kernel, FunctionKernel):
        return str(getattr(kernel.function, "__name__", "function"))
    numbers = [(one.name, getattr(kernel, one.name)) for one in fields(kernel)]  # type: ignore[arg-type]
    parts = [f"{SYMBOLS.get(name, name)} = {value:.2g}" for name, value in numbers if isinstance(value, float | int)]
    return ", ".join([type(kernel).__name__, *parts])
