"""Demands on states that the policy cannot tell apart: is there one ranking for all of them?

Exact and linear: whatever action is bad for no demand may stand on top, which satisfies
every demand it is good for; when none is left, the remaining demands contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from safetest_gym.repair.problem import RepairProblem

__all__ = ["Demand", "contradicting", "demands_of", "unrankable"]

Demand = tuple[int, int]
"""Bit masks of the good and of the bad actions."""


def demands_of(problem: RepairProblem) -> list[Demand]:
    """The demand of every group."""
    bits = 1 << np.arange(problem.num_actions, dtype=object)
    good = (problem.good * bits).sum(axis=1) if len(problem) else []
    bad = (problem.bad * bits).sum(axis=1) if len(problem) else []
    return [(int(g), int(b)) for g, b in zip(good, bad, strict=True)]


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


def unrankable(
    problem: RepairProblem, demands: list[Demand], rows: Mapping[bytes, list[int]]
) -> NDArray[np.int64]:
    """Groups that contradict another one with the same features; ``rows`` is by features."""
    stuck: list[int] = []
    for members in rows.values():
        hard = [g for g in members if np.isinf(problem.weight[g])]
        wrong = contradicting([demands[g] for g in hard], problem.num_actions)
        if wrong:
            stuck += [g for g in hard if demands[g] in wrong]
    return np.array(sorted(stuck), dtype=np.int64)
