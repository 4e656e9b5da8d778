"""Sets of intervals against sets of numbers."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from safetest_gym.starts.intervals import (
    Intervals,
    complement,
    cut,
    holds,
    intersect,
    number_of_ints,
    unite,
)

UNIVERSE = range(-12, 13)
INSIDE = st.sets(st.integers(-10, 10))


def intervals_of(numbers: set[int]) -> Intervals:
    return unite([((number, number),) for number in numbers], real=False)


def numbers_in(intervals: Intervals) -> set[int]:
    return {number for number in UNIVERSE if holds(intervals, number)}


@given(INSIDE, INSIDE)
def test_operations_are_those_of_sets(one: set[int], other: set[int]) -> None:
    a, b = intervals_of(one), intervals_of(other)
    assert numbers_in(intersect(a, b)) == one & other
    assert numbers_in(unite([a, b], real=False)) == one | other
    assert numbers_in(complement(a, real=False)) == set(UNIVERSE) - one
    assert number_of_ints(a) == len(one)


@given(INSIDE)
def test_equal_sets_are_equal_intervals(numbers: set[int]) -> None:
    a = intervals_of(numbers)
    assert complement(complement(a, real=False), real=False) == a


@given(INSIDE, st.sets(st.integers(-10, 10)))
def test_cutting_keeps_the_set_and_crosses_no_start(numbers: set[int], starts: set[int]) -> None:
    pieces = cut(intervals_of(numbers), starts, real=False)
    assert numbers_in(pieces) == numbers
    assert not any(low < start <= high for low, high in pieces for start in starts)


def test_reals_next_to_each_other_leave_no_gap() -> None:
    below = ((-math.inf, math.nextafter(0.5, 0)),)
    assert complement(below, real=True) == ((0.5, math.inf),)
    assert unite([below, ((0.5, 0.5),)], real=True) == ((-math.inf, 0.5),)
