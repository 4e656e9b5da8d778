"""Bounds of a policy's scores in one box, for the checker: plain, and apart from `scores`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import CertificateError
from safetest_gym.policies.mlp import MlpPolicy
from safetest_gym.policies.policy import Policy
from safetest_gym.policies.trees import VECTOR, Tree, TreeEnsemblePolicy

__all__ = ["SlowScores"]

_ROUNDING = 1e-5
_TANH = 1e-5


class SlowScores:
    """What is known of the scores in one box (V,), (V,).

    Attributes:
        lower, upper: per action.
        leads: leads[a, b] is the most that a's score can exceed b's.
        thresholds: (column, least double on the right) of tests that the box does not decide.
    """

    def __init__(self, policy: Policy, low: NDArray[Any], high: NDArray[Any]) -> None:
        self.thresholds: list[tuple[int, float]] = []
        self.lower: NDArray[Any]
        self.upper: NDArray[Any]
        self.leads: NDArray[np.float64]
        order = np.array(policy.interface.order, np.int64)
        columns = list(policy.interface.columns)
        if isinstance(policy, TreeEnsemblePolicy):
            self._trees(policy, low[columns].astype(np.float32), high[columns].astype(np.float32))
        elif isinstance(policy, MlpPolicy):
            self._network(policy, low[columns], high[columns])
        else:
            raise CertificateError(f"no bounds are known for a {type(policy).__name__}")
        self.lower, self.upper = self.lower[order], self.upper[order]
        self.leads = self.leads[np.ix_(order, order)]

    def beats(self, action: int, other: int) -> bool:
        """Can the action be preferred to the other one somewhere in the box?"""
        if self.leads[action, other] < 0:
            return False
        if self.upper[action] == self.lower[other]:
            return action < other
        return bool(self.upper[action] > self.lower[other])

    def _trees(
        self, policy: TreeEnsemblePolicy, low: NDArray[np.float32], high: NDArray[np.float32]
    ) -> None:
        base = policy.base_scores
        lower, upper = base.copy(), base.copy()
        leads = base[:, None].astype(np.float64) - base[None, :]
        size = float(np.abs(base).max(initial=0.0))
        for tree in policy.trees:
            values = self._values(policy, tree, low, high)
            lower, upper = lower + values.min(axis=0), upper + values.max(axis=0)
            exact = values.astype(np.float64)
            leads = leads + (exact[:, :, None] - exact[:, None, :]).max(axis=0)
            size += float(np.abs(values).max())
        self.lower, self.upper = lower, upper
        self.leads = leads + _ROUNDING * size

    def _values(
        self,
        policy: TreeEnsemblePolicy,
        tree: Tree,
        low: NDArray[np.float32],
        high: NDArray[np.float32],
    ) -> NDArray[np.float32]:
        """What the leaves that the box can reach add, (leaves, outputs)."""
        stack, found = [0], []
        while stack:
            node = stack.pop()
            if tree.left[node] < 0:
                found.append(node)
                continue
            feature, threshold = int(tree.feature[node]), tree.threshold[node]
            goes_left, goes_right = low[feature] < threshold, high[feature] >= threshold
            if goes_left and goes_right:
                self.thresholds.append(
                    (policy.interface.columns[feature], _least_double(threshold))
                )
            if goes_left:
                stack.append(int(tree.left[node]))
            if goes_right:
                stack.append(int(tree.right[node]))
        values = np.zeros((len(found), len(policy.base_scores)), np.float32)
        if tree.output == VECTOR:
            values[:] = tree.values[found]
        else:
            values[:, tree.output] = tree.values[found, 0]
        return values

    def _network(self, policy: MlpPolicy, low: NDArray[Any], high: NDArray[Any]) -> None:
        for scaling in policy.scalings:
            low, high = scaling(low[None, :])[0], scaling(high[None, :])[0]
        low = low.astype(np.float32).astype(np.float64)
        high = high.astype(np.float32).astype(np.float64)
        for layer in policy.layers:
            weight, bias = layer.weight.astype(np.float64), layer.bias.astype(np.float64)
            up, down = np.maximum(weight, 0.0), np.minimum(weight, 0.0)
            biggest = np.abs(weight) @ np.maximum(np.abs(low), np.abs(high)) + np.abs(bias)
            slack = biggest * 2.0**-22 * (weight.shape[1] + 4)
            low, high = (
                up @ low + down @ high + bias - slack,
                up @ high + down @ low + bias + slack,
            )
            if layer.activation == "relu":
                low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
            elif layer.activation == "tanh":
                low, high = np.tanh(low) - _TANH, np.tanh(high) + _TANH
        self.lower, self.upper = low, high
        self.leads = high[:, None] - low[None, :]


def _least_double(threshold: np.float32) -> float:
    """The least double that is not below the threshold once it is rounded to float32."""
    low = float(np.nextafter(threshold, np.float32(-np.inf)))
    high = float(threshold)
    while (middle := low / 2 + high / 2) not in (low, high):
        if np.float32(middle) >= threshold:
            high = middle
        else:
            low = middle
    return high
