"""estimators/linear."""
