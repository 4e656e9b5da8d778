"""Repair tree ensembles by penalties in exactly the faults' states ([C] 5.1), in one trie.

The faults' states are the paths of one tree that tests variable after variable; common
prefixes are stored once. Decisions in all other states stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from safetest_gym.policies.trees import VECTOR, Tree, TreeEnsemblePolicy
from safetest_gym.repair.demand import Demands
from safetest_gym.repair.method import Outcome, Settings
from safetest_gym.repair.problem import fault_masks
from safetest_gym.repair.ranking import Demand, levels, masks_to_demands

__all__ = ["repair_by_penalties"]


@dataclass(slots=True)
class _Trie:
    """Nodes in the order in which they were made; leaves carry a row of penalties or -1."""

    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    feature: list[int] = field(default_factory=list)
    threshold: list[np.float32] = field(default_factory=list)
    row: list[int] = field(default_factory=list)

    def node(self) -> int:
        """Add a leaf without penalties and return its number."""
        for links in (self.left, self.right, self.row):
            links.append(-1)
        self.feature.append(0)
        self.threshold.append(np.float32(0))
        return len(self.left) - 1

    def split(self, node: int, feature: int, threshold: np.float32) -> tuple[int, int]:
        """Turn a leaf into a test and return its children."""
        self.feature[node], self.threshold[node] = feature, threshold
        self.left[node], self.right[node] = self.node(), self.node()
        return self.left[node], self.right[node]


def repair_by_penalties(
    policy: TreeEnsemblePolicy, demands: Demands, settings: Settings
) -> Outcome:
    """Add trees that make the bad actions worse than any other, in the faults' states only."""
    faults = demands.faults
    if not len(faults):
        return Outcome(
            policy=policy, algorithm="nothing to do", objective=0.0, lower_bound=0.0, changed=0
        )
    points, member = np.unique(demands.points[: len(faults)], axis=0, return_inverse=True)
    wanted: list[list[Demand]] = [[] for _ in points]
    pairs = masks_to_demands(*fault_masks(faults, settings.variant))
    for place, pair in zip(member.ravel(), pairs, strict=True):
        wanted[place].append(pair)
    down = np.array([levels(row, policy.interface.num_actions) for row in wanted])
    bad = down > 0
    whole = np.issubdtype(faults.states.dtype, np.integer)
    penalty = _penalty(policy)
    new: list[Tree] = []
    if not policy.trees or policy.trees[0].output == VECTOR:
        new.append(_tree(points, (down * penalty).astype(np.float32), whole, VECTOR))
    else:
        for action in np.flatnonzero(bad.any(axis=0)):
            rows = bad[:, action]
            values = (down[rows, action, None] * penalty).astype(np.float32)
            new.append(_tree(points[rows], values, whole, int(action)))
    return Outcome(
        policy=replace(policy, trees=policy.trees + tuple(new)),
        algorithm="trie",
        objective=float(down.sum() * abs(float(penalty))),
        lower_bound=0.0,
        changed=int(bad.sum()),
        trees_added=len(new),
    )


def _penalty(policy: TreeEnsemblePolicy) -> np.float32:
    """Below the lowest possible score minus the highest ([C] App. B), rounding included."""
    low = high = 0.0
    for tree in policy.trees:
        leaves = tree.values[tree.is_leaf]
        low += min(float(leaves.min()), 0.0)
        high += max(float(leaves.max()), 0.0)
    low += float(policy.base_scores.min())
    high += float(policy.base_scores.max())
    return np.float32(1.01 * (low - high) - 1.0)


def _tree(
    points: NDArray[np.float32], values: NDArray[np.float32], whole: bool, output: int
) -> Tree:
    """The trie of sorted distinct points (n, F) with a row of values (n, K) each."""
    trie = _Trie()
    work = [(trie.node(), 0, len(points), 0)]
    while work:
        node, first, last, feature = work.pop()
        if feature == points.shape[1]:
            trie.row[node] = first
            continue
        column = points[first:last, feature]
        starts = first + np.flatnonzero(np.concatenate([[True], column[1:] != column[:-1]]))
        work += _branches(trie, node, feature, (points, np.append(starts, last), whole))
    row = np.array(trie.row)
    leaves = np.zeros((len(row), values.shape[1]), dtype=np.float32)
    leaves[row >= 0] = values[row[row >= 0]]
    return Tree(
        left=np.array(trie.left, np.int32),
        right=np.array(trie.right, np.int32),
        feature=np.array(trie.feature, np.int32),
        threshold=np.array(trie.threshold, np.float32),
        values=leaves,
        output=output,
    )


def _branches(
    trie: _Trie,
    node: int,
    feature: int,
    runs: tuple[NDArray[np.float32], NDArray[np.int64], bool],
) -> list[tuple[int, int, int, int]]:
    """Below ``node``, a binary search among the runs of equal values of one variable."""
    points, starts, whole = runs
    values = points[starts[:-1], feature]
    ends = np.nextafter(values, np.float32(np.inf))
    if whole:
        ends = np.maximum(ends, values + np.float32(1))  # beyond 2**24 that is the same number
    # A search over cuts: at each value, and behind it where the next one is not adjacent.
    cuts: list[np.float32] = []
    owner: list[int] = [-1]
    for i, value in enumerate(values):
        cuts.append(value)
        owner.append(i)
        if i == len(values) - 1 or ends[i] != values[i + 1]:
            cuts.append(ends[i])
            owner.append(-1)
    found, work = [], [(node, 0, len(cuts))]
    while work:
        place, low, high = work.pop()
        if low == high:
            if owner[low] >= 0:
                i = owner[low]
                found.append((place, int(starts[i]), int(starts[i + 1]), feature + 1))
            continue
        middle = (low + high) // 2
        below, above = trie.split(place, feature, cuts[middle])
        work += [(below, low, middle), (above, middle + 1, high)]
    return found
