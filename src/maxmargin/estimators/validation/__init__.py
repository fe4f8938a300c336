"""estimators/validation."""
