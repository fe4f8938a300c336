"""The projects whose tests of SVMs are run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Suite:
    """The tests of a project.

    Attributes
    ----------
    files : tuple of str
        Relative to the checkout.
    only_svm : bool
        Whether to run only the tests whose source mentions a class that is exchanged.
    modules : tuple of str
        Where classes are exchanged.
    with_conftest : bool
        Whether the tests need the fixtures of the project.
    note : str
        What is different from a run of the project itself, for the report.
    """

    files: tuple[str, ...]
    only_svm: bool = False
    modules: tuple[str, ...] = ("sklearn.svm",)
    with_conftest: bool = False
    note: str = ""


SUITES = {
    "skl2onnx": Suite(
        ("tests/test_sklearn_svm_converters.py",),
        note="without the check that the first node is an operator `SVMClassifier` or `SVMRegressor` with certain "
        "attributes: ours are standard operators in double precision",
    ),
    "mlxtend": Suite(
        (
            "mlxtend/evaluate/tests/test_feature_importance.py",
            "mlxtend/classifier/tests/test_stacking_classifier.py",
            "mlxtend/classifier/tests/test_stacking_cv_classifier.py",
            "mlxtend/regressor/tests/test_stacking_cv_regression.py",
            "mlxtend/regressor/tests/test_stacking_regression.py",
        ),
        only_svm=True,
    ),
    "imbalanced-learn": Suite(
        (
            "imblearn/ensemble/tests/test_bagging.py",
            "imblearn/over_sampling/_smote/tests/test_svm_smote.py",
            "imblearn/tests/test_pipeline.py",
        ),
        only_svm=True,
    ),
    "scikit-learn-intelex": Suite(
        ("sklearnex/svm/tests/test_svm.py",),
        modules=("sklearn.svm", "sklearnex.svm"),
        note="the public classes; tests of `onedal.svm` use an internal interface",
    ),
    "cuml": Suite(
        tuple(
            f"python/cuml/cuml_accel_tests/integration/test_{name}.py"
            for name in ("linear_svc", "linear_svr", "svc", "svr")
        ),
        note="the tests of `cuml.accel`, which use the names of scikit-learn, without a GPU",
    ),
}
