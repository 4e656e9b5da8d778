"""Start states given by a condition on ints and bools."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

from safetest_gym.errors import EvaluationError, LimitError, StartError
from tests.starts.building import Types, by_trying, starts_of

PLACES = " + ".join(f"x{i}" for i in range(41))
DIFFERENT = " and ".join(f"j{i} != j{k}" for i in range(12) for k in range(i))
SMALL: list[tuple[Types, str]] = [
    ({"x": (0, 5), "y": (0, 5)}, "x + y == 5"),
    ({"x": (-3, 4), "y": (-2, 5), "z": (0, 3)}, "2 * x - 3 * y + z <= 1"),
    ({"x": (-3, 4), "y": (-2, 5)}, "4 * x + 6 * y != 2"),
    ({"x": (0, 5), "b": "bool", "c": "bool"}, "(b == c) and (x > 2 or not b)"),
    ({"x": (0, 8), "y": (1, 4)}, "x % y == 1 and x * y > 5"),
    ({"x": (-4, 4), "y": (-4, 4)}, "max(x, y) == abs(min(x, y)) + 1"),
    ({"b": "bool", "c": "bool"}, "(1 if b else 0) + (2 if c else 0) <= 2"),
    ({"x": (0, 4), "y": (0, 4)}, "(x if x > y else y + 1) <= 3"),
    ({"x": (0, 9), "y": (0, 9)}, "x <= 2.5 and 0.5 * y + x < 4.25"),
    ({"x": (0, 3), "y": (0, 3), "z": (0, 3)}, "x != y and y != z and x != z"),
    ({"x": (0, 6), "y": (0, 6)}, "(x == 0 -> y > 4) and (x > 3 -> y == x - 4)"),
    ({"x": (0, 3)}, "true"),
    ({"x": (0, 3), "y": (2, 2)}, "x + y > 9"),
    ({"x": (2, 2), "b": "bool"}, "x == 2"),
]  # fmt: skip


@pytest.mark.parametrize(("types", "text"), SMALL, ids=[text for _, text in SMALL])
def test_counts_and_lists_exactly_the_states_that_satisfy_it(types: Types, text: str) -> None:
    expected = list(by_trying(types, text))
    starts = starts_of(types, text)
    assert starts.count() == len(expected)
    assert [tuple(row) for row in starts.enumerate(1000).tolist()] == expected


@pytest.mark.parametrize(("types", "text"), SMALL, ids=[text for _, text in SMALL])
def test_contains_agrees_with_the_list(types: Types, text: str) -> None:
    starts = starts_of(types, text)
    every = starts_of(types, "true").enumerate(1000)
    inside = {tuple(row) for row in starts.enumerate(1000).tolist()}
    assert {tuple(row) for row in every.tolist() if starts.contains(row)} == inside


@pytest.mark.parametrize(
    ("types", "text"),
    [
        ({"x": (0, 15), "y": (0, 15), "z": (0, 15)}, "x + y + z == 15"),
        ({"x": (0, 4), "y": (0, 4), "z": (0, 4)}, "x != y and y != z and x != z"),
        ({"x": (0, 40), "y": (0, 40)}, "x * y <= 20"),
        ({"x": (0, 30), "b": "bool"}, "(b and x % 3 == 0) or (not b and (x < 2 or x > 25))"),
        ({"x": (0, 9), "y": (5, 14)}, "true"),
    ],
)
def test_samples_are_uniform(types: Types, text: str) -> None:
    starts = starts_of(types, text)
    count = starts.count()
    assert count is not None
    drawn = starts.sample(200 * count, np.random.default_rng(7))
    rows, seen = np.unique(drawn, axis=0, return_counts=True)
    assert rows.tolist() == starts.enumerate(count).tolist()
    chi_square = float(((seen - 200) ** 2 / 200).sum())
    assert abs(chi_square - (count - 1)) < 4 * math.sqrt(2 * (count - 1))


def test_successive_samples_are_independent() -> None:
    starts = starts_of({"x": (0, 3), "y": (0, 3)}, "x + y <= 3")
    drawn = starts.sample(50_000, np.random.default_rng(3))
    place = drawn[:, 0] * 4 + drawn[:, 1]
    pairs = np.unique(place[:-1] * 16 + place[1:], return_counts=True)[1]
    expected = (len(place) - 1) / 100
    assert len(pairs) == 100
    assert float(((pairs - expected) ** 2 / expected).sum()) < 99 + 4 * math.sqrt(2 * 99)


def test_the_same_seed_gives_the_same_states_whatever_came_before() -> None:
    starts = starts_of({"x": (0, 9), "y": (0, 9)}, "x < y")
    first = starts.sample(100, np.random.default_rng(5))
    starts.sample(3, np.random.default_rng(6))
    np.random.seed(1)
    again = starts_of({"x": (0, 9), "y": (0, 9)}, "x < y").sample(100, np.random.default_rng(5))
    assert (first == again).all()
    assert (first == starts.sample(100, np.random.default_rng(5))).all()


@pytest.mark.parametrize("built", [False, True])
def test_copies_and_pickles_draw_the_same_states(built: bool) -> None:
    starts = starts_of({"x": (0, 9), "y": (0, 9)}, "x * y == 12 or x == 3")
    if built:
        starts.count()
    drawn = starts.sample(50, np.random.default_rng(0)) if built else None
    for other in (pickle.loads(pickle.dumps(starts)), copy.deepcopy(starts)):
        mine = starts.sample(50, np.random.default_rng(0)) if drawn is None else drawn
        assert (other.sample(50, np.random.default_rng(0)) == mine).all()
        assert other.contains([3, 4])


@pytest.mark.parametrize(
    ("types", "text", "count"),
    [
        ({f"x{i}": (0, 40) for i in range(41)}, f"{PLACES} == 40", math.comb(80, 40)),
        ({"h": (0, 2**40 - 1), "e": (0, 4000)}, "e == 0", 2**40),
        ({"h": (0, 2**40 - 1)}, "h <= 10 or h >= 2 ** 39", 2**39 + 11),
        ({"h": (0, 2**40 - 1), "k": (0, 10)}, "h + k <= 99", sum(100 - k for k in range(11))),
        ({"h": (0, 2**40 - 1), "k": (0, 2)}, "h + k <= 2 ** 39", 3 * 2**39),
        ({"h": (-(2**63), 2**63 - 1)}, "h != 0", 2**64 - 1),
        ({f"x{i}": (0, 999) for i in range(30)}, "x0 % 2 == 0 and x20 != 5", 500 * 999 * 1000**28),
        ({f"j{i}": (0, 13) for i in range(12)}, DIFFERENT, math.perm(14, 12)),
    ],
)  # fmt: skip
def test_counts_what_could_never_be_listed(types: Types, text: str, count: int) -> None:
    starts = starts_of(types, text)
    assert starts.count() == count
    assert all(starts.contains(row) for row in starts.sample(20, np.random.default_rng(0)))


def test_a_million_states_are_listed_in_lexicographic_order() -> None:
    starts = starts_of({"x": (0, 99), "y": (0, 99), "z": (0, 99)}, "x != 100 or y == z")
    rows = starts.enumerate(10**6)
    assert (rows @ [10_000, 100, 1] == np.arange(10**6)).all()


def test_listing_more_than_the_limit_is_an_error_that_tells_the_count() -> None:
    with pytest.raises(LimitError, match=r"1099511627776 start states .* limit 1000"):
        starts_of({"h": (0, 2**40 - 1)}, "true").enumerate(1000)


def test_a_condition_can_bound_an_unbounded_int() -> None:
    types = {"x": "int", "y": "int"}
    assert starts_of(types, "x >= 0 and y >= 0 and x + y <= 5").count() == 21
    assert starts_of(types, "(x == 1 and y == 7) or (x == 2 and y >= 0 and y < 9)").count() == 10


def test_an_unbounded_int_that_the_condition_leaves_unbounded_is_an_error_that_names_it() -> None:
    starts = starts_of({"x": (0, 3), "far": "int"}, "far >= x")
    with pytest.raises(StartError, match="'far' has no greatest value"):
        starts.count()


def test_an_empty_set_counts_none_and_has_nothing_to_draw() -> None:
    starts = starts_of({"x": (0, 9), "y": "int"}, "x + 1 < x")
    assert starts.count() == 0
    assert starts.enumerate(0).shape == (0, 2)
    assert not starts.contains([3, 3])
    with pytest.raises(StartError, match="empty"):
        starts.sample(1, np.random.default_rng(0))


def test_no_states_at_all_can_be_asked_for() -> None:
    assert starts_of({"x": (0, 9)}, "x > 3").sample(0, np.random.default_rng(0)).shape == (0, 1)


@pytest.mark.parametrize("state", [[-1, 0], [10, 0], [0.5, 0], [3, 2], [float("nan"), 0]])
def test_a_vector_outside_bounds_or_not_integral_is_no_start(state: list[Any]) -> None:
    assert not starts_of({"x": (0, 9), "b": "bool"}, "true").contains(state)


def test_a_condition_that_has_no_value_somewhere_is_an_error_that_tells_where() -> None:
    starts = starts_of({"x": (0, 3), "y": (0, 3)}, "y == 1 and 6 / x > 2.5")
    with pytest.raises(StartError, match=r"no value where x = 0, y = 1: .*division by zero"):
        starts.count()
    with pytest.raises(EvaluationError):
        starts.contains([0, 1])


def test_states_that_the_condition_excludes_need_no_value() -> None:
    assert starts_of({"x": (0, 3)}, "x != 0 and 6 / x > 2.5").count() == 2
    assert starts_of({"x": (0, 3)}, "x == 0 or 6 / x > 2.5").count() == 3


def test_a_condition_too_intricate_to_count_is_an_error_with_advice() -> None:
    types = dict.fromkeys("abc", (0, 10**6))
    with pytest.raises(StartError, match=r"too intricate .* list the start states"):
        starts_of(types, "a * b * c <= 10 ** 9").count()


def test_making_a_set_is_lazy() -> None:
    types = dict.fromkeys("abc", (0, 10**6))
    starts = starts_of(types, "a * b * c <= 10 ** 9")
    assert starts.contains([1, 2, 3])
