"""Value iteration, see `kernels.vi`."""

from __future__ import annotations

from typing import ClassVar

from safetest_gym.deciders.bellman import BellmanDecider
from safetest_gym.deciders.space import Order
from safetest_gym.engine.kernels import vi as k
from safetest_gym.engine.kernels.explicit import LISTED, QUEUE

__all__ = ["ViDecider"]

SLICE = 50_000
"""Steps between two looks at the clock and the keyboard."""


class ViDecider(BellmanDecider):
    """Value iteration with the r-Bellman operator ([J] 6.1) on all that can be reached.

    The order of actions does not matter, so there is only one. Memory per known state: its
    row, 25 bytes here and 4 bytes over the table's load; of the largest query, 16 bytes
    per action and 12 bytes per outcome.
    """

    name: ClassVar[str] = "vi"
    orders: ClassVar[tuple[Order, ...]] = ("app",)
    num_counters: ClassVar[int] = k.NUM_COUNTERS

    def _start(self, node: int) -> None:
        if self.counters[LISTED] or self.counters[QUEUE]:
            self._reset()
        self.counters[[k.PHASE, k.NEXT, k.CHANGED]] = 0
        self._queue[0] = node
        self.counters[QUEUE] = 1

    def _run(self) -> int:
        space = self.space
        code: int = k.vi_kernel(
            (space.block, space.way, space.policy),
            space.arrays,
            (self.verdict, self._lower, self._upper, self._first, self._actions),
            self._lists,
            self.counters,
            self._limit,
            SLICE,
        )
        return code

    def _reset(self) -> None:
        self._forget_graph()
