"""What each kind of policy lets a repair change, and how scores depend on it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.policies.mlp import MlpPolicy
from safetest_gym.policies.trees import VECTOR, TreeEnsemblePolicy
from safetest_gym.repair.problem import Features

__all__ = ["layer_features", "tree_features"]


def tree_features(
    policy: TreeEnsemblePolicy, states: NDArray[Any]
) -> tuple[Features, NDArray[np.int64]]:
    """Leaf values as what may change, and per feature its leaf as (tree, node), shape (J, 2)."""
    reached = policy.leaves(states)
    sizes = np.array([len(tree.left) for tree in policy.trees], dtype=np.int64)
    first = np.cumsum(sizes) - sizes
    numbers, index = np.unique(reached + first, return_inverse=True)
    owner = np.searchsorted(first, numbers, side="right") - 1
    outputs = policy.interface.num_actions
    values = np.zeros((len(numbers), outputs))
    allowed = np.zeros((len(numbers), outputs), dtype=np.bool_)
    for t, tree in enumerate(policy.trees):
        mine = np.flatnonzero(owner == t)
        columns = slice(None) if tree.output == VECTOR else slice(tree.output, tree.output + 1)
        values[mine, columns] = tree.values[numbers[mine] - first[t]]
        allowed[mine, columns] = True
    places = np.asarray(index.reshape(reached.shape), dtype=np.int32)
    base = np.repeat(policy.base_scores.astype(np.float64)[None], len(states), axis=0)
    for t in range(len(policy.trees)):
        base += values[places[:, t]]
    features = Features(places, np.ones(places.shape), base, allowed)
    return features, np.column_stack([owner, numbers - first[owner]])


def layer_features(policy: MlpPolicy, states: NDArray[Any]) -> Features:
    """Weights of the last layer, and its bias as the last row, as what may change."""
    hidden = policy.hidden(states).astype(np.float64)
    value = np.column_stack([hidden, np.ones(len(hidden))])
    last = policy.layers[-1]
    base = hidden @ last.weight.T.astype(np.float64) + last.bias
    width = value.shape[1]
    index = np.repeat(np.arange(width, dtype=np.int32)[None], len(states), axis=0)
    return Features(index, value, base, np.ones((width, len(last.bias)), dtype=np.bool_))
