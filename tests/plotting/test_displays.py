"""The other displays: their data agree with solvers, certificates and models."""

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

from maxmargin import SVC, SVR, LinearSVC, LinearSVR, OneClassSVM, linear_path, plotting, regularization_path, trace
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
    LeaveOneOutDisplay,
    RegularizationPathDisplay,
    SlackHistogramDisplay,
)
from maxmargin.plotting.coefficient_path import spread_labels
from maxmargin.plotting.margin_positions import MarginPosition
from maxmargin.plotting.regularization_path import curve_between
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
    np.testing.assert_array_equal(np.flatnonzero(display.positions == MarginPosition.ON), np.sort(geometry.free))
    # Every sample is counted in one bar, on the correct side of the boundary and of the margin.
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
    names = {
        "wrong": MarginPosition.WRONG_SIDE,
        "inside": MarginPosition.INSIDE,
        "beyond": MarginPosition.BEYOND,
        "on": MarginPosition.ON,
    }
    assert heights == {name: np.count_nonzero(display.positions == side) for name, side in names.items()}


def test_samples_of_weight_zero_are_placed_by_their_margin():
    X, y = make_moons(150, noise=0.25, random_state=0)
    weights = np.where(np.arange(150) < 50, 0.0, 1.0)
    model = SVC(gamma=1.0).fit(X, y, sample_weight=weights)
    display = SlackHistogramDisplay.from_estimator(model, X, y)
    wrong = model.predict(X) != y
    assert wrong[:50].any()
    np.testing.assert_array_equal(display.positions == MarginPosition.WRONG_SIDE, wrong)


@pytest.mark.parametrize("factor", [1e-3, 1.0, 300.0])
def test_boundary_and_margin_are_bin_edges(factor):
    margins = np.linspace(-1.0, 2.0, 50) * factor
    positions = np.where(
        margins < 0, MarginPosition.WRONG_SIDE, np.where(margins < 1, MarginPosition.INSIDE, MarginPosition.BEYOND)
    )
    display = SlackHistogramDisplay(margins, positions).plot()
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
        SlackHistogramDisplay.from_estimator(SVC(gamma=0.1).fit(rows, y), rows, y).positions,
        SlackHistogramDisplay.from_estimator(SVC(gamma=0.1).fit(X, y), X, y).positions,
    )
    assert len(several.margins) == len(y)
    piped = make_pipeline(StandardScaler(), LinearSVC()).fit(X[::2], y[::2])
    display = SlackHistogramDisplay.from_estimator(piped, X[1::2].tolist(), y[1::2])
    own = np.eye(3, dtype=bool)[y[1::2]]
    values = piped.decision_function(X[1::2])
    np.testing.assert_allclose(display.margins, np.where(own, values, -values).min(axis=1))
    with pytest.raises(ValueError, match="require labels, which a novelty detector does not have"):
        SlackHistogramDisplay.from_estimator(OneClassSVM().fit(X), X, y)


# Convergence


def test_convergence_of_a_trace_a_solution_and_a_fit_trace():
    problem, trace_ = chess_problem(), Trace()
    solution = PairwiseSolver().solve(problem, callback=trace_)
    display = ConvergenceDisplay.from_trace(trace_)
    np.testing.assert_array_equal(display.values("", "primal"), [entry.primal for entry in trace_.entries])
    lines = {line.get_label(): line.get_ydata() for line in display.ax_.lines}
    np.testing.assert_array_equal(lines["primal value"], display.values("", "primal"))
    np.testing.assert_array_equal(lines["dual value"], display.values("", "dual"))
    assert ConvergenceDisplay.from_trace(solution).traces == display.traces
    fit_trace = trace(*make_moons(20, noise=0.2, random_state=0), gamma=1.0)
    assert ConvergenceDisplay.from_trace(fit_trace).traces[""] == list(fit_trace.entries)


def test_convergence_of_several_solvers():
    problem = chess_problem()
    trace_ = {name: Trace() for name in ("first", "second")}
    for name, rule in (("first", "most_violating_pair"), ("second", "second_order")):
        PairwiseSolver(selection=rule).solve(problem, callback=trace_[name])
    display = ConvergenceDisplay.from_trace(trace_, against="kernel_evaluations")
    assert display.ax_.get_yscale() == "log"
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["first", "second"]
    for line, name in zip(display.ax_.lines, trace_, strict=True):
        positive = display.values(name, "gap") > 0
        np.testing.assert_array_equal(line.get_ydata(), display.values(name, "gap")[positive])
        np.testing.assert_array_equal(line.get_xdata(), display.values(name, "kernel_evaluations")[positive])
    figure, ax = plt.subplots()
    assert display.plot(ax, quantity="violation", against="seconds") is display
    assert (ax.get_xlabel(), ax.get_ylabel(), display.figure_) == ("seconds", "KKT violation", figure)


