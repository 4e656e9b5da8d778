"""Table policies know their states and no others."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetest_gym.errors import ActionError, PolicyError
from safetest_gym.policies import Interface, TablePolicy
from tests.oracles.policies import Names, interface

KEYS = st.tuples(st.integers(-5, 5), st.integers(0, 3))


@given(st.dictionaries(KEYS, st.sampled_from(["a0", "a1", "a2"]), min_size=1))
def test_the_action_is_the_listed_one(table: dict[tuple[float, ...], str]) -> None:
    policy = TablePolicy.from_dict(table, interface(2, 3))
    states = np.array(list(table))
    chosen = policy.actions(states, np.ones((len(states), 3), dtype=bool))
    assert [f"a{action}" for action in chosen] == list(table.values())
    assert dict(policy.items()) == table


def test_only_the_interface_s_variables_are_looked_up() -> None:
    policy = TablePolicy.from_dict({(1,): "b", (2,): "a"}, Interface(("x",), ("a", "b")))
    bound = policy.bind(Names(("other", "x"), ("b", "a")))
    masks = np.ones((3, 2), dtype=bool)
    assert bound.actions(np.array([[9, 1], [7, 1], [0, 2]]), masks).tolist() == [0, 0, 1]


def test_an_unlisted_state_is_an_error_that_names_the_row() -> None:
    policy = TablePolicy.from_dict({(1,): "a0"}, interface(1, 2))
    with pytest.raises(ActionError, match="row 1: the table has no applicable action"):
        policy.actions(np.array([[1], [2]]), np.ones((2, 2), dtype=bool))


def test_a_listed_action_that_is_not_applicable_is_an_error() -> None:
    policy = TablePolicy.from_dict({(1,): "a0"}, interface(1, 2))
    with pytest.raises(ActionError, match="row 0"):
        policy.actions(np.array([[1]]), np.array([[False, True]]))


def test_negative_zero_is_zero() -> None:
    policy = TablePolicy.from_dict({(-0.0,): "a0", (0.5,): "a1"}, interface(1, 2))
    assert policy.actions(np.array([[0.0], [0.5]]), np.ones((2, 2), bool)).tolist() == [0, 1]


def test_a_state_with_two_actions_is_refused() -> None:
    with pytest.raises(PolicyError, match=r"\[1\] has two actions"):
        TablePolicy(np.array([[1], [1]]), np.array([0, 1]), interface(1, 2))


def test_an_unknown_action_is_refused() -> None:
    with pytest.raises(PolicyError, match="unknown actions: jump"):
        TablePolicy.from_dict({(1,): "jump"}, interface(1, 2))


@pytest.mark.parametrize("value", [2**60, -(2**63), np.uint64(2**64 - 1)])
def test_integers_that_no_float_can_tell_apart_are_refused(value: int) -> None:
    with pytest.raises(PolicyError, match="beyond"):
        TablePolicy(np.array([[value]]), np.array([0]), interface(1, 1))


def test_an_empty_table_knows_no_state() -> None:
    policy = TablePolicy.from_dict({}, interface(2, 2))
    with pytest.raises(ActionError):
        policy.actions(np.zeros((1, 2)), np.ones((1, 2), dtype=bool))


def test_a_pickled_table_decides_alike() -> None:
    policy = TablePolicy(np.arange(100)[:, None], np.arange(100) % 3, interface(1, 3))
    again = pickle.loads(pickle.dumps(policy))
    states, masks = np.arange(100)[:, None], np.ones((100, 3), dtype=bool)
    assert (again.actions(states, masks) == np.arange(100) % 3).all()
