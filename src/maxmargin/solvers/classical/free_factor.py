"""Cholesky's factor of the free variables' equations, brought up to date when one of them comes or goes.

With H = M + diag(ridge), the free variables of a group keep its sum by moving against one of them, its *anchor*: along
z_k = e_k − e_anchor, or z_k = e_k in no group. Their equations are ZᵀHZ c = Zᵀg, and

    RᵀR = ZᵀHZ

is kept as it changes (Gill, Golub, Murray & Saunders 1974). A variable that comes appends a column; one that goes
deletes a column, after which plane rotations make a triangle again. An anchor that goes hands over to the first mover
a of its group: z_k becomes z_k − z_a, so that its column is subtracted from the later ones and deleted. Each takes a
number of operations in proportion to the square of how many there are; nothing is factorised anew.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr_delete
from scipy.linalg.lapack import dpstrf, dtrtrs

from maxmargin._typing import Floats, Indices
from maxmargin.matrices.lazy_row_cache import LazyRowCache
from maxmargin.precision import ZERO_CURVATURE
from maxmargin.problems import DualProblem

#: A pivot below this, relative to the curvature it is left of, is rounding: the variable depends on the others.
DEPENDENT = 1e-10


class FreeFactor:
    """R, and whose columns it has.

    Attributes
    ----------
    movers : int array
        The variable that each column of R stands for.
    anchor : int array
        Of each group, the variable that its movers move against; −1 while it has none.
    """

    def __init__(self, problem: DualProblem, rows: LazyRowCache) -> None:
        self._problem, self._rows = problem, rows
        self._curvature = np.abs(problem.curvature)
        self.clear()

    def clear(self) -> None:
        """Let all variables go."""
        self.movers: Indices = np.empty(0, dtype=np.int64)
        self.anchor: Indices = np.full(self._problem.groups, -1)
        self._triangle: Floats = np.empty((0, 0), order="F")

    @property
    def members(self) -> Indices:
        """All variables that may move: the anchors, then the movers."""
        return np.concatenate([self.anchor[self.anchor >= 0], self.movers])

    def anchors_of(self, variables: Indices) -> Indices:
        """Return the anchor of each variable's group, −1 if there is none."""
        if not self._problem.groups:
            return np.full(len(variables), -1)
        group = self._problem.group[variables]
        return np.where(group >= 0, self.anchor[group], -1)

    def reduce(self, values: Floats) -> Floats:
        """Return Zᵀ values."""
        against = self.anchors_of(self.movers)
        return np.asarray(values[self.movers] - np.where(against >= 0, values[against], 0.0))

    def expand(self, coefficients: Floats, last: int | None = None) -> Floats:
        """Return Z coefficients, as a vector of all variables; `last` is a variable after the movers."""
        movers = self.movers if last is None else np.append(self.movers, last)
        against = self.anchors_of(movers)
        held = against >= 0
        direction = np.bincount(against[held], -coefficients[held], minlength=self._problem.size).astype(np.float64)
        direction[movers] += coefficients
        return direction

    def solve(self, right: Floats) -> Floats:
        """Return (ZᵀHZ)⁻¹ right."""
        return self._backward(self._forward(right))

    def append(self, variable: int) -> Floats | None:
        """Let a variable move, and return None; if it depends on the others, leave it and return −(ZᵀHZ)⁻¹ ZᵀH z, 1.

        Those are the coefficients of a direction without curvature (or, of an indefinite matrix, with a negative one).
        """
        image, own = self._image(variable)
        column = self._forward(self.reduce(image))
        anchor = int(self.anchors_of(np.array([variable]))[0])
        cancelled = self._curvature[variable] + (self._curvature[anchor] if anchor >= 0 else 0.0)
        pivot = own - float(column @ column)
        if not pivot > DEPENDENT * own + ZERO_CURVATURE * cancelled:
            return np.append(-self._backward(column), 1.0)
        count = len(self.movers)
        triangle = np.zeros((count + 1, count + 1), order="F")
        triangle[:count, :count] = self._triangle
        triangle[:count, count] = column
        triangle[count, count] = np.sqrt(pivot)
        self._triangle = triangle
        self.movers = np.append(self.movers, variable)
        return None

    def remove(self, variable: int) -> None:
        """Hold a variable where it is."""
        place = np.flatnonzero(self.movers == variable)
        if len(place):
            self._delete(int(place[0]))
            return
        group = int(self._problem.group[variable])
        followers = np.flatnonzero(self._problem.group[self.movers] == group)
        if not len(followers):
            self.anchor[group] = -1
            return
        first = int(followers[0])
        self.anchor[group] = self.movers[first]
        self._triangle[:, followers[1:]] -= self._triangle[:, [first]]
        self._delete(first)

    def build(self, variables: Indices) -> None:
        """Let these variables move, as many of them as do not depend on one another."""
        self.clear()
        problem = self._problem
        for variable in variables[::-1]:
            if problem.group[variable] >= 0:
                self.anchor[problem.group[variable]] = variable
        movers = variables[~np.isin(variables, self.anchor)]
        if not len(movers):
            return
        self.movers = movers
        system = np.array([self.reduce(self._image(int(variable))[0]) for variable in movers])
        smallest = DEPENDENT * float(np.abs(np.diagonal(system)).max()) + ZERO_CURVATURE * float(self._curvature.max())
        factor, pivots, rank, _ = dpstrf(system, tol=smallest, lower=0)
        self._triangle = np.asfortranarray(np.triu(factor[:rank, :rank]))
        self.movers = movers[pivots[:rank] - 1]

    def _image(self, variable: int) -> tuple[Floats, float]:
        """Return H z of a variable, and zᵀHz."""
        anchor = int(self.anchors_of(np.array([variable]))[0])
        ridge = self._problem.ridge
        if anchor < 0 or anchor == variable:
            image = self._rows.rows(np.array([variable]))[0].copy()
            image[variable] += ridge[variable]
            return image, float(image[variable])
        pair = self._rows.rows(np.array([variable, anchor]))
        image = pair[0] - pair[1]
        image[variable] += ridge[variable]
        image[anchor] -= ridge[anchor]
        return image, float(image[variable] - image[anchor])

    def _delete(self, place: int) -> None:
        count = len(self.movers)
        self.movers = np.delete(self.movers, place)
        if place == count - 1:
            self._triangle = np.asfortranarray(self._triangle[:place, :place])
            return
        _, triangle = qr_delete(np.eye(count), self._triangle, place, which="col", check_finite=False)
        self._triangle = np.asfortranarray(triangle[: count - 1])

    def _forward(self, right: Floats) -> Floats:
        return right if not len(right) else np.asarray(dtrtrs(self._triangle, right, trans=1)[0])

    def _backward(self, right: Floats) -> Floats:
        return right if not len(right) else np.asarray(dtrtrs(self._triangle, right)[0])
