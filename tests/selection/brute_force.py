"""Leave-one-out by refitting: the reference of `maxmargin.leave_one_out`."""

import warnings

import numpy as np
from sklearn.base import clone


def refit_without_each(model, X, y=None, sample_weight=None, method="decision_function", tol=1e-9):
    """Return the answer of `method` for each sample by the machine that is fitted on all others, with the same γ."""
    answers = []
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        one = clone(model).set_params(tol=tol, gamma=model._gamma)
        if isinstance(model.get_params().get("class_weight"), str):
            one.set_params(class_weight=dict(zip(model.classes_, model.class_weight_, strict=True)))
        weights = {} if sample_weight is None else {"sample_weight": sample_weight[others]}
        rows, at = (
            (X[others], X[i : i + 1]) if model.kernel != "precomputed" else (X[others][:, others], X[i : i + 1, others])
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the small tolerance may be out of reach
            one.fit(*([rows] if y is None else [rows, y[others]]), **weights)
        answers.append(getattr(one, method)(at)[0])
    return np.array(answers)
