"""Traces of fits, verified by the certificate at every step, and their animations."""

import base64
import io
import re
import sys
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.animation import FFMpegWriter
from PIL import Image
from sklearn.datasets import load_iris, make_blobs, make_moons

import maxmargin
from maxmargin import SVC, certify
from maxmargin.plotting import ConvergenceDisplay, animate
from maxmargin.plotting.animation import _draw_model
from maxmargin.solvers import PairwiseSolver, StoppingRule

X, Y = make_moons(40, noise=0.2, random_state=0)


@pytest.fixture(scope="module")
def fit_trace():
    return maxmargin.trace(X, Y, C=2.0, gamma=1.0)


def test_every_step_agrees_with_the_certificate(fit_trace):
    assert (
        len(fit_trace)
        == len(fit_trace.entries)
        == len(fit_trace.duals)
        == len(fit_trace.offsets)
        == len(fit_trace.working_sets)
    )
    for step, entry in enumerate(fit_trace.entries):
        certificate = certify(fit_trace.problem, fit_trace.duals[step])
        np.testing.assert_allclose(entry.primal, certificate.primal, rtol=1e-9)
        np.testing.assert_allclose(entry.dual, certificate.dual, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(entry.violation, certificate.violation, rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(fit_trace.offsets[step], certificate.offset[0], rtol=1e-9, atol=1e-12)
    assert fit_trace.certificate.violation <= 1e-3


def test_each_step_changes_a_pair_and_increases_the_dual_value(fit_trace):
    assert len(fit_trace.working_sets[0]) == 0
    assert [len(pair) for pair in fit_trace.working_sets[1:]] == [2] * (len(fit_trace) - 1)
    np.testing.assert_array_equal(fit_trace.values("iteration"), np.arange(len(fit_trace)))
    assert (np.diff(fit_trace.values("dual")) > 0).all()
    np.testing.assert_allclose(fit_trace.duals.sum(axis=1), 0.0, atol=1e-12)
    for before, after, pair in zip(fit_trace.duals[:-1], fit_trace.duals[1:], fit_trace.working_sets[1:], strict=True):
        up, down = (after - before)[pair]
        np.testing.assert_allclose(up, -down)


def test_last_step_is_the_fitted_model(fit_trace):
    model = SVC(C=2.0, gamma=1.0).fit(X, Y)
    grid = np.random.default_rng(0).uniform(-2, 3, size=(50, 2))
    values = fit_trace.decision_values(grid)
    assert values.shape == (len(fit_trace), 50)
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
def test_traces_with_other_options(options):
    fit_trace = maxmargin.trace(X, Y, **options)
    certificate = certify(fit_trace.problem, fit_trace.duals[-1])
    np.testing.assert_array_equal(fit_trace.duals[-1], fit_trace.solution.dual)
    np.testing.assert_allclose(
        fit_trace.entries[-1].primal, certificate.primal, rtol=1e-6
    )  # the block solver uses float32 kernel values
    offset = certificate.offset[0] if fit_trace.problem.groups else 0.0
    np.testing.assert_allclose(fit_trace.offsets[-1], offset)
    assert animate(fit_trace).steps[-1] == len(fit_trace) - 1


def test_string_labels_and_fewer_entries():
    names = np.array(["yes", "no"])[Y]
    fit_trace = maxmargin.trace(X, names, gamma=1.0, steps=10)
    np.testing.assert_array_equal(fit_trace.classes, ["no", "yes"])
    np.testing.assert_array_equal(fit_trace.signs, np.where(names == "yes", 1.0, -1.0))
    assert (np.diff(fit_trace.values("iteration")) <= 10).all()
    assert len(fit_trace) < fit_trace.solution.counters.iterations
    shown = maxmargin.trace(X @ X.T, Y, kernel="precomputed")
    assert shown.kernel is None
    with pytest.raises(ValueError, match="kernel values were given"):
        shown.decision_values(X)


def test_gif(fit_trace, tmp_path):
    animation = animate(fit_trace, max_frames=6, milliseconds=100)
    path = animation.save(tmp_path / "fit.gif")
    assert path.stat().st_size < 200_000
    with Image.open(path) as gif:
        assert gif.n_frames == len(animation.steps)
        frames = []
        for number in range(gif.n_frames):
            gif.seek(number)
            gif.load()
            frames.append(np.asarray(gif.convert("RGB")))
            assert gif.info["duration"] == (100 if number < gif.n_frames - 1 else 2000)
    assert all((one != other).any() for one, other in pairwise(frames))
    assert plt.get_fignums() == []


def test_html_page_is_self_contained(fit_trace, tmp_path):
    animation = animate(fit_trace, every=10, max_frames=4)
    page = animation.save(tmp_path / "fit.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|//[a-z]|@import|<link|src=\"(?!data:)", re.sub(r"data:[^\"]*", "data:", page))
    pictures = re.findall(r'"data:image/png;base64,([^"]+)"', page)
    assert len(pictures) == len(animation.steps) + 1  # the first frame is shown before the script runs
    sizes = {Image.open(io.BytesIO(base64.b64decode(picture))).size for picture in pictures}
    assert sizes == {(660, 330)}
    assert page.count("<script>") == page.count("</script>") == 1
    assert animation._repr_html_() in page


#: Stands in for ffmpeg: writes its options and the number of bytes it gets.
FAKE_FFMPEG = """#!{python}
import sys
if "-version" not in sys.argv:
    size = len(sys.stdin.buffer.read())
    open(sys.argv[-1], "w").write(f"{{size}} " + " ".join(sys.argv[1:-1]))
"""


def test_mp4(fit_trace, tmp_path):
    program = tmp_path / "ffmpeg"
    program.write_text(FAKE_FFMPEG.format(python=sys.executable))
    program.chmod(0o755)
    animation = animate(fit_trace, max_frames=5, milliseconds=500)
    with plt.rc_context({"animation.ffmpeg_path": str(program)}):
        size, options = animation.save(tmp_path / "fit.mp4").read_text().split(" ", 1)
    frames = len(animation.steps) + 4  # the last one is shown for two more seconds
    assert int(size) == frames * 660 * 330 * 4
    assert "-s 660x330" in options
    assert "-framerate 2.0" in options
    assert plt.get_fignums() == []


def test_mp4_without_ffmpeg(fit_trace, tmp_path):
    with (
        plt.rc_context({"animation.ffmpeg_path": "no-such-program"}),
        pytest.raises(FileNotFoundError, match="needs the program ffmpeg.*install it"),
    ):
        animate(fit_trace).save(tmp_path / "fit.mp4")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not FFMpegWriter.isAvailable(), reason="needs ffmpeg")
def test_mp4_of_ffmpeg(fit_trace, tmp_path):
    path = animate(fit_trace, max_frames=3).save(tmp_path / "fit.mp4")
    assert path.read_bytes()[4:8] == b"ftyp"


@pytest.fixture(scope="module")
def several():
    return maxmargin.trace(*THREE, gamma=0.5, C=5.0)


THREE = make_blobs(45, centers=3, cluster_std=1.2, random_state=0)


def test_a_trace_for_each_pair_of_classes(several):
    samples, labels = THREE
    assert list(several.pairs) == ["0 and 1", "0 and 2", "1 and 2"]
    model = SVC(gamma=0.5, C=5.0, decision_function_shape="ovo").fit(samples, labels)
    found = several.decision_values(samples, [-1])[0]
    np.testing.assert_allclose(found, -model.decision_function(samples), atol=5e-3)
    predicted = several.predicted_classes(samples, [0, -1])
    np.testing.assert_array_equal(predicted[-1], model.predict(samples))
    assert predicted.shape == (2, 45)
    for (name, pair), rows in zip(several.pairs.items(), several.rows, strict=True):
        names = [int(word) for word in name.split(" and ")]
        np.testing.assert_array_equal(pair.classes, names)
        assert set(labels[rows]) == set(names)
        alone = maxmargin.trace(samples[rows], labels[rows], gamma=0.5, C=5.0)
        np.testing.assert_array_equal(pair.duals, alone.duals)
    assert len(several) == max(map(len, several.pairs.values()))


def test_values_of_several_classes_are_sums_over_the_pairs(several):
    pairs = several.pairs.values()
    assert several.values("dual")[-1] == sum(pair.values("dual")[-1] for pair in pairs)
    assert several.values("violation")[-1] == max(pair.values("violation")[-1] for pair in pairs)
    assert (np.diff(several.values("dual")) > 0).all()
    step = min(map(len, pairs))  # one pair is finished, the others go on
    changed = several.working_sets_of(step)
    assert 0 < len(changed) < 3
    assert all(len(members) == 2 for members in changed)
    assert several.working_sets_of(0) == []
    assert (several.dual_sizes(0) == 0).all()
    assert several.dual_sizes(len(several) - 1).max() == pytest.approx(5.0)


def test_animation_and_convergence_of_several_classes(several, tmp_path):
    animation = animate(several, max_frames=4)
    with Image.open(animation.save(tmp_path / "fit.gif")) as gif:
        assert gif.n_frames == len(animation.steps) == 4
    display = ConvergenceDisplay.from_trace(several)
    assert [line.get_label() for line in display.ax_.get_lines()] == list(several.pairs)


def test_several_classes_of_a_precomputed_kernel_and_with_weights():
    samples, labels = THREE
    given = maxmargin.trace(samples @ samples.T, labels, kernel="precomputed", class_weight={0: 3.0})
    expected = maxmargin.trace(samples, labels, kernel="linear", class_weight={0: 3.0})
    for name, pair in given.pairs.items():
        np.testing.assert_allclose(pair.duals[-1], expected.pairs[name].duals[-1], atol=1e-3)
        assert pair.certificate.violation <= 1e-3
    assert given.kernel is None
    names = np.array(["red", "green", "blue"])[labels]
    assert list(maxmargin.trace(samples, names).pairs) == ["blue and green", "blue and red", "green and red"]


def test_frame_of_a_step(fit_trace):
    figure, ax = plt.subplots()
    step = len(fit_trace) // 2
    axis = np.linspace(-2, 3, 30)
    grid = np.column_stack([values.ravel() for values in np.meshgrid(axis, axis)])
    _draw_model(ax, fit_trace, step, axis, axis, fit_trace.decision_values(grid, [step]).reshape(30, 30))
    rings = ax.collections[-1].get_offsets()
    np.testing.assert_array_equal(rings, X[fit_trace.working_sets[step]])
    assert ax.get_title(loc="left") == f"step {step} of {len(fit_trace) - 1}"
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize(("every", "max_frames"), [(None, 7), (5, 100), (1, 7), (None, 1000), (None, 1)])
def test_frames_are_limited_and_include_the_last_step(fit_trace, every, max_frames):
    steps = animate(fit_trace, every=every, max_frames=max_frames).steps
    assert len(steps) <= max_frames
    assert steps[-1] == len(fit_trace) - 1
    assert (np.diff(steps) > 0).all()
    if every is None and max_frames > len(fit_trace):
        np.testing.assert_array_equal(steps, np.arange(len(fit_trace)))


def test_errors(fit_trace, tmp_path):
    wide, target = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="is a different problem"):
        maxmargin.trace(wide, target, multi_class="ovr")
    with pytest.raises(ValueError, match=r"exactly two features, but X has shape \(100, 4\)"):
        animate(maxmargin.trace(wide[:100], target[:100]))
    with pytest.raises(ValueError, match="exactly two features"):
        animate(maxmargin.trace(np.eye(2), [0, 1], kernel="precomputed"))
    with pytest.raises(ValueError, match=r"must end with .gif, .mp4 or .html, but it is 'fit.avi'"):
        animate(fit_trace).save(tmp_path / "fit.avi")
    with pytest.raises(ValueError, match="max_frames must be at least 1, not 0"):
        animate(fit_trace, max_frames=0)
    with pytest.raises(ValueError, match="solver"):
        maxmargin.trace(X, Y, solver="magic")
    with pytest.raises(TypeError, match="unexpected keyword"):
        maxmargin.trace(X, Y, cost=3)


def test_hard_margin_and_two_samples(tmp_path):
    apart, labels = make_blobs(30, centers=[[0, 0], [6, 6]], random_state=0)
    fit_trace = maxmargin.trace(apart, labels, kernel="linear", C=np.inf)
    assert fit_trace.certificate.violation <= 1e-3
    two = maxmargin.trace([[0.0, 0.0], [1.0, 0.0]], [0, 1], kernel="linear", C=10)
    np.testing.assert_allclose(two.decision_values([[0.5, 3.0], [1.0, 0.0]])[-1], [0.0, 1.0], atol=1e-12)
    animate(two).save(tmp_path / "two.gif")
