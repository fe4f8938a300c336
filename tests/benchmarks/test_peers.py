"""The benchmark against other libraries on tiny cases: it runs, verifies solutions, and reports failures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.svm import SVC

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))  # the benchmarks are not installed

from benchmarks.peers.curves import of_all_samples  # noqa: E402
from benchmarks.peers.launch import launch  # noqa: E402
from benchmarks.peers.libraries import LIBRARIES, Coefficients, Libsvm, Parameters  # noqa: E402
from benchmarks.peers.limit import cholesky_seconds, measure_limit  # noqa: E402
from benchmarks.peers.report import markdown  # noqa: E402
from benchmarks.peers.run_case import Record, describe  # noqa: E402
from benchmarks.peers.summary import ratio, summarise  # noqa: E402
from benchmarks.peers.verification import verify  # noqa: E402

PARAMETERS = Parameters(C=1.0, gamma=0.1, tolerance=1e-3, threads=1, cache_mb=100)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Run the whole benchmark once, with a ThunderSVM that crashes; return its report and folder."""
    folder = tmp_path_factory.mktemp("benchmark")
    crashing = folder / "broken"
    crashing.mkdir()
    text = "import os\nclass SVC:\n    def __init__(self, **options): pass\n    def fit(self, X, y): os.abort()\n"
    (crashing / "thundersvm.py").write_text(text)
    path = os.pathsep.join(filter(None, [str(crashing), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "benchmarks.peers", "--quick", "--runs", "1", "--cases", "clouds,iris"]
    subprocess.run(
        [*command, "--peers", "scikit-learn,thundersvm", "--output", str(folder)],
        cwd=ROOT, check=True, timeout=120, env={**os.environ, "PYTHONPATH": path}, capture_output=True,
    )  # fmt: skip
    return json.loads((folder / "quick-selection.json").read_text()), folder


def test_quick_suite_writes_complete_reports(quick):
    benchmark, folder = quick
    assert [case["name"] for case in benchmark["cases"]] == ["clouds", "iris"]
    assert benchmark["machine"]["cores"] >= 1
    assert benchmark["machine"]["packages"]["maxmargin"]
    assert "--quick" in benchmark["command"]
    for case in benchmark["cases"]:
        assert case["limit"]["seconds"] > 0
        for name in ("maxmargin", "scikit-learn"):
            result = case["libraries"][name]
            assert result["status"] == "certified"
            assert result["violation"] <= 1.5e-3
            assert result["seconds"] > 0
            assert result["peak_mb"] >= result["before_mb"] > 10
        ours, theirs = case["libraries"]["maxmargin"], case["libraries"]["scikit-learn"]
        assert ours["primal"] == pytest.approx(theirs["primal"], rel=1e-2)
    assert benchmark["summary"]["fastest_peer"]["cases"] == 2
    for name in ("quick-selection.md", "quick-selection-ratios.png", "quick-selection-memory.png"):
        assert (folder / name).stat().st_size > 0


def test_crash_is_reported_with_its_reason(quick):
    benchmark, folder = quick
    for case in benchmark["cases"]:
        crashed = case["libraries"]["thundersvm"]
        assert crashed["status"] == "failed"
        assert "SIGABRT" in crashed["reason"]
    assert "thundersvm did not run: crashed with SIGABRT" in (folder / "quick-selection.md").read_text()


def test_error_and_time_limit_are_reported(tmp_path):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(1500, 2)), random.integers(0, 2, 1500)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    killed = launch("scikit-learn", Parameters(1e6, 1.0, 1e-9, 1, 100), tmp_path, max_seconds=0.05)
    assert (killed.status, killed.reason) == ("killed", "killed after 0.05 s")
    record = Record([killed])
    assert describe(record, 1e-3)["status"] == "killed"
    assert not record.should_repeat(np.inf)
    np.save(tmp_path / "y.npy", np.zeros(1500, dtype=int))
    failed = launch("scikit-learn", PARAMETERS, tmp_path, max_seconds=10)
    assert failed.status == "failed"
    assert "ValueError" in failed.reason


def binary_solution():
    X, y = make_classification(120, 5, flip_y=0.2, random_state=0)
    model = SVC(C=1.0, gamma=0.1).fit(X, y)
    return X, y, Coefficients(model.support_, model.dual_coef_, model.classes_, -1.0)


def test_verification_accepts_a_good_solution_and_marks_a_bad_one():
    X, y, found = binary_solution()
    good = verify(X, y, PARAMETERS, found)
    assert not good.stopped_short(1e-3)
    assert not good.projected
    assert good.support == len(found.support)
    assert good.values == len(X) * good.support
    bad = Coefficients(found.support, found.values * 0.5, found.order, found.first_sign)
    verdict = verify(X, y, PARAMETERS, bad)
    assert verdict.stopped_short(1e-3)
    assert verdict.violation > 0.1
    assert verdict.primal >= good.dual


def test_verification_projects_infeasible_coefficients():
    X, y, found = binary_solution()
    verdict = verify(X, y, PARAMETERS, Coefficients(found.support, found.values * 1.3, found.order, -1.0))
    assert verdict.projected
    assert np.isfinite(verdict.gap)
    turned = verify(X, y, PARAMETERS, Coefficients(found.support, found.values, found.order, 1.0))
    assert turned.projected
    assert turned.stopped_short(1e-3)


def test_multi_class_layout_of_scikit_learn_and_libsvm():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(y))
    X, y = X[order], y[order]
    theirs = LIBRARIES["scikit-learn"](PARAMETERS)
    theirs.take(X, y)
    theirs.fit()
    verified = verify(X, y, PARAMETERS, theirs.coefficients())
    assert verified.violation < 1e-2
    assert len(verified.free_by_pair) == 3
    pytest.importorskip("libsvm")
    other = Libsvm(PARAMETERS)  # numbers classes in order of appearance
    other.take(X, y)
    other.fit()
    assert verify(X, y, PARAMETERS, other.coefficients()).primal == pytest.approx(verified.primal, rel=1e-3)


