"""The default decider: on-the-fly backward propagation, see `kernels.otf`."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from safetest_gym.deciders.base import UNLIMITED, Decider
from safetest_gym.deciders.ordering import ActionOrder
from safetest_gym.deciders.space import Order
from safetest_gym.deciders.verdict import Verdict
from safetest_gym.engine.kernels import otf as k
from safetest_gym.engine.kernels import search

__all__ = ["OtfDecider"]

SLICE = 50_000
"""Steps between two looks at the clock and the keyboard."""


class OtfDecider(Decider):
    """On-the-fly backward propagation: linear in the transitions looked at, over all queries.

    Memory per known state: the packed state (and 8 bytes with a finite radius), 17 bytes
    here, and 4 bytes over the table's load, which lies between 0.31 and 0.62; arrays grow
    by half. While states are open, 12 bytes for each outcome of the action they follow; of
    the largest query, 16 bytes per state visited.
    """

    name: ClassVar[str] = "otf"
    orders: ClassVar[tuple[Order, ...]] = ("auto", "app", "learn", "rand")

    def _prepare(self) -> None:
        self._begun_at = 0
        self._root = np.zeros(1, np.int64)
        self._roots: NDArray[np.int64] = self._root
        self._order = ActionOrder(self.task) if self._learns else None
        self._current = self.space.column(np.int32, -1)
        self._head = self.space.column(np.int32, -1)
        self._stamp = self.space.column(np.int32)
        self._pending = self.space.column(np.int32)
        self._stack = np.zeros((1024, 3), np.int32)
        self._entries = np.zeros((1024, 3), np.int32)
        self._visited = np.zeros(1024, np.int32)
        self.counters = np.zeros(k.NUM_COUNTERS, np.int64)
        self.counters[k.FREE] = -1

    def _begin(self, root: int) -> None:
        self._root[0] = root
        self._roots = self._root
        self._start()

    def _start(self) -> None:
        counters = self.counters
        counters[k.AT] = counters[k.ACTIVE] = counters[k.ENDED] = 0
        self._begun_at = int(counters[search.EXPANDED])

    def _advance(self, root: int) -> int:
        return self._run(1)

    def _run(self, most: int) -> int:
        """Go on until so many queries have ended; then see what they say about the order."""
        space = self.space
        code: int = k.otf_kernel(
            space.block,
            space.way,
            space.policy,
            space.arrays,
            (self.verdict, self._current, self._head, self._stamp, self._pending),
            (self._stack, self._entries, self._visited),
            self.counters,
            self._roots,
            most,
            SLICE,
        )
        space.known = int(self.counters[search.KNOWN])
        if code == search.DONE and self._order is not None:
            self._learn(self._order)
        return code

    def _search_all(self, roots: NDArray[np.int64]) -> None:
        """As one search after the other, but without coming back between them."""
        budget = self.budget
        is_timed = not (budget.seconds is budget.megabytes is self.deadline is None)
        if len(roots) < 2 or is_timed:
            super()._search_all(roots)
            return
        counters = self.counters
        counters[search.LIMIT] = budget.states or UNLIMITED
        self._unfinished = -1
        self._roots = roots
        self._start()
        while True:
            most = len(roots) if self._order is None else self._order.until_review
            code = self._run(most)
            if code == search.DONE:
                if counters[k.AT] == len(roots):
                    return
                counters[k.ENDED] = 0
            elif code == search.OVER:
                counters[k.AT] += 1
                counters[k.ACTIVE] = 0
                counters[k.ENDED] += 1
            else:
                self._continue(code)

    @property
    def _learns(self) -> bool:
        has_choice = self.task.granularity != 2 and self.task.num_actions > 1
        return has_choice and self.space.order == "auto"

    def _learn(self, order: ActionOrder) -> None:
        """See what the queries that end here say about the order of actions."""
        expanded = int(self.counters[search.EXPANDED])
        begun_at, self._begun_at = self._begun_at, expanded
        if not order.ended(expanded - begun_at, int(self.counters[k.ENDED])):
            return
        visited = self._visited[: self.counters[k.VISITED]]
        position = self._current[visited]
        kept = (self.verdict[visited] == Verdict.SAFE) & (position >= 0)
        if kept.any():
            words = self.space.words(visited[kept])
            order.learn(self.task.engine.unpack(words), position[kept] & (k.LAST - 1))
        if order.choose():
            self._reset()
            self.space.rank(order.current)

    def _unlearn(self) -> None:
        if self._learns:
            self._order = ActionOrder(self.task)
            self.space.rank(self._order.current)

    def _grow(self, code: int) -> None:
        rows = self.space.row_capacity
        if code == k.NO_VISITED:
            self._visited.resize(2 * len(self._visited), refcheck=False)
            return
        lists = {k.NO_STACK: self._stack, k.NO_ENTRIES: self._entries}
        grown = lists[code]
        grown.resize((len(grown) + len(grown) // 2 + rows, 3), refcheck=False)

    def _reset(self) -> None:
        known = self.space.known
        counters = self.counters
        counters[k.ENTRIES] = counters[k.STACK] = counters[k.PENDING] = counters[k.VISITED] = 0
        counters[k.FREE] = -1
        if known == 0:
            counters[k.QUERY] = counters[k.RANK] = 0
            return
        undecided = np.flatnonzero(self.verdict[:known] == 0)
        self._current[undecided] = -1
        self._stamp[undecided] = 0
        self._head[:known] = -1

    def _bytes(self) -> int:
        return self._stack.nbytes + self._entries.nbytes + self._visited.nbytes
