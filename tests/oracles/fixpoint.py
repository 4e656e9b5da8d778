"""Which states of a small explicit system are safe, straight from the definitions; slow."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["System", "radius_needed", "safe_states"]


@dataclass(frozen=True)
class System:
    """States 0, 1, ...; per state its applicable actions, per action the outcomes."""

    failing: Sequence[bool]
    goal: Sequence[bool]
    actions: Sequence[dict[int, set[int]]]

    @property
    def states(self) -> range:
        """All states."""
        return range(len(self.failing))

    def is_over(self, state: int) -> bool:
        """Does a run end here?"""
        return self.failing[state] or self.goal[state] or not self.actions[state]


def safe_states(system: System) -> set[int]:
    """The largest set whose states do not fail and can surely stay in it, or end there."""
    safe = {s for s in system.states if not system.failing[s]}
    while True:
        kept = {
            s
            for s in safe
            if system.is_over(s) or any(outcomes <= safe for outcomes in system.actions[s].values())
        }
        if kept == safe:
            return safe
        safe = kept


def radius_needed(system: System, policy: Sequence[int]) -> list[float]:
    """Per state the least r for which it is r-safe on ``policy``, by trying every policy.

    A policy is safe from a state if it reaches no failing state; its distance is the most
    deviations along a path, infinite if one of them lies on a cycle ([J] Def. 4 and 5).
    """
    best = [math.inf] * len(system.failing)
    for candidate in _policies(system):
        for state in system.states:
            best[state] = min(best[state], _distance(system, policy, candidate, state))
    return best


def _policies(system: System) -> Iterator[tuple[int, ...]]:
    options = [[-1] if system.is_over(s) else sorted(system.actions[s]) for s in system.states]
    return itertools.product(*options)


def _distance(system: System, policy: Sequence[int], candidate: Sequence[int], root: int) -> float:
    """Most deviations of the candidate from ``root``; infinite if it can fail."""
    most = {root: 0}
    queue = [root]
    limit = len(system.failing)
    while queue:
        state = queue.pop()
        if system.failing[state]:
            return math.inf
        if system.is_over(state):
            continue
        count = most[state] + (candidate[state] != policy[state])
        if count > limit:  # more deviations than states: one of them is on a cycle
            return math.inf
        for outcome in system.actions[state][candidate[state]]:
            if most.get(outcome, -1) < count:
                most[outcome] = count
                queue.append(outcome)
    return max(most.values())
