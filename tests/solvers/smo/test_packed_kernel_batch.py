"""Small problems whose kernel rows are computed in native code: the steps are those on a matrix in memory."""

import numpy as np
import pytest

from maxmargin import SVC, NuSVC, _native
from maxmargin.backends.interface import StopReason
from maxmargin.formulations import c_classification, nu_classification
from maxmargin.kernels import Gaussian, Laplacian, Linear, Points, Polynomial, Sigmoid
from maxmargin.matrices import KernelMatrix, PrecomputedMatrix
from maxmargin.matrices.full_kernel_matrix import FullKernelMatrix
from maxmargin.matrices.packed_kernel import PackedKernel
from maxmargin.problems import certify
from maxmargin.solvers.smo.small_problem_batch import SmallProblemBatch
from maxmargin.testing.named_problems import two_clouds
from maxmargin.training import fit_context
from reference.shrunk_pairwise import Steps


def clouds_in_three_classes(count=150):
    """Points of three classes of uneven size, and the samples of each."""
    X, _ = two_clouds(count, 5, 1.0)
    order = np.random.default_rng(3).permutation(count)
    members = [np.sort(order[: count // 2]), np.sort(order[count // 2 : -9]), np.sort(order[-9:])]
    for k, rows in enumerate(members):
        X[rows] += 0.8 * k
    return Points(X), members


PAIRS = [(0, 1), (0, 2), (1, 2)]


def both_batches(kernel, points, members, pose, stored_values=2**20):
    """Return the batch of the pairs of classes on a packed kernel, and on its matrix in memory."""
    full = FullKernelMatrix.of(kernel, points, np.concatenate(members), 1)
    pairs = [np.concatenate([members[a], members[b]]) for a, b in PAIRS]
    signs = [np.repeat([1.0, -1.0], [len(members[a]), len(members[b])]) for a, b in PAIRS]
    computed = [pose(KernelMatrix(kernel, points.take(rows)), *rest) for rows, *rest in zip(pairs, signs, strict=True)]
    stored = [pose(full(rows), *rest) for rows, *rest in zip(pairs, signs, strict=True)]
    packed = PackedKernel.of(kernel, points, members, stored_values, 1)
    return SmallProblemBatch.of(computed, kernel=packed), SmallProblemBatch.of(stored)


def pose_soft_margin(matrix, signs):
    return c_classification.pose(matrix, signs, np.full(len(signs), 2.0))


def pose_nu(matrix, signs):
    return nu_classification.pose(matrix, signs, np.ones(len(signs)), 0.2)


@pytest.mark.parametrize("pose", [pose_soft_margin, pose_nu])
@pytest.mark.parametrize(
    "kernel", [Gaussian(0.3), Laplacian(0.2), Linear(), Polynomial(2, 0.5, 1.0), Sigmoid(0.01, 0.0)], ids=str
)
def test_the_steps_are_those_on_a_matrix_in_memory(kernel, pose):
    computed, stored = both_batches(kernel, *clouds_in_three_classes(), pose)
    one, other = computed.solve(1e-3, 1), stored.solve(1e-3, 1)
    np.testing.assert_array_equal(one.dual, other.dual)
    np.testing.assert_array_equal(one.gradient, other.gradient)
    np.testing.assert_array_equal(one.offsets, other.offsets)
    np.testing.assert_array_equal(one.outcomes[:, :3], other.outcomes[:, :3])


def test_only_rows_of_variables_that_change_are_computed():
    computed, _ = both_batches(Gaussian(0.3), *clouds_in_three_classes(), pose_soft_margin)
    solved = computed.solve(1e-3, 2)
    for p in range(len(computed)):
        at = computed.variables(p)
        rows = solved.outcomes[p, 3]
        assert np.count_nonzero(solved.dual[at]) <= rows < at.stop - at.start
        assert solved.counters(p).kernel_evaluations == rows * (at.stop - at.start)


def test_a_problem_without_memory_for_its_rows_comes_back_unfinished():
    points, members = clouds_in_three_classes()
    computed, _ = both_batches(Gaussian(0.3), points, members, pose_soft_margin, stored_values=6000)
    solved = computed.solve(1e-3, 1)
    reasons = solved.outcomes[:, 0]
    assert reasons[0] == StopReason.NEEDS_ROW
    assert reasons[2] == StopReason.OPTIMAL  # few samples, which need few rows
    started = SmallProblemBatch.of([pose_soft_margin(KernelMatrix(Gaussian(0.3), points), sign_of(points))], [
        0.5 * sign_of(points)
    ], PackedKernel.of(Gaussian(0.3), points, [np.arange(len(points))], 1000, 1))  # fmt: skip
    assert started.solve(1e-3, 1).outcomes[0, 0] == StopReason.NEEDS_ROW


def sign_of(points):
    return np.where(np.arange(len(points)) % 2, 1.0, -1.0)


def test_what_it_does_not_take():
    points, members = clouds_in_three_classes()
    signs = np.repeat([1.0, -1.0], [len(members[0]), len(members[1])])
    pair, matrix = np.concatenate(members[:2]), PrecomputedMatrix(np.eye(len(signs)))
    packed = PackedKernel.of(Gaussian(1.0), points, members, 2**20, 1)
    unbiased = c_classification.pose(
        KernelMatrix(Gaussian(1.0), points.take(pair)), signs, np.ones(len(signs)), fit_intercept=False
    )
    assert SmallProblemBatch.of([unbiased], kernel=packed) is None
    assert SmallProblemBatch.of([pose_soft_margin(matrix, signs)], kernel=packed) is None
    assert PackedKernel.of(lambda X, Z: X @ Z.T, points, members, 2**20, 1) is None


def test_the_call_checks_the_memory_of_its_threads():
    computed, _ = both_batches(Gaussian(0.3), *clouds_in_three_classes(), pose_soft_margin)
    batch = _native.ProblemBatch(
        matrix=computed.values, indices=computed.rows, edges=computed.edges, linear=computed.linear,
        lower=computed.lower, upper=computed.upper, ridge=computed.ridge, groups=1, group=computed.group,
        kink=computed.kink, samples=computed.kernel.samples(1),
    )  # fmt: skip
    point = np.zeros(len(computed.linear)), np.zeros(len(computed.linear)), np.full((3, 4), -1), np.zeros((3, 1))
    limits = _native.StepLimits(tolerance=1e-3, max_steps=10, max_seconds=1.0)
    with pytest.raises(ValueError, match="memory for every thread"):
        _native.solve_small_problems(batch, *point, limits, 5, 2)


@pytest.mark.parametrize("machine", [SVC(), SVC(C=50.0), NuSVC(nu=0.05), SVC(kernel="poly", degree=2)], ids=str)
def test_fits_of_several_classes_are_certified_and_the_same_on_any_number_of_threads(machine, monkeypatch):
    monkeypatch.setattr(fit_context, "MAX_FULL_KERNEL_ROWS", 100)
    monkeypatch.setattr(fit_context, "STORED_VALUES", 20_000)
    points, members = clouds_in_three_classes(600)
    y = np.empty(600)
    for k, rows in enumerate(members):
        y[rows] = k
    packed = []
    of = PackedKernel.of
    monkeypatch.setattr(PackedKernel, "of", lambda *rest: packed.append(of(*rest)) or packed[-1])
    monkeypatch.setattr(fit_context, "MAX_SINGLE_THREAD_ROWS", 100)
    one, two = (machine.set_params(n_jobs=jobs).fit(points.data, y) for jobs in (1, 2))
    assert packed
    assert all(each.violation <= 1e-3 for each in one.certificate_)
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)


def test_unfinished_problems_continue_in_the_solver_of_large_ones(monkeypatch):
    monkeypatch.setattr(fit_context, "MAX_FULL_KERNEL_ROWS", 100)
    points, members = clouds_in_three_classes(600)
    y = np.empty(600)
    for k, rows in enumerate(members):
        y[rows] = k
    whole = SVC(C=5.0).fit(points.data, y)
    monkeypatch.setattr(fit_context, "STORED_VALUES", 4000)
    part = SVC(C=5.0).fit(points.data, y)
    assert all(status.converged for status in part.status_)
    for a, b in zip(whole.certificate_, part.certificate_, strict=True):
        assert b.violation <= 1e-3
        assert b.dual == pytest.approx(a.dual, rel=1e-5)


@pytest.mark.parametrize("cost", [0.5, 20.0])
def test_shrinking_takes_the_steps_of_the_reference(cost):
    random = np.random.default_rng(5)
    signs = np.repeat([1.0, -1.0], [180, 260])
    X = random.normal(size=(440, 3)) + 0.9 * signs[:, None]
    kernel, points, classes = Gaussian(0.5), Points(X), [np.arange(180), np.arange(180, 440)]
    problem = c_classification.pose(KernelMatrix(kernel, points), signs, np.full(440, cost))
    batch = SmallProblemBatch.of([problem], kernel=PackedKernel.of(kernel, points, classes, 2**20, 1))
    solved = batch.solve(1e-3, 1, max_free=0)
    reference = Steps(kernel(X, X), problem.linear, problem.lower, problem.upper)
    reference.solve(1e-3)
    assert min(reference.sizes) < 220  # some variables are left out
    assert solved.outcomes[0, 0] == StopReason.OPTIMAL
    assert solved.outcomes[0, 1] == reference.taken
    np.testing.assert_allclose(solved.dual, reference.dual, atol=1e-9)
    np.testing.assert_allclose(solved.gradient, problem.gradient(solved.dual), atol=1e-10)


def test_shrinking_keeps_within_the_memory_for_rows():
    random = np.random.default_rng(5)
    signs = np.repeat([1.0, -1.0], [180, 260])
    points = Points(random.normal(size=(440, 3)) + 0.9 * signs[:, None])
    kernel, classes = Gaussian(0.5), [np.arange(180), np.arange(180, 440)]
    problem = c_classification.pose(KernelMatrix(kernel, points), signs, np.full(440, 0.5))
    reasons = []
    for stored_values in (2**15, 50_000, 2**16, 70_000, 80_000, 2**17, 2**20):
        batch = SmallProblemBatch.of([problem], kernel=PackedKernel.of(kernel, points, classes, stored_values, 1))
        solved = batch.solve(1e-3, 1)
        reasons.append(int(solved.outcomes[0, 0]))
        if reasons[-1] == StopReason.OPTIMAL:
            assert certify(problem, solved.dual).violation <= 1e-3
    assert reasons[0] == StopReason.NEEDS_ROW
    assert reasons[-1] == StopReason.OPTIMAL
