"""By how much the slacks at the ends of paths differ from those of their dual variables.

The equations of the free variables have a small ridge, which adds a known term to the slacks. What remains is due to
rounding: e = expected − M change − slack. Its norm is bounded by random sums of its elements: with Gaussian weights
each sum is Gaussian with the variance |e|². The sums take the products of the weights and the matrix, once for all
paths, instead of a product for each path.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.resources import blas_thread_limit
from maxmargin.selection.removal_paths import RemovalPaths, Removed

#: Random sums for each path.
SUMS = 16

#: A bound of the norm is so many times the root mean square of the sums; it fails with a probability below 3e-13.
FACTOR = 10.0


class SlackErrors:
    """The errors of the slacks of the variables of a table.

    Parameters
    ----------
    paths : RemovalPaths
        To which no variables are added any more.
    """

    def __init__(self, paths: RemovalPaths) -> None:
        self.paths, point, at = paths, paths.point, paths.variables
        problem = point.problem
        self.ridge = np.zeros(len(at))
        self.ridge[: len(paths.free)] = paths.inverse.added_ridge
        self.slack = problem.minus_groups(point.gradient, point.offset)[at]
        self._weights = np.random.default_rng(len(at)).normal(size=(SUMS, len(at)))
        with blas_thread_limit(paths.blas_threads):
            self._products = point.rows.product(self._weights, at)
        self._of_changes = (self._products[:, at] + self._weights * (problem.ridge[at] + self.ridge)).T

    def norms(self, removed: Removed, variables: Indices) -> Floats:
        """Return a bound of the norm of what is not due to the ridge, for each path."""
        paths, weights = self.paths, self._weights.T
        with blas_thread_limit(paths.blas_threads):
            sums = -removed.changes @ self._of_changes - removed.slacks @ weights
            sums += self.slack @ weights - self._shifts(removed) @ weights
        outside = paths.place[variables] < 0
        own = variables[outside]
        sums[outside] -= (removed.duals[outside] - paths.point.dual[own])[:, None] * self._products[:, own].T
        return np.asarray(FACTOR * np.sqrt(np.mean(sums * sums, axis=1)))

    def errors(self, removed: Removed, variables: Indices) -> Floats:
        """Return the errors at the ends of paths, all of them, from their kernel values."""
        point, at = self.paths.point, self.paths.variables
        outside = self.paths.place[variables] < 0
        own = variables[outside]
        with blas_thread_limit(self.paths.blas_threads):
            errors = self.slack - self._shifts(removed) - removed.changes @ point.rows.block(at, at)
        errors -= removed.slacks + removed.changes * point.problem.ridge[at]
        errors[outside] -= (removed.duals[outside] - point.dual[own])[:, None] * point.rows.block(own, at)
        return np.asarray(errors)

    def totals_left(self, removed: Removed, variables: Indices) -> Floats:
        """Return by how much the sums of the groups are below their totals at the ends of paths."""
        paths, problem = self.paths, self.paths.point.problem
        of_groups = np.arange(problem.groups)
        left = removed.missing + problem.total - problem.group_sums(paths.point.dual)
        left = left - removed.changes @ (problem.group[paths.variables][:, None] == of_groups).astype(np.float64)
        own = np.where(paths.place[variables] < 0, removed.duals - paths.point.dual[variables], 0.0)
        return np.asarray(left - own[:, None] * (problem.group[variables][:, None] == of_groups))

    def _shifts(self, removed: Removed) -> Floats:
        """Return how the offsets of the variables have changed, a row for each path."""
        point = self.paths.point
        if not point.problem.groups:
            return np.zeros(removed.changes.shape)
        group = point.problem.group[self.paths.variables]
        shifts: Floats = (removed.offsets - point.offset)[:, group]
        return shifts
