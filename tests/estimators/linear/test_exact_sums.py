"""Bounds on the exact kernel optimum from blocks of rows: they contain it, and need no more than one pass."""

from io import BytesIO
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from maxmargin import SVC, KernelApproximationSVC, blocks, load, save
from maxmargin.datasets import chessboard
from maxmargin.kernels import Gaussian, Points
from maxmargin.machines.linear import exact_sums
from maxmargin.matrices import KernelMatrix
from maxmargin.matrices.group_forms import equal_shares, group_form_rows, group_forms, symmetric_forms
from reference.data import wine


def assert_contains(bounds, exact):
    assert bounds.dual <= exact.primal
    assert exact.dual <= bounds.primal <= bounds.model_primal


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [1e-6, 0.1, 10.0])
@pytest.mark.parametrize("landmarks", [1, 10, 150])
def test_costs_and_landmarks(loss, C, landmarks):
    X, y = chessboard(400, noise=0.05)
    exact = SVC(C=C, gamma=2.0, loss=loss, tol=1e-8, max_seconds=20).fit(X, y).certificate_
    model = KernelApproximationSVC(
        C, gamma=2.0, loss=loss, n_components=landmarks, certify="exact", random_state=0, tol=1e-2
    ).fit(blocks.open(X, y, block_rows=90))
    bounds = model.exact_certificate_
    assert_contains(bounds, exact)
    assert bounds.dual > 0
    if landmarks == 150 and 0.1 <= C <= 10.0:
        assert bounds.relative_gap < 0.1


@pytest.mark.parametrize(
    "kernel", ["linear", "poly", "laplacian", "chi_squared", 0.5 * Gaussian(0.1), lambda X, Z: X @ Z.T]
)
def test_kernels_of_random_problems_with_weights_and_repeated_rows(kernel):
    random = np.random.default_rng(1)
    for _ in range(3):
        X = np.abs(random.standard_normal((120, 4)))
        X = np.vstack([X, X[:40]])
        y = (X[:, 0] + 0.5 * random.standard_normal(160) > 0.7).astype(int)
        weights = random.choice([0.0, 0.5, 1.0, 3.0], 160)
        weights[:25] = 0.0  # a block without a row that takes part
        options = {"kernel": kernel, "coef0": 1.0, "class_weight": {0: 1.0, 1: 2.0}}
        exact = SVC(C=2.0, tol=1e-8, **options).fit(X, y, weights).certificate_
        model = KernelApproximationSVC(2.0, n_components=int(random.integers(2, 100)), certify="exact", **options)
        model.set_params(random_state=0).fit(blocks.open(X, y, weights, block_rows=25))
        assert_contains(model.exact_certificate_, exact)


def test_one_certificate_for_each_class_with_names_and_later():
    X, y = wine()
    names = np.array(["ash", "birch", "cedar"])[y]
    factors = {"ash": 2.0, "birch": 1.0, "cedar": 0.5}
    model = KernelApproximationSVC(
        gamma=0.05, n_components=60, class_weight=factors, certify="exact", random_state=0
    ).fit(blocks.open(X, names, block_rows=40))
    passes = model.n_passes_
    assert len(model.exact_certificate_) == 3
    for number, bounds in enumerate(model.exact_certificate_):
        own = {0: 1.0, 1: list(factors.values())[number]}
        exact = SVC(gamma=0.05, class_weight=own, tol=1e-8).fit(X, y == number).certificate_
        assert_contains(bounds, exact)
        assert bounds.dual > 0.97 * exact.dual
        assert bounds.relative_gap < 0.2
    file = BytesIO()
    save(model, file)
    for other in (model, load(BytesIO(file.getvalue()))):
        assert other.certify_exact(blocks.open(X, names, block_rows=40)) == model.exact_certificate_
    plain = model.set_params(certify=None).fit(blocks.open(X, names, block_rows=40))
    assert plain.n_passes_ == passes - 1
    assert not hasattr(plain, "exact_certificate_")


