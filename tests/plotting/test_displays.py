"""The other displays: what they hold is what solvers, certificates and models say."""

import subprocess
import sys
from itertools import combinations, pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import sparse
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_breast_cancer, load_iris, make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from maxmargin import SVC, LinearSVC, LinearSVR, OneClassSVM, linear_path, plotting, trace
from maxmargin.datasets import chessboard
from maxmargin.formulations.c_classification import pose
from maxmargin.kernels import Gaussian, Linear, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.plotting import (
    CacheDisplay,
    CalibrationDisplay,
    CoefficientPathDisplay,
    ConvergenceDisplay,
    KernelMatrixDisplay,
    SlackHistogramDisplay,
)
from maxmargin.plotting.coefficient_path import spread
from maxmargin.plotting.sides import Side
from maxmargin.plotting.style import COLOURS
from maxmargin.problems import Counters
from maxmargin.solvers import PairwiseSolver, SubgradientSolver, Trace


def chess_problem(size=200):
    X, y = chessboard(size)
    return pose(KernelMatrix(Gaussian(1.0), Points(X)), 2.0 * y - 1.0, np.full(size, 10.0))


# Slack


def test_slacks_are_those_of_the_geometry():
    X, y = make_moons(150, noise=0.25, random_state=0)
    model = SVC(gamma=1.0).fit(X, y)
    display = SlackHistogramDisplay.from_estimator(model, X, y)
    geometry = model.geometry_
    expected = np.zeros(len(y))
    expected[geometry.samples] = geometry.slack
    np.testing.assert_allclose(display.slacks, expected, atol=2 * model.certificate_.violation)
    np.testing.assert_array_equal(np.flatnonzero(display.sides == Side.ON), np.sort(geometry.free))
    # Every sample stands in one bar, on its side of the boundary and of the edge.
    heights = dict.fromkeys(("wrong", "inside", "beyond", "on"), 0)
    for bar in display.ax_.patches:
        left, right = bar.get_x(), bar.get_x() + bar.get_width()
        side = (
            "on"
            if left < 0.999 < 1.001 < right
            else "wrong"
            if right < 0.001
            else "inside"
            if right < 1.001
            else "beyond"
        )
        heights[side] += bar.get_height()
    names = {"wrong": Side.WRONG, "inside": Side.INSIDE, "beyond": Side.BEYOND, "on": Side.ON}
    assert heights == {name: np.count_nonzero(display.sides == side) for name, side in names.items()}


def test_rows_without_weight_go_by_their_margins():
    X, y = make_moons(150, noise=0.25, random_state=0)
    weights = np.where(np.arange(150) < 50, 0.0, 1.0)
    model = SVC(gamma=1.0).fit(X, y, sample_weight=weights)
    display = SlackHistogramDisplay.from_estimator(model, X, y)
    wrong = model.predict(X) != y
    assert wrong[:50].any()
    np.testing.assert_array_equal(display.sides == Side.WRONG, wrong)


@pytest.mark.parametrize("factor", [1e-3, 1.0, 300.0])
def test_bars_end_at_the_boundary_and_the_edge_whatever_the_range(factor):
    margins = np.linspace(-1.0, 2.0, 50) * factor
    sides = np.where(margins < 0, Side.WRONG, np.where(margins < 1, Side.INSIDE, Side.BEYOND))
    display = SlackHistogramDisplay(margins, sides).plot()
    edges = {round(bar.get_x(), 9) for bar in display.ax_.patches}
    assert 0.0 in edges
    bars = [bar for bar in display.ax_.patches if bar.get_x() + bar.get_width() / 2 != pytest.approx(1.0)]
    assert not any(bar.get_x() < 1 - 1e-9 and bar.get_x() + bar.get_width() > 1 + 1e-9 for bar in bars)
    assert sum(bar.get_height() for bar in display.ax_.patches) == 50
    assert len(bars) < 400


