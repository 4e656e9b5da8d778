"""Deciders that expand states into arrays, see `kernels.explicit`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from safetest_gym.deciders.deviations import DeviationDecider
from safetest_gym.engine.kernels import explicit as k

__all__ = ["ExplicitDecider"]


class ExplicitDecider(DeviationDecider):
    """Holds the explicit graph of the states expanded."""

    def _prepare(self) -> None:
        super()._prepare()
        self._first = self.space.column(np.int32, -1)
        self._actions = self.space.column(np.int32)
        self._listed = self.space.column(np.int32)
        self._queue = self.space.column(np.int32)
        self._choices = np.zeros((1024, 4), np.int32)
        self._outcomes = np.zeros((4096, 3), np.int32)

    @property
    def _lists(self) -> tuple[NDArray[np.int32], ...]:
        return self._choices, self._outcomes, self._listed, self._queue

    def _grow(self, code: int) -> None:
        grown = self._choices if code == k.NO_CHOICES else self._outcomes
        size = len(grown) + len(grown) // 2 + self.space.row_capacity
        grown.resize((size, grown.shape[1]), refcheck=False)

    def _forget_graph(self) -> None:
        """Give up all that is expanded and not settled."""
        self._first[: self.space.known] = -1
        self.counters[[k.CHOICES, k.OUTCOMES, k.LISTED, k.QUEUE]] = 0

    def _bytes(self) -> int:
        return self._choices.nbytes + self._outcomes.nbytes
