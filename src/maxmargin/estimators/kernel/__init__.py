"""estimators/kernel."""
