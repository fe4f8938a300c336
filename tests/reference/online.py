"""Reference of the native online loop: LASVM in plain Python.

    observe a sample t
        PROCESS     pair t with a partner in the memory M, and optimise the two variables
        remove      samples without weight that cannot be part of a violating pair from M
        REPROCESS   the same with a pair within M
        remove      again

The memory keeps the order of arrival. The native loop must take exactly the same steps.
"""

from __future__ import annotations

import numpy as np

TINY = 1e-12
SEEDS = 8


class OnlineTwin:
    """One subproblem with a precomputed kernel matrix."""

    def __init__(
        self, K, linear, lower, upper, start=None, bias=True, selection="second_order", tolerance=1e-3, selective=True
    ):
        self.K, self.bias, self.selection, self.tolerance = K, bias, selection, tolerance
        self.linear, self.lower, self.upper, self.selective = linear, lower, upper, selective
        self.start = np.zeros(len(linear)) if start is None else start
        self.b = np.zeros(len(linear))
        self.g = np.zeros(len(linear))
        self.memory: list[int] = []
        self.known: list[int] = []  # all observed samples, whose gradients are kept up to date
        self.path: list[tuple[int, int]] = []

    def observe(self, t: int) -> None:
        """Process one sample of the stream."""
        if self.lower[t] == self.upper[t]:  # excluded
            return
        if t not in self.memory:
            self.process(t)
        self.reprocess()

    def process(self, t: int) -> None:
        if t not in self.known:
            self.g[t] = self.linear[t] - in_order(self.b[self.known] * self.K[t, self.known])
            self.known.append(t)
        others = list(self.memory)
        self.memory.append(t)
        if self.start[t] != 0.0:
            self.b[t] = self.start[t]
            self.g[self.known] -= self.start[t] * self.K[t, self.known]
        if not self.bias:
            violating = self.alone(t) > self.tolerance
            if violating:
                self.step_alone(t)
        else:
            up = max((self.g[t] - self.g[j], -j) for j in [*self.decreasing(others), t]) if self.up(t) else (0.0, 0)
            down = max((self.g[i] - self.g[t], -i) for i in [*self.increasing(others), t]) if self.down(t) else (0.0, 0)
            violating = max(up, down)[0] > self.tolerance
            if violating:
                as_up = [(self.value(t, j), t, j) for j in self.decreasing(others) if self.up(t)]
                as_down = [(self.value(i, t), i, t) for i in self.increasing(others) if self.down(t)]
                best = -np.inf
                for value, i, j in [*as_up, *as_down]:
                    if value > best:
                        best, pair = value, (i, j)
                self.step(*pair)
        if violating:
            self.remove()
        elif self.selective and self.start[t] == 0.0 and not (self.bias and self.waits(t, others)):
            self.memory.remove(t)

    def waits(self, t: int, others: list[int]) -> bool:
        """Whether the sample is kept because there is no possible partner yet and few samples are in memory."""
        partners = self.decreasing(others) if self.up(t) else self.increasing(others)
        return not partners and len(others) < SEEDS

    def reprocess(self) -> float:
        """Take one step within the memory; return the violation before it."""
        if not self.bias:
            violations = [(self.alone(k), k) for k in self.memory]
            if self.selection == "second_order":
                gains = [(self.g[k] ** 2 / max(self.K[k, k], TINY) if v > 0 else -np.inf, k) for v, k in violations]
            else:
                gains = violations
            violation = max((v for v, _ in violations), default=0.0)
            if violation > self.tolerance:
                self.step_alone(max(gains, key=lambda pair: pair[0])[1])
                self.remove()
            return violation
        up, down = self.increasing(self.memory), self.decreasing(self.memory)
        if not up or not down:
            return 0.0
        i = max(up, key=lambda k: self.g[k])
        j = min(down, key=lambda k: self.g[k])
        violation = self.g[i] - self.g[j]
        if violation > self.tolerance:
            self.step(i, j if self.selection != "second_order" else max(down, key=lambda k: self.value(i, k)))
            self.remove()
        return violation

    def value(self, i: int, j: int) -> float:
        """Return the criterion of the selection rule: the violation, or the gain of the unclipped step."""
        slope = self.g[i] - self.g[j]
        if self.selection == "most_violating_pair" or slope <= 0:
            return slope if self.selection == "most_violating_pair" else -np.inf
        curvature = self.K[i, i] + self.K[j, j] - 2.0 * self.K[i, j]
        return slope * slope / (curvature if curvature > TINY else TINY)

    def step(self, i: int, j: int) -> None:
        curvature = self.K[i, i] + self.K[j, j] - 2.0 * self.K[i, j]
        slope = self.g[i] - self.g[j]
        to_upper, to_lower = self.upper[i] - self.b[i], self.b[j] - self.lower[j]
        t = min(slope / curvature if curvature > 0 else np.inf, to_upper, to_lower)
        self.b[i] = self.upper[i] if t >= to_upper else snapped(self.b[i] + t, self.lower[i], self.upper[i])
        self.b[j] = self.lower[j] if t >= to_lower else snapped(self.b[j] - t, self.lower[j], self.upper[j])
        self.g[self.known] -= t * (self.K[i, self.known] - self.K[j, self.known])
        self.path.append((i, j))

    def step_alone(self, k: int) -> None:
        sign = 1.0 if self.g[k] > 0 else -1.0
        to_bound = self.upper[k] - self.b[k] if sign > 0 else self.b[k] - self.lower[k]
        t = min(abs(self.g[k]) / self.K[k, k] if self.K[k, k] > 0 else np.inf, to_bound)
        bound = self.upper[k] if sign > 0 else self.lower[k]
        self.b[k] = bound if t >= to_bound else snapped(self.b[k] + sign * t, self.lower[k], self.upper[k])
        self.g[self.known] -= sign * t * self.K[k, self.known]
        self.path.append((k, -1))

    def remove(self) -> None:
        """Remove samples without weight that violate no condition from the memory, if removal is enabled."""
        if not self.selective:
            return
        if self.bias:
            high = max((self.g[k] for k in self.increasing(self.memory)), default=-np.inf)
            low = min((self.g[k] for k in self.decreasing(self.memory)), default=np.inf)
        else:
            high = low = 0.0
        self.memory = [
            k
            for k in self.memory
            if self.b[k] != 0.0 or (self.up(k) and self.g[k] > low) or (self.down(k) and self.g[k] < high)
        ]

    def alone(self, k: int) -> float:
        """Return the violation of a variable in no group."""
        return max(self.g[k] if self.up(k) else 0.0, -self.g[k] if self.down(k) else 0.0)

    def up(self, k: int) -> bool:
        return self.b[k] < self.upper[k]

    def down(self, k: int) -> bool:
        return self.b[k] > self.lower[k]

    def increasing(self, among: list[int]) -> list[int]:
        return [k for k in among if self.up(k)]

    def decreasing(self, among: list[int]) -> list[int]:
        return [k for k in among if self.down(k)]


def snapped(value, lower, upper):
    """A value that rounding alone keeps off a bound is on it."""
    if upper - value <= 1e-14 * abs(upper) and np.isfinite(upper):
        return upper
    if value - lower <= 1e-14 * abs(lower) and np.isfinite(lower):
        return lower
    return value


def in_order(terms):
    """Return a sum, one term after the other."""
    total = 0.0
    for term in terms:
        total += term
    return total
