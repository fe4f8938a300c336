"""Estimators that learn from a stream by LASVM.

Public, through `maxmargin`: `OnlineSVC` (`online_svc`) and `OnlineOneClassSVM` (`online_one_class_svm`).

Internal:

- `online_estimator`: `OnlineEstimator`, the common base: validation, limits and observers
- `stream_classes`: the classes of a stream, their binary subproblems and scikit-learn's layout of coefficients
- `batch_finish`: the optimum of the batch problem, started at the online solution
- `online_certificate`: certificates with respect to the memory or to any data set
"""
