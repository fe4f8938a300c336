"""The parameter documentation of the estimators comes from one table."""

import inspect
import sys
from pathlib import Path

import pytest

from maxmargin import StructuredSVC, estimators
from maxmargin.search import estimators as search_estimators

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the tools are not installed

from tools import parameter_docs

ESTIMATORS = {name: getattr(package, name) for package in (estimators, search_estimators) for name in package.__all__}
ESTIMATORS["StructuredSVC"] = StructuredSVC


@pytest.mark.parametrize("name", ESTIMATORS)
def test_docstrings_are_those_of_the_table(name):
    estimator = ESTIMATORS[name]
    assert parameter_docs.section(estimator) in inspect.cleandoc(estimator.__doc__)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_parameter_is_documented_in_the_order_of_the_constructor(name):
    estimator = ESTIMATORS[name]
    documented = [line.partition(" : ")[0] for line in parameter_docs.section(estimator).split("\n") if " : " in line]
    assert [parameter for parameter in documented if not parameter.startswith(" ")] == list(
        inspect.signature(estimator).parameters
    )


def test_the_table_has_no_unused_texts():
    used = {
        (parameter, id(parameter_docs.entry(name, parameter)))
        for name, estimator in ESTIMATORS.items()
        for parameter in inspect.signature(estimator).parameters
    }
    texts = {
        (parameter, id(found)) for parameter, by_name in parameter_docs.TABLE.items() for found in by_name.values()
    }
    assert texts == used


def test_a_changed_docstring_is_found(capsys, monkeypatch):
    assert parameter_docs.main([]) == 0
    monkeypatch.setitem(parameter_docs.TABLE, "degree", {"": ("int", "Another text.")})
    assert parameter_docs.main([]) == 1
    assert "SVC" in capsys.readouterr().out
