"""Linear machines: w · x + b trained in the primal or the dual.

    linear_svc, linear_svr, linear_one_class_svm    the machines
    kernel_approximation_svc, landmarks             a linear model of Nyström features, for very many samples
    exact_bounds, exact_sums                        how far that is from the exact kernel machine
    linear_estimator                                base class: validation, solvers, training, weights
    stochastic_updates                              `partial_fit` and `certify`

Nothing here is public; the estimators of the same names are, under ``maxmargin``.
"""
