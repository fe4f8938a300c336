"""Models that cannot be stored in a model file: one error that says which part, and what would work."""

import io
import os

import numpy as np
import pytest

from maxmargin import (
    SVC,
)
from maxmargin.interchange import ModelFileError, fitted_schema, save
from maxmargin.kernels import FunctionKernel, Gaussian, Linear


def samples():
    return np.random.default_rng(0).random((40, 3)), np.arange(40) % 3


class Own(SVC):
    """An estimator outside the package."""


class TestUnsupported:
    @pytest.mark.parametrize(
        ("model", "message"),
        [
            (SVC(kernel=lambda A, B: A @ B.T), "kernel of SVC .* fit with a kernel name"),
            (SVC(kernel=Linear() + FunctionKernel(lambda A, B: A @ B.T)), "kernel of SVC .*maxmargin.kernels"),
            (SVC(callback=print), r"callback of SVC .* set_params\(callback=None\)"),
            (SVC(random_state=np.random.RandomState(0)), r"random_state of SVC .*RandomState.*random_state=None"),
            (SVC(kernel=sum([Gaussian(1.0)] * 90, start=Linear())), "nested deeper than 80"),
            (Own(), "Own cannot be stored in a model file, only .*SVC"),
        ],
    )
    def test_parameters(self, model, message, tmp_path):
        X, y = samples()
        model.fit(X, y)
        with pytest.raises(ModelFileError, match=message):
            save(model, tmp_path / "model")
        assert os.listdir(tmp_path) == []

    def test_unfitted_models(self):
        with pytest.raises(ModelFileError, match="SVC is not fitted"):
            save(SVC(), io.BytesIO())

    def test_foreign_attributes(self):
        X, y = samples()
        model = SVC().fit(X, y)
        model.note = "mine"
        with pytest.raises(ModelFileError, match="the attribute 'note'"):
            save(model, io.BytesIO())

    def test_estimators_without_schema(self, monkeypatch):
        X, y = samples()
        model = SVC().fit(X, y)
        for kind in SVC.__mro__:
            monkeypatch.delitem(fitted_schema.ATTRIBUTES, kind, raising=False)
        with pytest.raises(ModelFileError, match="the fitted attributes of SVC are unknown"):
            save(model, io.BytesIO())

    def test_date_labels(self):
        X, y = samples()
        model = SVC().fit(X, y)
        model.classes_ = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], dtype="datetime64[D]")
        with pytest.raises(ModelFileError, match="classes_ of SVC is an array or scalar of datetime64"):
            save(model, io.BytesIO())

    def test_inconsistent_attributes(self):
        X, y = samples()
        model = SVC().fit(X, y)
        model.dual_coef_ = model.dual_coef_[:, 1:]
        with pytest.raises(ModelFileError, match="dual_coef_ has the wrong type, or is inconsistent"):
            save(model, io.BytesIO())
