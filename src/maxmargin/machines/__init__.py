"""The support vector machines: parameters, training and prediction.

    base           fitted models, certificates, convergence warnings of all machines
    kernel         SVC, NuSVC, SVR, NuSVR, LSSVC, LSSVR, QuantileSVR, OneClassSVM, SVDD, RankSVC
    linear         LinearSVC, LinearSVR, LinearOneClassSVM, KernelApproximationSVC
    multiclass     multi-class strategies
    calibration    probabilities and noise estimates by cross-validation
    validation     validation of parameters and data, callbacks

Nothing here is public; the estimators are, under ``maxmargin``.
"""
