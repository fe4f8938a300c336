"""Relevance of features to a kernel with a γ for each of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.plotting.shares import draw_shares
from maxmargin.plotting.style import Display
from maxmargin.search.feature_spread import feature_spread
from maxmargin.search.gradient_search_result import GradientSearchResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Kernels whose γ can be one for each feature.
KERNELS = ("rbf", "gaussian", "laplacian", "chi_squared")


@dataclass
class FeatureRelevanceDisplay(Display):
    """Relevance of each feature: its share of the mean distance of two samples, Σ_j γ_j distance_j.

    Create it with `from_search` or `from_estimator`. The most relevant features are on top; those of γ = 0 are counted
    below.

    Attributes
    ----------
    relevance : float array
        One for each feature; the sum is 1.
    names : list of str
    max_features : int
        As many are drawn, at most.
    ax_, figure_
        Axes and figure of the last `plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import SVC
    >>> from maxmargin.plotting import FeatureRelevanceDisplay
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> model = SVC(gamma=[2.0, 0.0, 0.5]).fit(X, X[:, 0] > 0)
    >>> FeatureRelevanceDisplay.from_estimator(model, X).ax_.get_xlabel()
    'relevance'
    """

    relevance: Floats = field(repr=False)
    names: list[str] = field(repr=False)
    max_features: int = 30

    @classmethod
    def from_search(
        cls, result: GradientSearchResult, *, max_features: int = 30, ax: Axes | None = None
    ) -> FeatureRelevanceDisplay:
        """Draw the result of a search for γ of each feature.

        Parameters
        ----------
        result : GradientSearchResult
            The result of `maxmargin.gradient_search`.
        max_features : int, default=30
            As many are drawn, at most.
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure is created.

        Returns
        -------
        FeatureRelevanceDisplay
        """
        return cls(result.relevance, result.feature_names, max_features).plot(ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, max_features: int = 30, ax: Axes | None = None
    ) -> FeatureRelevanceDisplay:
        """Draw the relevance of features to a fitted estimator.

        Parameters
        ----------
        estimator : kernel estimator
            Fitted, with the kernel "rbf", "laplacian" or "chi_squared".
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples whose mean distances are the units of γ, usually those of the training.
        max_features : int, default=30
            As many are drawn, at most.
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure is created.

        Returns
        -------
        FeatureRelevanceDisplay
        """
        from sklearn.utils import check_array

        estimator = getattr(estimator, "best_estimator_", estimator)
        if not isinstance(estimator.kernel, str) or estimator.kernel not in KERNELS:
            raise ValueError(f"the relevance of features is that to a kernel of {', '.join(KERNELS)}")
        names = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
        X = check_array(X, accept_sparse="csr", dtype=np.float64)
        parts = estimator._gamma * feature_spread(estimator.kernel, X, np.ones(X.shape[0]))
        names = names or [f"x{j}" for j in range(X.shape[1])]
        return cls(parts / (parts.sum() or 1.0), names, max_features).plot(ax)

    def plot(self, ax: Axes | None = None) -> FeatureRelevanceDisplay:
        """Draw on the given axes, by default on a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self
        """
        ax, shown, used = draw_shares(ax, self.relevance, self.names, self.max_features)
        ax.set(xlabel="relevance", title=self._title(shown, used))
        ax.title.set_fontsize("medium")
        return self._drawn_on(ax)

    def _title(self, shown: int, used: int) -> str:
        ignored = len(self.relevance) - used
        title = f"{used} of {len(self.relevance)} features have γ > 0" if ignored else f"all {used} features have γ > 0"
        return title if shown == used else f"{title}, of which {shown} are shown"
