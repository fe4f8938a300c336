"""estimators/multiclass."""