def test_parts_of_the_limit():
    X, _y, found = binary_solution()
    limit = measure_limit(X, PARAMETERS, found.support, values=10**6, free_by_pair=[10])
    assert limit.kernel_seconds == pytest.approx(10**6 / max(limit.rates.values()))
    assert limit.seconds > limit.kernel_seconds
    assert cholesky_seconds([0], threads=1) == 0


def made_up_case(case="one", **statuses):
    libraries = {
        name.replace("_", "-"): {"status": status, "reason": "", **({"seconds": seconds} if seconds else {})}
        for name, (status, seconds) in statuses.items()
    }
    return {"name": case, "max_seconds": 100.0, "libraries": libraries}


def test_ratios():
    ours = ("certified", 2.0)
    both = made_up_case(maxmargin=ours, scikit_learn=("certified", 8.0), libsvm=("stopped short", 4.0))
    assert str(ratio(both, certified_only=False)) == "2.00"
    assert str(ratio(both, certified_only=True)) == "4.00"
    nobody = made_up_case(maxmargin=ours, scikit_learn=("killed", None), libsvm=("failed", None))
    assert str(ratio(nobody, certified_only=True)) == ">50.00"
    short = made_up_case(maxmargin=ours, scikit_learn=("killed", None), libsvm=("stopped short", 4.0))
    assert ratio(short, certified_only=True) is None
    slow = made_up_case("other", maxmargin=("killed", None), scikit_learn=("certified", 10.0))
    assert str(ratio(slow, certified_only=False)) == "<0.10"
    summary = summarise([both, slow])
    assert summary["fastest_peer"]["geometric_mean"] == pytest.approx((2.0 * 0.1) ** 0.5)
    assert summary["ours_not_certified"] == ["other"]


def test_markdown_marks_missed_tolerances(quick):
    benchmark = json.loads(json.dumps(quick[0]))
    benchmark["cases"][0]["libraries"]["scikit-learn"] |= {"status": "stopped short", "violation": 0.02}
    benchmark["cases"][1]["libraries"]["scikit-learn"] = {"status": "killed", "reason": "killed after 600 s"}
    benchmark["summary"] = summarise(benchmark["cases"])
    text = markdown(benchmark)
    assert "! 2e-02" in text
    assert "> 600" in text
    assert "iris, scikit-learn: killed after 600 s" in text


def test_gaps_of_nested_samples_are_left_out_of_a_curve():
    whole = [(0.4, 6.6), (0.5, 0.1), (0.6, 0.2), (0.7, 2e-7)]
    assert of_all_samples([(0.03, 0.3), (0.04, 2e-3), (0.06, 9.8), (0.1, 4e-4), *whole]) == whole
    assert of_all_samples(whole) == whole
    assert of_all_samples([]) == []
