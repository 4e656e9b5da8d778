"""TarjanSafe, see `kernels.tarjan`."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from safetest_gym.deciders.deviations import DeviationDecider
from safetest_gym.engine.kernels import tarjan as k
from safetest_gym.engine.kernels.search import EXPANDED

__all__ = ["TarjanDecider"]

SLICE = 50_000
"""Steps between two looks at the clock and the keyboard."""


class TarjanDecider(DeviationDecider):
    """TarjanSafe with a radius ([J] Alg. 2, [S] Alg. 1): exponential in the worst case.

    Memory per known state: its row, 13 bytes here and 4 bytes over the table's load; 32
    bytes for each state on the path.
    """

    name: ClassVar[str] = "tarjan"
    num_counters: ClassVar[int] = k.NUM_COUNTERS

    def _prepare(self) -> None:
        super()._prepare()
        self._place = self.space.column(np.int32, -1)
        self._frames = np.zeros((1024, 8), np.int32)
        self._outcomes = np.zeros(4096, np.int32)

    def _start(self, node: int) -> None:
        self._reset()
        if not self._standing():
            self.counters[EXPANDED] += 1
            self.counters[k.DEPTH] = 1
            self._frames[0] = node, self._left, 0, -1, 0, 0, -1, 0
            self._place[node] = 0

    def _run(self) -> int:
        space = self.space
        code: int = k.tarjan_kernel(
            (space.block, space.way, space.policy),
            space.arrays,
            (self.verdict, self._lower, self._upper, self._place),
            (self._frames, self._outcomes),
            self.counters,
            SLICE,
        )
        return code

    def _grow(self, code: int) -> None:
        if code == k.NO_FRAMES:
            self._frames.resize((2 * len(self._frames), 8), refcheck=False)
        else:
            size = 2 * len(self._outcomes) + self.space.row_capacity
            self._outcomes.resize(size, refcheck=False)

    def _reset(self) -> None:
        self._place[self._frames[: self.counters[k.DEPTH], 0]] = -1
        self.counters[[k.DEPTH, k.OUTCOMES]] = 0

    def _bytes(self) -> int:
        return self._frames.nbytes + self._outcomes.nbytes
