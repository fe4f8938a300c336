"""Fits and predictions on a GPU."""
