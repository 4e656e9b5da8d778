"""Policies from Python functions, and policies drawn by hashing."""

from __future__ import annotations

import numpy as np
import pytest

from safetest_gym.errors import ActionError
from safetest_gym.policies import CallablePolicy, Interface, RandomPolicy
from tests.oracles.policies import Names, interface, random_masks, random_states


def test_a_function_sees_values_by_name_and_the_applicable_actions() -> None:
    seen = []

    def choose(state: dict[str, float], applicable: tuple[str, ...]) -> str:
        seen.append((state, applicable))
        return applicable[-1]

    policy = CallablePolicy(choose, Interface(("y", "x"), ("stop", "go")))
    bound = policy.bind(Names(("x", "y"), ("go", "stop")))
    masks = np.array([[True, True], [True, False]])
    assert bound.actions(np.array([[1, 2], [3, 4]]), masks).tolist() == [1, 0]
    assert seen == [({"y": 2, "x": 1}, ("go", "stop")), ({"y": 4, "x": 3}, ("go",))]


def test_a_function_that_chooses_an_inapplicable_action_is_an_error() -> None:
    policy = CallablePolicy(lambda state, applicable: "a1", interface(1, 2))
    with pytest.raises(ActionError, match="row 0: the function chose 'a1', applicable: a0"):
        policy.actions(np.zeros((1, 1)), np.array([[True, False]]))


def test_a_function_is_not_asked_where_nothing_is_applicable() -> None:
    policy = CallablePolicy(lambda state, applicable: "a1", interface(1, 2))
    with pytest.raises(ActionError, match="no action is applicable"):
        policy.actions(np.zeros((1, 1)), np.zeros((1, 2), dtype=bool))


def test_a_random_policy_gives_a_state_the_same_action_every_time() -> None:
    rng = np.random.default_rng(0)
    states, masks = random_states(rng, 200, 3), random_masks(rng, 200, 4)
    first, second = RandomPolicy(interface(3, 4), 5), RandomPolicy(interface(3, 4), 5)
    wanted = first.actions(states, masks)
    assert (second.actions(states[::-1], masks[::-1])[::-1] == wanted).all()


def test_random_policies_with_other_seeds_differ() -> None:
    states = random_states(np.random.default_rng(0), 200, 3)
    masks = np.ones((200, 4), dtype=bool)
    one, two = (RandomPolicy(interface(3, 4), seed).actions(states, masks) for seed in (1, 2))
    assert 100 < (one != two).sum() < 190


def test_a_random_policy_takes_applicable_actions_evenly() -> None:
    states = np.stack(np.meshgrid(*[np.arange(30)] * 3), axis=-1).reshape(-1, 3)
    masks = np.zeros((len(states), 5), dtype=bool)
    masks[:, [1, 2, 4]] = True
    counts = np.bincount(RandomPolicy(interface(3, 5)).actions(states, masks), minlength=5)
    assert counts[[0, 3]].tolist() == [0, 0]
    assert (np.abs(counts[[1, 2, 4]] - 9000) < 400).all()


def test_a_random_policy_touches_no_global_stream() -> None:
    before = np.random.get_state()[1].copy()  # type: ignore[index]
    RandomPolicy(interface(1, 2)).actions(np.zeros((9, 1)), np.ones((9, 2), dtype=bool))
    assert (np.random.get_state()[1] == before).all()  # type: ignore[index]
