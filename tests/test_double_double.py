"""Double-double arithmetic against exact rational numbers."""

from fractions import Fraction
from math import fsum

import numpy as np
import pytest

from maxmargin.double_double import (
    EXTENDED_EPSILON,
    DoubleDouble,
    compressed,
    exact_sum,
    extended_sums,
    two_product,
    two_sum,
)


def exact(number: DoubleDouble) -> list[Fraction]:
    return [Fraction(high) + Fraction(low) for high, low in zip(number.high, number.low, strict=True)]


def numbers(seed: int, count: int = 200) -> DoubleDouble:
    random = np.random.default_rng(seed)
    high = random.normal(size=count) * 10.0 ** random.integers(-8, 8, count)
    return two_sum(high, high * 2.0**-54 * random.normal(size=count))


def test_sums_and_products_of_doubles_are_exact():
    left, right = numbers(0).high, numbers(1).high
    for found, a, b in zip(exact(two_sum(left, right)), left, right, strict=True):
        assert found == Fraction(a) + Fraction(b)
    for found, a, b in zip(exact(two_product(left, right)), left, right, strict=True):
        assert found == Fraction(a) * Fraction(b)


@pytest.mark.parametrize("operation", ["plus", "minus", "times"])
def test_operations_have_the_stated_relative_error(operation):
    left, right = numbers(2), numbers(3)
    result = exact(getattr(left, operation)(right))
    for found, a, b in zip(result, exact(left), exact(right), strict=True):
        wanted = {"plus": a + b, "minus": a - b, "times": a * b}[operation]
        assert abs(found - wanted) <= Fraction(EXTENDED_EPSILON) * abs(wanted)


def test_a_difference_of_nearly_equal_numbers():
    left = numbers(4)
    right = DoubleDouble(left.high, left.low + left.high * 2.0**-100)
    for found, a, b in zip(exact(left.minus(right)), exact(left), exact(right), strict=True):
        assert found == a - b


def test_products_with_doubles():
    left, factor = numbers(5), numbers(6).high
    for found, a, b in zip(exact(left.scaled(factor)), exact(left), factor, strict=True):
        assert abs(found - a * Fraction(b)) <= Fraction(EXTENDED_EPSILON) * abs(a * Fraction(b))


def test_the_sum_is_rounded_once():
    values = numbers(7)
    assert exact_sum(values) == float(sum(exact(values)))


def test_sums_by_place():
    values, place = numbers(8), np.random.default_rng(0).integers(0, 9, 200)
    found = exact(extended_sums(place, values, 10))
    each = exact(values)
    for k in range(10):
        members = [each[i] for i in np.flatnonzero(place == k)]
        assert abs(found[k] - sum(members)) <= Fraction(EXTENDED_EPSILON) * sum(map(abs, members))


def test_sums_that_overflow_are_not_a_number():
    large, infinite = np.full(3, 1e308), np.array([np.inf, -np.inf])
    for values in (large, infinite):
        assert np.isnan(exact_sum(DoubleDouble(values, np.zeros(len(values)))))


class TestCompressedSums:
    @pytest.mark.parametrize("spread", [0, 20, 60, 400, 1000])
    @pytest.mark.parametrize("cancelling", [False, True])
    def test_the_sum_is_exactly_the_same(self, spread, cancelling):
        random = np.random.default_rng(spread)
        values = random.normal(size=5000) * 2.0 ** random.integers(-spread, min(spread, 950) + 1, size=5000)
        values = np.concatenate([values, -values[1:]]) if cancelling else values
        few = compressed(values)
        assert sum(map(Fraction, few.tolist())) == sum(map(Fraction, values.tolist()))
        assert len(few) < len(values) / 100 or spread > 60

    def test_subnormal_numbers(self):
        values = np.random.default_rng(0).integers(-9, 9, size=3000) * 5e-324
        assert fsum(compressed(values)) == fsum(values)

    def test_many_numbers_of_one_sign(self):
        values = np.full(100_000, np.nextafter(1.0, 2.0))
        assert fsum(compressed(values)) == fsum(values)

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1.7e308])
    def test_overflow_is_not_a_number(self, value):
        values = np.ones(3000)
        values[::100] = value
        assert np.isnan(exact_sum(DoubleDouble.of(values)))

    def test_empty_and_zero(self):
        assert exact_sum(DoubleDouble.of(np.zeros(0))) == exact_sum(DoubleDouble.of(np.zeros(3000))) == 0.0
