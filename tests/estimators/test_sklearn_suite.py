"""scikit-learn's own tests, as installed, run against our classes in the places of its own.

All tests of `sklearn.svm` are run, and of other folders those that mention one of the classes: pipelines, searches,
feature selection, votes. What is left out is named in `LEFT_OUT`, with the reason.
"""

import functools
import importlib.util
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
import sklearn
import sklearn.exceptions
import sklearn.svm

import maxmargin
from reference.data import wine

OURS = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR")
SUITES = (
    "svm/tests/test_svm.py",
    "svm/tests/test_sparse.py",
    "ensemble/tests/test_stacking.py",
    "ensemble/tests/test_voting.py",
    "feature_selection/tests/test_rfe.py",
    "model_selection/tests/test_search.py",
    "model_selection/tests/test_split.py",
    "model_selection/tests/test_successive_halving.py",
    "model_selection/tests/test_validation.py",
    "semi_supervised/tests/test_self_training.py",
    "tests/test_base.py",
    "tests/test_multiclass.py",
    "tests/test_pipeline.py",
    "utils/tests/test_pprint.py",
)

INTERNAL = "changes a private array of scikit-learn's and looks what its C library makes of it"
DEPRECATED = "wants warnings that probability and probA_ will be removed, which they will not be here"
PENALTY = "wants errors for combinations of loss and dual that LIBLINEAR has not, and that are there"
INTERCEPT = "depends on an intercept that is regularised; with intercept_scaling=1 ours passes"
ELSEWHERE = "runs below, with other arguments"
SLOW = "takes seconds, and asks nothing that another test does not"

LEFT_OUT = {
    "test_svm": {
        "test_tweak_params": INTERNAL,
        "test_svc_raises_error_internal_representation": INTERNAL,
        "test_svr_errors": "wants fit to accept a kernel function that returns the wrong shape; ours says so at once",
        "test_bad_input": ELSEWHERE,
        "test_custom_kernel_not_array_input": ELSEWHERE,
        "test_libsvm_convergence_warnings": ELSEWHERE,
        "test_linearsvc_parameters": PENALTY,
        "test_dense_liblinear_intercept_handling": INTERCEPT,
        "test_linear_svm_convergence_warnings": ELSEWHERE,
        "test_linearsvm_liblinear_sample_weight": ELSEWHERE,
        "test_probability_raises_futurewarning": DEPRECATED,
        "test_svc_nusvc_probA_probB_deprecated": DEPRECATED,
    },
    "test_sparse": {
        "test_timeout": ELSEWHERE,
        "test_linearsvc": ELSEWHERE,
        "test_sparse_liblinear_intercept_handling": INTERCEPT,
    },
    "test_rfe": {"test_rfecv": SLOW, "test_rfe_cv_n_jobs": SLOW, "test_rfe_wrapped_estimator": ELSEWHERE},
    "test_stacking": {
        "test_stacking_cv_influence": SLOW,
        "test_stacking_with_sample_weight": SLOW,
        "test_stacking_classifier_stratify_default": SLOW,
        "test_stacking_classifier_drop_column_binary_classification": SLOW,
    },
    "test_self_training": {"test_estimator_meta_estimator": SLOW, "test_sanity_classification": SLOW},
    "test_validation": {
        "test_cross_validate_many_jobs": SLOW,
        "test_cross_val_predict_decision_function_shape": SLOW,
        "test_permutation_score": SLOW,
    },
}


def take_their_places(patch: pytest.MonkeyPatch) -> None:
    for name in OURS:
        patch.setattr(sklearn.svm, name, getattr(maxmargin, name))


def load(suite):
    """A test module of scikit-learn, imported while our classes are in the places of its own."""
    path = Path(sklearn.__file__).parent / suite
    spec = importlib.util.spec_from_file_location("sklearns_" + path.stem, path)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        take_their_places(patch)
        spec.loader.exec_module(module)
    return module


def collect(suite, module):
    """Its test functions; outside `sklearn.svm` those that mention our classes."""
    ours = re.compile(rf"\b({'|'.join(OURS)})\b")
    return {
        name: test
        for name, test in vars(module).items()
        if name.startswith("test_") and inspect.isfunction(test)
        if suite.startswith("svm/") or ours.search(inspect.getsource(test))
    }


