"""Kernel estimators: classifiers, regressors, novelty detectors and ranking, in scikit-learn's interface.

    svc, nu_svc, lssvc                  classification: soft and hard margin, ν, least squares
    svr, nu_svr, lssvr, quantile_svr    regression: ε-tube, ν, least squares, quantiles
    one_class_svm, svdd                 novelty detection
    rank_svc                            ranking
    kernel_estimator                    base class: input validation, kernel, fit context, prediction
    kernel_classifier                   base class of the classifiers; `dual_problem_of`
    function_estimator                  base classes of estimators with one function, and of the regressors

The estimators are public under ``maxmargin``; the base classes are not.
"""
