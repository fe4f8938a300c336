"""Kernel machines: classifiers, regressors, novelty detectors and ranking.

    svc, nu_svc, lssvc                  classification: soft and hard margin, ν, least squares
    svr, nu_svr, lssvr, quantile_svr    regression: ε-tube, ν, least squares, quantiles
    one_class_svm, svdd                 novelty detection
    rank_svc                            ranking
    kernel_estimator                    base class: input validation, kernel, fit context, prediction
    kernel_classifier                   base class of the classifiers; `dual_problem_of`
    function_estimator                  base classes of machines with one function, and of the regressors

Nothing here is public; the estimators of the same names are, under ``maxmargin``.
"""