MODULES = {Path(suite).stem: load(suite) for suite in SUITES}
TESTS = {Path(suite).stem: collect(suite, MODULES[Path(suite).stem]) for suite in SUITES}
globals().update(
    {
        f"{name}_in_{stem}": test
        for stem, tests in TESTS.items()
        for name, test in tests.items()
        if name not in LEFT_OUT.get(stem, {})
    }
)

# Their suite does not make errors of warnings: some of its tests let a fit end early, or fail, on purpose.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def in_the_places_of_theirs(monkeypatch):
    take_their_places(monkeypatch)


@pytest.fixture
def global_random_seed():
    return 42


def test_every_suite_and_what_is_left_out_of_it_exist():
    assert all(TESTS.values())
    assert all(set(names) <= set(TESTS[stem]) for stem, names in LEFT_OUT.items())


def test_bad_input():
    # Theirs also wants a machine that was trained on dense samples to refuse sparse ones. Ours takes both, so what it
    # is given there is a matrix with one column too many.
    MODULES["test_svm"].test_bad_input(lambda X: np.ones((6, 3)), 42)


@pytest.mark.parametrize("estimator", [maxmargin.SVC, maxmargin.SVR])
def test_custom_kernel_not_array_input(estimator):
    # The function there is right only if both arguments are one and the same set; ours are called with any two.
    def of_any_two_sets(function):
        def kernel(A, B):
            everyone = [*A, *B]
            return function(everyone, everyone)[: len(A), len(A) :]

        return kernel

    def make(kernel):
        return estimator(kernel=of_any_two_sets(kernel) if callable(kernel) else kernel)

    MODULES["test_svm"].test_custom_kernel_not_array_input(make)


def test_early_ends_warn(monkeypatch):
    # On the six samples there our solver is done after the first step, and there is nothing to warn of.
    X, y = wine()
    for module in ("test_svm", "test_sparse"):
        monkeypatch.setattr(MODULES[module], "X", X)
        monkeypatch.setattr(MODULES[module], "Y", y)
    MODULES["test_svm"].test_libsvm_convergence_warnings(42)
    for container in MODULES["test_sparse"].LIL_CONTAINERS:
        MODULES["test_sparse"].test_timeout(container)


def test_linearsvc_on_sparse_data():
    module = MODULES["test_sparse"]
    for lil, dok in zip(module.LIL_CONTAINERS, module.DOK_CONTAINERS, strict=True):
        module.test_linearsvc(lil, dok)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("dual", [True, False])
def test_weights_of_0_leave_samples_out_of_linearsvc(loss, dual):
    parameters = {"penalty": "l2", "loss": loss, "dual": dual}
    MODULES["test_svm"].test_linearsvm_liblinear_sample_weight(maxmargin.LinearSVC, parameters, 42)


def test_weights_of_0_leave_samples_out_of_sparse_weights():
    parameters = {"penalty": "l1", "loss": "squared_hinge", "dual": False}
    MODULES["test_svm"].test_linearsvm_liblinear_sample_weight(maxmargin.LinearSVC, parameters, 42)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_weights_of_0_leave_samples_out_of_linearsvr(loss):
    MODULES["test_svm"].test_linearsvm_liblinear_sample_weight(maxmargin.LinearSVR, {"loss": loss}, 42)


@pytest.mark.parametrize(("selector", "features"), [("RFE", 5), ("RFECV", 4)])
def test_features_eliminated_by_linearsvr(monkeypatch, selector, features):
    module = MODULES["test_rfe"]
    regularised = functools.partial(maxmargin.LinearSVR, intercept_scaling=1)
    monkeypatch.setattr(module, "LinearSVR", regularised)
    module.test_rfe_wrapped_estimator("regressor_.coef_", getattr(module, selector), features)


def test_early_ends_of_linear_models_warn():
    # Theirs wants the words of LIBLINEAR, on six samples that take our solver less than two steps.
    X, y = wine()
    for model in (maxmargin.LinearSVC(max_iter=2), maxmargin.LinearSVR(max_iter=2)):
        with pytest.warns(sklearn.exceptions.ConvergenceWarning, match="raise max_iter"):
            model.fit(X, y)
        assert isinstance(model.n_iter_, int)
        assert model.n_iter_ == 2
