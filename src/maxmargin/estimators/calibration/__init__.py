"""estimators/calibration."""
