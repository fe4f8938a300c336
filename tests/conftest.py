import os
import signal

# Lets scikit-learn's array API checks run instead of skipping; must be set before SciPy is imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

# A shell ignores Ctrl-C in what it starts in the background, and children inherit that; tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)