def test_slack_of_sparse_data_several_classes_pipelines_and_other_samples():
    X, y = load_iris(return_X_y=True)
    several = SlackHistogramDisplay.from_estimator(SVC().fit(X, y), X, y)
    rows = sparse.csr_matrix(X)
    np.testing.assert_array_equal(
        SlackHistogramDisplay.from_estimator(SVC(gamma=0.1).fit(rows, y), rows, y).sides,
        SlackHistogramDisplay.from_estimator(SVC(gamma=0.1).fit(X, y), X, y).sides,
    )
    assert len(several.margins) == len(y)
    piped = make_pipeline(StandardScaler(), LinearSVC()).fit(X[::2], y[::2])
    display = SlackHistogramDisplay.from_estimator(piped, X[1::2].tolist(), y[1::2])
    own = np.eye(3, dtype=bool)[y[1::2]]
    values = piped.decision_function(X[1::2])
    np.testing.assert_allclose(display.margins, np.where(own, values, -values).min(axis=1))
    with pytest.raises(ValueError, match="need labels, which a novelty detector has not"):
        SlackHistogramDisplay.from_estimator(OneClassSVM().fit(X), X, y)


# Convergence


def test_convergence_of_a_trace_a_solution_and_a_walk():
    problem, told = chess_problem(), Trace()
    solution = PairwiseSolver().solve(problem, callback=told)
    display = ConvergenceDisplay.from_trace(told)
    np.testing.assert_array_equal(display.values("", "primal"), [entry.primal for entry in told.entries])
    lines = {line.get_label(): line.get_ydata() for line in display.ax_.lines}
    np.testing.assert_array_equal(lines["primal value"], display.values("", "primal"))
    np.testing.assert_array_equal(lines["dual value"], display.values("", "dual"))
    assert ConvergenceDisplay.from_trace(solution).traces == display.traces
    walk = trace(*make_moons(20, noise=0.2, random_state=0), gamma=1.0)
    assert ConvergenceDisplay.from_trace(walk).traces[""] == list(walk.entries)


def test_convergence_of_several_solvers():
    problem = chess_problem()
    told = {name: Trace() for name in ("first", "second")}
    for name, rule in (("first", "most_violating_pair"), ("second", "second_order")):
        PairwiseSolver(selection=rule).solve(problem, callback=told[name])
    display = ConvergenceDisplay.from_trace(told, against="kernel_evaluations")
    assert display.ax_.get_yscale() == "log"
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["first", "second"]
    for line, name in zip(display.ax_.lines, told, strict=True):
        positive = display.values(name, "gap") > 0
        np.testing.assert_array_equal(line.get_ydata(), display.values(name, "gap")[positive])
        np.testing.assert_array_equal(line.get_xdata(), display.values(name, "kernel_evaluations")[positive])
    figure, ax = plt.subplots()
    assert display.plot(ax, quantity="violation", against="seconds") is display
    assert (ax.get_xlabel(), ax.get_ylabel(), display.figure_) == ("seconds", "violation", figure)


def test_convergence_says_what_is_wrong():
    with pytest.raises(
        ValueError, match=r"the trace of 'mine' is empty: solve with callback=maxmargin.solvers.Trace\(\)"
    ):
        ConvergenceDisplay.from_trace({"mine": PairwiseSolver().solve(chess_problem(20))})
    with pytest.raises(TypeError, match="a trace is a Trace, a Solution"):
        ConvergenceDisplay.from_trace(3)
    told = Trace()
    PairwiseSolver().solve(chess_problem(20), callback=told)
    with pytest.raises(ValueError, match="quantity must be one of 'objective', 'gap', 'violation', not 'loss'"):
        ConvergenceDisplay.from_trace(told, quantity="loss")
    with pytest.raises(ValueError, match="against must be"):
        ConvergenceDisplay.from_trace(told, against="hours")
    assert plt.get_fignums() == []


# Cache


@pytest.mark.parametrize("solver", [PairwiseSolver(), PairwiseSolver(selection="most_violating_pair", shrinking=False)])
def test_less_room_computes_more_rows(solver):
    problem = chess_problem(300)
    display = CacheDisplay.from_problem(problem, parts=[0.05, 0.3, 1.0], solver=solver)
    alone = solver.solve(problem).counters
    assert display.computed[0] > display.computed[1] >= display.computed[2]
    assert display.hit_rates[0] < display.hit_rates[2] <= 1
    assert (display.computed[2], display.reused[2]) == (alone.cache_misses, alone.cache_hits)  # all rows had room
    heights = [bar.get_height() for bar in display.ax_.patches]
    np.testing.assert_array_equal(heights, np.concatenate([display.computed, display.reused]))


