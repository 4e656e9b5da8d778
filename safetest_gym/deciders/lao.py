"""LAO*, see `kernels.lao`."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from safetest_gym.deciders.bellman import BellmanDecider
from safetest_gym.engine.kernels import lao as k

__all__ = ["LaoDecider"]

SLICE = 50_000
"""Steps between two looks at the clock and the keyboard."""


class LaoDecider(BellmanDecider):
    """LAO* with the r-Bellman operator ([J] 6.1), expanding whole greedy graphs at a time.

    Memory per known state: its row, 45 bytes here and 4 bytes over the table's load; per
    state expanded, 16 bytes per action and 12 bytes per outcome.
    """

    name: ClassVar[str] = "lao"
    num_counters: ClassVar[int] = k.NUM_COUNTERS

    def _prepare(self) -> None:
        super()._prepare()
        self._stamp = self.space.column(np.int32)
        self._path = tuple(self.space.column(np.int32) for _ in range(4))

    def _start(self, node: int) -> None:
        self._reset()

    def _run(self) -> int:
        space = self.space
        code: int = k.lao_kernel(
            (space.block, space.way, space.policy),
            space.arrays,
            (self.verdict, self._lower, self._upper, self._first, self._actions, self._stamp),
            self._lists[:3],
            self._path,
            self.counters,
            (self._node, self._left, self._limit),
            SLICE,
        )
        return code

    def _reset(self) -> None:
        self.counters[[k.DEPTH, k.VISITED, k.CHANGED]] = 0
        if self.space.known == 0:
            self._forget_graph()
