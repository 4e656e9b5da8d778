"""New trees that tell conflicting demands apart ([C] 5.3).

A tree each of whose leaves has one ranking for all its demands makes them fixable together,
whatever the other trees do. It starts with zero leaves, so it changes no decision by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from safetest_gym.policies.trees import VECTOR, Tree, TreeEnsemblePolicy
from safetest_gym.repair.ranking import Demand

__all__ = ["with_separation"]

_CANDIDATES = 8
"""Thresholds that are tried per feature."""
_WORD = (1 << 64) - 1


@dataclass(slots=True)
class _Growing:
    """Nodes of a tree, in the order in which they were made."""

    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)

    def leaf(self) -> int:
        """Add a leaf and return its number."""
        for column in (self.left, self.right):
            column.append(-1)
        self.feature.append(0)
        self.threshold.append(0.0)
        return len(self.left) - 1


def with_separation(
    policy: TreeEnsemblePolicy, points: NDArray[np.float32], demands: Sequence[Demand]
) -> tuple[TreeEnsemblePolicy, int]:
    """The policy with a new tree that separates these demands, and how many trees that took.

    Ensembles of one-output trees need one copy per action.

    Args:
        points: what the policy reads in the states of the demands, shape (n, F); demands
            on equal points must not contradict each other.
    """
    actions = policy.interface.num_actions
    grown = _grow(points, demands, actions)
    vector = not policy.trees or policy.trees[0].output == VECTOR
    width, outputs = (actions, [VECTOR]) if vector else (1, list(range(actions)))
    new = tuple(
        Tree(
            left=np.array(grown.left, np.int32),
            right=np.array(grown.right, np.int32),
            feature=np.array(grown.feature, np.int32),
            threshold=np.array(grown.threshold, np.float32),
            values=np.zeros((len(grown.left), width), np.float32),
            output=output,
        )
        for output in outputs
    )
    return replace(policy, trees=policy.trees + new), len(new)


def _grow(points: NDArray[np.float32], demands: Sequence[Demand], actions: int) -> _Growing:
    from safetest_gym.engine.kernels.separation import CONSISTENT, INSEPARABLE, split_kernel

    kinds = {demand: i for i, demand in enumerate(dict.fromkeys(demands))}
    kind = np.array([kinds[demand] for demand in demands])
    sets = tuple(_words([demand[side] for demand in kinds], actions) for side in range(2))
    wanted = *sets, _words([(1 << actions) - 1], actions)[0]
    tree = _Growing()
    work = [(tree.leaf(), np.arange(len(points)))]
    while work:
        node, rows = work.pop()
        feature, threshold = split_kernel(points, rows, kind, wanted, _CANDIDATES)
        if feature == CONSISTENT:
            continue
        assert feature != INSEPARABLE, "demands on equal points contradict each other"
        below = points[rows, feature] < threshold
        tree.left[node], tree.right[node] = tree.leaf(), tree.leaf()
        tree.feature[node], tree.threshold[node] = feature, float(threshold)
        work += [(tree.left[node], rows[below]), (tree.right[node], rows[~below])]
    return tree


def _words(sets: Sequence[int], actions: int) -> NDArray[np.uint64]:
    """Sets of actions as words of 64, shape (n, W)."""
    words = range(-(-actions // 64))
    return np.array([[bits >> 64 * w & _WORD for w in words] for bits in sets], np.uint64)
