"""Demands on states that the policy cannot tell apart: is there one ranking for all of them?

Exact and linear: whatever action is bad for no demand may stand on top, which satisfies
every demand it is good for; when none is left, the remaining demands contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from safetest_gym.repair.problem import RepairProblem

__all__ = ["Demand", "contradicting", "levels", "masks_to_demands", "ranked", "unrankable"]

Demand = tuple[int, int]
"""Bit masks of the good and of the bad actions."""


def masks_to_demands(good: NDArray[np.bool_], bad: NDArray[np.bool_]) -> list[Demand]:
    """Masks (n, A) as demands."""
    bits = np.array([1 << a for a in range(good.shape[1])], dtype=object)
    pairs = zip(good.astype(object) @ bits, bad.astype(object) @ bits, strict=True)
    return [(int(one), int(other)) for one, other in pairs]


def contradicting(demands: Iterable[Demand], num_actions: int) -> set[Demand]:
    """The demands that no ranking of the actions satisfies together; empty if one does."""
    left = {demand for demand in demands if demand[1]}
    actions = (1 << num_actions) - 1
    while left:
        blocked = 0
        for _, bad in left:
            blocked |= bad
        top = actions & ~blocked
        if not top:
            return left
        actions &= blocked
        still = {demand for demand in left if not demand[0] & top}
        if len(still) == len(left) and not actions:
            return still
        left = still
    return set()


def ranked(demands: Iterable[Demand], num_actions: int) -> dict[Demand, int]:
    """Per demand the good action that wins in one ranking that satisfies all of them."""
    left = {demand for demand in demands if demand[1]}
    actions, winners = (1 << num_actions) - 1, dict[Demand, int]()
    while left and actions:
        blocked = 0
        for _, bad in left:
            blocked |= bad
        top = actions & ~blocked
        if not top:
            break
        actions &= blocked
        for good, bad in left:
            if good & top:
                winners[good, bad] = (good & top & -(good & top)).bit_length() - 1
        left -= winners.keys()
    return winners


def levels(demands: Iterable[Demand], num_actions: int) -> list[int]:
    """Per action how far down it stands in a ranking that satisfies all demands."""
    left = {demand for demand in demands if demand[1]}
    actions, level = (1 << num_actions) - 1, [0] * num_actions
    while left and actions:
        blocked = 0
        for _, bad in left:
            blocked |= bad
        top = actions & ~blocked
        if not top:
            break
        actions &= blocked
        for action in range(num_actions):
            level[action] += actions >> action & 1
        left = {demand for demand in left if not demand[0] & top}
    return level


def unrankable(problem: RepairProblem) -> NDArray[np.int64]:
    """Hard groups whose demands contradict those of others with the same features."""
    demands = masks_to_demands(problem.good, problem.bad)
    members: dict[bytes, list[int]] = {}
    for group, key in enumerate(problem.features.keys()):
        if np.isinf(problem.weight[group]):
            members.setdefault(key, []).append(group)
    stuck: list[int] = []
    for groups in members.values():
        wrong = contradicting([demands[g] for g in groups], problem.num_actions)
        if wrong:
            stuck += groups
    return np.array(sorted(stuck), dtype=np.int64)
