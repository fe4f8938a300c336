"""Draw every display of docs/plotting.md into the folder given, or a temporary one."""

import io
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from sklearn.datasets import load_breast_cancer, load_iris, make_blobs, make_moons
from sklearn.preprocessing import scale

from maxmargin import SVC, SVCCV, OneClassSVM, OneClassSVMCV, gradient_search, linear_path, regularization_path
from maxmargin.datasets import chessboard
from maxmargin.formulations.c_classification import pose
from maxmargin.kernels import Gaussian, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.plotting import (
    CacheDisplay,
    CalibrationDisplay,
    CoefficientPathDisplay,
    ConvergenceDisplay,
    DecisionRegionsDisplay,
    FeatureRelevanceDisplay,
    KernelMatrixDisplay,
    LeaveOneOutDisplay,
    RegularizationPathDisplay,
    ScoreGridDisplay,
    SlackHistogramDisplay,
)
from maxmargin.solvers import PairwiseSolver, Trace

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
folder.mkdir(parents=True, exist_ok=True)


def save(name: str, figure: plt.Figure) -> None:
    """Save a figure, 600 pixels wide and with few colours."""
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=100)
    plt.close(figure)
    Image.open(drawn).convert("RGB").quantize(96, dither=Image.Dither.NONE).save(folder / name, optimize=True)
    print(f"{folder / name}: {(folder / name).stat().st_size / 1000:.0f} kB")


X, y = make_moons(200, noise=0.25, random_state=0)
model = SVC(gamma=1.0).fit(X, y)
save("regions.png", DecisionRegionsDisplay.from_estimator(model, X, y).figure_)
save("slack.png", SlackHistogramDisplay.from_estimator(model, X, y).figure_)

iris = load_iris(as_frame=True)
petals, names = iris.data.iloc[:, 2:], iris.target_names[iris.target]
save("regions_of_three.png", DecisionRegionsDisplay.from_estimator(SVC().fit(petals, names), petals, names).figure_)
flowers = scale(iris.data)
save("kernel_matrix.png", KernelMatrixDisplay.from_estimator(SVC().fit(flowers, names), flowers, names).figure_)

blobs, _ = make_blobs(150, centers=[[0, 0], [3, 3]], cluster_std=0.8, random_state=1)
detector = OneClassSVM(nu=0.1, gamma=0.3).fit(blobs)
save("novelty.png", DecisionRegionsDisplay.from_estimator(detector, blobs).figure_)

squares, signs = chessboard(300)
problem = pose(KernelMatrix(Gaussian(1.0), Points(squares)), 2.0 * signs - 1.0, costs=np.full(300, 10.0))
traces = {rule: Trace() for rule in ("most_violating_pair", "second_order")}
for rule, trace in traces.items():
    PairwiseSolver(selection=rule, finish_below=0).solve(problem, callback=trace)
save("convergence.png", ConvergenceDisplay.from_trace(traces["second_order"]).figure_)
save("gap.png", ConvergenceDisplay.from_trace(traces).figure_)
save("cache.png", CacheDisplay.from_problem(problem).figure_)

cancer = load_breast_cancer()
path = linear_path(scale(cancer.data), cancer.target, Cs=np.logspace(-4, 1, 30))
save("path.png", CoefficientPathDisplay.from_path(path, feature_names=cancer.feature_names).figure_)

X, y = make_moons(1000, noise=0.35, random_state=0)
X_new, y_new = make_moons(4000, noise=0.35, random_state=1)
calibrated = SVC(gamma=1.0, probability=True).fit(X, y)
_, ax = plt.subplots(figsize=(6.0, 4.6), layout="constrained")
CalibrationDisplay.from_estimator(calibrated, X_new, y_new, n_bins=10, ax=ax)
save("calibration.png", ax.figure)

searched = SVCCV(refine=2).fit(*chessboard(500, noise=0.1, seed=1))
save("scores.png", ScoreGridDisplay.from_estimator(searched).figure_)

moons, _ = make_moons(300, noise=0.1, random_state=0)
moons = np.vstack([moons, np.random.default_rng(0).uniform(-2, 3, (15, 2))])
chosen = OneClassSVMCV().fit(moons)
save("novelty_scores.png", ScoreGridDisplay.from_estimator(chosen).figure_)
save("novelty_chosen.png", DecisionRegionsDisplay.from_estimator(chosen, moons).figure_)

moons, labels = make_moons(160, noise=0.35, random_state=0)
all_costs = regularization_path(moons[:80], labels[:80], estimator=SVC(gamma=2.0), C_min=0.03, C_max=1000)
figure = RegularizationPathDisplay.from_path(all_costs, moons[80:], labels[80:]).figure_
save("regularization_path.png", figure)
save("leave_one_out.png", LeaveOneOutDisplay.from_path(all_costs).figure_)

random = np.random.default_rng(0)  # of 25 features, 20 are noise
X = random.normal(size=(600, 25))
y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] ** 2 + 0.8 * X[:, 4] > 1
save("feature_relevance.png", FeatureRelevanceDisplay.from_search(gradient_search(X, y)).figure_)
