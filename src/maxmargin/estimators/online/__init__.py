"""estimators/online."""
