"""Does the policy have an unsafe run at all?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from safetest_gym.deciders.verdict import Budget
from safetest_gym.errors import ConfigError, StartError
from safetest_gym.policies.policy import Policy
from safetest_gym.starts.base import StartSet
from safetest_gym.starts.slicing import start_slices
from safetest_gym.verify.result import Report, Verification

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["DEFAULT_BUDGET", "Starts", "verify"]

Starts = StartSet | NDArray[Any]
"""Start states: a set, or vectors (n, V)."""

DEFAULT_BUDGET = Budget(megabytes=4000)
_SLICE = 100_000
_PARTS = 8
"""So many slices at least are asked for several unsafe runs, if there are so many."""
_BYTES = 12
"""Least that a state takes, to tell start sets that cannot fit the budget."""


def verify(
    policy: Policy,
    task: Task,
    *,
    method: Literal["auto", "explicit", "abstract"] = "auto",
    budget: Budget | None = None,
    starts: Starts | None = None,
    more: int = 0,
    report: Report | None = None,
) -> Verification:
    """Prove that no run of the policy from any start state fails, or find one that does.

    Args:
        method: ``explicit`` lists all states the policy can reach; ``abstract`` covers
            them by boxes, for real variables and start states beyond number; ``auto``
            takes explicit where the start states are finitely many and fit the budget.
        budget: when to give up with UNKNOWN: states or boxes known, seconds, megabytes
            (4000 by default).
        starts: the task's own by default.
        more: unsafe runs to collect after the first, to repair all of them at once; fewer
            where the budget ends before, or where they go through all states that can fail.
        report: called now and then; what it raises ends the verification.

    Raises:
        ConfigError: the method cannot treat this task or policy.
    """
    if task.property.failure is None:
        raise ConfigError(f"{task.name} has no failure condition: nothing to verify")
    if more < 0:
        raise ConfigError(f"more must not be negative, got {more}")
    bound = policy.bind(task)
    given = task.initial if starts is None else starts
    allowed = DEFAULT_BUDGET if budget is None else budget
    if method == "auto":
        method = "explicit" if _fits(given, task, allowed) else "abstract"
    if method == "explicit":
        from safetest_gym.verify.explicit import verify_explicit

        slices, share = _slices(given, task), _share(given, more)
        return verify_explicit(bound, task, slices, allowed, report, more=more, share=share)
    if method == "abstract":
        from safetest_gym.verify.abstract import verify_abstract

        return verify_abstract(bound, task, given, allowed, report, more=more)
    raise ConfigError(f"method must be 'auto', 'explicit' or 'abstract', got {method!r}")


def _slices(starts: Starts, task: Task) -> Iterable[NDArray[Any]]:
    if isinstance(starts, np.ndarray):
        return [task.engine.vectors(starts)]
    return start_slices(starts, _SLICE, scattered=True)


def _share(starts: Starts, more: int) -> int:
    """How many of the runs wanted to look for in each slice."""
    count = None if isinstance(starts, np.ndarray) else starts.count()
    parts = 1 if count is None else min(_PARTS, max(1, -(-count // _SLICE)))
    return -(-(more + 1) // parts)


def _fits(starts: Starts, task: Task, budget: Budget) -> bool:
    try:
        count = len(starts) if isinstance(starts, np.ndarray) else starts.count()
    except StartError:  # too intricate to be counted
        return False
    if count is None:
        return False
    most = budget.states or 2**31
    if budget.megabytes is not None:
        most = min(most, int(budget.megabytes * 1e6 / (_BYTES * task.engine.num_words)))
    return count <= most
