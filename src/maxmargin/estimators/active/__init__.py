"""estimators/active."""
