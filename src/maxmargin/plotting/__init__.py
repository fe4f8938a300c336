"""Pictures, with matplotlib."""

from maxmargin.plotting.decision_regions import plot_decision_regions

__all__ = ["plot_decision_regions"]
