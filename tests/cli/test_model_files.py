"""Model files of all formats, and descriptions of models."""

import json
import pickle

import numpy as np
import onnx
import pytest
from sklearn.datasets import load_iris

from maxmargin import LSSVC, SVC, SVDD, SVR, KernelApproximationSVC, LinearSVC, OneClassSVM, RankSVC, Status
from maxmargin.cli.main import main
from maxmargin.cli.model_files import FORMATS, convert_model, format_for, model_format, read_model, write_model
from maxmargin.cli.model_report import describe
from maxmargin.cli.output import _plain
from maxmargin.interchange import ModelFileError

X, Y = load_iris(return_X_y=True)
SVMLIGHT = (
    "SVM-light Version V6.02\n2 # kernel type\n3 # -d\n0.5 # -g\n1 # -s\n1 # -r\nempty# -u\n4 # highest\n9 # n\n"
    "3 # plus 1\n0.25 # threshold b\n0.5 1:1 3:0.5 #\n-0.5 2:1 #\n"
)


class TestFiles:
    @pytest.mark.parametrize(
        ("name", "kernel_format", "linear_format"),
        [
            ("model", "maxmargin", "maxmargin"),
            ("model.maxmargin", "maxmargin", "maxmargin"),
            ("some.name", "maxmargin", "maxmargin"),
            ("heart.model", "libsvm", "liblinear"),
            ("heart.MODEL", "libsvm", "liblinear"),
        ],
    )
    def test_suffix_selects_the_format(self, name, kernel_format, linear_format, tmp_path):
        for model, expected in ((SVC().fit(X, Y), kernel_format), (LinearSVC().fit(X, Y), linear_format)):
            assert format_for(model, name) == expected
            assert write_model(model, tmp_path / name) == expected
            assert model_format(tmp_path / name) == expected
            np.testing.assert_array_equal(read_model(tmp_path / name).predict(X), model.predict(X))

    def test_explicit_format(self, tmp_path):
        model = SVC().fit(X, Y)
        for format in ("maxmargin", "libsvm"):
            write_model(model, tmp_path / "file", format)
            assert model_format(tmp_path / "file") == format
        write_model(model, tmp_path / "graph.onnx")
        onnx.checker.check_model(onnx.load(tmp_path / "graph.onnx"))
        with pytest.raises(ValueError, match=", ".join(FORMATS)):
            write_model(model, tmp_path / "file", "pickle")
        with pytest.raises(ModelFileError, match="write_libsvm_model"):
            write_model(model, tmp_path / "file.liblinear")

    def test_conversion(self, tmp_path):
        model = SVC(gamma=0.5).fit(X, Y)
        write_model(model, tmp_path / "a")
        assert convert_model(tmp_path / "a", tmp_path / "b.model") == "libsvm"
        assert convert_model(tmp_path / "b.model", tmp_path / "c") == "maxmargin"
        assert convert_model(tmp_path / "c", tmp_path / "d", "libsvm") == "libsvm"
        assert convert_model(tmp_path / "d", tmp_path / "e.onnx") == "onnx"
        assert (tmp_path / "b.model").read_bytes() == (tmp_path / "d").read_bytes()
        np.testing.assert_array_equal(read_model(tmp_path / "c").predict(X), model.predict(X))
        with pytest.raises(ModelFileError, match="not a model of maxmargin, LIBSVM"):
            convert_model(tmp_path / "e.onnx", tmp_path / "f")

    def test_svmlight(self, tmp_path):
        (tmp_path / "file").write_text(SVMLIGHT)
        assert model_format(tmp_path / "file") == "svmlight"
        assert read_model(tmp_path / "file").n_features_in_ == 4
        assert read_model(tmp_path / "file", n_features=7).n_features_in_ == 7

    def test_more_features_than_in_the_file(self, tmp_path):
        for model in (SVC().fit(X, Y), LinearSVC().fit(X, Y)):
            write_model(model, tmp_path / "file.model")
            assert read_model(tmp_path / "file.model", n_features=3).n_features_in_ == 4
            wide = read_model(tmp_path / "file.model", n_features=6)
            np.testing.assert_array_equal(wide.predict(np.pad(X, ((0, 0), (0, 2)))), model.predict(X))
            write_model(model, tmp_path / "own")
            assert read_model(tmp_path / "own", n_features=6).n_features_in_ == 4

    @pytest.mark.parametrize(
        "content", [b"", b"1 1:0.5 2:1\n-1 1:2\n", b"a,b,c\n1,2,3\n", b"\x00\xff" * 100, pickle.dumps({}), b"w\n1\n"]
    )
    def test_other_files_are_rejected(self, content, tmp_path):
        (tmp_path / "file").write_bytes(content)
        assert model_format(tmp_path / "file") is None
        with pytest.raises(ModelFileError, match="file is not a model of maxmargin"):
            read_model(tmp_path / "file")


class TestDescription:
    def test_a_classifier(self):
        facts = describe(SVC(C=3, gamma=0.5, probability=True).fit(X, Y))
        assert facts["estimator"] == "SVC"
        assert facts["kernel"] == "Gaussian(gamma=0.5)"
        assert facts["parameters"] == {"C": 3, "gamma": 0.5, "probability": True}
        assert (facts["features"], facts["classes"], facts["labels"]) == (4, 3, [0, 1, 2])
        assert facts["support vectors"] == sum(facts["support vectors by class"])
        assert facts["problems"] == 3
        assert facts["probabilities"] is True
        assert facts["violation"] <= 1e-3
        assert facts["stopping reason"] == Status.CONVERGED.value

    def test_kinds_of_support_vectors(self):
        model = SVC().fit(X[:100], Y[:100])
        facts, seen = describe(model), model.geometry_
        assert (facts["free"], facts["bounded"], facts["non-support"]) == tuple(
            len(rows) for rows in (seen.free, seen.bounded, seen.non_support)
        )
        assert facts["free"] + facts["bounded"] == facts["support vectors"]

    def test_model_of_another_program(self, tmp_path):
        write_model(SVC().fit(X, Y), tmp_path / "file.model")
        facts = describe(read_model(tmp_path / "file.model"))
        assert facts["certificate"].startswith("none: the model was not trained here")
        assert "gap" not in facts

    def test_changed_data(self):
        data = np.random.default_rng(0).normal(size=(600, 2))
        model = SVC(solver="block", C=10).fit(data, data[:, 0] > 0)
        data += 1.0
        assert "data were changed" in describe(model)["certificate"]

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_unconverged_model(self):
        facts = describe(SVC(max_iter=1, solver="pairwise").fit(X, Y))
        assert "the limit on iterations was reached" in facts["stopping reason"]

    @pytest.mark.parametrize(
        "made",
        [
            SVR(noise=True),
            SVDD(),
            RankSVC(),
            LSSVC(),
            LinearSVC(),
            OneClassSVM(),
            KernelApproximationSVC(n_components=9),
        ],
    )
    def test_descriptions_are_json(self, made):
        facts = describe(made.fit(X, Y))
        assert json.loads(json.dumps(facts, default=_plain, allow_nan=False))["estimator"] == type(made).__name__
        assert facts["stored values"] > 0


def test_data_and_models_are_not_confused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "chessboard:50", "m", "-q"]) == 0
    assert main(["convert", "m", "samples.csv"]) == 1
    assert "m is a model, but samples.csv has the suffix of a data file" in capsys.readouterr().err
    assert main(["convert", "chessboard:50", "graph.onnx"]) == 1
    assert "graph.onnx has the suffix of a model; use maxmargin train" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
