"""Validation of what users pass to estimators, once, at the public API.

    parameters       constructor parameters
    training_data    samples, targets, labels, and weights of samples and classes
    callbacks        progress reporting: callback, progress line, scikit-learn's callbacks

Nothing here is public.
"""
