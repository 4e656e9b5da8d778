"""Naive policy iteration, see `kernels.npi`."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from safetest_gym.deciders.base import Decider
from safetest_gym.engine.kernels import npi as k

__all__ = ["NpiDecider"]

SLICE = 50_000
"""Steps between two looks at the clock and the keyboard."""


class NpiDecider(Decider):
    """nPI ([S] Alg. 3): polynomial; the first policy takes the first action in the order.

    Memory per known state: the packed state, 9 bytes here and 4 bytes over the table's
    load; of the largest query, 16 bytes per state visited.
    """

    name: ClassVar[str] = "npi"
    finite_radius: ClassVar[bool] = False

    def _prepare(self) -> None:
        self._choice = self.space.column(np.int32)
        self._stamp = self.space.column(np.int32)
        self._frames = np.zeros((1024, 3), np.int32)
        self._outcomes = np.zeros(4096, np.int32)
        self._visited = np.zeros(1024, np.int32)
        self.counters = np.zeros(k.NUM_COUNTERS, np.int64)

    def _begin(self, root: int) -> None:
        self._reset()

    def _advance(self, root: int) -> int:
        space = self.space
        code: int = k.npi_kernel(
            (space.block, space.way, space.policy),
            space.arrays,
            (self.verdict, self._choice, self._stamp),
            (self._frames, self._outcomes, self._visited),
            self.counters,
            root,
            SLICE,
        )
        return code

    def _grow(self, code: int) -> None:
        if code == k.NO_FRAMES:
            self._frames.resize((2 * len(self._frames), 3), refcheck=False)
        elif code == k.NO_OUTCOMES:
            size = 2 * len(self._outcomes) + self.space.row_capacity
            self._outcomes.resize(size, refcheck=False)
        else:
            self._visited.resize(2 * len(self._visited), refcheck=False)

    def _reset(self) -> None:
        counters = self.counters
        counters[[k.DEPTH, k.OUTCOMES, k.VISITED, k.SAW_UNSAFE, k.PHASE]] = 0
        counters[k.INITIAL] = 1

    def _bytes(self) -> int:
        return self._frames.nbytes + self._outcomes.nbytes + self._visited.nbytes
