"""Networks give the scores of torch, and choose like the slow twin."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetest_gym.errors import ActionError, PolicyError, StateError
from safetest_gym.policies import Interface, Layer, MlpPolicy
from tests.oracles.policies import (
    Names,
    best_action,
    interface,
    layer,
    network_scores,
    random_masks,
    random_network,
    random_states,
)

SIZES = st.lists(st.integers(1, 40), min_size=2, max_size=5)


@given(SIZES, st.sampled_from(["relu", "tanh", "identity"]), st.integers(0, 2**32))
def test_scores_are_those_of_the_slow_twin_up_to_rounding(
    sizes: list[int], activation: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    policy = random_network(rng, sizes, activation)
    states = random_states(rng, 3, sizes[0])
    wanted = [network_scores(policy, state) for state in states.tolist()]
    np.testing.assert_allclose(policy.scores(states), wanted, rtol=2e-5, atol=2e-5)


@given(SIZES, st.integers(0, 2**32))
def test_the_action_is_the_best_applicable_one_by_its_own_scores(
    sizes: list[int], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    policy = random_network(rng, sizes)
    states = random_states(rng, 5, sizes[0])
    masks = random_masks(rng, 5, sizes[-1])
    wanted = [
        best_action(scores, mask)
        for scores, mask in zip(policy.scores(states).tolist(), masks.tolist(), strict=True)
    ]
    assert policy.actions(states, masks).tolist() == wanted


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_the_action_is_torch_s_on_every_state_but_for_ties(activation: str) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    policy = random_network(rng, (14, 64, 64, 5), activation)
    states, masks = random_states(rng, 20_000, 14), random_masks(rng, 20_000, 5)
    values = torch.tensor(states, dtype=torch.float32)
    for part in policy.layers:
        values = torch.nn.functional.linear(
            values, torch.tensor(part.weight), torch.tensor(part.bias)
        )
        values = {"relu": torch.relu, "tanh": torch.tanh, "identity": lambda x: x}[part.activation](
            values
        )
    scores = np.where(masks, values.numpy(), -np.inf)
    two_best = np.sort(scores, axis=1)[:, -2:]
    tie = two_best[:, 1] - two_best[:, 0] <= 4e-6
    assert tie.sum() < 5
    assert (policy.actions(states, masks) == scores.argmax(axis=1))[~tie].all()


def test_tanh_is_rounded_almost_perfectly() -> None:
    policy = MlpPolicy((layer(np.ones((1, 1)), np.zeros(1), "tanh"),), interface(1, 1))
    points = np.linspace(-12, 12, 200_001, dtype=np.float32)[:, None]
    wanted = np.tanh(points.astype(np.float64))
    error = np.abs(policy.scores(points) - wanted) / np.spacing(np.abs(wanted).astype(np.float32))
    assert error.max() <= 0.55


def test_equal_scores_go_to_the_lowest_number() -> None:
    policy = MlpPolicy((layer(np.zeros((3, 2)), np.ones(3)),), interface(2, 3))
    masks = np.array([[True, True, True], [False, True, True], [False, False, True]])
    assert policy.actions(np.zeros((3, 2)), masks).tolist() == [0, 1, 2]


def test_equal_scores_go_to_the_lowest_number_of_the_task_not_of_the_policy() -> None:
    names = Interface(("x",), ("b", "a")).bind(Names(("x",), ("a", "b")))
    policy = MlpPolicy((layer(np.zeros((2, 1)), np.ones(2)),), names)
    assert policy.actions(np.zeros((1, 1)), np.ones((1, 2), bool)).tolist() == [0]


def test_a_bound_policy_reads_its_columns_and_answers_in_the_task_s_numbers() -> None:
    rng = np.random.default_rng(0)
    plain = random_network(rng, (2, 8, 3))
    bound = plain.bind(Names(("other", "v1", "v0"), ("a2", "a0", "a1")))
    states = random_states(rng, 50, 3)
    wanted = plain.scores(states[:, [2, 1]])[:, [2, 0, 1]]
    assert (bound.scores(states) == wanted).all()
    assert bound.actions(states, np.ones((50, 3), bool)).tolist() == wanted.argmax(1).tolist()


def test_hidden_values_are_what_the_last_layer_reads() -> None:
    rng = np.random.default_rng(5)
    policy = random_network(rng, (4, 9, 7, 3), "tanh")
    states = random_states(rng, 20, 4)
    last = policy.layers[-1]
    np.testing.assert_allclose(
        policy.hidden(states) @ last.weight.T + last.bias, policy.scores(states), rtol=1e-5
    )


def test_a_state_without_applicable_action_is_an_error_that_names_the_row() -> None:
    policy = random_network(np.random.default_rng(0), (2, 3))
    masks = np.ones((3, 3), dtype=bool)
    masks[1] = False
    with pytest.raises(ActionError, match="row 1: no action is applicable"):
        policy.actions(np.zeros((3, 2)), masks)


def test_states_of_another_width_are_refused() -> None:
    policy = random_network(np.random.default_rng(0), (2, 3))
    with pytest.raises(StateError, match=r"\(n, 2\)"):
        policy.actions(np.zeros((1, 3)), np.ones((1, 3), bool))


def test_masks_of_another_width_are_refused() -> None:
    policy = random_network(np.random.default_rng(0), (2, 3))
    with pytest.raises(ActionError, match=r"\(1, 3\)"):
        policy.actions(np.zeros((1, 2)), np.ones((1, 2), bool))


def test_pickled_and_copied_policies_decide_alike() -> None:
    rng = np.random.default_rng(7)
    policy = random_network(rng, (5, 16, 4))
    states, masks = random_states(rng, 100, 5), random_masks(rng, 100, 4)
    wanted = policy.actions(states, masks).tolist()
    for other in (pickle.loads(pickle.dumps(policy)), copy.deepcopy(policy)):
        assert other.actions(states, masks).tolist() == wanted


def test_weights_cannot_be_changed_behind_the_kernel_s_back() -> None:
    policy = random_network(np.random.default_rng(0), (2, 3))
    with pytest.raises(ValueError, match="read-only"):
        policy.layers[0].weight[0, 0] = 1


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ((), "at least one layer"),
        ((layer(np.ones((2, 3)), np.ones(2)),), "3 inputs, the interface 2 variables: v0, v1"),
        ((layer(np.ones((4, 2)), np.ones(4)),), "4 outputs, the interface 2 actions: a0, a1"),
        (
            (layer(np.ones((4, 2)), np.ones(4)), layer(np.ones((2, 3)), np.ones(2))),
            "layer 1 reads 3 values, the one before has 4",
        ),
    ],
)
def test_layers_that_do_not_fit_are_refused(layers: tuple[Layer, ...], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        MlpPolicy(layers, interface(2, 2))


def test_weights_that_are_not_finite_are_refused() -> None:
    with pytest.raises(PolicyError, match="finite"):
        layer(np.full((1, 1), np.nan), np.zeros(1))


def test_layers_too_wide_for_a_thread_s_stack_are_refused() -> None:
    with pytest.raises(PolicyError, match="the limit is 16384"):
        layer(np.zeros((20_000, 1)), np.zeros(20_000))


def test_replacing_the_layers_replaces_the_native_form() -> None:
    policy = random_network(np.random.default_rng(0), (2, 3))
    policy.native()
    zeros = replace(policy, layers=(layer(np.zeros((3, 2)), np.zeros(3)),))
    assert not zeros.scores(np.ones((1, 2))).any()