def test_convergence_errors():
    with pytest.raises(
        ValueError, match=r"the trace of 'mine' is empty; solve with callback=maxmargin.solvers.Trace\(\)"
    ):
        ConvergenceDisplay.from_trace({"mine": PairwiseSolver().solve(chess_problem(20))})
    with pytest.raises(TypeError, match="must be a Trace, a Solution"):
        ConvergenceDisplay.from_trace(3)
    trace_ = Trace()
    PairwiseSolver().solve(chess_problem(20), callback=trace_)
    with pytest.raises(ValueError, match="quantity must be one of 'objective', 'gap', 'violation', not 'loss'"):
        ConvergenceDisplay.from_trace(trace_, quantity="loss")
    with pytest.raises(ValueError, match="against must be"):
        ConvergenceDisplay.from_trace(trace_, against="hours")
    assert plt.get_fignums() == []


# Cache


@pytest.mark.parametrize("solver", [PairwiseSolver(), PairwiseSolver(selection="most_violating_pair", shrinking=False)])
def test_smaller_cache_has_more_misses(solver):
    problem = chess_problem(300)
    display = CacheDisplay.from_problem(problem, fractions=[0.05, 0.3, 1.0], solver=solver)
    alone = solver.solve(problem).counters
    assert display.misses[0] > display.misses[1] >= display.misses[2]
    assert display.hit_rates[0] < display.hit_rates[2] <= 1
    assert (display.misses[2], display.hits[2]) == (alone.cache_misses, alone.cache_hits)  # all rows fit into the cache
    heights = [bar.get_height() for bar in display.ax_.patches]
    np.testing.assert_array_equal(heights, np.concatenate([display.misses, display.hits]))


def test_cache_from_counters():
    _, ax = plt.subplots()
    counters = {"few": Counters(cache_hits=10, cache_misses=30), "none": Counters()}
    display = CacheDisplay.from_solutions(counters, ax=ax)
    assert display.ax_ is ax
    np.testing.assert_array_equal(display.hit_rates, [0.25, 0.0])
    assert [text.get_text() for text in ax.texts] == ["25%", "0%"]
    with pytest.raises(ValueError, match="pass at least one"):
        CacheDisplay.from_solutions({})
    with pytest.raises(ValueError, match="SubgradientSolver has no row cache"):
        CacheDisplay.from_problem(chess_problem(20), solver=SubgradientSolver())


# Coefficient path


def test_path_of_two_classes_is_sorted_by_C():
    data = load_breast_cancer()
    path = linear_path(scale(data.data), data.target, Cs=[1.0, 1e-3, 0.1])
    display = CoefficientPathDisplay.from_path(path, feature_names=data.feature_names, max_labels=4)
    np.testing.assert_array_equal(display.Cs, [1e-3, 0.1, 1.0])
    np.testing.assert_array_equal(display.coefficients, path.coefs[[1, 2, 0], 0])
    named = {text.get_text() for text in display.ax_.texts}
    assert named == set(data.feature_names[np.argsort(-np.abs(path.coefs[:, 0]).max(axis=0))[:4]])
    figure = display.figure_
    figure.draw_without_rendering()
    boxes = sorted((text.get_window_extent() for text in display.ax_.texts), key=lambda box: box.y0)
    assert all(below.y1 <= above.y0 + 1 for below, above in pairwise(boxes))  # labels do not overlap
    assert all(box.x1 <= figure.bbox.x1 for box in boxes)


def test_path_of_several_classes_requires_output():
    X, y = load_iris(return_X_y=True)
    path = linear_path(X, y, Cs=[0.1, 1.0])
    with pytest.raises(ValueError, match="3 decision functions; choose one with output=0 to 2"):
        CoefficientPathDisplay.from_path(path)
    display = CoefficientPathDisplay.from_path(path, output=2)
    np.testing.assert_array_equal(display.coefficients, path.coefs[:, 2])
    assert display.names == ["0", "1", "2", "3"]
    with pytest.raises(ValueError, match="4 features, but there are 1 feature_names"):
        CoefficientPathDisplay.from_path(path, output=0, feature_names=["a"])
    regression = linear_path(X, y.astype(float), Cs=[1.0], estimator=LinearSVR())
    assert CoefficientPathDisplay.from_path(regression).coefficients.shape == (1, 4)


def test_labels_are_spread():
    heights = np.array([0.5, 0.1, 0.52, 0.51, 0.9])
    placed = spread_labels(heights, 0.1)
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


def test_kernel_matrix_sorted_by_cluster():
    random = np.random.default_rng(0)
    X = np.concatenate([random.normal(0, 0.1, 20), random.normal(5, 0.1, 20)])[random.permutation(40), None]
    display = KernelMatrixDisplay.from_kernel(Gaussian(1.0), X, np.zeros(40), sort_by="cluster")
    second_cluster = X[display.order, 0] > 2.5
    assert np.count_nonzero(np.diff(second_cluster)) == 1  # one cluster, then the other
    given = KernelMatrixDisplay.from_kernel(Gaussian(1.0), X, np.zeros(40))
    np.testing.assert_array_equal(given.order, np.arange(40))


