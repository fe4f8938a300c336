"""The kernel estimators: kernel machines in scikit-learn's interface; the docstrings are those of the machines."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import d2_pinball_score

from maxmargin.estimators.base import Classifier, Estimator, OutlierDetector, Regressor
from maxmargin.estimators.left_out_attributes import LeftOutAttributes
from maxmargin.machines.kernel import (
    lssvc,
    lssvr,
    mkl_one_class_svm,
    mkl_svc,
    mkl_svr,
    nu_svc,
    nu_svr,
    one_class_svm,
    quantile_svr,
    rank_svc,
    svc,
    svdd,
    svr,
    transductive_svc,
)


class SVC(LeftOutAttributes, Classifier, svc.SVC):  # noqa: D101
    pass


class NuSVC(LeftOutAttributes, Classifier, nu_svc.NuSVC):  # noqa: D101
    pass


class LSSVC(LeftOutAttributes, Classifier, lssvc.LSSVC):  # noqa: D101
    pass


class TransductiveSVC(Classifier, transductive_svc.TransductiveSVC):  # noqa: D101
    pass


class SVR(LeftOutAttributes, Regressor, svr.SVR):  # noqa: D101
    pass


class NuSVR(LeftOutAttributes, Regressor, nu_svr.NuSVR):  # noqa: D101
    pass


class LSSVR(LeftOutAttributes, Regressor, lssvr.LSSVR):  # noqa: D101
    pass


class QuantileSVR(Regressor, quantile_svr.QuantileSVR):  # noqa: D101
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R² of the predictions; of several quantiles the mean of D², the same for the pinball loss."""
        if not self._several:
            return float(super().score(X, y, sample_weight))
        columns = zip(self.quantile, self.predict(X).T, strict=True)
        scores = [d2_pinball_score(y, values, sample_weight=sample_weight, alpha=level) for level, values in columns]
        return float(np.mean(scores))


class OneClassSVM(LeftOutAttributes, OutlierDetector, one_class_svm.OneClassSVM):  # noqa: D101
    pass


class SVDD(OutlierDetector, svdd.SVDD):  # noqa: D101
    pass


class MKLSVC(Classifier, mkl_svc.MKLSVC):  # noqa: D101
    pass


class MKLSVR(Regressor, mkl_svr.MKLSVR):  # noqa: D101
    pass


class MKLOneClassSVM(OutlierDetector, mkl_one_class_svm.MKLOneClassSVM):  # noqa: D101
    pass


class RankSVC(Estimator, rank_svc.RankSVC):  # noqa: D101
    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
