"""The support vector machines: parameters, training and prediction, without scikit-learn.

    base           parameters, fitted models, certificates, convergence warnings of all machines
    kernel         SVC, NuSVC, SVR, NuSVR, LSSVC, LSSVR, QuantileSVR, OneClassSVM, SVDD, RankSVC,
                   MKLSVC, MKLSVR, MKLOneClassSVM, TransductiveSVC
    linear         LinearSVC, LinearSVR, LinearOneClassSVM, KernelApproximationSVC
    multiclass     multi-class strategies
    calibration    probabilities and noise estimates by cross-validation
    validation     validation of parameters and data, callbacks

A machine has the constructor, the methods and the fitted attributes of the estimator of the same name; it takes arrays
and sparse matrices. Programs that start often use machines, because importing scikit-learn takes longer than many fits.
Nothing here is public; the estimators are, under ``maxmargin``.
"""
