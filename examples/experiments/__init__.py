"""Measure claims of the literature on solvers: `python -m examples.experiments` runs all; see docs/experiments."""
