"""Start states given one by one."""

from __future__ import annotations

import numpy as np
import pytest

from safetest_gym.errors import ConfigError, LimitError, StartError, StateError
from safetest_gym.jani.tree import StartValues, Variable
from safetest_gym.starts import ListedStarts

X = Variable("x", "int", 0, 9, None)
B = Variable("b", "bool", 0, 1, None)
R = Variable("r", "real", None, None, None)


def listed(*states: tuple[bool | int | float, ...]) -> ListedStarts:
    return ListedStarts((X, B), StartValues(states))


def test_repeated_states_count_once_and_keep_their_first_place() -> None:
    starts = listed((3, True), (1, False), (3, True), (0, True))
    assert starts.count() == 3
    assert starts.enumerate(3).tolist() == [[3, 1], [1, 0], [0, 1]]


def test_states_are_int_rows_unless_a_variable_is_real() -> None:
    assert listed((3, True)).enumerate(1).dtype == np.int64
    assert ListedStarts((X, R), StartValues(((3, 0.5),))).enumerate(1).dtype == np.float64


def test_samples_are_uniform_over_the_distinct_states() -> None:
    starts = listed((3, True), (3, True), (1, False))
    drawn = starts.sample(10_000, np.random.default_rng(0))
    assert abs(int((drawn[:, 0] == 1).sum()) - 5000) < 200


def test_changing_what_was_listed_leaves_the_set_alone() -> None:
    starts = listed((3, True))
    starts.enumerate(1)[:] = 7
    assert starts.contains([3, 1])


def test_contains_only_what_is_listed() -> None:
    starts = listed((3, True))
    assert starts.contains([3, 1])
    assert starts.contains(np.array([3.0, 1.0]))
    assert not starts.contains([3, 0])
    assert not starts.contains([3.5, 1])


def test_an_empty_list_has_nothing_to_draw() -> None:
    assert listed().count() == 0
    assert listed().enumerate(0).shape == (0, 2)
    with pytest.raises(StartError, match="empty"):
        listed().sample(1, np.random.default_rng(0))


def test_listing_more_than_the_limit_is_an_error() -> None:
    with pytest.raises(LimitError, match=r"2 start states .* limit 1"):
        listed((3, True), (1, False)).enumerate(1)


def test_a_negative_number_of_samples_is_an_error() -> None:
    with pytest.raises(ConfigError, match="-1"):
        listed((3, True)).sample(-1, np.random.default_rng(0))


def test_a_vector_of_the_wrong_length_is_an_error() -> None:
    with pytest.raises(StateError, match="2 numbers"):
        listed((3, True)).contains([3])
