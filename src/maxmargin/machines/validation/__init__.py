"""Validation of what users pass to machines and estimators, once, at the public API.

    parameters       constructor parameters
    samples          samples, targets and labels of machines; those of estimators are validated by scikit-learn
    training_data    costs, targets, classes, and weights of samples and classes
    callbacks        progress reporting: callback and progress line
    checkpoints      checkpoints of a fit: the file, and the fit that it belongs to
    availability     methods that depend on the parameters

Nothing here is public.
"""
