"""What the documents show is true: the README's example and the docstrings' run, and links lead somewhere."""

import contextlib
import doctest
import io
import re
import subprocess
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from maxmargin import commonutil, liblinearutil, svmutil
from maxmargin.blocks import opening
from maxmargin.comparison import solver_comparison
from maxmargin.datasets import sample_files, scaling
from maxmargin.estimators import fit_trace, l1_min_c, linear_path, regularization_path
from maxmargin.estimators.active import active_learner, active_query, importance_weights
from maxmargin.estimators.online import online_one_class_svm, online_svc
from maxmargin.feature_maps import distance_map, function_map, nystroem_map, polar_coordinates, polynomial_map
from maxmargin.kernels import on_features, unit_diagonal
from maxmargin.machines import structured_svc
from maxmargin.machines.kernel import (
    lssvc,
    lssvr,
    mkl_one_class_svm,
    mkl_svc,
    mkl_svr,
    nu_svc,
    nu_svr,
    one_class_svm,
    quantile_svr,
    rank_svc,
    svc,
    svdd,
    svr,
    transductive_svc,
)
from maxmargin.machines.linear import (
    kernel_approximation_svc,
    linear_one_class_svm,
    linear_svc,
    linear_svr,
)
from maxmargin.models.structured import chain_model, joint_model, multi_label_model
from maxmargin.plotting import (
    coefficient_path,
    convergence,
    decision_regions,
    kernel_matrix,
    kernel_weights,
    row_cache,
    slack_histogram,
)
from maxmargin.plotting import regularization_path as path_display
from maxmargin.preparation import column_types, date_parts, transformers
from maxmargin.search import diagnostics, novelty_score
from maxmargin.search.estimators import linear_svc_cv, linear_svr_cv, one_class_svm_cv, svc_cv, svr_cv
from maxmargin.selection import error_estimates, leave_one_out

ROOT = Path(__file__).parents[1]
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *(str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs").rglob("*.md")) if "generated" not in page.parts),
]


@pytest.fixture(autouse=True)
def pictures_closed_afterwards():
    yield
    plt.close("all")


def test_readme_example_prints_what_it_says():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    code, shown = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", text, re.DOTALL).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    before_rounding = re.compile(r", gap .*")  # the last digits of an exact solution are rounding
    assert before_rounding.sub("", printed.getvalue()) == before_rounding.sub("", shown)


def test_custom_kernels_run():
    text = (ROOT / "docs/custom_kernels.md").read_text(encoding="utf-8")
    names = {}
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(code, "docs/custom_kernels.md", "exec"), names)
    assert names["given"].score(names["K"], ["English"] * 4 + ["Italian"] * 4) == 1.0


PRINTING = [
    "blocks.md",
    "checkpoints.md",
    "data_files.md",
    "estimators.md",
    "extending.md",
    "linear_estimators.md",
    "model_selection.md",
    "feature_maps.md",
    "get_started.md",
    "certificates.md",
    "choosing_a_machine.md",
    "imbalance.md",
    "kernels.md",
    "large_data.md",
    "novelty.md",
    "regression.md",
    "scaling.md",
    "structured_outputs.md",
    "active_learning.md",
    "online.md",
]


@pytest.mark.parametrize("page", PRINTING)
def test_examples_print_what_they_say(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", text, re.DOTALL)
    assert len(examples) == text.count("```python\n")
    names = {}
    for code, shown in examples:  # one after the other, as a reader would
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page, "exec"), names)
        assert printed.getvalue() == shown


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/")])
def test_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    names = {}
    for code in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(code, page, "exec"), names)


def test_commands_of_get_started_run(tmp_path):
    text = (ROOT / "docs/get_started.md").read_text(encoding="utf-8")
    commands = [command for command in re.findall(r"^\$ (.*)", text, re.MULTILINE) if "install" not in command]
    assert len(commands) > 5
    for command in commands:  # one after the other, as a reader would
        subprocess.run(command, shell=True, cwd=tmp_path, check=True, capture_output=True)


ESTIMATORS = [svc, nu_svc, svr, nu_svr, one_class_svm, quantile_svr, svdd, lssvc, lssvr, rank_svc, transductive_svc]
ESTIMATORS += [mkl_svc, mkl_svr, mkl_one_class_svm]
ESTIMATORS += [regularization_path, leave_one_out, error_estimates]
ESTIMATORS += [linear_svc, linear_svr, linear_one_class_svm, linear_path, kernel_approximation_svc, fit_trace]
ESTIMATORS += [active_learner, active_query, importance_weights]
ESTIMATORS += [online_svc, online_one_class_svm]
ESTIMATORS += [structured_svc, joint_model, chain_model, multi_label_model]
ESTIMATORS += [svc_cv, svr_cv, one_class_svm_cv, linear_svc_cv, linear_svr_cv, novelty_score]


DATASETS = [sample_files, scaling, opening, column_types, date_parts, transformers, diagnostics]
DATASETS += [commonutil, svmutil, liblinearutil, l1_min_c]


FEATURE_MAPS = [distance_map, function_map, nystroem_map, polar_coordinates, polynomial_map]


DISPLAYS = [coefficient_path, convergence, decision_regions, kernel_matrix, kernel_weights, path_display]
DISPLAYS += [row_cache, slack_histogram]
KERNELS = [on_features, unit_diagonal]


@pytest.mark.parametrize(
    "module",
    [*ESTIMATORS, *DATASETS, *FEATURE_MAPS, *DISPLAYS, *KERNELS, solver_comparison],
    ids=lambda module: module.__name__,
)
def test_docstring_examples_run(module):
    found = doctest.testmod(module)
    assert found.attempted
    assert not found.failed


@pytest.mark.parametrize("page", PAGES)
def test_links_and_files_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (ROOT / page).parent.joinpath(target).exists(), target
    for path in re.findall(r"`((?:native|tests|benchmarks|docs|examples)/[\w/.-]+)`", text):
        assert (ROOT / path).exists(), path
    for module in re.findall(
        r"`((?:feature_maps|kernels|matrices|problems|formulations|solvers|models|online)/\w+\.py)", text
    ):
        assert "mine" in module or (ROOT / "src/maxmargin" / module).exists(), module
