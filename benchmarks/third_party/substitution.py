"""A plugin of pytest: our classes in the places of scikit-learn's, and the outcomes of the tests in a JSON file.

The environment says what to do: MAXMARGIN_SUITE, MAXMARGIN_OUTCOMES (the file) and MAXMARGIN_SUBSTITUTE (0 or 1).
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

import maxmargin
from benchmarks.third_party.suites import SUITES

CLASSES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR")

_outcomes: dict[str, dict[str, str]] = {}


def pytest_configure(config: pytest.Config) -> None:
    """Exchange the classes before any test is imported."""
    if os.environ["MAXMARGIN_SUBSTITUTE"] != "1":
        return
    name = os.environ["MAXMARGIN_SUITE"]
    for module in list(map(importlib.import_module, SUITES[name].modules)):  # all before any is changed
        for kind in CLASSES:
            setattr(module, kind, getattr(maxmargin, kind))
    if name == "skl2onnx":
        maxmargin.interchange.register_onnx_converters()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Select the tests about SVMs; leave out the check of skl2onnx's operators."""
    if SUITES[os.environ["MAXMARGIN_SUITE"]].only_svm:
        mentioned = re.compile(rf"\b({'|'.join(CLASSES)})\b")
        sources = [inspect.getsource(getattr(item, "function", type(item))) for item in items]
        items[:] = [item for item, source in zip(items, sources, strict=True) if mentioned.search(source)]
    for item in items:
        group: Any = getattr(item, "cls", None)
        if hasattr(group, "_check_attributes"):
            group._check_attributes = lambda self, node, attributes: None


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the outcome, and the message of a failure."""
    if report.when == "call" or report.outcome != "passed":
        crash = getattr(report.longrepr, "reprcrash", None)
        message = crash.message.splitlines()[0] if report.failed and crash is not None else ""
        _outcomes[report.nodeid] = {"outcome": report.outcome, "message": message}


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Keep what could not be imported."""
    if report.failed:
        _outcomes[report.nodeid] = {"outcome": "failed", "message": str(report.longrepr).splitlines()[-1]}


def pytest_sessionfinish() -> None:
    """Write the outcomes."""
    Path(os.environ["MAXMARGIN_OUTCOMES"]).write_text(json.dumps(_outcomes), encoding="utf-8")