def test_cache_from_counters():
    _, ax = plt.subplots()
    counters = {"few": Counters(cache_hits=10, cache_misses=30), "none": Counters()}
    display = CacheDisplay.from_solutions(counters, ax=ax)
    assert display.ax_ is ax
    np.testing.assert_array_equal(display.hit_rates, [0.25, 0.0])
    assert [text.get_text() for text in ax.texts] == ["25%", "0%"]
    with pytest.raises(ValueError, match="at least one"):
        CacheDisplay.from_solutions({})
    with pytest.raises(ValueError, match="SubgradientSolver keeps no rows"):
        CacheDisplay.from_problem(chess_problem(20), solver=SubgradientSolver())


# Coefficient path


def test_path_of_two_classes_is_sorted_by_cost():
    data = load_breast_cancer()
    path = linear_path(scale(data.data), data.target, Cs=[1.0, 1e-3, 0.1])
    display = CoefficientPathDisplay.from_path(path, feature_names=data.feature_names, labelled=4)
    np.testing.assert_array_equal(display.Cs, [1e-3, 0.1, 1.0])
    np.testing.assert_array_equal(display.coefficients, path.coefs[[1, 2, 0], 0])
    named = {text.get_text() for text in display.ax_.texts}
    assert named == set(data.feature_names[np.argsort(-np.abs(path.coefs[:, 0]).max(axis=0))[:4]])
    figure = display.figure_
    figure.draw_without_rendering()
    boxes = sorted((text.get_window_extent() for text in display.ax_.texts), key=lambda box: box.y0)
    assert all(below.y1 <= above.y0 + 1 for below, above in pairwise(boxes))  # names do not overlap
    assert all(box.x1 <= figure.bbox.x1 for box in boxes)


def test_path_of_several_functions_asks_which():
    X, y = load_iris(return_X_y=True)
    path = linear_path(X, y, Cs=[0.1, 1.0])
    with pytest.raises(ValueError, match="3 functions; say which to draw, output=0 to 2"):
        CoefficientPathDisplay.from_path(path)
    display = CoefficientPathDisplay.from_path(path, output=2)
    np.testing.assert_array_equal(display.coefficients, path.coefs[:, 2])
    assert display.names == ["0", "1", "2", "3"]
    with pytest.raises(ValueError, match="4 features, but 1 feature_names"):
        CoefficientPathDisplay.from_path(path, output=0, feature_names=["a"])
    regression = linear_path(X, y.astype(float), Cs=[1.0], estimator=LinearSVR())
    assert CoefficientPathDisplay.from_path(regression).coefficients.shape == (1, 4)


def test_names_are_spread():
    heights = np.array([0.5, 0.1, 0.52, 0.51, 0.9])
    placed = spread(heights, 0.1)
    np.testing.assert_array_equal(np.argsort(placed), np.argsort(heights))
    assert (np.diff(np.sort(placed)) >= 0.1 - 1e-12).all()
    np.testing.assert_allclose(placed[[1, 4]], [0.1, 0.9])
    np.testing.assert_allclose(placed[[0, 2, 3]].mean(), 0.51)


# Kernel matrix


def test_kernel_matrix_by_class_and_margin():
    X, y = load_iris(return_X_y=True)
    mixed = np.random.default_rng(0).permutation(150)
    X, names = X[mixed], np.array(["c", "a", "b"])[y[mixed]]
    model = SVC().fit(X, names)
    display = KernelMatrixDisplay.from_estimator(model, X, names)
    gamma = 1 / (X.var() * 4)
    np.testing.assert_allclose(display.matrix, Gaussian(gamma)(X)[np.ix_(display.order, display.order)], atol=1e-12)
    np.testing.assert_array_equal(names[display.order], np.repeat(["a", "b", "c"], 50))
    np.testing.assert_array_equal(display.borders, [50, 100, 150])
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["a", "b", "c"]
    margins = SlackHistogramDisplay.from_estimator(model, X, names).margins[display.order]
    assert all((np.diff(part) <= 0).all() for part in np.split(margins, display.borders[:-1]))


def test_kernel_matrix_by_likeness_brings_neighbours_together():
    random = np.random.default_rng(0)
    X = np.concatenate([random.normal(0, 0.1, 20), random.normal(5, 0.1, 20)])[random.permutation(40), None]
    display = KernelMatrixDisplay.from_kernel(Gaussian(1.0), X, np.zeros(40), within="cluster")
    beside = X[display.order, 0] > 2.5
    assert np.count_nonzero(np.diff(beside)) == 1  # one cluster, then the other
    given = KernelMatrixDisplay.from_kernel(Gaussian(1.0), X, np.zeros(40))
    np.testing.assert_array_equal(given.order, np.arange(40))


