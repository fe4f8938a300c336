"""Pictures, with matplotlib."""

from maxmargin.plotting.decision_regions import DecisionRegionsDisplay, plot_decision_regions

__all__ = ["DecisionRegionsDisplay", "plot_decision_regions"]
