"""docs/model_file.md: examples run, the layout agrees with the code, lists are complete."""

import doctest
import hashlib
import io
import json
import re
import struct
from pathlib import Path

import numpy as np
import pytest

from maxmargin import SVC, estimators
from maxmargin.interchange import liblinear_model, model_file, onnx_converters, onnx_export, save, sklearn_models
from maxmargin.interchange.class_registry import CLASSES
from maxmargin.interchange.libsvm import estimators as libsvm_estimators
from maxmargin.interchange.model_file import MAX_JSON_DEPTH
from maxmargin.interchange.sklearn_classes import MODULE_OF
from maxmargin.storage.array_table import DTYPES

PAGE = (Path(__file__).parents[2] / "docs" / "model_file.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "module",
    [model_file, onnx_converters, onnx_export, sklearn_models, liblinear_model, libsvm_estimators],
    ids=lambda module: module.__name__,
)
def test_docstring_examples_run(module):
    found = doctest.testmod(module)
    assert found.attempted
    assert not found.failed


def test_examples_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 5
    for block in blocks:
        exec(compile(block, "model_file.md", "exec"), {})
    output = capsys.readouterr().out
    assert "['yes'] primal" in output
    assert output.endswith("[1]\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "model.mxm",
        "model.onnx",
        "pipeline.mxm",
        "pipeline.onnx",
        "small.model",
    ]


def test_lists_are_complete():
    public = (name for name in MODULE_OF if not name.startswith("_") and name != "BSpline")
    for name in (*estimators.__all__, *CLASSES, *DTYPES, *public):
        assert f"`{name}`" in PAGE or f'`"{name}"`' in PAGE, name
    assert f"at most {MAX_JSON_DEPTH}." in PAGE


def test_reader_written_from_the_documentation():
    """Read a file with the information of the page only."""
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = SVC(C=3.5).fit(X, np.arange(20) % 3)
    stream = io.BytesIO()
    save(model, stream)
    file = stream.getvalue()
    assert file[:8] == bytes.fromhex("894D584D470D0A1A") == b"\x89MXMG\r\n\x1a"
    version, zero, header_bytes, file_bytes = struct.unpack("<IIQQ", file[8:32])
    assert (version, zero, header_bytes % 64, file_bytes) == (2, 0, 0, len(file))
    assert hashlib.sha256(file[:32] + file[64:]).digest() == file[32:64]
    header = json.loads(file[64 : 64 + header_bytes].decode("ascii"))
    assert header["estimator"] == "SVC"
    assert header["parameters"]["C"] == 3.5
    for name in ("support_vectors_", "dual_coef_", "support_", "intercept_"):
        entry = header["arrays"][header["fitted"][name]["array"]]
        start = 64 + header_bytes + entry["offset"]
        assert start % 64 == 0
        count = int(np.prod(entry["shape"]))
        flat = np.frombuffer(file, entry["dtype"], count, start)
        np.testing.assert_array_equal(flat.reshape(entry["shape"], order=entry["order"]), getattr(model, name))
