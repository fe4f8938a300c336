"""Choice of ν and γ without labels."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_moons

from maxmargin import OneClassSVM, OneClassSVMCV
from maxmargin.kernels import Gaussian
from maxmargin.search.novelty_score import BackgroundScore

RANDOM = np.random.default_rng(0)
MOONS = make_moons(300, noise=0.05, random_state=0)[0]


class Everything:
    """A detector whose region has a known form."""

    def __init__(self, inside):
        self.inside = inside

    def predict(self, X):
        return np.where(self.inside(X), 1, -1)


def test_regions_without_information_score_0():
    score = BackgroundScore(MOONS)
    for inside in (lambda X: np.ones(len(X), bool), lambda X: np.zeros(len(X), bool)):
        assert score(Everything(inside), MOONS) == 0.0
    half = Everything(lambda X: np.arange(len(X)) % 2 == 0)
    assert abs(score(half, MOONS)) < 0.01


def test_background_is_half_uniform_in_the_box_and_half_shuffled():
    samples = np.column_stack([MOONS, MOONS[:, 0]])
    background = BackgroundScore(samples, samples=1000, seed=3).background
    assert background.shape == (1000, 3)
    assert (background.min(axis=0) >= samples.min(axis=0)).all()
    assert (background.max(axis=0) <= samples.max(axis=0)).all()
    shuffled = background[500:]
    assert all(np.isin(shuffled[:, column], samples[:, column]).all() for column in range(3))
    assert not (shuffled[:, 0] == shuffled[:, 2]).any() or (shuffled[:, 0] == shuffled[:, 2]).mean() < 0.05
    np.testing.assert_array_equal(background, BackgroundScore(samples, samples=1000, seed=3).background)
    assert not np.array_equal(background, BackgroundScore(samples, samples=1000, seed=4).background)


def test_weights():
    score, half = BackgroundScore(MOONS), Everything(lambda X: np.arange(len(X)) < len(X) / 2)
    weights = np.repeat([3.0, 1.0], 150)
    assert score(half, MOONS, sample_weight=weights) - score(half, MOONS) == pytest.approx(0.25)


def test_sparse_background_has_the_nonzeros_of_the_features():
    data = (
        sparse.random(500, 30, 0.1, random_state=0, format="csr")
        @ sparse.diags((np.arange(30) != 3).astype(float)).tocsr()
    )
    data.eliminate_zeros()
    background = BackgroundScore(data, samples=2000).background
    assert sparse.issparse(background)
    assert background.shape == (2000, 30)
    counts = [np.diff(matrix.tocsc().indptr) / matrix.shape[0] for matrix in (data, background)]
    np.testing.assert_allclose(*counts, atol=0.03)
    assert counts[1][3] == 0
    assert np.isin(background.data, data.data).all()


@pytest.mark.parametrize("form", [np.asarray, np.float32, sparse.csr_matrix])
def test_gamma_that_follows_the_shape_of_the_data(form):
    found = OneClassSVMCV(nus=[0.05], gammas=[1e-3, 1e-1, 10, 1e4]).fit(form(MOONS))
    assert found.best_params_["gamma"] == 10  # less is one blob around both moons, more is single samples
    assert np.mean(found.predict(form(MOONS)) == -1) < 0.15


def test_many_dimensions():
    angle = RANDOM.uniform(0, 2 * np.pi, 400)
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) @ RANDOM.normal(size=(2, 30))
    samples = ring + RANDOM.normal(size=(400, 30)) * 0.1
    found = OneClassSVMCV(nus=[0.05], gammas=[1e-6, 0.1, 1e4]).fit(samples)
    assert found.best_params_["gamma"] == 0.1
    assert found.best_score_ > 0.5


def test_labels_take_the_place_of_the_background():
    samples = np.vstack([MOONS, RANDOM.uniform(-2, 3, (40, 2))])
    labels = np.repeat([1, -1], [300, 40])
    found = OneClassSVMCV(nus=[0.05, 0.2], gammas=[0.1, 10]).fit(samples, labels)
    assert found.search_.scoring == "balanced_accuracy"
    by_name = OneClassSVMCV(nus=[0.05, 0.2], gammas=[0.1, 10], scoring="f1").fit(samples, labels)
    assert by_name.search_.scoring == "f1"
    expected = OneClassSVM(**found.best_params_).fit(samples)
    np.testing.assert_array_equal(found.predict(samples), expected.predict(samples))
    for other in (np.ones(340), np.arange(340), np.repeat(["a", "b"], 170), None):  # no labels of novelties
        unlabelled = OneClassSVMCV(nus=[0.05], gammas=[0.1, 10]).fit(samples, other)
        assert unlabelled.search_.scoring == "coverage minus background"


def test_what_needs_labels_or_scoring():
    for samples, options in ((MOONS @ MOONS.T, {"kernel": "precomputed"}),
                             (["a", "b", "c"] * 5, {"kernel": lambda A, B: np.ones((len(A), len(B)))})):  # fmt: skip
        with pytest.raises(ValueError, match="give y with the labels 1 and −1, or scoring"):
            OneClassSVMCV(nus=[0.1], **options).fit(samples)
    labels = np.where(np.arange(300) % 10 == 0, -1, 1)
    assert OneClassSVMCV(nus=[0.1], kernel="precomputed").fit(MOONS @ MOONS.T, labels).best_params_ == {"nu": 0.1}
    assert OneClassSVMCV(nus=[0.1, 0.2], kernel=Gaussian(1.0)).fit(MOONS).best_score_ > 0
    with pytest.raises(ValueError, match="y has the shape"):
        OneClassSVMCV().fit(MOONS, [1, -1])


@pytest.mark.parametrize("nus", [[0.0], [1.5], []])
def test_nu_outside_of_its_range(nus):
    with pytest.raises(ValueError, match="nus must be numbers above 0 and at most 1"):
        OneClassSVMCV(nus=nus).fit(MOONS)
