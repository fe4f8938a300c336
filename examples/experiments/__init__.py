"""What the literature says of solvers, measured: `python -m examples.experiments` runs all; see docs/experiments."""
