"""Linear estimators: w · x + b trained in the primal or the dual, in scikit-learn's interface.

    linear_svc, linear_svr, linear_one_class_svm    the estimators
    kernel_approximation_svc, landmarks             a linear model of Nyström features, for very many samples
    linear_estimator                                base class: validation, solvers, training, weights
    stochastic_updates                              `partial_fit` and `certify`

The estimators are public under ``maxmargin``.
"""
