"""The scikit-learn faces of the machines; the only folder that imports scikit-learn."""

from maxmargin.estimators.svc import SVC

__all__ = ["SVC"]
