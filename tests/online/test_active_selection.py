"""Margins, violations and strategies from decision values, against their definitions written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from maxmargin.online import STRATEGIES, AutoActive, Gradient, Margin, OutsideMargin, Random, SeldomWrong
from maxmargin.online.auto_stop import Tally
from maxmargin.online.selection import Candidates, draw, known_violations, leads, margins
from maxmargin.online.stream_rate import StreamRate

TABLES = arrays(
    np.float64,
    st.tuples(st.integers(1, 8), st.integers(2, 6)),
    elements=st.one_of(st.floats(-4, 4), st.sampled_from([-1.0, 0.0, 1.0])),
)


def candidates(values, labels=None):
    return Candidates(len(values), lambda numbers: values[numbers], labels)


@given(TABLES)
def test_leads_margins_and_violations_are_what_they_are_called(values):
    classes = range(values.shape[1])
    expected = [[0.5 * (row[c] - max(row[d] for d in classes if d != c)) for c in classes] for row in values]
    np.testing.assert_allclose(leads(values), expected, atol=1e-15)
    np.testing.assert_allclose(margins(values), np.max(expected, axis=1), atol=1e-15)
    labels = np.arange(len(values)) % values.shape[1]
    own = np.array([row[label] for row, label in zip(expected, labels, strict=True)])
    np.testing.assert_allclose(known_violations(values, labels), np.maximum(0, 1 - own), atol=1e-15)


@given(st.floats(-5, 5))
def test_two_classes_have_the_usual_margin_and_violation(f):
    values = np.array([[-f, f]])
    assert margins(values)[0] == abs(f)
    assert known_violations(values, np.array([1]))[0] == max(0.0, 1 - f)
    assert known_violations(values, np.array([0]))[0] == max(0.0, 1 + f)


def test_a_label_that_the_machine_never_met_violates_most():
    assert known_violations(np.array([[-9.0, 9.0]]), np.array([-1]))[0] == np.inf


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("n", [1, 7, 200, 500])
def test_a_choice_has_no_repetition_and_repeats_with_the_seed(name, n):
    values = np.random.default_rng(0).normal(size=(200, 3))
    first = STRATEGIES[name].choose(candidates(values), n, np.random.RandomState(4))
    again = STRATEGIES[name].choose(candidates(values), n, np.random.RandomState(4))
    np.testing.assert_array_equal(first, again)
    assert len(set(first.tolist())) == len(first) == min(n, 200)


@pytest.mark.parametrize("count", [1, 50, 20_000, 100_000, 200_000, None])
def test_draws_from_many_samples_differ_and_favour_none(count):
    many = Candidates(100_000, lambda numbers: pytest.fail("looked"))
    drawn = draw(many, count, np.random.RandomState(0))
    assert len(np.unique(drawn)) == len(drawn) == min(count or 100_000, 100_000)
    np.testing.assert_array_equal(drawn, draw(many, count, np.random.RandomState(0)))
    if len(drawn) == 20_000:  # evenly spread, and in no order
        assert np.abs(np.histogram(drawn, 10, (0, 100_000))[0] - 2000).max() < 200
        assert np.abs(np.corrcoef(drawn, np.arange(20_000))[0, 1]) < 0.03


def test_the_margin_strategy_takes_the_smallest_margins():
    values = np.random.default_rng(1).normal(size=(300, 4))
    chosen = Margin().choose(candidates(values), 10, np.random.RandomState(0))
    np.testing.assert_array_equal(chosen, np.argsort(margins(values))[:10])


@pytest.mark.parametrize("count", [1, 20, 50])
def test_among_candidates_only_so_many_are_looked_at(count):
    seen = candidates(np.random.default_rng(1).normal(size=(300, 2)))
    chosen = Margin(n_candidates=count).choose(seen, 1, np.random.RandomState(0))
    assert len(seen.seen[0]) == count
    assert margins(seen.decide(chosen))[0] == seen.seen[0].min()


def test_equals_are_taken_in_random_order():
    values = np.zeros((100, 2))
    first = [Margin().choose(candidates(values), 1, np.random.RandomState(seed))[0] for seed in range(20)]
    assert len(set(first)) > 10


def test_gradient_with_labels_takes_the_worst_mistake_and_without_them_the_smallest_margin():
    f = np.array([-3.0, -0.2, 0.5, 2.0, 4.0])
    values, labels = np.column_stack([-f, f]), np.array([1, 0, 1, 0, 1])
    everything = Gradient(n_candidates=None)
    by_label = everything.choose(candidates(values, labels), 3, np.random.RandomState(0))
    np.testing.assert_array_equal(by_label, [0, 3, 1])  # violations 4, 3, 0.8
    without = everything.choose(candidates(values), 5, np.random.RandomState(0))
    np.testing.assert_array_equal(without, [1, 2, 3, 0, 4])


@pytest.mark.parametrize("scale", [0.1, 3.0, 30.0])
@pytest.mark.parametrize("n", [1, 3])
def test_auto_active_looks_until_enough_are_inside(scale, n):
    f = np.random.default_rng(2).normal(0, scale, 1000)
    values, strategy = np.column_stack([-f, f]), AutoActive(n_candidates=60, enough=4)
    for seed in range(10):
        seen = candidates(values)
        chosen = strategy.choose(seen, n, np.random.RandomState(seed))
        order, looked = np.random.RandomState(seed).permutation(1000), []
        for number in order[: 60 * n]:  # one after the other, as it is meant
            looked.append(number)
            if sum(abs(f[k]) < 1 for k in looked) == 4 * n:
                break
        np.testing.assert_array_equal(chosen, sorted(looked, key=lambda k: abs(f[k]))[:n])
        np.testing.assert_array_equal(seen.seen[0], np.abs(f[looked]))


def test_options_are_checked():
    for make in (
        lambda: Margin(n_candidates=0),
        lambda: Gradient(n_candidates=-1),
        lambda: AutoActive(enough=0),
        lambda: SeldomWrong(window=0),
        lambda: OutsideMargin(share=1.0),
    ):
        with pytest.raises(ValueError, match="at least 1"):
            make()


def test_a_stop_needs_a_full_window_and_forgets_what_is_older():
    tally = Tally(SeldomWrong(window=10, share=0.2))
    tally.add([False] * 9)
    assert not tally.complete
    tally.add([True] * 3)
    assert not tally.complete  # three of ten
    tally.add([False] * 8)
    assert tally.complete  # two of ten


@given(st.floats(0.01, 1.0), st.lists(st.one_of(st.none(), st.floats(-2, 2)), max_size=60))
def test_a_rate_is_never_exceeded(rate, wishes):
    rule, taken = StreamRate(rate, window=20), 0
    for seen, wish in enumerate(wishes, 1):
        taken += rule.take(wish)
        assert taken <= np.ceil(rate * seen)


@pytest.mark.parametrize("rate", [0.02, 0.2, 1.0])
def test_a_rate_is_used_and_goes_to_the_most_wanted(rate):
    rule, wishes = StreamRate(rate), np.random.default_rng(0).random(4000)
    taken = np.array([rule.take(wish) for wish in wishes])
    assert taken.mean() > 0.75 * rate
    if rate == 1:
        assert taken.all()
    else:
        assert wishes[taken][5:].min() > 1 - 3 * rate


def test_a_constant_stream_is_left_alone():
    rule = StreamRate(0.1)
    assert [rule.take(0.5) for _ in range(100)] == [True] + [False] * 99


def test_random_wishes_need_no_machine():
    nothing = Candidates(5, lambda numbers: pytest.fail("looked"))
    assert Random().wishes(nothing, np.random.RandomState(0)).shape == (5,)
