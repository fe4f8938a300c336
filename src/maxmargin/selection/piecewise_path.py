"""Exact solutions of a dual problem for all values of C: piecewise linear, from break point to break point.

Bounds are C times those of C = 1. While the sets of variables at a bound and in between do not change, the optimality
conditions of the free variables F are linear equations with a right-hand side that is linear in C,

    M_FF b_F + ρ = linear_F − M_FB b_B,   Σ b_F = −Σ b_B,   b_B = C · bound_B

so b and ρ are linear in C. A break point is where a free variable reaches a bound, or the slack of another one its sign
(Hastie, Rosset, Tibshirani & Zhu 2004, in C rather than 1/C; Allgower & Georg for the general method). The inverse of
the equations is updated by a row and column at a break point.

Where equal samples make the equations singular, a variable whose row depends on those of the free ones stays at its
bound: its slack does not change while they are free. Where several events coincide so that no single change of the sets
is consistent, the problem is solved anew at a slightly different C.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from maxmargin._typing import Floats, Indices

#: Relative to the diagonal: below this a row depends on others.
MIN_PIVOT = 1e-9

#: Slacks and distances from bounds, relative to their scale, that count as 0.
ZERO = 1e-10

#: The relative change of C after which a problem is solved anew.
RESTART_STEP = 1e-6

#: Break points after which the inverse is computed anew.
REFRESH_AFTER = 50

#: Break points without progress after which the problem is solved anew.
MAX_STALLED = 20

#: From C to an optimal dual vector.
Solve = Callable[[float, Floats | None], Floats]

LOWER, FREE, UPPER = -1, 0, 1


@dataclass
class Break:
    """The solution at a break point."""

    C: float
    dual: Floats = field(repr=False)
    offset: float


class PiecewisePath:
    """The path from one solution in one direction.

    Parameters
    ----------
    matrix : float array of shape (n, n)
    linear, lower, upper : float arrays
        Bounds at C = 1.
    grouped : bool
        Whether the variables sum to 0.
    solve : callable
        Returns a solution at a value of C, from a start.
    """

    def __init__(
        self, matrix: Floats, linear: Floats, lower: Floats, upper: Floats, grouped: bool, solve: Solve
    ) -> None:
        self.matrix, self.linear, self.lower, self.upper = matrix, linear, lower, upper
        self.grouped, self.solve = grouped, solve
        self.restarts = 0
        self.scale = float(np.abs(linear).max()) or 1.0
        self.pivot = MIN_PIVOT * max(float(np.diagonal(matrix).max()), np.finfo(float).tiny)

    def start(self, C: float, near: Floats | None = None) -> None:
        """Solve the problem at C and set the state."""
        self.C = C
        self.dual = self.solve(C, near)
        close = ZERO * C * (self.upper - self.lower) + np.finfo(float).tiny
        at_lower = self.dual - C * self.lower <= close
        at_upper = C * self.upper - self.dual <= close
        self.state = np.where(at_lower, LOWER, np.where(at_upper, UPPER, FREE))
        self.state[self.lower == self.upper] = LOWER
        self.dual = np.where(at_lower, C * self.lower, np.where(at_upper, C * self.upper, self.dual))
        self.ignored = np.zeros(len(self.dual), dtype=bool)
        self._choose_independent()
        self._remove_last_at_bound()
        self._recompute()

    def _choose_independent(self) -> None:
        """Take the free variables into the equations, of those with dependent rows only as many as are independent.

        Along a combination of dependent rows that is 0, variables move without a change of any slack, until one of them
        reaches a bound.
        """
        self.free: Indices = np.empty(0, dtype=np.int64)
        self.inverse: Floats = np.zeros((0, 0))
        for k in np.flatnonzero(self.state == FREE).tolist():
            while self.state[k] == FREE and not self._add(k):
                members = np.append(self.free, k)
                null = np.append(-(self.inverse @ self._column(k))[self.grouped :], 1.0)
                null = np.where(np.abs(null) > ZERO, null, 0.0)
                room = np.where(null > 0, self.C * self.upper[members] - self.dual[members],
                                self.dual[members] - self.C * self.lower[members])  # fmt: skip
                with np.errstate(divide="ignore", invalid="ignore"):
                    times = np.where(null != 0, room / np.abs(null), np.inf)
                first = int(times.argmin())
                self.dual[members] += times[first] * null
                bounded = members[first]
                self.state[bounded] = UPPER if null[first] > 0 else LOWER
                if bounded != k:
                    self._remove(int(bounded))

    # The equations of the free variables, with the sum as the first.

    def _column(self, k: int) -> Floats:
        column = self.matrix[self.free, k]
        return np.concatenate([[1.0], column]) if self.grouped else column

    def _system(self) -> Floats:
        inner = self.matrix[np.ix_(self.free, self.free)]
        if not self.grouped:
            return inner
        count = len(self.free)
        system = np.zeros((count + 1, count + 1))
        system[0, 1:] = system[1:, 0] = 1.0
        system[1:, 1:] = inner
        return system

    def _add(self, k: int) -> bool:
        """Add a variable to the equations; return whether they are still regular."""
        if self.grouped and not len(self.free):
            self.free = np.array([k])
            self.inverse = np.array([[-self.matrix[k, k], 1.0], [1.0, 0.0]])
            self.since = 0
            return True
        column = self._column(k)
        projected = self.inverse @ column
        schur = float(self.matrix[k, k] - column @ projected)
        if schur <= self.pivot:
            return False
        count = len(column)
        grown = np.empty((count + 1, count + 1))
        grown[:count, :count] = self.inverse + np.outer(projected, projected) / schur
        grown[count, :count] = grown[:count, count] = -projected / schur
        grown[count, count] = 1.0 / schur
        self.inverse = grown
        self.free = np.append(self.free, k)
        self.since = getattr(self, "since", 0) + 1
        self._refresh()
        return True

    def _remove(self, k: int) -> None:
        at = int(np.flatnonzero(self.free == k)[0])
        self.free = np.delete(self.free, at)
        place = at + self.grouped
        if not len(self.free):
            self.inverse = np.zeros((0, 0))
            return
        row, pivot = np.delete(self.inverse[place], place), self.inverse[place, place]
        rest = np.delete(np.delete(self.inverse, place, 0), place, 1)
        self.inverse = rest - np.outer(row, row) / pivot
        self.since += 1
        self._refresh()

    def _refresh(self) -> None:
        if self.since >= REFRESH_AFTER:
            self.inverse, self.since = np.asarray(np.linalg.inv(self._system()), dtype=np.float64), 0

    # State.

    def _rates(self) -> Floats:
        """Return the change of the variables that are not in the equations with C."""
        rates = np.where(self.state == UPPER, self.upper, self.lower)
        rates[self.free] = 0.0
        return rates

    def _recompute(self) -> None:
        """Solve the equations, and compute the slacks, from the sets alone."""
        rates = self._rates()
        self.product_rate = self.matrix @ rates
        dual = self.C * rates
        if len(self.free):
            rhs = self.linear[self.free] - self.C * self.product_rate[self.free]
            if self.grouped:
                rhs = np.concatenate([[-dual.sum()], rhs])
            solved = self.inverse @ rhs
            self.offset = float(solved[0]) if self.grouped else 0.0
            dual[self.free] = solved[1:] if self.grouped else solved
        self.dual = dual
        self.gradient = self.linear - self.matrix @ dual
        if not len(self.free):
            self.offset = self._middle() if self.grouped else 0.0

    def _middle(self) -> float:
        low, high = self._ends(self.gradient)
        if not (np.isfinite(low) or np.isfinite(high)):
            return 0.0
        return 0.5 * (low + high) if np.isfinite(low) and np.isfinite(high) else low if np.isfinite(low) else high

    def _movable(self) -> tuple[np.ndarray, np.ndarray]:
        """Return which variables may increase, and which may decrease."""
        open_ = self.lower < self.upper
        return open_ & (self.state != UPPER), open_ & (self.state != LOWER)

    def _ends(self, gradient: Floats) -> tuple[float, float]:
        up, down = self._movable()
        return float(gradient[up].max(initial=-np.inf)), float(gradient[down].min(initial=np.inf))

    # Steps.

    def steps(self, end: float) -> Iterator[Break]:
        """Yield the break points from the current C to `end`, both included."""
        sign, stalled = 1.0 if end > self.C else -1.0, 0
        last = Break(self.C, self.dual.copy(), self.offset)
        yield last
        while end != self.C:
            before = self.C
            consistent = self._step(sign, end)
            stalled += 1
            if abs(self.C - before) > ZERO * before:
                stalled, last = 0, self.reached
                yield last
            if end == self.C:
                return
            if consistent and self.grouped and not len(self.free) and self.offset != last.offset:
                # Without a free variable the offset is the middle of an interval: it jumps there.
                last = Break(float(np.nextafter(last.C, end)), self.dual.copy(), self.offset)
                yield last
            if not consistent or stalled > MAX_STALLED:
                stalled = 0
                self.restarts += 1
                moved = self.C * (1.0 + sign * RESTART_STEP)
                target = min(moved, end) if sign > 0 else max(moved, end)
                self.start(target, self.dual * (target / self.C))
                last = Break(self.C, self.dual.copy(), self.offset)
                yield last

    def _step(self, sign: float, end: float) -> bool:
        """Move to the next event, or the end; return whether the sets after it are consistent."""
        rates, left = self._rates(), abs(end - self.C)
        if self.grouped and not len(self.free):
            return self._step_without_free(rates, sign, end)
        rate = rates.copy()
        if len(self.free):
            rhs = -self.product_rate[self.free]
            if self.grouped:
                rhs = np.concatenate([[-rates.sum()], rhs])
            solved = self.inverse @ rhs
            offset_rate = float(solved[0]) if self.grouped else 0.0
            rate[self.free] = solved[1:] if self.grouped else solved
        else:
            offset_rate = 0.0
        moved = rate - rates
        slope = -self.product_rate - self.matrix[:, self.free] @ moved[self.free]
        step, variable = self._next_event(sign * rate, sign * (slope - offset_rate), sign)
        ended = step >= left
        step = min(step, left)
        self.C = end if ended else self.C + sign * step
        self.dual = self.dual + sign * step * rate
        self.gradient = self.gradient + sign * step * slope
        self.offset += sign * step * offset_rate
        self.reached = Break(self.C, self.dual.copy(), self.offset)
        return True if ended else self._change(variable)

    def _next_event(self, rate: Floats, slack_rate: Floats, sign: float) -> tuple[float, int]:
        """Return the distance to the next event and its variable."""
        best, variable = np.inf, -1
        free = self.free
        if len(free):
            for bound, outwards in ((self.lower[free], -1.0), (self.upper[free], 1.0)):
                room = np.maximum(outwards * (self.C * bound - self.dual[free]), 0.0)
                speed = outwards * (rate[free] - sign * bound)
                best, variable = _first(room, speed, free, best, variable, 1e-14)
        others = np.flatnonzero((self.state != FREE) & ~self.ignored & (self.lower < self.upper))
        side = np.where(self.state[others] == UPPER, 1.0, -1.0)  # at the upper bound the slack is at least 0
        slack = np.maximum(side * (self.gradient[others] - self.offset), 0.0)
        return _first(slack, -side * slack_rate[others], others, best, variable, 1e-12 * self.scale / self.C)

    def _change(self, k: int) -> bool:
        """Move a variable from one set to another; return whether that is consistent."""
        if self.state[k] == FREE:
            upper = self.C * self.upper[k] - self.dual[k] < self.dual[k] - self.C * self.lower[k]
            self.state[k] = UPPER if upper else LOWER
            self._remove(k)
            self.ignored[:] = False
            self._remove_last_at_bound()
        elif self._add(k):
            self.state[k] = FREE
        else:
            self.ignored[k] = True  # its row depends on those of the free ones
            return True
        self._recompute()
        return self._consistent()

    def _remove_last_at_bound(self) -> None:
        """Take the only free variable out of the equations if the sum has fixed it at a bound."""
        if not (self.grouped and len(self.free) == 1):
            return
        k = int(self.free[0])
        rate = -float(self._rates().sum())
        for state, bound in ((LOWER, self.lower[k]), (UPPER, self.upper[k])):
            if abs(rate - bound) <= ZERO * (self.upper[k] - self.lower[k]):
                self.state[k] = state
                self._remove(k)
                return

    def _consistent(self) -> bool:
        """Whether the point satisfies the optimality conditions up to rounding errors."""
        tolerance = 1e-7 * self.scale
        slack = self.gradient - self.offset
        up, down = self._movable()
        width = 1e-7 * self.C * (self.upper - self.lower)
        inside = (self.dual >= self.C * self.lower - width).all() and (self.dual <= self.C * self.upper + width).all()
        return bool(inside and (slack[up] <= tolerance).all() and (slack[down] >= -tolerance).all())

    def _step_without_free(self, rates: Floats, sign: float, end: float) -> bool:
        """Move to where the interval of the offset closes: two variables become free."""
        up, down = self._movable()
        balanced = abs(rates.sum()) <= ZERO * np.abs(rates).sum()
        if not (balanced and up.any() and down.any()):
            return False
        slope = -sign * self.product_rate
        rising, until_rising = _leader(self.gradient, slope, np.flatnonzero(up), 1.0)
        falling, until_falling = _leader(self.gradient, slope, np.flatnonzero(down), -1.0)
        width, closing = self.gradient[falling] - self.gradient[rising], float(slope[rising] - slope[falling])
        until_closed = max(0.0, float(width)) / closing if closing > 0 else np.inf
        left = abs(end - self.C)
        step = min(until_rising, until_falling, until_closed, left)
        pair = (rising, falling) if step == until_closed < left else None
        self.C = end if step == left else self.C + sign * step
        self.dual, self.gradient = self.C * rates, self.gradient + step * slope
        self.offset = self._middle()
        self.reached = Break(self.C, self.dual.copy(), self.offset)
        if pair is None:
            return True
        if pair[0] == pair[1] or not (self._add(pair[0]) and self._add(pair[1])):
            return False
        self.state[list(pair)] = FREE
        self._recompute()
        return self._consistent()


def _leader(values: Floats, slope: Floats, members: Indices, side: float) -> tuple[int, float]:
    """Return the largest of values that change linearly (of side −1 the smallest), and how long it will be that."""
    values, slope = side * values[members], side * slope[members]
    best = int(np.lexsort((slope, values))[-1])
    faster = slope > slope[best]
    times = (values[best] - values[faster]) / (slope[faster] - slope[best])
    times = times[times > 0]
    return int(members[best]), float(times.min()) if len(times) else np.inf


def _first(
    room: Floats, speed: Floats, variables: Indices, best: float, variable: int, least: float
) -> tuple[float, int]:
    """Return the smaller of `best` and the first time at which one of the variables has no room."""
    moving = np.flatnonzero(speed > least)
    if len(moving):
        times = room[moving] / speed[moving]
        first = int(times.argmin())
        if times[first] < best:
            return float(times[first]), int(variables[moving[first]])
    return best, variable
