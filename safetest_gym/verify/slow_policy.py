"""What policies do, once more, with plain numpy: for checkers, which trust no machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import CertificateError
from safetest_gym.policies.mlp import MlpPolicy
from safetest_gym.policies.policy import Policy
from safetest_gym.policies.scaling import scaled_features
from safetest_gym.policies.table import TablePolicy
from safetest_gym.policies.trees import VECTOR, Tree, TreeEnsemblePolicy

__all__ = ["SlowPolicy"]

_ROUNDING = 1e-4
"""How far sums in float32 may be from those in float64, relative to the sizes summed."""


class SlowPolicy:
    """The actions of a policy (bound to its task), found without its machine code.

    Trees and tables are recomputed bit for bit. A network's action must have the best
    score in float64 up to rounding. Any other policy is asked itself.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._table: dict[tuple[float, ...], int] = {}
        if isinstance(policy, TablePolicy):
            numbers = policy.interface.numbers
            self._table = {
                tuple(float(value) for value in row): numbers[output]
                for row, output in zip(policy.rows.tolist(), policy.chosen.tolist(), strict=True)
            }

    def actions(self, states: NDArray[Any], masks: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Actions (n,) in vectors (n, V) under masks (n, A)."""
        policy = self._policy
        if isinstance(policy, TreeEnsemblePolicy):
            return _best(_margins(policy, states), masks, policy.interface.order)
        if isinstance(policy, TablePolicy):
            features = states[:, list(policy.interface.columns)].astype(np.float64)
            found = [self._table.get(tuple(row), -1) for row in features.tolist()]
            return np.array(found, np.int64)
        actions = policy.actions(states, masks)
        if isinstance(policy, MlpPolicy):
            _check_network(policy, states, masks, actions)
        return actions


def _best(
    scores: NDArray[Any], masks: NDArray[np.bool_], order: tuple[int, ...]
) -> NDArray[np.int64]:
    best = np.full(len(masks), -1, np.int64)
    highest = np.full(len(masks), -np.inf, scores.dtype)
    for action, output in enumerate(order):
        better = masks[:, action] & ((best < 0) | (scores[:, output] > highest))
        best[better], highest[better] = action, scores[better, output]
    return best


def _margins(policy: TreeEnsemblePolicy, states: NDArray[Any]) -> NDArray[np.float32]:
    """Base scores, then the trees in order, added in float32."""
    features = states[:, list(policy.interface.columns)].astype(np.float32)
    scores = np.tile(policy.base_scores, (len(states), 1))
    for tree in policy.trees:
        values = tree.values[_leaves(tree, features)]
        if tree.output == VECTOR:
            scores += values
        else:
            scores[:, tree.output] += values[:, 0]
    return scores


def _leaves(tree: Tree, features: NDArray[np.float32]) -> NDArray[np.int64]:
    node = np.zeros(len(features), np.int64)
    rows = np.arange(len(features))
    while (inner := tree.left[node] >= 0).any():
        less = features[rows, tree.feature[node]] < tree.threshold[node]
        node = np.where(inner, np.where(less, tree.left[node], tree.right[node]), node)
    return node


def _check_network(
    policy: MlpPolicy, states: NDArray[Any], masks: NDArray[np.bool_], actions: NDArray[np.int64]
) -> None:
    columns = states[:, list(policy.interface.columns)]
    values = scaled_features(columns, policy.scalings).astype(np.float64)
    sizes = np.abs(values).max(axis=1, initial=0.0)
    for layer in policy.layers:
        weight = layer.weight.T.astype(np.float64)
        sizes = (np.abs(values) @ np.abs(weight) + np.abs(layer.bias)).max(axis=1)
        values = values @ weight + layer.bias
        if layer.activation == "relu":
            values = np.maximum(values, 0.0)
        elif layer.activation == "tanh":
            values = np.tanh(values)
    scores = np.where(masks, values[:, list(policy.interface.order)], -np.inf)
    own = scores[np.arange(len(states)), actions]
    if (own < scores.max(axis=1) - _ROUNDING * (1.0 + sizes)).any():
        raise CertificateError("the network's own action does not have the best score")
