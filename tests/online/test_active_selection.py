"""Margins, violations, query strategies, stopping rules and labelling rates against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from maxmargin.online import QUERY_STRATEGIES, AutoActive, Gradient, LowErrorRate, Margin, MarginExhausted, Random
from maxmargin.online.early_stopping import EventWindow
from maxmargin.online.selection import Candidates, LabelingRate, class_margins, draw, known_violations, margins

TABLES = arrays(
    np.float64,
    st.tuples(st.integers(1, 8), st.integers(2, 6)),
    elements=st.one_of(st.floats(-4, 4), st.sampled_from([-1.0, 0.0, 1.0])),
)


def candidates(values, labels=None):
    return Candidates(len(values), lambda numbers: values[numbers], labels)


@given(TABLES)
def test_margins_and_violations_equal_their_definitions(values):
    classes = range(values.shape[1])
    expected = [[0.5 * (row[c] - max(row[d] for d in classes if d != c)) for c in classes] for row in values]
    np.testing.assert_allclose(class_margins(values), expected, atol=1e-15)
    np.testing.assert_allclose(margins(values), np.max(expected, axis=1), atol=1e-15)
    labels = np.arange(len(values)) % values.shape[1]
    own = np.array([row[label] for row, label in zip(expected, labels, strict=True)])
    np.testing.assert_allclose(known_violations(values, labels), np.maximum(0, 1 - own), atol=1e-15)


@given(st.floats(-5, 5))
def test_margin_and_violation_of_two_classes(f):
    values = np.array([[-f, f]])
    assert margins(values)[0] == abs(f)
    assert known_violations(values, np.array([1]))[0] == max(0.0, 1 - f)
    assert known_violations(values, np.array([0]))[0] == max(0.0, 1 + f)


def test_violation_of_an_unknown_class_is_infinite():
    assert known_violations(np.array([[-9.0, 9.0]]), np.array([-1]))[0] == np.inf


@pytest.mark.parametrize("name", QUERY_STRATEGIES)
@pytest.mark.parametrize("n", [1, 7, 200, 500])
def test_choice_is_distinct_and_deterministic(name, n):
    values = np.random.default_rng(0).normal(size=(200, 3))
    first = QUERY_STRATEGIES[name].choose(candidates(values), n, np.random.RandomState(4))
    again = QUERY_STRATEGIES[name].choose(candidates(values), n, np.random.RandomState(4))
    np.testing.assert_array_equal(first, again)
    assert len(set(first.tolist())) == len(first) == min(n, 200)


@pytest.mark.parametrize("count", [1, 50, 20_000, 100_000, 200_000, None])
def test_draws_are_distinct_and_uniform(count):
    many = Candidates(100_000, lambda numbers: pytest.fail("evaluated"))
    drawn = draw(many, count, np.random.RandomState(0))
    assert len(np.unique(drawn)) == len(drawn) == min(count or 100_000, 100_000)
    np.testing.assert_array_equal(drawn, draw(many, count, np.random.RandomState(0)))
    if len(drawn) == 20_000:  # uniform, in random order
        assert np.abs(np.histogram(drawn, 10, (0, 100_000))[0] - 2000).max() < 200
        assert np.abs(np.corrcoef(drawn, np.arange(20_000))[0, 1]) < 0.03


def test_margin_selects_the_smallest_margins():
    values = np.random.default_rng(1).normal(size=(300, 4))
    chosen = Margin().choose(candidates(values), 10, np.random.RandomState(0))
    np.testing.assert_array_equal(chosen, np.argsort(margins(values))[:10])


@pytest.mark.parametrize("count", [1, 20, 50])
def test_number_of_evaluated_candidates(count):
    pool = candidates(np.random.default_rng(1).normal(size=(300, 2)))
    chosen = Margin(n_candidates=count).choose(pool, 1, np.random.RandomState(0))
    assert len(pool.margins[0]) == count
    assert margins(pool.decide(chosen))[0] == pool.margins[0].min()


def test_ties_are_broken_at_random():
    values = np.zeros((100, 2))
    first = [Margin().choose(candidates(values), 1, np.random.RandomState(seed))[0] for seed in range(20)]
    assert len(set(first)) > 10


def test_gradient_with_and_without_labels():
    f = np.array([-3.0, -0.2, 0.5, 2.0, 4.0])
    values, labels = np.column_stack([-f, f]), np.array([1, 0, 1, 0, 1])
    everything = Gradient(n_candidates=None)
    by_label = everything.choose(candidates(values, labels), 3, np.random.RandomState(0))
    np.testing.assert_array_equal(by_label, [0, 3, 1])  # violations 4, 3, 0.8
    without = everything.choose(candidates(values), 5, np.random.RandomState(0))
    np.testing.assert_array_equal(without, [1, 2, 3, 0, 4])


@pytest.mark.parametrize("scale", [0.1, 3.0, 30.0])
@pytest.mark.parametrize("n", [1, 3])
def test_auto_active_stops_when_enough_are_inside(scale, n):
    f = np.random.default_rng(2).normal(0, scale, 1000)
    values, strategy = np.column_stack([-f, f]), AutoActive(n_candidates=60, n_inside=4)
    for seed in range(10):
        pool = candidates(values)
        chosen = strategy.choose(pool, n, np.random.RandomState(seed))
        order, evaluated = np.random.RandomState(seed).permutation(1000), []
        for number in order[: 60 * n]:  # one at a time, as defined
            evaluated.append(number)
            if sum(abs(f[k]) < 1 for k in evaluated) == 4 * n:
                break
        np.testing.assert_array_equal(chosen, sorted(evaluated, key=lambda k: abs(f[k]))[:n])
        np.testing.assert_array_equal(pool.margins[0], np.abs(f[evaluated]))


def test_options_are_checked():
    for make in (
        lambda: Margin(n_candidates=0),
        lambda: Gradient(n_candidates=-1),
        lambda: AutoActive(n_inside=0),
        lambda: LowErrorRate(window=0),
        lambda: MarginExhausted(fraction=1.0),
    ):
        with pytest.raises(ValueError, match="at least 1"):
            make()


def test_stopping_rule_needs_a_full_window():
    window = EventWindow(LowErrorRate(window=10, fraction=0.2))
    window.add([False] * 9)
    assert not window.rule_holds
    window.add([True] * 3)
    assert not window.rule_holds  # three of ten
    window.add([False] * 8)
    assert window.rule_holds  # two of ten


@given(st.floats(0.01, 1.0), st.lists(st.one_of(st.none(), st.floats(-2, 2)), max_size=60))
def test_labelling_rate_is_never_exceeded(rate, priorities):
    rule, taken = LabelingRate(rate, window=20), 0
    for seen, priority in enumerate(priorities, 1):
        taken += rule.select(priority)
        assert taken <= np.ceil(rate * seen)


@pytest.mark.parametrize("rate", [0.02, 0.2, 1.0])
def test_labelling_rate_selects_high_priorities(rate):
    rule, priorities = LabelingRate(rate), np.random.default_rng(0).random(4000)
    taken = np.array([rule.select(priority) for priority in priorities])
    assert taken.mean() > 0.75 * rate
    if rate == 1:
        assert taken.all()
    else:
        assert priorities[taken][5:].min() > 1 - 3 * rate


def test_labelling_rate_of_a_constant_stream():
    rule = LabelingRate(0.1)
    assert [rule.select(0.5) for _ in range(100)] == [True] + [False] * 99


def test_random_priorities_need_no_decision_values():
    nothing = Candidates(5, lambda numbers: pytest.fail("evaluated"))
    assert Random().priorities(nothing, np.random.RandomState(0)).shape == (5,)
