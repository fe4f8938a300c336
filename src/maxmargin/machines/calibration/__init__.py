"""Estimates from cross-validated decision values, and the methods of estimators that have them.

    cross_validation    decision values of held-out samples, by folds warm-started from the solution
    small_folds         the same for small problems of two classes, all folds in one native call
    probabilities       class probabilities by Platt's sigmoids; pairwise coupling or normalisation
    noise_scale         prediction intervals of regressors
    novelty_detector    methods of novelty detectors

Nothing here is public; the methods are those of the estimators.
"""
