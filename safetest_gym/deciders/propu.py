"""Prop-U on the explicit graph, see `kernels.propu`."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from safetest_gym.deciders.explicit import ExplicitDecider
from safetest_gym.deciders.space import Order
from safetest_gym.engine.kernels import propu as k
from safetest_gym.engine.kernels.explicit import LISTED, QUEUE

__all__ = ["PropuDecider"]

SLICE = 50_000
"""Steps between two looks at the clock and the keyboard."""


class PropuDecider(ExplicitDecider):
    """Prop-U ([S] Alg. 2) on all that can be reached from the state asked for.

    Linear in the transitions there are, over all queries; the order of actions does not
    matter, so there is only one. Memory per known state: the packed state, 33 bytes here
    and 4 bytes over the table's load; of the largest query, 16 bytes per action and 12
    bytes per outcome.
    """

    name: ClassVar[str] = "propu"
    finite_radius: ClassVar[bool] = False
    orders: ClassVar[tuple[Order, ...]] = ("app",)
    num_counters: ClassVar[int] = k.NUM_COUNTERS

    def _prepare(self) -> None:
        super()._prepare()
        self._remaining = self.space.column(np.int32)
        self._head = self.space.column(np.int32, -1)

    def _start(self, node: int) -> None:
        if self.counters[LISTED] or self.counters[QUEUE]:
            self._reset()
        self.counters[[k.PHASE, k.NEXT]] = 0
        self._queue[0] = node
        self.counters[QUEUE] = 1

    def _run(self) -> int:
        space = self.space
        code: int = k.propu_kernel(
            (space.block, space.way, space.policy),
            space.arrays,
            (self.verdict, self._first, self._actions, self._remaining, self._head),
            self._lists,
            self.counters,
            SLICE,
        )
        return code

    def _reset(self) -> None:
        self._forget_graph()
        self._head[: self.space.known] = -1
