"""The parts of the linear suites: the search for settings, the verification of weights, reports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))  # the benchmarks are not installed

from benchmarks.peers.__main__ import pick  # noqa: E402
from benchmarks.peers.fit_process import write_data  # noqa: E402
from benchmarks.peers.launch import Outcome  # noqa: E402
from benchmarks.peers.linear import run_case  # noqa: E402
from benchmarks.peers.linear.cases import LinearCase, from_zero_to_one, linear, linear_hinge, linear_quick  # noqa: E402
from benchmarks.peers.linear.libraries import LIBRARIES, LinearParameters, Weights  # noqa: E402
from benchmarks.peers.linear.limit import measure_pass  # noqa: E402
from benchmarks.peers.linear.loosest_setting import find_loosest  # noqa: E402
from benchmarks.peers.linear.report import markdown, over_liblinear, pass_over_limit, summarise_gap  # noqa: E402
from benchmarks.peers.linear.run_case import Timings, describe  # noqa: E402
from benchmarks.peers.linear.search import Found, best, nearest, search  # noqa: E402
from benchmarks.peers.linear.synthetic_text import text_like  # noqa: E402
from benchmarks.peers.linear.verification import primal, relative_gap  # noqa: E402


def clouds(classes=2, rows=90):
    random = np.random.default_rng(3)
    y = np.arange(rows) % classes
    return random.normal(size=(rows, 4)) + 2 * np.eye(4)[y], y


class TestVerification:
    @pytest.mark.parametrize(("loss", "value"), [("hinge", 2.5 + 10 * 2.5), ("squared_hinge", 2.5 + 10 * 6.25)])
    def test_by_hand(self, loss, value):
        # w = (1), b = 2: f = 3, 1.5, 2; margins 3, -1.5, 2, so that only the second row loses: 1 + 1.5 = 2.5
        X, y = np.array([[1.0], [-0.5], [0.0]]), np.array([1, 0, 1])
        assert primal(X, y, 10.0, loss, Weights(np.array([[1.0]]), np.array([2.0]))) == pytest.approx(value)

    def test_several_classes_are_one_vs_rest(self):
        X, y = clouds(3)
        model = LinearSVC(C=0.5).fit(X, y)
        together = primal(X, y, 0.5, "squared_hinge", Weights(model.coef_, model.intercept_))
        apart = [
            primal(X, (y == k).astype(int), 0.5, "squared_hinge", Weights(model.coef_[[k]], model.intercept_[[k]]))
            for k in range(3)
        ]
        assert together == pytest.approx(sum(apart), rel=1e-12)

    def test_wrong_shape_is_an_error(self):
        X, y = clouds(3)
        with pytest.raises(ValueError, match="3 models with 4 features"):
            primal(X, y, 1.0, "hinge", Weights(np.ones((1, 4)), np.ones(1)))

    def test_relative_gap(self):
        assert relative_gap(10.0, 9.0) == pytest.approx(0.1)
        assert relative_gap(10.0, 11.0) < 0
        assert relative_gap(float("nan"), 1.0) == float("inf")

    def test_the_optimum_of_independent_solvers_is_the_least(self):
        X, y = clouds()
        model = LinearSVC(C=2.0, tol=1e-10, dual=False, max_iter=10_000).fit(X, y)
        least = primal(X, y, 2.0, "squared_hinge", Weights(model.coef_, model.intercept_))
        random = np.random.default_rng(0)
        for _ in range(20):
            other = Weights(model.coef_ + 0.1 * random.normal(size=(1, 4)), model.intercept_ + 0.1 * random.normal())
            assert primal(X, y, 2.0, "squared_hinge", other) > least


class TestSyntheticText:
    def test_same_for_the_same_seed(self):
        X, y = text_like(rows=200, features=1_000, words=20)
        again, labels = text_like(rows=200, features=1_000, words=20)
        other, _ = text_like(rows=200, features=1_000, words=20, seed=1)
        assert (again != X).nnz == 0
        assert np.array_equal(y, labels)
        assert (other != X).nnz > 0

    def test_statistics_of_synthetic_text(self):
        X, y = text_like(rows=2_000, features=20_000, words=40)
        assert X.has_canonical_format
        assert np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel()) == pytest.approx(np.ones(2_000))
        assert 30 < X.nnz / 2_000 < 50
        often = np.sort(np.bincount(X.indices, minlength=20_000))[::-1]
        assert often[:200].sum() > 0.25 * X.nnz  # the first hundredth of the words
        assert 0.45 < y.mean() < 0.55
        model = LinearSVC(C=1.0).fit(X[:1_500], y[:1_500])
        assert model.score(X[1_500:], y[1_500:]) > 0.6


class TestLoosestSetting:
    @pytest.mark.parametrize("power", [0.5, 1.0, 2.0, 4.0])
    @pytest.mark.parametrize("target", [1e-1, 1e-2, 1e-4])
    def test_finds_the_first_index_in_few_steps(self, power, target):
        asked = []

        def gap_at(index):
            asked.append(index)
            return 10.0 ** (-0.5 * power * index)

        wanted = next(index for index in range(40) if 10.0 ** (-0.5 * power * index) <= target)
        assert find_loosest(gap_at, 40, target, {}) == wanted
        assert len(asked) == len(set(asked)) <= wanted + 2

    def test_known_gaps_are_reused(self):
        asked, known = [], {}

        def gap_at(index):
            asked.append(index)
            return 10.0**-index

        assert find_loosest(gap_at, 10, 1e-2, known) == 2
        assert find_loosest(gap_at, 10, 1e-4, known) == 4
        assert len(asked) == len(set(asked))

    def test_unreachable_target_returns_none(self):
        assert find_loosest(lambda index: 0.5, 6, 1e-2, {}) is None
        assert find_loosest(lambda index: float("inf"), 6, 1e-2, {}) is None

    def test_non_monotone_gaps(self):
        gaps = [float("inf"), 1.0, 3.0, 0.005, 0.02, 0.001, 0.001]
        assert find_loosest(lambda index: gaps[index], 7, 1e-2, {}) == 3


class TestSearch:
    @pytest.fixture
    def data(self, tmp_path):
        X, y = clouds(rows=400)
        write_data(tmp_path, X, y)
        model = LinearSVC(C=1.0, tol=1e-12, dual=False, max_iter=100_000).fit(X, y)
        return X, tmp_path, primal(X, y, 1.0, "squared_hinge", Weights(model.coef_, model.intercept_))

    def test_both_gaps_are_reached_with_separate_settings(self, data):
        X, folder, bound = data
        parameters = LinearParameters(1.0, "squared_hinge", 1, 1.0)
        found, tried = search("scikit-learn", parameters, X.shape, folder, bound, (1e-2, 1e-4), 20.0, float("inf"))
        assert [variant["variant"] for variant in tried] == ["primal", "dual"]
        for target, one in found.items():
            assert one.status == "found"
            assert one.gap <= target
            assert one.seconds > 0
        assert found[1e-2].parameters.setting >= found[1e-4].parameters.setting

    def test_missing_library_is_reported(self, data, monkeypatch):
        X, folder, bound = data
        parameters = LinearParameters(1.0, "squared_hinge", 1, 1.0)
        monkeypatch.setattr(LIBRARIES["snapml"], "package", "a-package-that-nobody-has")
        found, _ = search("snapml", parameters, X.shape, folder, bound, (1e-2,), 20.0, float("inf"))
        assert (found[1e-2].status, found[1e-2].reason) == ("failed", "not installed")

    def test_time_limit_is_a_lower_bound(self, data):
        X, folder, bound = data
        parameters = LinearParameters(1.0, "hinge", 1, 1.0)
        # Half of the optimum cannot be reached, so that settings are tried until the time limit.
        found, tried = search("sgd", parameters, X.shape, folder, 0.5 * bound, (1e-2,), 0.05, float("inf"))
        assert {variant["status"] for variant in tried} == {"killed"}
        assert found[1e-2].status == "killed"
        assert 0 < found[1e-2].seconds <= 0.05
        assert found[1e-2].gap > 0.3

    def test_best_variant(self):
        parameters = LinearParameters(1.0, "hinge", 1, 1.0)
        fits = [
            {"index": 0, "setting": 10.0, "seconds": 1.0, "gap": 0.5},
            {"index": 4, "setting": 0.1, "seconds": 4.0, "gap": 1e-3},
            {"index": 2, "setting": 1.0, "seconds": 3.0, "gap": 9e-3},
        ]
        slow = {"variant": "a", "fits": fits, "status": "finished", "seconds": 0.0, "reason": ""}
        fast = {**slow, "variant": "b", "fits": [{"index": 5, "setting": 0.03, "seconds": 2.0, "gap": 1e-3}]}
        assert best([slow], parameters, 1e-2).parameters.setting == 1.0
        assert best([slow, fast], parameters, 1e-2).parameters.variant == "b"
        killed = {**slow, "status": "killed", "seconds": 2.5}
        nobody = best([killed, {**slow, "status": "killed", "seconds": 9.0}], parameters, 1e-4)
        assert (nobody.status, nobody.seconds, nobody.gap) == ("killed", 4.0, 1e-3)
        assert best([], parameters, 1e-2).status == "cannot"
        assert nearest([{**slow, "fits": []}, fast, slow]) == 1


@pytest.mark.parametrize("name", ["scikit-learn", "liblinear", "sgd"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_weights_of_peers_have_the_right_signs(name, classes, as_sparse):
    if name == "liblinear":
        pytest.importorskip("liblinear")
    X, y = clouds(classes)
    y = (y + 1) % classes  # LIBLINEAR numbers classes in order of appearance
    make = LIBRARIES[name]
    loosest = {"sgd": 300.0}.get(name, 1e-6)
    variant = make.variants("squared_hinge", *X.shape)[0]
    library = make(LinearParameters(0.1, "squared_hinge", 1, loosest, variant))
    library.take(sparse.csr_matrix(X) if as_sparse else X, y)
    library.set_accuracy(loosest)
    library.fit()
    reference = LinearSVC(C=0.1, dual=False, tol=1e-10).fit(X, y)
    least = primal(X, y, 0.1, "squared_hinge", Weights(reference.coef_, reference.intercept_))
    assert -1e-9 < relative_gap(primal(X, y, 0.1, "squared_hinge", library.coefficients()), least) < 0.05


def test_pass_limit_of_dense_and_sparse_rows():
    X, _ = clouds(rows=1_000)
    assert measure_pass(X, 2).way == "read"
    assert measure_pass(X, 2).data_mb == pytest.approx(X.nbytes / 2**20)
    gathered = measure_pass(sparse.csr_matrix(X), 1)
    assert gathered.way == "gather"
    assert gathered.seconds > 0


def test_cases_by_name_and_cost(tmp_path):
    cases = linear(tmp_path)
    assert [case.name for case in pick(cases, ["usps_C1", "a9a"])] == ["usps_C1", "a9a_C0.01", "a9a_C1", "a9a_C100"]
    with pytest.raises(SystemExit, match="unknown cases: nothing"):
        pick(cases, ["nothing"])
    assert {case.loss for case in linear_hinge(tmp_path)} == {"hinge"}
    quick = linear_quick(tmp_path)
    assert quick[0].load() is quick[1].load()  # the data are the same for all costs


def test_columns_scaled_to_unit_interval():
    X, _ = from_zero_to_one((np.array([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0]]), np.zeros(3)))
    assert np.array_equal(X, [[0.0, 0.0], [1.0, 0.0], [0.5, 0.0]])


def entry(name="a_C1", C=1.0, target=1e-4, **libraries):
    results = {key.replace("_", "-"): value for key, value in libraries.items()}
    return {
        "name": name, "rows": 10, "features": 2, "classes": 2, "sparse": False, "C": C, "target": target,
        "max_seconds": 60.0, "fits_per_process": 5, "limit": {"seconds": 0.01, "way": "read", "data_mb": 1.0},
        "one_pass": 0.05,
        "reference": {"relative_gap": 1e-7}, "libraries": results,
    }  # fmt: skip


def done(seconds, status="certified", **more):
    return {"status": status, "reason": "", "seconds": seconds, "relative_gap": 1e-5, "remarks": [], **more}


class TestReport:
    def test_faster_interface_of_liblinear_counts(self):
        ours = done(1.0, peak_mb=15.0, before_mb=10.0)
        one = entry(maxmargin=ours, scikit_learn=done(8.0), liblinear=done(4.0), sgd=done(0.5))
        assert str(over_liblinear(one)) == "4.00"
        assert pass_over_limit(one) == pytest.approx(5.0)
        killed = {"status": "killed", "reason": "gap 0.1", "relative_gap": 0.1}
        two = entry("b_C100", 100.0, maxmargin=ours, scikit_learn={**killed, "at_least": 60.0},
                    liblinear={**killed, "at_least": 40.0})  # fmt: skip
        assert str(over_liblinear(two)) == ">40.00"
        nobody = entry("c_C1", maxmargin=ours, sgd=done(2.0))
        summary = summarise_gap([one, two, nobody])
        assert summary["liblinear"]["geometric_mean"] == pytest.approx(160**0.5)
        assert summary["liblinear_by_C"]["100"]["worst_case"] == "b_C100"
        assert summary["without_ratio"] == ["c_C1"]
        benchmark = {
            "suite": "linear", "date": "today", "command": "benchmark", "settings": {"runs": 3},
            "cases": [one, two, nobody],
            "machine": {"cpu": "a", "threads_used": 1, "cores": 1, "memory_gb": 1, "python": "3", "packages": {}},
            "summary": {"0.0001": summary},
        }  # fmt: skip
        text = markdown(benchmark)
        assert "| > 60 | > 40 |" in text
        assert "At C = 100: geometric mean **40.00** over 1, 1 of them bounds" in text
        assert "No ratio to LIBLINEAR on: c_C1" in text

    def test_description_of_a_library(self):
        parameters = LinearParameters(1.0, "hinge", 1, 0.1, "dual")
        far_behind = describe(Found(parameters, 7.0, 1e-3, "found"), None, 1e-2, 60.0)
        assert (far_behind["status"], far_behind["seconds"], far_behind["from_search"]) == ("certified", 7.0, True)
        short = describe(Found(None, 5.0, 0.3, "stopped short", "gap 0.3"), None, 1e-2, 60.0)
        assert (short["status"], short["at_least"]) == ("killed", 5.0)
        assert describe(Found(None, 0.0, np.inf, "cannot"), None, 1e-2, 60.0)["status"] == "not run"
        assert Timings(parameters).should_repeat(1.0)


def test_wrong_bound_is_detected(monkeypatch):
    """The reference fit fails, its certificate belongs to another problem, or a peer is below the bound."""
    X, y = clouds()
    case, data = LinearCase("clouds_C1", lambda: (X, y)), run_case.Data(X, y, Path())
    parameters = LinearParameters(1.0, "squared_hinge", 1, 1e-6)
    model = LinearSVC(C=1.0, dual=False, tol=1e-10).fit(X, y)
    value = primal(X, y, 1.0, "squared_hinge", Weights(model.coef_, model.intercept_))

    def bound(claimed, dual, status="finished"):
        weights = Weights(model.coef_, model.intercept_, claimed, dual) if status == "finished" else None
        outcome = Outcome(status, "no", {"seconds": 1.0}, weights)
        monkeypatch.setattr(run_case, "launch", lambda *arguments, **options: outcome)
        return run_case.bound_from_below(data, parameters, 1.0)

    assert bound(value, 0.9 * value)["relative_gap"] == pytest.approx(0.1)
    with pytest.raises(run_case.NoBoundError, match="not the same"):
        bound(2 * value, value)
    with pytest.raises(run_case.NoBoundError, match="no bound"):
        bound(value, value, "failed")
    found = Weights(model.coef_, model.intercept_)
    assert run_case.verify(data, case, found, 0.5 * value) == pytest.approx(0.5)
    with pytest.raises(run_case.NoBoundError, match="0.01 below the bound"):
        run_case.verify(data, case, found, 1.01 * value)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Run the suite of tiny cases on one of them; return its report and folder."""
    folder = tmp_path_factory.mktemp("benchmark")
    command = [sys.executable, "-m", "benchmarks.peers", "--suite", "linear", "--quick", "--runs", "1"]
    arguments = ["--cases", "three_clouds_C1", "--peers", "scikit-learn", "--output", str(folder)]
    subprocess.run([*command, *arguments], cwd=ROOT, check=True, timeout=600, capture_output=True)
    return json.loads((folder / "linear-quick-selection.json").read_text()), folder


def test_whole_suite_on_a_tiny_case(quick):
    benchmark, folder = quick
    assert [(entry["name"], entry["target"]) for entry in benchmark["cases"]] == [
        ("three_clouds_C1", 1e-2),
        ("three_clouds_C1", 1e-4),
    ]
    for entry in benchmark["cases"]:
        assert entry["classes"] == 3
        assert entry["limit"]["seconds"] > 0
        assert -1e-12 <= entry["reference"]["relative_gap"] <= 1e-5
        for name in ("maxmargin", "scikit-learn"):
            result = entry["libraries"][name]
            assert result["status"] == "certified"
            assert result["relative_gap"] <= 1.5 * entry["target"]
            assert result["seconds"] > 0
    assert benchmark["summary"]["0.0001"]["liblinear"]["cases"] == 1
    stem = "linear-quick-selection"
    for name in (f"{stem}.md", f"{stem}-ratios-0.01.png", f"{stem}-ratios-0.0001.png", f"{stem}-memory.png"):
        assert (folder / name).stat().st_size > 0
