"""A walk through a fit: every point is judged again, and the film shows it."""

import base64
import io
import re
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_iris, make_blobs, make_moons

import maxmargin
from maxmargin import SVC, certify
from maxmargin.plotting import animate
from maxmargin.plotting.animation import _draw_machine
from maxmargin.solvers import PairwiseSolver, StoppingRule

X, Y = make_moons(40, noise=0.2, random_state=0)


@pytest.fixture(scope="module")
def walk():
    return maxmargin.trace(X, Y, C=2.0, gamma=1.0)


def test_every_step_of_a_walk_is_what_the_judge_says(walk):
    assert len(walk) == len(walk.entries) == len(walk.duals) == len(walk.offsets) == len(walk.working_sets)
    for step, entry in enumerate(walk.entries):
        certificate = certify(walk.problem, walk.duals[step])
        np.testing.assert_allclose(entry.primal, certificate.primal, rtol=1e-9)
        np.testing.assert_allclose(entry.dual, certificate.dual, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(entry.violation, certificate.violation, rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(walk.offsets[step], certificate.offset[0], rtol=1e-9, atol=1e-12)
    assert walk.certificate.violation <= 1e-3


def test_a_step_changes_a_pair_and_never_lowers_the_dual_value(walk):
    assert len(walk.working_sets[0]) == 0
    assert [len(pair) for pair in walk.working_sets[1:]] == [2] * (len(walk) - 1)
    np.testing.assert_array_equal(walk.values("iteration"), np.arange(len(walk)))
    assert (np.diff(walk.values("dual")) > 0).all()
    np.testing.assert_allclose(walk.duals.sum(axis=1), 0.0, atol=1e-12)
    for before, after, pair in zip(walk.duals[:-1], walk.duals[1:], walk.working_sets[1:], strict=True):
        up, down = (after - before)[pair]
        np.testing.assert_allclose(up, -down)


def test_the_last_step_is_the_machine_of_a_fit(walk):
    model = SVC(C=2.0, gamma=1.0).fit(X, Y)
    grid = np.random.default_rng(0).uniform(-2, 3, size=(50, 2))
    values = walk.decision_values(grid)
    assert values.shape == (len(walk), 50)
    np.testing.assert_allclose(values[-1], model.decision_function(grid), atol=5e-3)
    np.testing.assert_array_equal(values[0], np.zeros(50))


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "linear", "C": 0.1},
        {"gamma": 2.0, "selection": "most_violating_pair"},
        {"loss": "squared_hinge", "kernel": "linear"},
        {"fit_intercept": False, "gamma": 1.0},
        {"class_weight": "balanced", "kernel": "poly"},
        {"solver": "block", "gamma": 1.0},
        {"solver": PairwiseSolver(stopping=StoppingRule(max_iterations=5)), "gamma": 1.0},
    ],
)
def test_walks_of_other_machines(options):
    walk = maxmargin.trace(X, Y, **options)
    certificate = certify(walk.problem, walk.duals[-1])
    np.testing.assert_array_equal(walk.duals[-1], walk.solution.dual)
    np.testing.assert_allclose(walk.entries[-1].primal, certificate.primal, rtol=1e-6)  # blocks are single precision
    offset = certificate.offset[0] if walk.problem.groups else 0.0
    np.testing.assert_allclose(walk.offsets[-1], offset)
    assert animate(walk).steps[-1] == len(walk) - 1


def test_labels_of_any_kind_and_fewer_entries():
    names = np.array(["yes", "no"])[Y]
    walk = maxmargin.trace(X, names, gamma=1.0, steps=10)
    np.testing.assert_array_equal(walk.classes, ["no", "yes"])
    np.testing.assert_array_equal(walk.signs, np.where(names == "yes", 1.0, -1.0))
    assert (np.diff(walk.values("iteration")) <= 10).all()
    assert len(walk) < walk.solution.counters.iterations
    shown = maxmargin.trace(X @ X.T, Y, kernel="precomputed")
    assert shown.kernel is None
    with pytest.raises(ValueError, match="kernel values were given"):
        shown.decision_values(X)


