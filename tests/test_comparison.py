"""`maxmargin.compare`: runs, selection of solvers, invalid arguments, and the forms of the result."""

import json
import re
import sys
from dataclasses import dataclass, field
from typing import ClassVar
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pandas
import pytest
from matplotlib.figure import Figure
from scipy import sparse

from maxmargin import SVC, Comparison, NuSVC, compare
from maxmargin.comparison import figure as comparison_figure
from maxmargin.comparison.report import format_large
from maxmargin.comparison.solver_selection import default_solvers, label_of
from maxmargin.datasets import chessboard
from maxmargin.formulations import least_squares_classification
from maxmargin.problems import Progress, Solution, Status, certify
from maxmargin.solvers import SOLVERS, BlockSolver, LinearSystemSolver, PairwiseSolver, StoppingRule
from maxmargin.testing.named_problems import CONVEX, linear, overlapping


@dataclass(frozen=True)
class FaultySolver:
    """A solver whose solution is replaced by the result of `behave`."""

    behave: object = None
    stopping: StoppingRule = field(default_factory=StoppingRule)
    audited: ClassVar[bool] = False

    def solve(self, problem, start=None, callback=None):
        solution = PairwiseSolver(stopping=self.stopping).solve(problem, start, callback)
        return self.behave(problem, solution)


def raising(error):
    def behave(problem, solution):
        raise error

    return FaultySolver(behave)


@pytest.fixture(scope="module")
def board():
    return chessboard(200, noise=0.05)


@pytest.fixture(scope="module")
def found(board):
    solvers = {"pairs": PairwiseSolver(), "block": "block", "for the linear kernel": "linear"}
    return compare(board, solvers, C=10.0, gamma=1.0, name="board", n_jobs=1)


@pytest.fixture
def close_figures():
    yield
    plt.close("all")