def test_kernel_matrix_of_many_samples_is_thinned():
    X, y = chessboard(300)
    for within in ("given", "cluster"):
        display = KernelMatrixDisplay.from_kernel(Linear(), X, y, within=within, max_samples=50)
        assert display.matrix.shape == (50, 50)
        assert len(set(display.order)) == 50
        np.testing.assert_allclose(display.borders[0] / 50, np.mean(y == 0), atol=0.03)
        np.testing.assert_allclose(display.matrix, X[display.order] @ X[display.order].T)


def test_kernel_matrix_that_was_given_and_one_of_both_signs():
    X, y = make_moons(40, noise=0.1, random_state=0)
    K = X @ X.T
    figure, ax = plt.subplots()
    display = KernelMatrixDisplay.from_estimator(SVC(kernel="precomputed").fit(K, y), K, y, ax=ax)
    np.testing.assert_array_equal(display.matrix, K[np.ix_(display.order, display.order)])
    image = ax.images[0]
    assert image.norm.vmin == -image.norm.vmax  # 0 is in the middle of the scale
    assert display.figure_ is figure
    display.plot(colorbar=False)
    assert len(display.figure_.axes) == 1


def test_kernel_matrix_of_words():
    words, y = ["ab", "abab", "ba", "xy", "yx", "xyxy"], [0, 0, 0, 1, 1, 1]

    def letters_in_common(X, Z):
        return np.array([[float(sum(min(x.count(c), z.count(c)) for c in "abxy")) for z in Z] for x in X])

    model = SVC(kernel=letters_in_common).fit(words, y)
    display = KernelMatrixDisplay.from_estimator(model, words, y, within="given")
    np.testing.assert_array_equal(display.matrix, letters_in_common(words, words))


def test_kernel_matrix_says_what_is_wrong():
    X, y = make_moons(40, noise=0.1, random_state=0)
    with pytest.raises(ValueError, match=r"LinearSVC is no classifier with a kernel; use from_kernel"):
        KernelMatrixDisplay.from_estimator(LinearSVC().fit(X, y), X, y)
    with pytest.raises(ValueError, match="within must be"):
        KernelMatrixDisplay.from_estimator(SVC().fit(X, y), X, y, within="random")
    with pytest.raises(ValueError, match="margins are those of a fitted machine"):
        KernelMatrixDisplay.from_kernel(Gaussian(1.0), X, y, within="margin")
    assert plt.get_fignums() == []


# All


def test_calibration_is_scikit_learns():
    X, y = make_moons(300, noise=0.3, random_state=0)
    model = SVC(gamma=1.0, probability=True).fit(X[::2], y[::2])
    display = CalibrationDisplay.from_estimator(model, X[1::2], y[1::2], n_bins=5)
    share, predicted = calibration_curve(y[1::2], model.predict_proba(X[1::2])[:, 1], n_bins=5)
    np.testing.assert_allclose(display.prob_true, share)
    np.testing.assert_allclose(display.prob_pred, predicted)


# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
BLINDNESS = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}


@pytest.mark.parametrize("kind", BLINDNESS)
def test_the_colour_blind_can_tell_the_colours(kind):
    seen = [np.clip(BLINDNESS[kind] @ linear_rgb(colour), 0.0, 1.0) for colour in COLOURS]
    distances = [np.linalg.norm(lab(one) - lab(other)) for one, other in combinations(seen, 2)]
    assert min(distances) > 15  # CIE 1976; about 2 is just noticed
    assert np.linalg.norm(lab(seen[0]) - lab(seen[1])) > 80  # the two of most pictures


def linear_rgb(colour):
    value = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ rgb / [0.9505, 1.0, 1.089]
    root = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def test_without_matplotlib_one_sentence_says_what_to_install():
    program = (
        "import sys; sys.modules['matplotlib'] = None; sys.modules['matplotlib.pyplot'] = None\n"
        "from maxmargin import SVC, plotting, trace\n"
        "X, y = [[0.0, 0.0], [1.0, 1.0]], [0, 1]\n"
        "model = SVC().fit(X, y)\n"
        "for draw in (lambda: plotting.DecisionRegionsDisplay.from_estimator(model, X, y),\n"
        "             lambda: plotting.animate(trace(X, y))):\n"
        "    try:\n"
        "        draw()\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "pictures need matplotlib: pip install 'maxmargin[plot]'\n" * 2


def test_public_names_exist():
    for name in plotting.__all__:
        assert hasattr(plotting, name)
