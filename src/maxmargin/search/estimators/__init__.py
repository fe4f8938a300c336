"""Estimators that choose their parameters by cross-validation while they fit.

    cross_validated      search, choice, final fit, delegation to the final model
    scorers              scorers and metadata
    classifiers, regressors, detectors    validation and default scores
    svc_cv, svr_cv, one_class_svm_cv, linear_svc_cv, linear_svr_cv

Public are the names in `__all__`, under ``maxmargin``.
"""

from maxmargin.search.estimators.linear_svc_cv import LinearSVCCV
from maxmargin.search.estimators.linear_svr_cv import LinearSVRCV
from maxmargin.search.estimators.one_class_svm_cv import OneClassSVMCV
from maxmargin.search.estimators.svc_cv import SVCCV
from maxmargin.search.estimators.svr_cv import SVRCV

__all__ = ["SVCCV", "SVRCV", "LinearSVCCV", "LinearSVRCV", "OneClassSVMCV"]
