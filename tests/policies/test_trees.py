"""Tree ensembles walk and add like the slow twin and like XGBoost."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetest_gym.errors import PolicyError
from safetest_gym.policies import policy_from_booster
from tests.oracles.policies import (
    ensemble,
    interface,
    margins,
    random_masks,
    random_states,
    random_tree,
    tree,
    walk,
)


def _booster(strategy: str, actions: int = 5) -> tuple[Any, np.ndarray[Any, Any]]:
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    states = rng.integers(0, 11, (20_000, 8))
    labels = (states[:, 0] * states[:, 1] + states[:, 2] + rng.integers(0, 4, 20_000)) % actions
    options = {
        "objective": "multi:softprob",
        "num_class": actions,
        "max_depth": 5,
        "eta": 0.4,
        "multi_strategy": strategy,
        "tree_method": "hist",
        "nthread": 1,
        "seed": 0,
    }
    data = xgboost.DMatrix(states[:3000], labels[:3000])
    return xgboost.train(options, data, 20), states


@given(st.integers(0, 14), st.integers(1, 4), st.booleans(), st.integers(0, 2**32))
def test_scores_and_leaves_are_those_of_the_slow_twin(
    depth: int, actions: int, vector: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    trees = [
        random_tree(rng, 3, depth, actions if vector else 1, -1 if vector else i % actions)
        for i in range(int(rng.integers(0, 10)))
    ]
    policy = ensemble(trees, rng.normal(size=actions), interface(3, actions))
    states = random_states(rng, 5, 3)
    assert policy.scores(states).tolist() == [margins(policy, s) for s in states.tolist()]
    wanted = [[walk(grown, state) for grown in trees] for state in states.tolist()]
    assert policy.leaves(states).tolist() == wanted


def test_a_chain_deeper_than_any_lockstep_is_followed_to_its_end() -> None:
    size = 2001
    left = np.array([i + 1 if i % 2 == 0 and i + 2 < size else -1 for i in range(size)])
    right = np.where(left >= 0, left + 1, -1)
    threshold = np.where(left >= 0, np.arange(size) // 2 + 0.5, 0)
    values = np.where(left < 0, np.arange(size), 0)[:, None]
    # Nodes 0, 2, 4, ... are the chain: values below i + 0.5 leave it at step i.
    grown = tree(left, right, np.zeros(size), threshold, values, 0)
    policy = ensemble([grown], np.zeros(1), interface(1, 1))
    assert policy.scores(np.array([[0], [500], [5000]]))[:, 0].tolist() == [1, 1001, 2000]


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
def test_margins_are_xgboost_s_bit_for_bit(strategy: str) -> None:
    import xgboost

    booster, states = _booster(strategy)
    policy = policy_from_booster(booster, interface(8, 5))
    wanted = booster.predict(xgboost.DMatrix(states), output_margin=True)
    assert (policy.scores(states) == wanted).all()
    masks = random_masks(np.random.default_rng(1), len(states), 5)
    best = np.where(masks, wanted, -np.inf).argmax(axis=1)
    assert (policy.actions(states, masks) == best).all()


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
def test_leaves_are_xgboost_s(strategy: str) -> None:
    import xgboost

    booster, states = _booster(strategy)
    policy = policy_from_booster(booster, interface(8, 5))
    wanted = booster.predict(xgboost.DMatrix(states[:500]), pred_leaf=True)
    assert (policy.leaves(states[:500]) == wanted.reshape(500, -1)).all()


def test_real_values_are_compared_in_float32() -> None:
    grown = tree(
        np.array([1, -1, -1]), np.array([2, -1, -1]), np.zeros(3), np.array([0.1, 0, 0]),
        np.array([[0], [1], [2]]), 0,
    )  # fmt: skip
    policy = ensemble([grown], np.zeros(1), interface(1, 1))
    below = np.nextafter(np.float32(0.1), np.float32(0))
    assert policy.scores(np.array([[0.1], [below]]))[:, 0].tolist() == [2, 1]


def test_a_pickled_ensemble_decides_alike() -> None:
    rng = np.random.default_rng(2)
    trees = tuple(random_tree(rng, 3, 5, 1, i % 2) for i in range(8))
    policy = ensemble(trees, np.zeros(2), interface(3, 2))
    policy.native()
    states = random_states(rng, 50, 3)
    again = pickle.loads(pickle.dumps(policy))
    assert (again.scores(states) == policy.scores(states)).all()


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([1, -1, -1], [1, -1, -1]),
        ([0, -1, -1], [2, -1, -1]),
        ([1, -1], [7, -1]),
        ([-1, -1], [-1, -1]),
    ],
)
def test_nodes_that_form_no_tree_are_refused(left: list[int], right: list[int]) -> None:
    size = len(left)
    with pytest.raises(PolicyError, match="do not form a tree"):
        tree(left, right, np.zeros(size), np.zeros(size), np.zeros((size, 1)))


def test_a_tree_that_reads_a_variable_too_many_is_refused() -> None:
    grown = random_tree(np.random.default_rng(1), 9, 6, 1, 0)
    with pytest.raises(PolicyError, match="of 2 variables: v0, v1"):
        ensemble([grown], np.zeros(1), interface(2, 1))


def test_an_ensemble_with_other_outputs_than_actions_is_refused() -> None:
    with pytest.raises(PolicyError, match="3 base scores, the interface 2 actions: a0, a1"):
        ensemble([], np.zeros(3), interface(1, 2))
