"""Estimators read from files of other programs: predictions work, the certificate is an error."""

import io
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.utils.validation import check_is_fitted

from maxmargin import SVC, SVR, LinearOneClassSVM, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM, load, save
from maxmargin.interchange import (
    ModelFileError,
    read_liblinear_model,
    read_libsvm_model,
    to_onnx,
    write_liblinear_model,
    write_libsvm_model,
)

X, Y = load_iris(return_X_y=True)
MODELS = {
    "SVC": SVC(probability=True),
    "pair": SVC(kernel="linear"),
    "NuSVC": NuSVC(nu=0.2),
    "SVR": SVR(noise=True),
    "NuSVR": NuSVR(kernel="poly", degree=2),
    "OneClassSVM": OneClassSVM(probability=True),
    "precomputed": SVC(kernel="precomputed"),
    "LinearSVC": LinearSVC(),
    "LinearSVR": LinearSVR(),
    "LinearOneClassSVM": LinearOneClassSVM(nu=0.3),
}


@pytest.fixture(params=MODELS)
def both(request):
    """A fitted model, the model read from its file, and its samples."""
    model, samples = clone(MODELS[request.param]), X
    samples = X @ X.T if request.param == "precomputed" else X
    model.fit(samples, Y > 0 if request.param == "pair" else Y)
    file = io.BytesIO()
    linear = request.param.startswith("Linear")
    (write_liblinear_model if linear else write_libsvm_model)(model, file)
    file.seek(0)
    return model, (read_liblinear_model if linear else read_libsvm_model)(file), samples


def predictions(model, samples):
    methods = (
        "predict",
        "decision_function",
        "predict_proba",
        "predict_log_proba",
        "score_samples",
        "predict_interval",
    )
    return {name: getattr(model, name)(samples) for name in methods if hasattr(model, name)}


class TestAvailable:
    def test_predictions(self, both):
        model, again, samples = both
        check_is_fitted(again)
        found, expected = predictions(again, samples), predictions(model, samples)
        assert found.keys() == expected.keys()
        for name, values in expected.items():
            np.testing.assert_allclose(found[name], values, rtol=1e-9, atol=1e-9, err_msg=name)

    def test_attributes(self, both):
        model, again, _ = both
        for name in ("classes_", "n_support_", "dual_coef_", "intercept_", "coef_", "offset_", "probA_", "probB_"):
            if hasattr(model, name):
                np.testing.assert_allclose(getattr(again, name), getattr(model, name), rtol=1e-12, err_msg=name)

    def test_copies(self, both, tmp_path):
        _, again, samples = both
        expected = predictions(again, samples)
        save(again, tmp_path / "model")
        for copy in (load(tmp_path / "model"), pickle.loads(pickle.dumps(again))):
            for name, values in predictions(copy, samples).items():
                np.testing.assert_array_equal(values, expected[name])
            assert vars(copy).keys() == vars(again).keys()

    def test_onnx(self, both):
        _, again, _ = both
        if getattr(again, "_sigmoids_", None):
            again.set_params(probability=False)
        assert to_onnx(again).graph.output

    def test_fit(self, both):
        model, again, samples = both
        targets = Y > 0 if len(getattr(model, "classes_", [])) == 2 else Y
        again.set_params(warm_start=True, **({"nu": 0.2} if hasattr(model, "nu") else {})).fit(samples, targets)
        assert again.certificate_.relative_gap < 1e-3 if not isinstance(again.certificate_, list) else True
        assert again.status_ is not None
        assert hasattr(again, "n_iter_")


class TestUnavailable:
    @pytest.mark.parametrize("attribute", ["certificate_", "geometry_", "status_"])
    def test_certificate(self, both, attribute):
        _, again, _ = both
        if not hasattr(type(again), attribute):  # linear estimators have no geometry
            return
        with pytest.raises(AttributeError, match=f"no attribute '{attribute}': it was not trained by fit"):
            getattr(again, attribute)
        assert not hasattr(again, attribute)

    def test_training_attributes_are_missing(self, both):
        _, again, _ = both
        for attribute in ("n_iter_", "fit_status_", "shape_fit_", "class_weight_", "device_"):
            assert not hasattr(again, attribute)

    def test_inconsistent_attributes(self, both, tmp_path):
        _, again, _ = both
        again.intercept_ = np.append(again.intercept_, 1.0)
        with pytest.raises(ModelFileError, match="intercept_"):
            save(again, tmp_path / "model")


def test_trained_model_requires_all_attributes(tmp_path):
    model = SVC().fit(X, Y)
    del model.n_iter_
    with pytest.raises(ModelFileError, match="SVC has no n_iter_"):
        save(model, tmp_path / "model")


def test_partial_fit_has_no_certificate():
    model = LinearSVC().partial_fit(X, Y, classes=[0, 1, 2])
    with pytest.raises(AttributeError, match=r"from partial_fit.*certify\(X, y\)"):
        _ = model.certificate_


def test_support_indices_of_a_precomputed_kernel():
    model = SVC(kernel="precomputed").fit(X @ X.T, Y)
    file = io.BytesIO()
    write_libsvm_model(model, file)
    file.seek(0)
    again = read_libsvm_model(file, n_features=len(X))
    np.testing.assert_array_equal(again.support_, model.support_)
    broken = read_libsvm_model(io.BytesIO(file.getvalue()))
    broken.support_ = broken.support_ + np.int32(10**6)
    with pytest.raises(ModelFileError, match="outside the training samples"):
        save(broken, io.BytesIO())
