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
from safetest_gym.repair.ranking import Demand, contradicting

__all__ = ["with_separation"]

_CANDIDATES = 8
"""Thresholds that are tried per feature."""


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
    tree = _Growing()
    work = [(tree.leaf(), np.arange(len(points)))]
    while work:
        node, rows = work.pop()
        if not contradicting({demands[r] for r in rows.tolist()}, actions):
            continue
        feature, threshold = _best_split(points, demands, rows, actions)
        below = points[rows, feature] < threshold
        tree.left[node], tree.right[node] = tree.leaf(), tree.leaf()
        tree.feature[node], tree.threshold[node] = feature, float(threshold)
        work += [(tree.left[node], rows[below]), (tree.right[node], rows[~below])]
    return tree


def _best_split(
    points: NDArray[np.float32], demands: Sequence[Demand], rows: NDArray[np.int64], actions: int
) -> tuple[int, np.float32]:
    """The test that leaves the fewest contradictions, of equal ones the most balanced."""
    kinds = {demand: i for i, demand in enumerate(dict.fromkeys(demands[r] for r in rows.tolist()))}
    kind = np.array([kinds[demands[r]] for r in rows.tolist()])
    listed = list(kinds)
    best: tuple[int, int] | None = None
    split: tuple[int, np.float32] | None = None
    for feature in range(points.shape[1]):
        values = points[rows, feature]
        for threshold in _thresholds(values):
            below = values < threshold
            stuck = 0
            for side in (below, ~below):
                wrong = contradicting([listed[k] for k in np.unique(kind[side]).tolist()], actions)
                members = np.array([demand in wrong for demand in listed])
                stuck += int(members[kind[side]].sum())
            worth = stuck, abs(2 * int(below.sum()) - len(rows))
            if best is None or worth < best:
                best, split = worth, (feature, threshold)
    assert split is not None, "demands on equal points contradict each other"
    return split


def _thresholds(values: NDArray[np.float32]) -> list[np.float32]:
    """Thresholds between neighbouring values, evenly spread if there are many."""
    distinct = np.unique(values)
    if len(distinct) > _CANDIDATES + 1:
        places = np.linspace(0, len(distinct) - 2, _CANDIDATES).round().astype(np.int64)
    else:
        places = np.arange(len(distinct) - 1)
    return [_between(distinct[i], distinct[i + 1]) for i in places]


def _between(low: np.float32, high: np.float32) -> np.float32:
    middle = np.float32((np.float64(low) + np.float64(high)) / 2)
    return middle if middle > low else high
