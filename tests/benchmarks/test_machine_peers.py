"""The suites of all machines: solutions of each are verified, spoilt ones are marked, and groups are reported apart."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))  # the benchmarks are not installed

from benchmarks.peers import generated, run_case  # noqa: E402
from benchmarks.peers.cases import Case  # noqa: E402
from benchmarks.peers.launch import Outcome  # noqa: E402
from benchmarks.peers.libraries import CLASSIFIERS, LIBRARIES, Parameters  # noqa: E402
from benchmarks.peers.limit import measure_limit  # noqa: E402
from benchmarks.peers.machine_cases import QUICK, kernel_matrix, machines  # noqa: E402
from benchmarks.peers.report import markdown  # noqa: E402
from benchmarks.peers.small_cases import MACHINES, SIZES, small  # noqa: E402
from benchmarks.peers.suites import EVERY_SUITE, HELD_ASIDE, group_of  # noqa: E402
from benchmarks.peers.summary import summarise  # noqa: E402
from benchmarks.peers.verification import verify  # noqa: E402

BASE = Parameters(C=1.0, gamma=0.1, tolerance=1e-4, threads=1, cache_mb=100)
KINDS = {
    "SVR": replace(BASE, machine="SVR", C=10.0),
    "NuSVR": replace(BASE, machine="NuSVR", C=10.0),
    "NuSVC": replace(BASE, machine="NuSVC", nu=0.3),
    "OneClassSVM": replace(BASE, machine="OneClassSVM", nu=0.2),
    "LinearSVC": replace(BASE, machine="LinearSVC"),
    "LinearSVR": replace(BASE, machine="LinearSVR", epsilon=0.1),
    "poly": replace(BASE, kernel="poly", coef0=1.0),
    "linear": replace(BASE, kernel="linear"),
    "sigmoid": replace(BASE, kernel="sigmoid", gamma=0.01),
    "precomputed": replace(BASE, kernel="precomputed"),
}


def data_for(parameters):
    X, labels, targets = generated.small_sample(120)
    if parameters.kernel == "precomputed":
        X, labels = kernel_matrix((X, labels), 0.1)
    return X, labels if parameters.machine in CLASSIFIERS else targets


def solution(library, parameters):
    X, y = data_for(parameters)
    adapter = LIBRARIES[library](parameters)
    adapter.take(X, y)
    adapter.fit()
    return X, y, adapter.coefficients()


@pytest.mark.parametrize(
    ("library", "kind"),
    [
        (n, k)
        for n in ("maxmargin", "scikit-learn", "libsvm")
        for k in KINDS
        if KINDS[k].machine in LIBRARIES[n].machines
    ],
)
def test_solutions_of_all_machines_are_verified(library, kind):
    parameters = KINDS[kind]
    if library == "libsvm":
        pytest.importorskip("libsvm")
    X, y, found = solution(library, parameters)
    good = verify(X, y, parameters, found)
    assert not good.stopped_short(1e-3)
    assert abs(good.relative_gap) < 1e-3
    assert not good.projected
    *_, ours = solution("maxmargin", parameters)
    assert good.primal == pytest.approx(verify(X, y, parameters, ours).primal, rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_spoilt_solutions_are_marked(kind):
    parameters = KINDS[kind]
    X, y, found = solution("scikit-learn", parameters)
    values = found.values.copy()
    values[:, ::3] *= 0.5
    spoilt = verify(X, y, parameters, replace(found, values=values))
    assert spoilt.stopped_short(1e-3)
    assert spoilt.violation > 10 * verify(X, y, parameters, found).violation


@pytest.mark.parametrize("kind", ["SVR", "poly", "sigmoid", "linear", "precomputed"])
def test_limit_of_other_kernels(kind):
    parameters = KINDS[kind]
    X, _y, found = solution("scikit-learn", parameters)
    limit = measure_limit(X, parameters, found.support, values=10**6, free_by_pair=[10])
    assert limit.seconds > limit.kernel_seconds == pytest.approx(10**6 / max(limit.rates.values()))


def test_first_and_warm_fits_of_a_regression(tmp_path):
    case = Case("housing_SVR", lambda: data_for(KINDS["SVR"]), machine="SVR", repeats=2)
    settings = run_case.Settings(runs=1)
    result = run_case.run_case(case, ["maxmargin", "baseline", "sklearnex"], settings, lambda text: None)
    ours = result["libraries"]["maxmargin"]
    assert ours["status"] == "certified"
    assert ours["first_seconds"] > 0
    assert ours["cpu_seconds"] > 0
    assert result["group"] == "held aside"
    assert result["limit"]["support"] == ours["support"]
    suite = {"suite": "machines", "date": "", "command": "", "settings": vars(settings), "cases": [result]}
    machine = {"cpu": "", "threads_used": 1, "cores": 1, "memory_gb": 1, "python": "", "packages": {}}
    text = markdown({**suite, "machine": machine, "summary": summarise([result])})
    assert "| housing_SVR | held aside | SVR |" in text
    assert "## First fit in a fresh process" in text
    assert "## Compared with another version of maxmargin" in text


def test_library_without_the_machine_is_left_out(monkeypatch):
    X, y = data_for(KINDS["OneClassSVM"])
    ran = []
    monkeypatch.setattr(
        run_case, "launch", lambda name, *rest, **options: ran.append(name) or Outcome("failed", "", {}, None)
    )
    case = Case("random_OneClassSVM", lambda: (X, y), machine="OneClassSVM")
    run_case.run_case(case, ["maxmargin", "sklearnex", "thundersvm"], run_case.Settings(runs=1), lambda text: None)
    assert ran == ["maxmargin"]


def test_suites_cover_all_machines_and_both_groups():
    folder = Path("unused")
    tested = {(case.machine, case.kernel) for case in machines(folder)}
    assert {machine for machine, _ in tested} == {"SVC", "SVR", "NuSVR", "NuSVC", "OneClassSVM"}
    assert {kernel for _, kernel in tested} == {"rbf", "poly", "linear", "sigmoid", "precomputed"}
    for suite in ("machines", "kernel", "linear", "small"):
        names = [case.name for case in EVERY_SUITE[suite](folder)]
        assert len(set(names)) == len(names)
        assert {group_of(name) for name in names} == {"tuned", "held aside"}
    used = {data for data in HELD_ASIDE for suite in EVERY_SUITE.values() for case in suite(folder)
            if case.name.startswith(data)}  # fmt: skip
    assert used == set(HELD_ASIDE)
    assert all(group_of(name) == "tuned" for name in QUICK)
    names = {case.name for case in small(folder)}
    assert {f"random_{size}_{machine}" for size in SIZES for machine in MACHINES} <= names


def test_groups_and_limits_are_reported_apart():
    def case(name, ours, theirs, kernel_seconds):
        libraries = {"maxmargin": {"status": "certified", "seconds": ours, "first_seconds": 2 * ours}}
        libraries["scikit-learn"] = {"status": "certified", "seconds": theirs, "first_seconds": theirs}
        libraries["baseline"] = {"status": "certified", "seconds": 0.1, "cpu_seconds": 1.0}
        limit = {"seconds": kernel_seconds, "kernel_seconds": kernel_seconds}
        return {"name": name, "group": group_of(name), "max_seconds": 9.0, "limit": limit, "libraries": libraries}

    summary = summarise([case("covtype_SVR", 1.0, 4.0, 0.5), case("usps_poly", 1.0, 2.0, 0.01)])
    assert summary["groups"]["tuned"]["geometric_mean"] == pytest.approx(4.0)
    assert summary["groups"]["held aside"]["geometric_mean"] == pytest.approx(2.0)
    assert summary["fastest_peer"]["geometric_mean"] == pytest.approx(8.0**0.5)
    assert summary["first_fit"]["geometric_mean"] == pytest.approx(2.0**0.5)
    assert summary["over_limit"] == {
        "cases": 1, "bounds": 0, "geometric_mean": pytest.approx(2.0), "worst": 2.0, "worst_case": "covtype_SVR",
    }  # fmt: skip


def test_generated_data_have_the_sizes_they_claim():
    for make, rows, features, classes in (
        (generated.binary_features, 500, 300, 2),
        (generated.low_dimensional, 500, 8, 2),
        (generated.few_support_vectors, 500, 3, 2),
        (generated.categorical, 500, 67, 2),
        (lambda n: generated.overlapping(n, 18, 0.3), 500, 18, 2),
        (generated.uneven_classes, 5000, 9, 7),
        (generated.several_classes, 500, 36, 6),
    ):
        X, y = make(rows)
        assert X.shape == (rows, features)
        assert len(np.unique(y)) == classes
        assert np.array_equal(make(rows)[0], X)
