"""The small problems that every solver must certify, by name. The hard cases are hard on purpose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from maxmargin.formulations import (
    crammer_singer,
    epsilon_regression,
    least_squares_regression,
    squared_epsilon_regression,
    squared_hinge,
)
from maxmargin.formulations.c_classification import pose
from maxmargin.kernels import Gaussian, Kernel, Linear, Points, Sigmoid
from maxmargin.matrices import BiasAugmentedMatrix, KernelMatrix, PrecomputedMatrix, SymmetricMatrix
from maxmargin.problems import DualProblem


def two_clouds(n: int, features: int, distance: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    signs = np.where(np.arange(n) % 2, 1.0, -1.0)
    return random.normal(size=(n, features)) + 0.5 * distance * signs[:, None], signs


def classification(X, signs, kernel: Kernel, cost=1.0, fit_intercept=True) -> DualProblem:
    matrix = KernelMatrix(kernel, Points(np.asarray(X, dtype=float)))
    return pose(matrix, np.asarray(signs, dtype=float), np.broadcast_to(cost, len(signs)), fit_intercept)


def separable() -> DualProblem:
    return classification(*two_clouds(40, 3, 6.0), Linear(), 1.0)


def overlapping() -> DualProblem:
    return classification(*two_clouds(80, 2, 1.0), Gaussian(0.7), 1.0)


def without_bias() -> DualProblem:
    return classification(*two_clouds(60, 2, 1.0), Gaussian(0.7), 2.0, fit_intercept=False)


def equal_duplicates() -> DualProblem:
    X, signs = two_clouds(30, 2, 1.0)
    return classification(np.repeat(X, 3, axis=0), np.repeat(signs, 3), Gaussian(0.5), 1.0)


def opposite_duplicates() -> DualProblem:
    X, signs = two_clouds(30, 2, 1.0)
    return classification(np.vstack([X, X]), np.concatenate([signs, -signs]), Linear(), 1.0)


def almost_empty_class() -> DualProblem:
    X, signs = two_clouds(60, 2, 1.0)
    signs[:] = -1.0
    signs[7] = 1.0
    return classification(X, signs, Gaussian(1.0), 5.0)


def zero_diagonal() -> DualProblem:
    X, signs = two_clouds(20, 2, 1.0)
    X[:5] = 0.0
    return classification(X, signs, Linear(), 1.0)


def all_zero_matrix() -> DualProblem:
    signs = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    return pose(PrecomputedMatrix(np.zeros((5, 5))), signs, np.ones(5))


def all_at_bound() -> DualProblem:
    return classification(*two_clouds(40, 2, 0.2), Gaussian(0.5), 1e-4)


def huge_cost() -> DualProblem:
    return classification(*two_clouds(60, 2, 1.5), Gaussian(0.5), 1e6)


def tiny_cost() -> DualProblem:
    return classification(*two_clouds(60, 2, 1.5), Gaussian(0.5), 1e-8)


def unscaled_columns() -> DualProblem:
    X, signs = two_clouds(60, 3, 1.5)
    return classification(X * [1.0, 1e3, 1e-3] + [2000.0, 0.0, 1e6], signs, Linear(), 1e-3)


def singular_kernel() -> DualProblem:
    return classification(*two_clouds(50, 1, 1.0), Linear(), 10.0)


def two_samples() -> DualProblem:
    return classification([[0.0], [1.0]], [-1.0, 1.0], Linear(), 10.0)


def sample_costs() -> DualProblem:
    X, signs = two_clouds(50, 2, 1.0)
    costs = np.random.default_rng(3).uniform(0, 4, 50)
    costs[::7] = 0.0
    return classification(X, signs, Gaussian(0.5), costs)


def hard_margin() -> DualProblem:
    return classification(*two_clouds(40, 3, 8.0), Linear(), np.inf)


def with_ridge() -> DualProblem:
    """The squared hinge: unbounded above, with a ridge."""
    X, signs = two_clouds(50, 2, 1.0)
    return DualProblem(
        KernelMatrix(Gaussian(0.5), Points(X)),
        linear=signs,
        lower=np.where(signs > 0, 0.0, -np.inf),
        upper=np.where(signs > 0, np.inf, 0.0),
        ridge=np.full(50, 0.5),
    )


def two_groups() -> DualProblem:
    """ν-classification: the positives and the negatives each have a sum."""
    X, signs = two_clouds(50, 2, 1.0)
    return DualProblem(
        KernelMatrix(Gaussian(0.5), Points(X)),
        linear=np.zeros(50),
        lower=np.where(signs > 0, 0.0, -1.0) / 50,
        upper=np.where(signs > 0, 1.0, 0.0) / 50,
        group=(signs > 0).astype(np.int32),
        total=np.array([-0.15, 0.15]),
    )


def group_and_singles() -> DualProblem:
    """Half of the variables tied by a sum, half on their own."""
    X, signs = two_clouds(40, 2, 1.0)
    return DualProblem(
        KernelMatrix(Gaussian(0.5), Points(X)),
        linear=signs,
        lower=np.minimum(0.0, signs),
        upper=np.maximum(0.0, signs),
        group=np.where(np.arange(40) < 20, 0, -1).astype(np.int32),
        total=np.array([0.5]),
    )


def group_of_each_sample() -> DualProblem:
    """Crammer–Singer with four classes and duplicates: as many groups as samples."""
    X, _ = two_clouds(30, 2, 1.0)
    X[20:] = X[:10]
    costs = np.random.default_rng(1).uniform(0.1, 5.0, 30)
    return crammer_singer.pose(KernelMatrix(Gaussian(0.5), Points(X)), np.arange(30) % 4, 4, costs)


def one_class() -> DualProblem:
    X, _ = two_clouds(40, 2, 0.0)
    return DualProblem(
        KernelMatrix(Gaussian(0.5), Points(X)),
        linear=np.zeros(40),
        lower=np.zeros(40),
        upper=np.full(40, 1 / (0.3 * 40)),
        total=np.array([1.0]),
    )


def regression(cost=1.0, epsilon=0.1, squared=False, fit_intercept=True, repeats=1) -> DualProblem:
    """A noisy sine; with `repeats`, several targets at each point."""
    random = np.random.default_rng(7)
    X = np.repeat(random.uniform(0, 6, (60 // repeats, 1)), repeats, axis=0)
    targets = np.sin(X[:, 0]) + random.normal(scale=0.2, size=60)
    pose_regression = squared_epsilon_regression.pose if squared else epsilon_regression.pose
    matrix = KernelMatrix(Gaussian(1.0), Points(X))
    return pose_regression(matrix, targets, np.broadcast_to(cost, 60) * 1.0, epsilon, fit_intercept)


def tube() -> DualProblem:
    return regression()


def tube_of_duplicates() -> DualProblem:
    return regression(10.0, repeats=3)


def tube_without_bias() -> DualProblem:
    return regression(5.0, fit_intercept=False)


def squared_tube() -> DualProblem:
    return regression(2.0, squared=True)


def wide_tube() -> DualProblem:
    """All targets fit into the tube: zero is the solution."""
    return regression(epsilon=5.0)


def some_kinks() -> DualProblem:
    """Two groups, a few variables in none, and every third variable without a kink."""
    problem, every = regression(2.0, 0.3), np.arange(60)
    group = np.where(every % 10 == 9, -1, every % 2).astype(np.int32)
    kink = np.where(every % 3 == 0, 0.0, problem.kink)
    return replace(problem, group=group, total=np.zeros(2), kink=kink)


CONVEX: dict[str, Callable[[], DualProblem]] = {
    make.__name__: make
    for make in (
        separable, overlapping, without_bias, equal_duplicates, opposite_duplicates, almost_empty_class, zero_diagonal,
        all_zero_matrix, all_at_bound, huge_cost, tiny_cost, unscaled_columns, singular_kernel, two_samples,
        sample_costs, hard_margin, with_ridge, two_groups, group_and_singles, group_of_each_sample,
        one_class, tube, tube_of_duplicates, tube_without_bias, squared_tube, wide_tube, some_kinks,
    )
}  # fmt: skip

#: Those whose objective is quadratic, for tests of what solvers without kinks are made of.
QUADRATIC = {name: make for name, make in CONVEX.items() if not make().kinked}


def equations(X, targets, kernel: Kernel, cost=1.0, fit_intercept=True) -> DualProblem:
    matrix = KernelMatrix(kernel, Points(np.asarray(X, dtype=float)))
    return least_squares_regression.pose(matrix, targets, np.broadcast_to(cost, len(targets)) * 1.0, fit_intercept)


def least_squares() -> DualProblem:
    return equations(*two_clouds(60, 2, 1.0), Gaussian(0.7), 3.0)


def least_squares_without_bias() -> DualProblem:
    return equations(*two_clouds(60, 2, 1.0), Gaussian(0.7), 3.0, fit_intercept=False)


def least_squares_of_duplicates() -> DualProblem:
    X, signs = two_clouds(30, 2, 1.0)
    return equations(np.vstack([X, X, X]), np.concatenate([signs, -signs, signs]), Gaussian(0.5), 1e6)


def least_squares_of_a_singular_kernel() -> DualProblem:
    return equations(*two_clouds(50, 1, 1.0), Linear(), 1e4)


def least_squares_at_tiny_cost() -> DualProblem:
    return equations(*two_clouds(50, 2, 1.0), Gaussian(0.5), 1e-8)


def least_squares_with_costs() -> DualProblem:
    return equations(*two_clouds(50, 2, 1.0), Gaussian(0.5), 10.0 ** np.random.default_rng(3).uniform(-3, 3, 50))


def least_squares_of_unscaled_columns() -> DualProblem:
    X, signs = two_clouds(60, 3, 1.5)
    return equations(X * [1.0, 1e3, 1e-3] + [2000.0, 0.0, 1e4], signs, Linear(), 1e-3)


def least_squares_of_two_samples() -> DualProblem:
    return equations([[0.0], [1.0]], np.array([-1.0, 1.0]), Linear(), 10.0)


def least_squares_in_groups() -> DualProblem:
    """Two groups with sums, and variables in none."""
    X, signs = two_clouds(45, 2, 1.0)
    return DualProblem(
        KernelMatrix(Gaussian(0.5), Points(X)),
        linear=signs,
        lower=np.full(45, -np.inf),
        upper=np.full(45, np.inf),
        ridge=np.full(45, 0.1),
        group=(np.arange(45) % 3 - 1).astype(np.int32),
        total=np.array([0.5, -2.0]),
    )


BOXLESS: dict[str, Callable[[], DualProblem]] = {
    make.__name__: make
    for make in (
        least_squares, least_squares_without_bias, least_squares_of_duplicates, least_squares_of_a_singular_kernel,
        least_squares_at_tiny_cost, least_squares_with_costs, least_squares_of_unscaled_columns,
        least_squares_of_two_samples, least_squares_in_groups,
    )
}  # fmt: skip


def indefinite_sigmoid() -> DualProblem:
    return classification(*two_clouds(50, 2, 1.0), Sigmoid(0.8, -1.0), 1.0)


def many_bounded() -> DualProblem:
    """Takes several hundred pair steps, with shrinking: noise leaves most variables at a bound."""
    return classification(*two_clouds(200, 3, 0.8), Gaussian(0.3), 3.0)


def hard_to_finish() -> DualProblem:
    """Takes any solver a noticeable time."""
    return classification(*two_clouds(400, 2, 0.5), Gaussian(2.0), 1e5)


# ---- the linear kernel ----------------------------------------------------------------------------------------------


def linear(name: str, cost=1.0, constant: float = 0.0, fit_intercept: bool = True, **data) -> DualProblem:
    """A problem with the linear kernel by the name of its formulation, on two clouds."""
    X, signs = two_clouds(**{"n": 60, "features": 3, "distance": 1.0, **data})
    matrix: SymmetricMatrix = KernelMatrix(Linear(), Points(X))
    if constant:
        matrix = BiasAugmentedMatrix(matrix, constant)
    costs = np.broadcast_to(cost, len(signs)) * 1.0
    if name == "hinge":
        return pose(matrix, signs, costs, fit_intercept)
    if name == "squared_hinge":
        return squared_hinge.pose(matrix, signs, costs, fit_intercept)
    targets = X @ [1.0, -2.0, 0.5][: X.shape[1]] + np.random.default_rng(5).normal(size=len(signs))
    if name == "epsilon":
        return epsilon_regression.pose(matrix, targets, costs, 0.2, fit_intercept)
    return squared_epsilon_regression.pose(matrix, targets, costs, 0.2, fit_intercept)


def linear_one_class() -> DualProblem:
    X, _ = two_clouds(40, 2, 0.0)
    matrix = KernelMatrix(Linear(), Points(X + 3.0))
    return DualProblem(matrix, np.zeros(40), np.zeros(40), np.full(40, 1 / (0.3 * 40)), total=np.array([1.0]))


def linear_two_groups() -> DualProblem:
    """ν-classification with the linear kernel."""
    problem = two_groups()
    X, _ = two_clouds(50, 2, 1.0)
    return problem.with_matrix(KernelMatrix(Linear(), Points(X)))


def linear_duplicates() -> DualProblem:
    X, signs = two_clouds(30, 2, 1.0)
    return classification(np.repeat(X, 3, axis=0), np.repeat(signs, 3), Linear(), 1.0)


def linear_almost_empty_class() -> DualProblem:
    X, signs = two_clouds(60, 2, 1.0)
    signs[:] = -1.0
    signs[7] = 1.0
    return classification(X, signs, Linear(), 5.0)


def linear_costs() -> DualProblem:
    costs = np.random.default_rng(3).uniform(0, 4, 60)
    costs[::7] = 0.0
    return linear("hinge", costs)


LINEAR: dict[str, Callable[[], DualProblem]] = {
    **{
        make.__name__: make
        for make in (
            separable, opposite_duplicates, zero_diagonal, unscaled_columns, singular_kernel, two_samples, hard_margin,
            linear_one_class, linear_two_groups, linear_duplicates, linear_almost_empty_class, linear_costs,
        )
    },
    **{
        f"{name}{constant or ''}{'' if bias else '_without_bias'}": partial(linear, name, 1.0, constant, bias)
        for name in ("hinge", "squared_hinge", "epsilon", "squared_epsilon")
        for constant, bias in ((0.0, True), (0.0, False), (1.0, False), (100.0, False))
    },
    "hinge_at_tiny_cost": partial(linear, "hinge", 1e-8),
    "hinge_at_huge_cost": partial(linear, "hinge", 1e4),
    "squared_hinge_at_huge_cost": partial(linear, "squared_hinge", 1e6),
    "more_features_than_samples": partial(linear, "hinge", 1.0, n=20, features=60, distance=0.1),
}  # fmt: skip
