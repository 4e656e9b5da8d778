"""Which actions a search tries first, learnt from the queries before.

A state is safe by its first action that is not refuted, so a bad order makes a search refute
much before it comes to what it keeps. How often actions were kept and how often refuted, in
states that turned out to be safe, gives another order: rarely refuted ones first. It is
used while queries visit fewer states in it than in the task's own. Verdicts depend on no
order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["ActionOrder"]

Numbers = NDArray[np.int64]

TRIALS = 16
"""Queries at the beginning that use both orders by turns; later, each time that their
number has doubled, one query uses the order that is worse so far."""

MOST_STATES = 1000
"""States of one query to learn from."""


class ActionOrder:
    """The better one of two orders of a task's actions.

    Attributes:
        current: actions in the order to be used now.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._own = np.arange(task.num_actions)
        self._learnt = self._own
        self._kept = np.zeros(task.num_actions, np.int64)
        self._refuted = np.zeros(task.num_actions, np.int64)
        self._uses_learnt = False
        self._queries, self._review = 0, 1
        self._asked, self._visited = [0, 0], [0, 0]
        self.current = self._own

    @property
    def until_review(self) -> int:
        """Queries until it is time for `learn` and `choose`."""
        return self._review - self._queries

    def ended(self, visited: int, queries: int = 1) -> bool:
        """Count queries that visited so many states; is it time for `learn` and `choose`?

        They must not be more than `until_review`.
        """
        self._queries = number = self._queries + queries
        self._asked[self._uses_learnt] += queries
        self._visited[self._uses_learnt] += visited
        if number < self._review:
            return False
        is_next = number < TRIALS or _is_power_of_two(number)
        self._review = number + 1 if is_next else 1 << number.bit_length()
        return True

    def learn(self, states: NDArray[np.generic], position: Numbers) -> None:
        """See what was kept in safe states.

        Args:
            states: state vectors (n, V).
            position: per state that of the action kept, among all labels, or among the
                edges that are applicable, in the current order.
        """
        applicable = self._task.applicable_many(states[:MOST_STATES])[:, self.current]
        position = position[:MOST_STATES]
        if self._task.granularity == 0:
            position = (applicable.cumsum(axis=1) <= position[:, None]).sum(axis=1)
        refuted = applicable & (np.arange(len(self.current)) < position[:, None])
        self._kept += np.bincount(self.current[position], minlength=len(self.current))
        self._refuted[self.current] += refuted.sum(axis=0)
        share = (self._refuted + 1) / (self._refuted + self._kept + 2)
        self._learnt = np.argsort(share, kind="stable")

    def choose(self) -> bool:
        """Choose the order for the next queries; has it changed?"""
        self._uses_learnt = self._is_learnt_next()
        before = self.current
        self.current = self._learnt if self._uses_learnt else self._own
        return not np.array_equal(before, self.current)

    def _is_learnt_next(self) -> bool:
        number = self._queries
        if number < TRIALS:
            return number % 2 == 1
        own, learnt = (
            visited / max(asked, 1)
            for visited, asked in zip(self._visited, self._asked, strict=True)
        )
        is_better = learnt < own
        return is_better != (number > TRIALS and _is_power_of_two(number))


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0