class TestRuns:
    def test_all_reach_the_optimum_of_the_estimator(self, board, found):
        reference = SVC(C=10.0, gamma=1.0, tol=1e-6).fit(*board).certificate_
        for run in found.runs[:2]:
            assert run.outcome == "converged"
            assert run.status is Status.CONVERGED
            assert run.certificate.dual == pytest.approx(reference.dual, rel=1e-3)
            assert run.certificate.violation <= 1e-3 * (1 + 1e-6)
            assert run.trace[-1].iteration == run.counters.iterations
            assert run.support_vectors == run.trace[-1].support_vectors

    def test_solver_that_does_not_support_the_problem(self, found):
        run = found["for the linear kernel"]
        assert run.outcome == "failed"
        assert "linear kernel only" in run.message
        assert run.record()["seconds"] is None
        assert run.record()["gap"] is None

    def test_a_dual_problem(self):
        problem = overlapping()
        found = compare(problem, "pairwise", tol=1e-6)
        reference = certify(problem, PairwiseSolver(stopping=StoppingRule(1e-6)).solve(problem).dual)
        assert found.runs[0].certificate.primal == pytest.approx(reference.primal)
        assert found.problem["variables"] == problem.size

    @pytest.mark.parametrize("name", sorted(CONVEX))
    def test_all_solvers_on_every_named_problem(self, name):
        found = compare(CONVEX[name](), "all", max_iter=200, max_seconds=5.0)
        assert [run.label for run in found.runs] == list(SOLVERS)
        assert len(str(found).splitlines()) >= len(SOLVERS) + 1
        assert found["pairwise"].certificate is not None

    def test_solvers_do_not_share_kernel_values(self, board):
        twice = compare(board, {"first": "block", "second": "block"}, C=10.0, gamma=1.0, n_jobs=1)
        first, second = twice.runs
        assert first.counters.kernel_evaluations == second.counters.kernel_evaluations > 0
        problem = overlapping()
        again = compare(problem, {"a": "pairwise", "b": "pairwise"})
        assert len({run.counters.kernel_evaluations for run in again.runs}) == 1

    def test_stopping_rule_is_common_to_all(self, board):
        found = compare(board, [PairwiseSolver(stopping=StoppingRule(5.0)), "block"], C=10.0, tol=1e-7)
        assert all(run.certificate.violation <= 1.01e-7 for run in found.runs)

    def test_gap_tolerance(self, board):
        found = compare(board, ["pairwise"], C=10.0, gamma=1.0, tol=1e-9, gap=50.0)
        assert found.runs[0].certificate.violation > 1e-9
        assert found.runs[0].outcome == "converged"

    def test_limits(self, board):
        found = compare(board, {"a": "pairwise", "b": "block"}, C=1000.0, gamma=1.0, tol=1e-9, max_iter=3)
        assert [run.outcome for run in found.runs] == ["iteration limit"] * 2
        assert all(run.certificate.gap > 0 for run in found.runs)
        found = compare(board, "pairwise", C=1000.0, gamma=1.0, tol=1e-9, max_seconds=0.0)
        assert found.runs[0].outcome == "time limit"
        assert "max_seconds" in found.runs[0].message

    @pytest.mark.parametrize(
        ("error", "sentence"),
        [
            (ValueError("not for\nthis problem"), "not for this problem"),
            (MemoryError(), "not enough memory"),
            (MemoryError("8 GB asked for"), "not enough memory: 8 GB asked for"),
            (ImportError("needs clarabel"), "needs clarabel"),
            (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
        ],
    )
    def test_error_of_a_solver_is_reported_in_its_run(self, board, error, sentence):
        found = compare(board, {"odd": raising(error), "pairwise": "pairwise"})
        assert found["odd"].outcome == "failed"
        assert found["odd"].message == sentence
        assert found["odd"].trace  # up to the error
        assert found["pairwise"].outcome == "converged"

    def test_false_convergence_is_not_verified(self, board):
        def claim(problem, solution):
            return Solution(0.5 * solution.dual, None, Status.CONVERGED, solution.counters)

        run = compare(board, {"faulty": FaultySolver(claim)}).runs[0]
        assert run.outcome == "not verified"
        assert "but the verified violation is" in run.message

    def test_ctrl_c_keeps_the_runs_so_far(self, board):
        def interrupt(problem, solution):
            return Solution(solution.dual, None, Status.INTERRUPTED, solution.counters)

        found = compare(board, {"a": "pairwise", "b": FaultySolver(interrupt), "c": "block"})
        assert [run.outcome for run in found.runs] == ["converged", "interrupted", "not run"]
        assert found.interrupted
        assert "before this solver" in found["c"].message
        found = compare(board, {"b": raising(KeyboardInterrupt()), "c": "block"})
        assert [run.outcome for run in found.runs] == ["interrupted", "not run"]
        assert found["b"].counters.iterations == found["b"].trace[-1].iteration

    def test_sparse_data_and_other_estimators(self, board):
        X, y = board
        plain = compare((X, y), "pairwise", kernel="linear").runs[0]
        compressed = compare((sparse.csr_array(X), y), "pairwise", kernel="linear").runs[0]
        assert compressed.certificate.dual == pytest.approx(plain.certificate.dual, rel=1e-6)
        nu = compare((X, y), estimator=NuSVC(nu=0.5, gamma=1.0))
        assert [run.outcome for run in nu.runs] == ["converged"] * 2
        values = SVC(kernel="precomputed", C=3.0)
        given = compare((X @ X.T, y), "pairwise", estimator=values)
        assert given.runs[0].certificate.dual == pytest.approx(
            compare((X, y), "pairwise", kernel="linear", C=3.0).runs[0].certificate.dual, rel=1e-4
        )

    def test_observer(self, board):
        calls = []

        class Observer:
            def on_start(self, labels):
                calls.append(("start", *labels))

            def on_solver_start(self, label):
                calls.append(("started", label))

            def on_progress(self, label, progress):
                assert isinstance(progress, Progress)
                calls.append(("progressed", label))
                return label == "block"

            def on_solver_end(self, run):
                calls.append(("finished", run.label))

        found = compare(board, ["pairwise", "block"], C=10.0, observer=Observer())
        assert calls[0] == ("start", "pairwise", "block")
        order = [word for k, word in enumerate(calls) if word != calls[k - 1]]
        assert order[1:] == [(word, name) for name in ("pairwise", "block") for word in
                             ("started", "progressed", "finished")]  # fmt: skip
        assert found["block"].outcome == "stopped"


class TestSolverSelection:
    def test_default_solvers(self):
        assert default_solvers(overlapping()) == ("pairwise", "block")
        assert default_solvers(linear("hinge"))[0] == "linear"
        matrix = overlapping().matrix
        least_squares = least_squares_classification.pose(matrix, np.ones(matrix.size), np.ones(matrix.size))
        assert default_solvers(least_squares)[0] == "linear_system"

    def test_label_of(self):
        assert label_of(PairwiseSolver()) == "pairwise"
        assert label_of(PairwiseSolver("maximum_gain")) == "pairwise(selection='maximum_gain')"
        assert label_of(LinearSystemSolver(stopping=StoppingRule(1.0))) == "linear_system"
        assert label_of(FaultySolver()) == "FaultySolver"

    def test_cache_threads_and_seed_of_solvers_given_by_name(self, board):
        found = compare(board, ["block", BlockSolver(working_set=50)], cache_size=1, n_jobs=2, seed=3, gamma=1.0)
        assert [run.label for run in found.runs] == ["block", "block(working_set=50)"]
        assert found.problem["threads"] == 2

    @pytest.mark.parametrize(
        ("solvers", "message"),
        [
            ("smo", "unknown solver 'smo'; choose from pairwise, block"),
            ([], "at least one solver"),
            ([PairwiseSolver(), PairwiseSolver()], "two solvers have the label 'pairwise'"),
            ([PairwiseSolver], "a solver must be a name or an object"),
            ([3], "a solver must be a name or an object"),
        ],
    )
    def test_invalid_solvers(self, solvers, message, board):
        with pytest.raises(ValueError, match=message):
            compare(board, solvers)


class TestInvalidProblems:
    @pytest.mark.parametrize(
        ("problem", "options", "error", "message"),
        [
            (3, {}, ValueError, "a DualProblem, or samples and labels"),
            (overlapping(), {"C": 3.0}, ValueError, "is already complete"),
            (chessboard(20), {"C": 3.0, "estimator": SVC()}, ValueError, "either an estimator or its parameters"),
            (chessboard(20), {"estimator": 3}, ValueError, "an SVC, NuSVC or LSSVC"),
            (chessboard(20), {"estimator": SVC(multi_class="crammer_singer")}, ValueError, "multi_class='ovo'"),
            (chessboard(20), {"cache_size": -1}, ValueError, "cache_size must be a number above 0"),
            (chessboard(20), {"solver": "block"}, TypeError, "no parameter 'solver'"),
            (chessboard(20), {"C": -1.0}, ValueError, "C must be a number above 0"),
            (chessboard(20), {"tol": 0.0}, ValueError, "above 0"),
            (chessboard(20), {"kernel": "rfb"}, ValueError, "unknown kernel 'rfb'"),
            ((np.eye(3), [0, 1, 2]), {}, ValueError, "3 classes.*y == label"),
            ((np.eye(3), [0, 0, 0]), {}, ValueError, "only one class"),
            ((np.eye(3), [0, 1]), {}, ValueError, "inconsistent numbers of samples"),
        ],
    )
    def test_error_messages(self, problem, options, error, message):
        with pytest.raises(error, match=message):
            compare(problem, **options)


class TestForms:
    def test_text(self, found):
        lines = str(found).splitlines()
        assert lines[0].split()[:3] == ["solver", "status", "seconds"]
        assert lines[1].startswith("pairs")
        assert lines[4].startswith("for the linear kernel: solver='linear'")
        assert repr(found).startswith("<Comparison of 3 solvers on 200 variables>")
        with pytest.raises(KeyError, match="there is no solver 'newton'; the labels are pairs, block"):
            found["newton"]

    @pytest.mark.parametrize(
        ("count", "text"),
        [(0, "0"), (999, "999"), (1000, "1.00k"), (12_345, "12.3k"), (999_999, "1.00M"), (123_456_789, "123M"),
         (4 * 10**9, "4.00G")],
    )  # fmt: skip
    def test_large_counts(self, count, text):
        assert format_large(count) == text

    def test_frame(self, found):
        frame = found.frame()
        assert list(frame.index) == ["pairs", "block", "for the linear kernel"]
        assert frame.loc["pairs", "gap"] == found["pairs"].certificate.gap
        assert pandas.isna(frame.loc["for the linear kernel", "gap"])

    def test_without_pandas(self, found, monkeypatch):
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(ImportError, match="frame\\(\\) needs pandas.*records"):
            found.frame()
        assert found.records()[0]["solver"] == "pairs"

    def test_json(self, found):
        content = json.loads(found.to_json())
        assert content["problem"]["data"] == "board"
        assert content["problem"]["kernel"] == "Gaussian(gamma=1.0)"
        assert content["stopping"]["violation"] == 1e-3
        first = content["runs"][0]
        assert first["trace"]["iteration"] == [entry.iteration for entry in found.runs[0].trace]
        assert first["gap"] == found.runs[0].certificate.gap
        assert content["runs"][2]["gap"] is None

    def test_infinity_is_null_in_json(self):
        problem = CONVEX["hard_margin"]()
        content = json.loads(compare(problem, "pairwise").to_json())
        assert None in content["runs"][0]["trace"]["primal"]

    @pytest.mark.usefixtures("close_figures")
    def test_plot(self, found):
        figure = found.plot()
        by_seconds, by_iterations, by_evaluations, objectives = figure.axes
        lines = [line for line in by_iterations.lines if len(line.get_xdata()) > 1]
        assert len(lines) == 2
        assert lines[0].get_xdata()[-1] == found.runs[0].counters.iterations
        optimum = found.runs[0].certificate.dual
        first = found.runs[0].trace[1]
        assert lines[0].get_ydata()[0] == pytest.approx(first.gap / optimum, rel=1e-2)
        assert by_seconds.get_yscale() == by_evaluations.get_xscale() == "log"
        assert objectives.get_yscale() == "symlog"
        assert [text.get_text() for text in figure.legends[0].get_texts()] == ["pairs", "block"]
        assert "board, 200 variables" in figure.get_suptitle()
        own = Figure()
        assert found.plot(own) is own

    @pytest.mark.usefixtures("close_figures")
    def test_plots_without_lines(self, board):
        nothing = compare(board, {"odd": raising(ValueError("no"))}, max_iter=0)
        assert nothing.plot().axes[2].texts
        of_weights = compare(linear("hinge"), "dual_coordinate_ascent")
        assert "no solver evaluated the kernel" in of_weights.plot().axes[2].texts[0].get_text()

    def test_long_traces_are_thinned(self):
        trace = tuple(Progress(k, 1.0, 2.0, 1.0, 5, float(k)) for k in range(50_000))
        thin = comparison_figure.thinned(trace)
        assert len(thin) <= comparison_figure.MAX_POINTS
        assert (thin[0], thin[-1]) == (trace[0], trace[-1])
        assert comparison_figure.thinned(trace[:10]) == trace[:10]

    def test_lines_differ_in_colour_or_style(self, board):
        many = {f"solver {k}": PairwiseSolver() for k in range(12)}
        figure = compare(board, many, max_iter=5).plot(Figure())
        lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) > 1]
        assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 12

    def test_page_is_self_contained(self, found):
        page = found.to_html()
        assert page.startswith("<!DOCTYPE html>")
        fetched = re.findall(r"(?:src|href|xlink:href)\s*=\s*[\"']([^\"']*)", page)
        assert all(target.startswith("#") for target in fetched)
        assert not re.search(r"@import|url\((?!['\"]?#)|<script|<link", page)
        svg = re.search(r"<svg.*</svg>", page, re.DOTALL).group()
        ElementTree.fromstring(svg)
        for words in ("gap over time", "pairs", "linear kernel only", "Gaussian(gamma=1.0)", "violation"):
            assert words in page
        assert page.count("<tr>") == 4

    def test_labels_are_escaped(self, board):
        page = compare(board, {"<b>&": "pairwise"}, name="<script>alert()</script>").to_html()
        assert "<script" not in page
        assert "&lt;b&gt;&amp;" in page

    def test_without_matplotlib(self, found, monkeypatch):
        monkeypatch.setattr(comparison_figure, "find_spec", lambda name: None)
        for make in (found.plot, found.to_html):
            with pytest.raises(ImportError, match=r"maxmargin\[plot\]"):
                make()

    def test_all_forms_of_a_comparison_without_solutions(self, board):
        found = compare(board, {"odd": raising(ValueError("no"))})
        assert isinstance(found, Comparison)
        assert "odd: no" in str(found)
        json.loads(found.to_json())
        assert "no" in found.to_html()
