"""The native KKT violations against the formula."""

from types import SimpleNamespace

import numpy as np
import pytest

from maxmargin.backends.optimality import can_be_selected, kkt_violations


def random_state(groups, singles, seed):
    """Return variables, some of them on a bound, some of them fixed, and more than are active."""
    random = np.random.default_rng(seed)
    size = 57
    lower, upper = -random.random(size), random.random(size)
    upper[:5] = lower[:5]
    dual = random.uniform(lower, upper)
    dual[::3], dual[1::4] = lower[::3], upper[1::4]
    group = random.integers(-1 if singles else 0, groups, size).astype(np.int32)
    return SimpleNamespace(
        dual=dual,
        gradient=random.normal(size=size),
        lower=lower,
        upper=upper,
        group=group,
        groups=groups,
        active=50,
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("groups", "singles"), [(1, False), (1, True), (4, False), (4, True), (0, True)])
def test_kkt_violations_and_selectable_variables(groups, singles, seed):
    state = random_state(groups, singles, seed)
    dual, gradient, group = state.dual[:50], state.gradient[:50], state.group[:50]
    growing, falling = dual < state.upper[:50], dual > state.lower[:50]
    largest, smallest = np.full(groups + 1, -np.inf), np.full(groups + 1, np.inf)
    np.maximum.at(largest, group[growing], gradient[growing])
    np.minimum.at(smallest, group[falling], gradient[falling])
    largest[-1], smallest[-1] = max(largest[-1], 0.0), min(smallest[-1], 0.0)
    keep = growing | falling
    keep &= growing | (gradient <= largest[group])
    keep &= falling | (gradient >= smallest[group])
    np.testing.assert_array_equal(can_be_selected(state), keep)
    largest[-1] = smallest[-1] = 0.0  # a variable in no group moves alone
    up, down = kkt_violations(state)
    np.testing.assert_array_equal(up, np.where(growing, gradient - smallest[group], -np.inf))
    np.testing.assert_array_equal(down, np.where(falling, largest[group] - gradient, -np.inf))
