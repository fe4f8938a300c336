"""The Cholesky factor of the reduced Hessian, updated when a variable enters or leaves the free set.

With H = M + diag(ridge), the sum of a group eliminates one of its free variables, e: the others, which are independent,
move along z_k = e_k − e_e, or z_k = e_k if they are in no group. These directions are the columns of the null-space
basis Z. The equations of the free variables are ZᵀHZ c = Zᵀg with the reduced Hessian ZᵀHZ, whose factor

    RᵀR = ZᵀHZ

is updated (Gill, Golub, Murray & Saunders 1974). A variable that enters appends a column; one that leaves deletes a
column, after which plane rotations restore the triangle. If the eliminated variable leaves, the first independent
variable a of its group takes its place: z_k becomes z_k − z_a, so that its column is subtracted from the later ones and
deleted. Each update takes operations in proportion to the square of the number of free variables.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr_delete
from scipy.linalg.lapack import dpstrf, dtrtrs

from maxmargin._typing import Floats, Indices
from maxmargin.matrices.lazy_row_cache import LazyRowCache
from maxmargin.precision import ZERO_CURVATURE
from maxmargin.problems import DualProblem

#: A pivot below this fraction of the curvature it remains from is rounding: the variable depends on the others.
DEPENDENT_PIVOT = 1e-10


class ReducedCholesky:
    """The factor R and its variables.

    Attributes
    ----------
    independent : int array
        The variable of each column of R.
    eliminated : int array
        The eliminated variable of each group; −1 if it has no free variable.
    """

    def __init__(self, problem: DualProblem, rows: LazyRowCache) -> None:
        self._problem, self._rows = problem, rows
        self._curvature = np.abs(problem.curvature)
        self.clear()

    def clear(self) -> None:
        """Remove all variables."""
        self.independent: Indices = np.empty(0, dtype=np.int64)
        self.eliminated: Indices = np.full(self._problem.groups, -1)
        self._triangle: Floats = np.empty((0, 0), order="F")

    @property
    def free(self) -> Indices:
        """All free variables: the eliminated ones, then the independent ones."""
        return np.concatenate([self.eliminated[self.eliminated >= 0], self.independent])

    def eliminated_of(self, variables: Indices) -> Indices:
        """Return the eliminated variable of each variable's group, −1 if there is none."""
        if not self._problem.groups:
            return np.full(len(variables), -1)
        group = self._problem.group[variables]
        return np.where(group >= 0, self.eliminated[group], -1)

    def reduce(self, values: Floats) -> Floats:
        """Return Zᵀ values."""
        against = self.eliminated_of(self.independent)
        return np.asarray(values[self.independent] - np.where(against >= 0, values[against], 0.0))

    def expand(self, coefficients: Floats, last: int | None = None) -> Floats:
        """Return Z coefficients, as a vector of all variables; `last` is a variable after the independent ones."""
        variables = self.independent if last is None else np.append(self.independent, last)
        against = self.eliminated_of(variables)
        held = against >= 0
        direction = np.bincount(against[held], -coefficients[held], minlength=self._problem.size).astype(np.float64)
        direction[variables] += coefficients
        return direction

    def solve(self, right: Floats) -> Floats:
        """Return (ZᵀHZ)⁻¹ right."""
        return self._backward(self._forward(right))

    def append(self, variable: int) -> Floats | None:
        """Add an independent variable and return None; if it depends on the others, return a direction instead.

        The coefficients −(ZᵀHZ)⁻¹ ZᵀH z, 1 are those of a direction without curvature, or, for an indefinite matrix,
        of negative curvature.
        """
        image, own = self._image(variable)
        column = self._forward(self.reduce(image))
        against = int(self.eliminated_of(np.array([variable]))[0])
        cancelled = self._curvature[variable] + (self._curvature[against] if against >= 0 else 0.0)
        pivot = own - float(column @ column)
        if not pivot > DEPENDENT_PIVOT * own + ZERO_CURVATURE * cancelled:
            return np.append(-self._backward(column), 1.0)
        count = len(self.independent)
        triangle = np.zeros((count + 1, count + 1), order="F")
        triangle[:count, :count] = self._triangle
        triangle[:count, count] = column
        triangle[count, count] = np.sqrt(pivot)
        self._triangle = triangle
        self.independent = np.append(self.independent, variable)
        return None

    def remove(self, variable: int) -> None:
        """Remove a free variable."""
        place = np.flatnonzero(self.independent == variable)
        if len(place):
            self._delete(int(place[0]))
            return
        group = int(self._problem.group[variable])
        members = np.flatnonzero(self._problem.group[self.independent] == group)
        if not len(members):
            self.eliminated[group] = -1
            return
        first = int(members[0])
        self.eliminated[group] = self.independent[first]
        self._triangle[:, members[1:]] -= self._triangle[:, [first]]
        self._delete(first)

    def build(self, variables: Indices) -> None:
        """Factorise the reduced Hessian of these variables, or of as many as do not depend on one another."""
        self.clear()
        problem = self._problem
        for variable in variables[::-1]:
            if problem.group[variable] >= 0:
                self.eliminated[problem.group[variable]] = variable
        independent = variables[~np.isin(variables, self.eliminated)]
        if not len(independent):
            return
        self.independent = independent
        system = np.array([self.reduce(self._image(int(variable))[0]) for variable in independent])
        largest = float(np.abs(np.diagonal(system)).max())
        smallest = DEPENDENT_PIVOT * largest + ZERO_CURVATURE * float(self._curvature.max())
        factor, pivots, rank, _ = dpstrf(system, tol=smallest, lower=0)
        self._triangle = np.asfortranarray(np.triu(factor[:rank, :rank]))
        self.independent = independent[pivots[:rank] - 1]

    def _image(self, variable: int) -> tuple[Floats, float]:
        """Return H z of a variable, and zᵀHz."""
        against = int(self.eliminated_of(np.array([variable]))[0])
        ridge = self._problem.ridge
        if against < 0 or against == variable:
            image = self._rows.rows(np.array([variable]))[0].copy()
            image[variable] += ridge[variable]
            return image, float(image[variable])
        pair = self._rows.rows(np.array([variable, against]))
        image = pair[0] - pair[1]
        image[variable] += ridge[variable]
        image[against] -= ridge[against]
        return image, float(image[variable] - image[against])

    def _delete(self, place: int) -> None:
        count = len(self.independent)
        self.independent = np.delete(self.independent, place)
        if place == count - 1:
            self._triangle = np.asfortranarray(self._triangle[:place, :place])
            return
        _, triangle = qr_delete(np.eye(count), self._triangle, place, which="col", check_finite=False)
        self._triangle = np.asfortranarray(triangle[: count - 1])

    def _forward(self, right: Floats) -> Floats:
        return right if not len(right) else np.asarray(dtrtrs(self._triangle, right, trans=1)[0])

    def _backward(self, right: Floats) -> Floats:
        return right if not len(right) else np.asarray(dtrtrs(self._triangle, right)[0])
