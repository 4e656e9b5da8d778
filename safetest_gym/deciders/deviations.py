"""Deciders that number every state once and count its deviations themselves."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from safetest_gym.deciders.base import Decider
from safetest_gym.deciders.verdict import Verdict
from safetest_gym.engine.kernels import search

__all__ = ["DeviationDecider"]


class DeviationDecider(Decider):
    """Proved per state: how many deviations it needs at least, and how many suffice.

    With a finite radius, `space` holds a row (state, radius) for each state; queries with
    fewer deviations left have rows of their own, which are only asked about.
    """

    num_counters: ClassVar[int]
    supports_facts: ClassVar[bool] = False

    def _prepare(self) -> None:
        self._lower = self.space.column(np.int32)
        self._upper = self.space.column(np.int32)
        self._node, self._left = -1, 0
        self.counters = np.zeros(self.num_counters, np.int64)

    @abstractmethod
    def _start(self, node: int) -> None:
        """Begin a search for the state numbered ``node``, with ``self._left`` deviations."""

    @abstractmethod
    def _run(self) -> int:
        """Run the kernel for one slice; `DONE` promises that `_standing` is proved."""

    def _begin(self, root: int) -> None:
        self._node, self._left = root, 0
        if self.radius != np.inf:
            row = self.space.states[root : root + 1].copy()
            self._left = int(row[0, -1])
            row[0, -1] = int(self.radius)
            self._node = int(self._numbers(row)[0])
        self._start(self._node)

    def _advance(self, root: int) -> int:
        code = self._run()
        if code == search.DONE and root != self._node:
            self.verdict[root] = self._standing()
        return code

    def _standing(self) -> Verdict:
        """What is proved of the state asked for, with the deviations that it has left."""
        node, left = self._node, self._left
        if self.verdict[node] == Verdict.UNSAFE or self._lower[node] > left:
            return Verdict.UNSAFE
        if self.verdict[node] == Verdict.SAFE and self._upper[node] <= left:
            return Verdict.SAFE
        return Verdict.UNKNOWN
