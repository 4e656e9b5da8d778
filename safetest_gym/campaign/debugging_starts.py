"""Start states to find faults from, and others to judge the repaired policy by ([C] 6.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import ConfigError
from safetest_gym.jani.tree import StartValues

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["StartSplit", "split_starts", "starting_from"]

_DRAWS = 20
"""Attempts to draw distinct states before fewer are taken."""


@dataclass(frozen=True, slots=True, eq=False)
class StartSplit:
    """Start states (n, V) for debugging and for evaluation.

    Attributes:
        disjoint: whether no state is in both; if not, both are all that the task has.
    """

    debugging: NDArray[Any]
    evaluation: NDArray[Any]
    disjoint: bool

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "debugging": len(self.debugging),
            "evaluation": len(self.evaluation),
            "disjoint": self.disjoint,
        }


def split_starts(task: Task, debugging: int, evaluation: int, seed: int) -> StartSplit:
    """Draw both, without a common state; a task with too few states gives all of them to both."""
    if debugging < 1 or evaluation < 1:
        raise ConfigError(
            f"both start sets need at least 1 state, got {debugging} and {evaluation}"
        )
    wanted, count = debugging + evaluation, task.initial.count()
    if count is not None and count < wanted:
        everything = task.initial.enumerate(wanted)
        return StartSplit(everything, everything, False)
    rng = np.random.default_rng([seed % 2**64, 1])
    drawn = task.initial.sample(0, rng)
    for _ in range(_DRAWS):
        more = task.initial.sample(wanted, rng)
        drawn = _distinct(np.concatenate([drawn, more]))
        if len(drawn) >= wanted:
            break
    if count is not None and len(drawn) < wanted:
        everything = _distinct(np.concatenate([drawn, task.initial.enumerate(count)]))
        drawn = everything[:wanted]
    evaluated = max(1, len(drawn[:wanted]) * evaluation // wanted)
    return StartSplit(drawn[evaluated:wanted], drawn[:evaluated], True)


def starting_from(task: Task, states: NDArray[Any]) -> Task:
    """The same task, digest included, with these start states only."""
    start = StartValues(tuple(tuple(row) for row in states.tolist()))
    return type(task)(task.model, replace(task.property, start=start), task.action_mode)


def _distinct(states: NDArray[Any]) -> NDArray[Any]:
    """Without repetitions, in the order of first occurrence."""
    _, first = np.unique(states, axis=0, return_index=True)
    kept: NDArray[Any] = states[np.sort(first)]
    return kept
