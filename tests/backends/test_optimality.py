"""The native KKT violations against the formula."""

from types import SimpleNamespace

import numpy as np
import pytest

from maxmargin.backends.optimality import can_be_selected, kkt_violations


def random_state(groups, singles, kinks, seed):
    """Return variables, some of them on a bound, some of them fixed, and more than are active."""
    random = np.random.default_rng(seed)
    size = 57
    lower, upper = -random.random(size), random.random(size)
    dual = random.uniform(lower, upper)
    dual[::3], dual[1::4] = lower[::3], upper[1::4]
    dual[2::5] = 0.0
    lower[:5] = upper[:5] = dual[:5] = 0.0
    group = random.integers(-1 if singles else 0, groups, size).astype(np.int32)
    return SimpleNamespace(
        dual=dual,
        gradient=random.normal(size=size),
        lower=lower,
        upper=upper,
        kink=np.where(random.random(size) < 0.7, random.random(size), 0.0) if kinks else np.empty(0),
        group=group,
        groups=groups,
        active=50,
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("groups", "singles"), [(1, False), (1, True), (4, False), (4, True), (0, True)])
@pytest.mark.parametrize("kinks", [False, True])
def test_kkt_violations_and_selectable_variables(groups, singles, kinks, seed):
    state = random_state(groups, singles, kinks, seed)
    dual, gradient, group = state.dual[:50], state.gradient[:50], state.group[:50]
    kink = state.kink[:50] if kinks else 0.0
    above, below = gradient - np.where(dual < 0, -1, 1) * kink, gradient - np.where(dual > 0, 1, -1) * kink
    growing, falling = dual < state.upper[:50], dual > state.lower[:50]
    largest, smallest = np.full(groups + 1, -np.inf), np.full(groups + 1, np.inf)
    np.maximum.at(largest, group[growing], above[growing])
    np.minimum.at(smallest, group[falling], below[falling])
    largest[-1], smallest[-1] = max(largest[-1], 0.0), min(smallest[-1], 0.0)
    keep = (growing & (above >= smallest[group])) | (falling & (below <= largest[group]))
    np.testing.assert_array_equal(can_be_selected(state), keep)
    largest[-1] = smallest[-1] = 0.0  # a variable in no group moves alone
    up, down = kkt_violations(state)
    np.testing.assert_array_equal(up, np.where(growing, above - smallest[group], -np.inf))
    np.testing.assert_array_equal(down, np.where(falling, largest[group] - below, -np.inf))
