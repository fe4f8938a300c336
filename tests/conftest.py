import os

# Lets scikit-learn's array API checks run instead of skipping; must be set before SciPy is imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
