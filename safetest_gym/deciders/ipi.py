"""Improved policy iteration, see `kernels.ipi`."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from safetest_gym.deciders.base import Decider
from safetest_gym.engine.kernels import ipi as k

__all__ = ["IpiDecider"]

SLICE = 50_000
"""Steps between two looks at the clock and the keyboard."""


class IpiDecider(Decider):
    """iPI ([S] Alg. 4): polynomial; the order of actions decides what is tried first.

    Memory per known state: the packed state, 5 bytes here and 4 bytes over the table's
    load; of the largest query, 24 bytes per state visited.
    """

    name: ClassVar[str] = "ipi"
    finite_radius: ClassVar[bool] = False

    def _prepare(self) -> None:
        self._seen = self.space.column(np.int32)
        self._frames = np.zeros((1024, 5), np.int32)
        self._outcomes = np.zeros(4096, np.int32)
        self._visited = np.zeros(1024, np.int32)
        self.counters = np.zeros(k.NUM_COUNTERS, np.int64)

    @property
    def recheck(self) -> bool:
        """Look at an action's outcomes again before the search backs up over it.

        The published algorithm does not (False): it sees in the next round what became
        unsafe after it was looked at.
        """
        return bool(self.counters[k.RECHECK])

    @recheck.setter
    def recheck(self, value: bool) -> None:
        self.counters[k.RECHECK] = value

    def _begin(self, root: int) -> None:
        self._reset()

    def _advance(self, root: int) -> int:
        space = self.space
        code: int = k.ipi_kernel(
            (space.block, space.way, space.policy),
            space.arrays,
            (self.verdict, self._seen),
            (self._frames, self._outcomes, self._visited),
            self.counters,
            root,
            SLICE,
        )
        return code

    def _grow(self, code: int) -> None:
        if code == k.NO_FRAMES:
            self._frames.resize((2 * len(self._frames), 5), refcheck=False)
        elif code == k.NO_OUTCOMES:
            size = 2 * len(self._outcomes) + self.space.row_capacity
            self._outcomes.resize(size, refcheck=False)
        else:
            self._visited.resize(2 * len(self._visited), refcheck=False)

    def _reset(self) -> None:
        counters = self.counters
        counters[[k.DEPTH, k.OUTCOMES, k.VISITED, k.FOUND_UNSAFE]] = 0
        counters[k.ROUND] += 1

    def _bytes(self) -> int:
        return self._frames.nbytes + self._outcomes.nbytes + self._visited.nbytes
