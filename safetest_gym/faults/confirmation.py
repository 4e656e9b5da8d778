"""When a state is surely a bug, or worse than another: the rules of [F] and [D].

``policy`` is the policy's value, or an optimistic bound of it; ``pessimistic`` and
``optimistic`` bound the optimal value (H and h). All results are lower bounds of the gap
between the policy's value and the optimal one, 0 where nothing is confirmed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from safetest_gym.faults.objectives import Objective

__all__ = [
    "StateBounds",
    "bug_gap",
    "change_bound",
    "fuzzing_bug_by_interval",
    "fuzzing_bug_by_policy",
    "is_fuzzing_bug",
    "normalized_gap",
]


@dataclass(frozen=True, slots=True)
class StateBounds:
    """What is known of a state: V of the policy, and h and H around the optimal value."""

    policy: float
    optimistic: float
    pessimistic: float


def _apart(first: float, second: float) -> float:
    """|first - second|, and 0 between equal infinities."""
    return 0.0 if first == second else abs(first - second)


def bug_gap(objective: Objective, policy: float, pessimistic: float) -> float:
    """[F] Prop. 4, [D] Prop. 8: a better way was found, so the gap is at least this large."""
    return _apart(policy, pessimistic) if objective.better(pessimistic, policy) else 0.0


def normalized_gap(gap: float, optimal: float) -> float | None:
    """[F] Def. 3: the gap relative to the optimal value; None where that is 0."""
    return None if optimal == 0 else abs(gap / optimal) if math.isfinite(optimal) else 0.0


def is_fuzzing_bug(policy: float, optimal: float, before: tuple[float, float]) -> bool:
    """[F] Def. 5 on exact values: is the gap wider than in the state ``before``?"""
    return _apart(policy, optimal) > _apart(*before)


def change_bound(after: StateBounds, before: StateBounds) -> float:
    """[F] Prop. 11: an upper bound of how much the optimal value changed."""
    return max(
        _apart(after.optimistic, before.pessimistic), _apart(after.pessimistic, before.optimistic)
    )


def fuzzing_bug_by_policy(
    objective: Objective, after: StateBounds, before: StateBounds, change: float | None = None
) -> bool:
    """[F] Prop. 10, [D] Prop. 10: the policy got worse by more than the optimum can have.

    Args:
        change: an upper bound of the optimum's change known otherwise, such as the cost of
            the way between the states where actions can be inverted.
    """
    bound = change_bound(after, before) if change is None else change
    worse = not objective.better(after.policy, before.policy)
    return worse and _apart(after.policy, before.policy) > bound


def fuzzing_bug_by_interval(objective: Objective, after: StateBounds, before: StateBounds) -> bool:
    """[F] Prop. 9, [D] Prop. 11: the optimum surely improved, the policy not as much."""
    if not objective.better(after.pessimistic, before.optimistic):
        return False
    if not objective.better(after.policy, before.policy):
        return True
    improved = _apart(after.pessimistic, before.optimistic)
    return _apart(after.policy, before.policy) < improved
