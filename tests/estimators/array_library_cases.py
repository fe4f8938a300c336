"""Fit and call every estimator with arrays of a library, and print what differs from NumPy: run with its name.

A process of its own, because scikit-learn's dispatch needs SCIPY_ARRAY_API=1 before SciPy is imported.
"""

import inspect
import json
import sys
import warnings
from importlib import import_module

import numpy as np
import sklearn
from sklearn.base import is_regressor

import maxmargin
from maxmargin import feature_maps

METHODS = ("predict", "decision_function", "predict_proba", "predict_log_proba", "score_samples", "predict_interval")
METHODS += ("transform", "fit_predict", "fit_transform")


def of_library(name):
    """Return functions that make arrays, by the name of a case."""
    xp = import_module(name)
    if name == "array_api_strict":
        other = xp.Device("device1")
        return {"": xp.asarray, "on another device": lambda array: xp.asarray(array, device=other)}
    return {
        "": xp.asarray,
        "of single precision": lambda array: xp.asarray(array.astype(np.float32) if array.dtype.kind == "f" else array),
        "with a gradient": lambda array: xp.tensor(array, requires_grad=array.dtype.kind == "f"),
    }


def estimators():
    """Return an estimator of each public class, with probabilities or noise where it has them, and the maps.

    The searches have few points and folds.
    """
    chosen = {"probability": True, "noise": True, "random_state": 0, "cv": 2, "Cs": [1.0], "gammas": [0.5]}
    without = ("StructuredSVC", "KernelRFE")  # lists of samples; a selection with an estimator
    classes = [getattr(maxmargin, name) for name in maxmargin.__all__ if name not in without]
    found = [kind() for kind in classes if isinstance(kind, type) and hasattr(kind, "get_params")]
    found += [feature_maps.DistanceMap(), feature_maps.NystroemMap(n_components=20), feature_maps.PolynomialMap()]
    found += [feature_maps.FunctionMap(np.tanh), feature_maps.PolarCoordinates()]
    for estimator in found:
        estimator.set_params(**{name: chosen[name] for name in chosen if name in estimator.get_params()})
    return found


def differences(estimator, reference, X, y, array):
    """Yield what is wrong with a fit on arrays of a library and with its results."""
    xp_X, xp_y = array(X), array(y)
    estimator.fit(xp_X, xp_y)
    for name in METHODS:
        if not hasattr(reference, name):
            continue
        arguments = (X, y) if name.startswith("fit_") else (X,)
        expected = getattr(reference, name)(*arguments)
        found = getattr(estimator, name)(*map(array, arguments))
        if type(found) is not type(xp_X) or found.device != xp_X.device:
            yield f"{name}: {type(found).__name__} on {getattr(found, 'device', None)}"
        elif not np.allclose(np.from_dlpack(found), expected, rtol=1e-3, atol=1e-3):
            yield f"{name}: other values"
    if hasattr(reference, "score"):
        found = estimator.score(xp_X, xp_y)
        if not isinstance(found, float) or abs(found - reference.score(X, y)) > 1e-3:
            yield f"score: {found!r}"
    if "sample_weight" in inspect.signature(estimator.fit).parameters:
        estimator.fit(xp_X, xp_y, sample_weight=array(np.ones(len(y))))
    for name in ("partial_fit", "certify"):
        if callable(getattr(estimator, name, None)):
            getattr(estimator, name)(xp_X, xp_y)


def main(library):
    warnings.simplefilter("ignore")  # fits of few samples, online passes
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 3))
    labels, targets = (X[:, 0] > 0).astype(int), X[:, 0] + 0.1
    counted, report = 0, {}
    for estimator in estimators():
        y = targets if is_regressor(estimator) or type(estimator).__name__ == "RankSVC" else labels
        for case, array in of_library(library).items():
            values = X.astype(np.float32).astype(np.float64) if "single" in case else X
            goal = y.astype(np.float32).astype(np.float64) if "single" in case and y.dtype.kind == "f" else y
            reference = sklearn.clone(estimator).fit(values, goal)
            counted += 1
            try:
                with sklearn.config_context(array_api_dispatch=True):
                    wrong = list(differences(sklearn.clone(estimator), reference, values, goal, array))
            except Exception as error:
                wrong = [repr(error)]
            if wrong:
                report[f"{type(estimator).__name__} {case}"] = wrong
    print(json.dumps({"cases": counted, "wrong": report}))


if __name__ == "__main__":
    main(sys.argv[1])
