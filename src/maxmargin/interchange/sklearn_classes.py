"""The classes of scikit-learn that a model file may contain, and how their state is read and restored.

The state of an object is its constructor parameters and the attributes set by `fit`. Objects of other classes are never
constructed from a file. `sklearn_checks` has the conditions on their attributes.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

from maxmargin.interchange.errors import ModelFileError
from maxmargin.machines.base import parameter_names

#: The classes by their module. Those of this package are built on scikit-learn's.
MODULES: dict[str, tuple[str, ...]] = {
    "maxmargin.feature_maps": ("DistanceMap", "NystroemMap", "PolarCoordinates", "PolynomialMap"),
    "maxmargin.preparation": ("DateParts",),
    "scipy.interpolate": ("BSpline",),
    "sklearn.calibration": (
        *("CalibratedClassifierCV", "_CalibratedClassifier", "_SigmoidCalibration", "_TemperatureScaling"),
    ),
    "sklearn.compose": ("ColumnTransformer", "TransformedTargetRegressor", "make_column_selector"),
    "sklearn.decomposition": ("IncrementalPCA", "KernelPCA", "PCA", "TruncatedSVD"),
    "sklearn.feature_extraction": ("DictVectorizer", "FeatureHasher"),
    "sklearn.feature_extraction.text": (
        *("CountVectorizer", "HashingVectorizer", "TfidfTransformer", "TfidfVectorizer"),
    ),
    "sklearn.feature_selection": (
        *("RFE", "SelectFdr", "SelectFpr", "SelectFromModel", "SelectFwe", "SelectKBest", "SelectPercentile"),
        "VarianceThreshold",
    ),
    "sklearn.frozen": ("FrozenEstimator",),
    "sklearn.impute": ("KNNImputer", "MissingIndicator", "SimpleImputer"),
    "sklearn.isotonic": ("IsotonicRegression",),
    "sklearn.kernel_approximation": (
        *("AdditiveChi2Sampler", "Nystroem", "PolynomialCountSketch", "RBFSampler", "SkewedChi2Sampler"),
    ),
    "sklearn.model_selection": ("FixedThresholdClassifier",),
    "sklearn.multiclass": ("OneVsOneClassifier", "OneVsRestClassifier"),
    "sklearn.multioutput": ("MultiOutputClassifier", "MultiOutputRegressor"),
    "sklearn.pipeline": ("FeatureUnion", "Pipeline"),
    "sklearn.preprocessing": (
        *("Binarizer", "FunctionTransformer", "KBinsDiscretizer", "KernelCenterer", "LabelBinarizer", "LabelEncoder"),
        *("MaxAbsScaler", "MinMaxScaler", "Normalizer", "OneHotEncoder", "OrdinalEncoder", "PolynomialFeatures"),
        *("PowerTransformer", "QuantileTransformer", "RobustScaler", "SplineTransformer", "StandardScaler"),
        "TargetEncoder",
    ),
}

#: The module of every class.
MODULE_OF = {name: module for module, names in MODULES.items() for name in names}

#: Attributes that are made again from others, or concern only the process that fits.
NOT_STORED = {
    "CountVectorizer": {"_stop_words_id"},
    "IsotonicRegression": {"f_"},
    "TfidfVectorizer": {"_stop_words_id"},
}


def class_named(name: str) -> type[Any]:
    """Return the class of a name in `MODULE_OF`."""
    kind: type[Any] | None = getattr(import_module(MODULE_OF[name]), name, None)
    if kind is None:
        raise ModelFileError(f"the model file contains {name}, which this version of scikit-learn does not have")
    return kind


def is_storable(value: Any) -> bool:
    """Return whether the class of an object is one of `MODULE_OF`."""
    kind = type(value)
    return kind.__name__ in MODULE_OF and class_named(kind.__name__) is kind


def state_of(value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the constructor parameters and the fitted attributes of an object."""
    kind = type(value)
    parameters = {name: getattr(value, name) for name in parameter_names(kind)}
    if not _is_estimator(kind):
        return parameters, {}
    dropped = {*parameters, *NOT_STORED.get(kind.__name__, ())}
    return parameters, {name: part for name, part in vars(value).items() if name not in dropped}


def restore(name: str, parameters: dict[str, Any], fitted: dict[str, Any]) -> Any:
    """Return the object with this state."""
    from sklearn import __version__

    kind = class_named(name)
    for parameter in parameters:
        if parameter not in parameter_names(kind):
            raise ModelFileError(f"{name} has no parameter {parameter[:40]!r} in this version of scikit-learn")
    for attribute in fitted:
        if not attribute.isidentifier() or hasattr(kind, attribute) or attribute in parameter_names(kind):
            raise ModelFileError(f"{attribute[:40]!r} is not a fitted attribute of {name}")
    try:
        restored = kind(**parameters)
        if _is_estimator(kind):
            restored.__setstate__(vars(restored) | fitted | {"_sklearn_version": __version__})
        elif fitted:
            raise ModelFileError(f"{name} has no fitted attributes")
    except (TypeError, ValueError, AttributeError, KeyError, IndexError) as error:  # wrong types of the state
        raise ModelFileError(f"{name}: {one_line(error)}") from error
    return restored


def chosen_model(model: Any) -> Any:
    """Return the model that a search has chosen: of parameters its best, of a threshold the one with that threshold."""
    model = getattr(model, "best_estimator_", model)
    if type(model).__name__ != "TunedThresholdClassifierCV" or not hasattr(model, "best_threshold_"):
        return model
    from sklearn.model_selection import FixedThresholdClassifier

    fixed = FixedThresholdClassifier(
        model.estimator,
        threshold=model.best_threshold_,
        pos_label=model._curve_scorer._get_pos_label(),
        response_method=model.response_method,
    )
    fitted = {name: value for name, value in vars(model).items() if name in ("n_features_in_", "feature_names_in_")}
    vars(fixed).update(fitted, estimator_=model.estimator_)
    return fixed


def check_version(found: Any) -> None:
    """Compare the version of scikit-learn that wrote a file with the present one."""
    from sklearn import __version__

    if not isinstance(found, str) or not found.isprintable() or len(found) > 40:
        raise ModelFileError("the version of scikit-learn in a model file must be a short string")
    ours, theirs = __version__.split("."), found.split(".")
    if ours[0] != theirs[0]:
        raise ModelFileError(
            f"the model file contains objects of scikit-learn {found}, but this is scikit-learn {__version__}: install "
            f"scikit-learn {theirs[0]}, or fit and save again"
        )
    if ours[1:2] != theirs[1:2]:
        warnings.warn(
            f"the model file contains objects of scikit-learn {found}, but this is scikit-learn {__version__}: check "
            "that predictions agree, or fit and save again",
            stacklevel=5,
        )


def one_line(error: Exception) -> str:
    """Return the message of an error as one line of limited length."""
    return " ".join(str(error).split())[:400]


def _is_estimator(kind: type[Any]) -> bool:
    from sklearn.base import BaseEstimator

    return issubclass(kind, BaseEstimator)