def test_sparse_blocks():
    X, y = wine()
    X, y = np.where(np.abs(X) < 0.5, 0.0, X)[y < 2], y[y < 2]
    exact = SVC(gamma=0.1, tol=1e-8).fit(X, y).certificate_
    model = KernelApproximationSVC(gamma=0.1, n_components=20, certify="exact", random_state=0)
    table = blocks.open(sparse.csr_array(X), y, block_rows=30)
    assert_contains(model.fit(table).exact_certificate_, exact)
    dense = model.certify_exact(blocks.open(X, y))  # landmarks are sparse
    assert dense.primal == pytest.approx(model.exact_certificate_.primal, rel=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_rows_are_kept_at_random_if_they_are_too_many(monkeypatch, classes):
    X, y = chessboard(3000, noise=0.2)
    y = y + (X[:, 0] > 0.6) if classes == 3 else y
    model = KernelApproximationSVC(gamma=2.0, n_components=30, certify="exact", random_state=0)
    every = np.atleast_1d(model.fit(blocks.open(X, y, block_rows=200)).exact_certificate_)
    monkeypatch.setattr(exact_sums, "_most", lambda X, problems: 300)
    few = np.atleast_1d(model.certify_exact(blocks.open(X, y, block_rows=200)))
    for bounds, less in zip(every, few, strict=True):
        assert int(less.dual_from.split()[0]) <= 300
        assert 0 < less.dual < bounds.dual
        assert less.primal == bounds.primal
    other = np.atleast_1d(model.certify_exact(blocks.open(X, y, block_rows=200)))
    assert all(other == few)


def test_threads_and_limits_that_are_not_reached_do_not_matter():
    X, y = chessboard(1500, noise=0.1)
    table = blocks.open(X, y, block_rows=400)
    found = [
        KernelApproximationSVC(
            gamma=2.0, n_components=40, certify="exact", random_state=0, n_jobs=threads, max_seconds=seconds
        ).fit(table).exact_certificate_
        for threads, seconds in [(1, None), (2, None), (1, 1000)]
    ]  # fmt: skip
    assert found[0] == found[2]
    assert found[1].dual == pytest.approx(found[0].dual, rel=1e-6)


def test_without_time_there_are_no_bounds():
    X, y = chessboard(1500, noise=0.1)
    model = KernelApproximationSVC(gamma=2.0, n_components=40, random_state=0).fit(blocks.open(X, y))
    bounds = model.set_params(max_seconds=0).certify_exact(blocks.open(X, y))
    assert bounds.dual == 0.0
    assert bounds.primal == np.inf == bounds.relative_gap
    assert "no time" in str(bounds)


def test_an_indefinite_kernel_has_no_bounds():
    X, y = chessboard(300, noise=0.1)
    model = KernelApproximationSVC(
        kernel="sigmoid", gamma=2.0, coef0=-3.0, n_components=40, certify="exact", random_state=0
    ).fit(blocks.open(X, y))
    assert "indefinite" in str(model.exact_certificate_)
    assert model.exact_certificate_.dual == -np.inf


def test_errors():
    X, y = chessboard(300, noise=0.1)
    model = KernelApproximationSVC(gamma=2.0, n_components=20, random_state=0).fit(blocks.open(X, y))
    with pytest.raises(ValueError, match="3 features, but the model was fitted with 2"):
        model.certify_exact(blocks.open(np.ones((5, 3)), [0, 1, 0, 1, 1]))
    with pytest.raises(ValueError, match="the label 7, which is not one of the 2 classes of fit"):
        model.certify_exact(blocks.open(X, np.where(np.arange(300) == 299, 7, y), block_rows=100))
    with pytest.raises(ValueError, match="'late', which is not one"):
        model.certify_exact(blocks.open(X, np.full(300, "late")))
    with pytest.raises(ValueError, match="no labels"):
        model.certify_exact(blocks.open(X))
    with pytest.raises(ValueError, match="weights are 0"):
        model.certify_exact(blocks.open(X, y, np.zeros(300)))


@pytest.mark.parametrize("groups", [7, 150])
def test_shares_of_the_forms_are_those_of_all(groups):
    random = np.random.default_rng(0)
    matrix, vector = KernelMatrix(Gaussian(0.5), Points(random.normal(size=(600, 3)))), random.normal(size=600)
    starts = np.append(0, np.sort(random.choice(np.arange(1, 600), groups - 1, replace=False)))
    forms = group_forms(matrix, vector, starts)
    for parts in (1, 5, 64, 1000):
        shares = equal_shares(starts, 600, parts)
        assert shares[0][0] == 0
        assert shares[-1][1] == groups
        assert len(shares) <= parts
        assert all(end == first for (_, end), (first, _) in pairwise(shares))
        rows = [group_form_rows(matrix, vector, starts, first, last) for first, last in shares]
        np.testing.assert_allclose(symmetric_forms(np.concatenate(rows)), forms, rtol=1e-12, atol=1e-12)
    assert forms.sum() == pytest.approx(vector @ matrix.matvec(vector))