def test_a_film_as_a_gif(walk, tmp_path):
    animation = animate(walk, max_frames=6, milliseconds=100)
    path = animation.save(tmp_path / "fit.gif")
    assert path.stat().st_size < 200_000
    with Image.open(path) as film:
        assert film.n_frames == len(animation.steps)
        frames = []
        for number in range(film.n_frames):
            film.seek(number)
            film.load()
            frames.append(np.asarray(film.convert("RGB")))
            assert film.info["duration"] == (100 if number < film.n_frames - 1 else 2000)
    assert all((one != other).any() for one, other in pairwise(frames))
    assert plt.get_fignums() == []


def test_a_film_as_a_page_needs_nothing_else(walk, tmp_path):
    animation = animate(walk, every=10, max_frames=4)
    page = animation.save(tmp_path / "fit.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|//[a-z]|@import|<link|src=\"(?!data:)", re.sub(r"data:[^\"]*", "data:", page))
    pictures = re.findall(r'"data:image/png;base64,([^"]+)"', page)
    assert len(pictures) == len(animation.steps) + 1  # the first is shown before the script runs
    sizes = {Image.open(io.BytesIO(base64.b64decode(picture))).size for picture in pictures}
    assert sizes == {(660, 330)}
    assert page.count("<script>") == page.count("</script>") == 1
    assert animation._repr_html_() in page


def test_the_drawing_of_a_step(walk):
    figure, ax = plt.subplots()
    step = len(walk) // 2
    sides = np.linspace(-2, 3, 30)
    grid = np.column_stack([axis.ravel() for axis in np.meshgrid(sides, sides)])
    _draw_machine(ax, walk, step, sides, sides, walk.decision_values(grid, [step]).reshape(30, 30))
    rings = ax.collections[-1].get_offsets()
    np.testing.assert_array_equal(rings, X[walk.working_sets[step]])
    assert ax.get_title(loc="left") == f"step {step} of {len(walk) - 1}"
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize(("every", "most"), [(None, 7), (5, 100), (1, 7), (None, 1000), (None, 1)])
def test_frames_are_few_and_the_last_step_is_among_them(walk, every, most):
    steps = animate(walk, every=every, max_frames=most).steps
    assert len(steps) <= most
    assert steps[-1] == len(walk) - 1
    assert (np.diff(steps) > 0).all()
    if every is None and most > len(walk):
        np.testing.assert_array_equal(steps, np.arange(len(walk)))


def test_one_clear_sentence(walk, tmp_path):
    wide, target = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="the labels are of 3 classes"):
        maxmargin.trace(wide, target)
    with pytest.raises(ValueError, match=r"exactly two features, but X has shape \(100, 4\)"):
        animate(maxmargin.trace(wide[:100], target[:100]))
    with pytest.raises(ValueError, match="exactly two features"):
        animate(maxmargin.trace(np.eye(2), [0, 1], kernel="precomputed"))
    with pytest.raises(ValueError, match=r"written as .gif or .html, not as 'fit.mp4'"):
        animate(walk).save(tmp_path / "fit.mp4")
    with pytest.raises(ValueError, match="max_frames must be at least 1, not 0"):
        animate(walk, max_frames=0)
    with pytest.raises(ValueError, match="solver"):
        maxmargin.trace(X, Y, solver="magic")
    with pytest.raises(TypeError, match="unexpected keyword"):
        maxmargin.trace(X, Y, cost=3)


def test_a_hard_margin_and_two_samples(tmp_path):
    apart, labels = make_blobs(30, centers=[[0, 0], [6, 6]], random_state=0)
    walk = maxmargin.trace(apart, labels, kernel="linear", C=np.inf)
    assert walk.certificate.violation <= 1e-3
    two = maxmargin.trace([[0.0, 0.0], [1.0, 0.0]], [0, 1], kernel="linear", C=10)
    np.testing.assert_allclose(two.decision_values([[0.5, 3.0], [1.0, 0.0]])[-1], [0.0, 1.0], atol=1e-12)
    animate(two).save(tmp_path / "two.gif")