def test_kernel_matrix_max_samples():
    X, y = chessboard(300)
    for sort_by in ("input", "cluster"):
        display = KernelMatrixDisplay.from_kernel(Linear(), X, y, sort_by=sort_by, max_samples=50)
        assert display.matrix.shape == (50, 50)
        assert len(set(display.order)) == 50
        np.testing.assert_allclose(display.borders[0] / 50, np.mean(y == 0), atol=0.03)
        np.testing.assert_allclose(display.matrix, X[display.order] @ X[display.order].T)


def test_precomputed_kernel_matrix_with_negative_values():
    X, y = make_moons(40, noise=0.1, random_state=0)
    K = X @ X.T
    figure, ax = plt.subplots()
    display = KernelMatrixDisplay.from_estimator(SVC(kernel="precomputed").fit(K, y), K, y, ax=ax)
    np.testing.assert_array_equal(display.matrix, K[np.ix_(display.order, display.order)])
    image = ax.images[0]
    assert image.norm.vmin == -image.norm.vmax  # 0 is in the centre of the colour map
    assert display.figure_ is figure
    display.plot(colorbar=False)
    assert len(display.figure_.axes) == 1


def test_kernel_matrix_of_strings():
    words, y = ["ab", "abab", "ba", "xy", "yx", "xyxy"], [0, 0, 0, 1, 1, 1]

    def letters_in_common(X, Z):
        return np.array([[float(sum(min(x.count(c), z.count(c)) for c in "abxy")) for z in Z] for x in X])

    model = SVC(kernel=letters_in_common).fit(words, y)
    display = KernelMatrixDisplay.from_estimator(model, words, y, sort_by="input")
    np.testing.assert_array_equal(display.matrix, letters_in_common(words, words))


def test_kernel_matrix_errors():
    X, y = make_moons(40, noise=0.1, random_state=0)
    with pytest.raises(ValueError, match=r"LinearSVC is not a kernel classifier; use from_kernel"):
        KernelMatrixDisplay.from_estimator(LinearSVC().fit(X, y), X, y)
    with pytest.raises(ValueError, match="sort_by must be"):
        KernelMatrixDisplay.from_estimator(SVC().fit(X, y), X, y, sort_by="random")
    with pytest.raises(ValueError, match="requires a fitted model"):
        KernelMatrixDisplay.from_kernel(Gaussian(1.0), X, y, sort_by="margin")
    assert plt.get_fignums() == []


# All


def test_calibration_display_of_sklearn():
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
def test_colours_are_distinguishable_under_colour_blindness(kind):
    seen = [np.clip(BLINDNESS[kind] @ linear_rgb(colour), 0.0, 1.0) for colour in COLOURS]
    distances = [np.linalg.norm(lab(one) - lab(other)) for one, other in combinations(seen, 2)]
    assert min(distances) > 15  # CIE 1976; a distance of 2 is just noticeable
    assert np.linalg.norm(lab(seen[0]) - lab(seen[1])) > 80  # the two colours used most


def linear_rgb(colour):
    value = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ rgb / [0.9505, 1.0, 1.089]
    root = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def test_import_error_without_matplotlib():
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
    assert run.stdout == "plots require matplotlib: pip install 'maxmargin[plot]'\n" * 2


def test_public_names_exist():
    for name in plotting.__all__:
        assert hasattr(plotting, name)


def test_regularization_path_display():
    X, y = make_moons(120, noise=0.3, random_state=0)
    path = regularization_path(X[:60], y[:60], estimator=SVC(gamma=1.0), C_max=100.0)
    display = RegularizationPathDisplay.from_path(path)
    assert display.coefficients.max() <= 1.0 + 1e-9
    assert len(display.figure_.axes) == 2
    assert display.errors is None
    display = RegularizationPathDisplay.from_path(path, X[60:], y[60:])
    assert len(display.figure_.axes) == 3
    assert display.best == path.best(X[60:], y[60:])
    assert display.figure_.axes[2].get_ylabel() == "validation\nerror"
    with pytest.raises(ValueError, match="there are 3 plots, but 2 axes"):
        display.plot(plt.subplots(2)[1])


def test_curves_between_break_points_are_those_of_linear_coefficients():
    Cs, values = curve_between(np.array([1.0, 3.0, 3.001]), np.array([1.0, 0.0, 0.5]))
    np.testing.assert_allclose(values[Cs <= 3.0], 1.5 / Cs[Cs <= 3.0] - 0.5, atol=1e-12)
    assert Cs[-1] == 3.001


def test_leave_one_out_display():
    X, y = make_moons(50, noise=0.3, random_state=0)
    path = regularization_path(X, y, estimator=SVC(gamma=1.0))
    display = LeaveOneOutDisplay.from_path(path, Cs=[10.0, 0.1, 1.0])
    assert display.Cs.tolist() == [0.1, 1.0, 10.0]
    assert display.curves["leave-one-out"][2] == path.at(10.0).loo_error_
    assert [line.get_label() for line in display.ax_.get_lines()[:2]] == ["leave-one-out", "span"]
    of_regression = regularization_path(X, X[:, 0] + X[:, 1] ** 2, estimator=SVR())
    assert "ξα" not in LeaveOneOutDisplay.from_path(of_regression, Cs=[1.0]).curves
