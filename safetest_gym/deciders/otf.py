"""The default decider: on-the-fly backward propagation, see `kernels.otf`."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.deciders.space import Order, StateSpace
from safetest_gym.deciders.verdict import Budget, Statistics, Verdict
from safetest_gym.engine.kernels import otf as k

if TYPE_CHECKING:
    from safetest_gym.policies.policy import Policy
    from safetest_gym.task import Task

__all__ = ["OtfDecider"]

SLICE = 200_000
"""Steps between two looks at the clock and the keyboard."""


class OtfDecider:
    """Decides states; what it has found out stays true for later queries.

    Memory per known state: the packed state, 21 bytes, 4 bytes over the table's load
    (between 0.3 and 0.6), and 24 bytes for each outcome of the action it follows while it
    is open.
    """

    name = "otf"

    def __init__(
        self,
        task: Task,
        *,
        policy: Policy | None = None,
        radius: float = math.inf,
        order: Order = "app",
        budget: Budget | None = None,
    ) -> None:
        self.task = task
        self.budget = budget or Budget()
        self.space = StateSpace(task, policy=policy, radius=radius, order=order)
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.space.clear()
        size = len(self.space.states)
        self._verdict = np.zeros(size, np.uint8)
        self._current = np.full(size, -1, np.int32)
        self._head = np.full(size, -1, np.int32)
        self._stamp = np.zeros(size, np.int64)
        self._pending = np.zeros(size + 1, np.int32)
        self._visited = np.zeros(size + 1, np.int32)
        self._stack = np.zeros((1024, 3), np.int32)
        self._entries = np.zeros((1024, 3), np.int32)
        self._counters = np.zeros(10, np.int64)
        self._counters[k.FREE] = -1
        self._queries = 0

    def decide(self, state: NDArray[Any]) -> Verdict:
        """Is there a way to surely never fail from ``state``?"""
        return Verdict(int(self.decide_many(np.asarray(state).reshape(1, -1))[0]))

    def decide_many(self, states: NDArray[Any]) -> NDArray[np.uint8]:
        """Verdicts of state vectors (n, V), as numbers of `Verdict`."""
        roots = self._numbers(self.space.packed(states))
        return np.array([self._query(int(root)) for root in roots], np.uint8)

    def _numbers(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of packed rows; new ones are judged."""
        before = self.space.known
        found = self.space.numbers(rows)
        after = self.space.known
        self._counters[k.KNOWN] = after
        self._fit_states()
        if after > before:
            kinds = self.space.engine.classify(
                np.ascontiguousarray(self.space.states[before:after, : self.space.engine.num_words])
            )
            self._current[before:after] = self._head[before:after] = -1
            self._verdict[before:after] = np.where(kinds & 1, 2, np.where(kinds & 2, 1, 0))
        return found

    def _query(self, root: int) -> int:
        self._queries += 1
        if self._verdict[root]:
            return int(self._verdict[root])
        counters = self._counters
        counters[k.QUERY] += 1
        counters[k.VISITED] = 0
        counters[k.STACK] = 1
        self._stack[0] = root, -1, 0
        begun = time.monotonic()
        while True:
            result = k.otf_kernel(
                self.space.block,
                self.space.way,
                self.space.policy,
                self.space.arrays,
                (self._verdict, self._current, self._head, self._stamp),
                (self._stack, self._pending, self._entries),
                counters,
                self._visited,
                root,
                SLICE,
            )
            self.space.known = int(counters[k.KNOWN])
            if result == k.DONE:
                return int(self._verdict[root])
            self._continue(result)
            if self._exhausted(begun):
                return int(Verdict.UNKNOWN)

    def _continue(self, result: int) -> None:
        """Make the room that the kernel asked for."""
        rows = self.space.row_capacity
        if result == k.NO_ROWS:
            self.space.grow_rows()
        elif result == k.NO_STATES:
            self.space.grow_states(self.space.known + rows)
            self._fit_states()
        elif result == k.NO_STACK:
            needed = max(2 * len(self._stack), int(self._counters[k.STACK]) + rows)
            self._stack.resize((needed, 3), refcheck=False)
        elif result == k.NO_ENTRIES:
            needed = max(2 * len(self._entries), int(self._counters[k.ENTRIES]) + rows)
            self._entries.resize((needed, 3), refcheck=False)
        elif result == k.ERROR:
            self._raise()

    def _fit_states(self) -> None:
        """Grow what is kept per state along with the states."""
        size = len(self.space.states)
        if size <= len(self._verdict):
            return
        for name in ("_verdict", "_current", "_head", "_stamp"):
            getattr(self, name).resize(size, refcheck=False)
        for name in ("_pending", "_visited"):
            getattr(self, name).resize(size + 1, refcheck=False)

    def _exhausted(self, begun: float) -> bool:
        budget = self.budget
        if budget.seconds is not None and time.monotonic() - begun > budget.seconds:
            return True
        if budget.states is not None and self.space.known > budget.states:
            return True
        return budget.megabytes is not None and self._bytes() > budget.megabytes * 1e6

    def _raise(self) -> None:
        engine = self.space.engine
        pending, visited = self._counters[k.PENDING], self._counters[k.STACK]
        s = self._pending[pending - 1] if pending else self._stack[visited - 1, 0]
        suspects = [int(s), *range(self.space.known - 1, -1, -1)]
        for suspect in suspects:
            words = self.space.states[suspect, : engine.num_words].copy()
            if engine.has_error(words):
                engine.explain(words)

    def _bytes(self) -> int:
        own = (
            self._verdict,
            self._current,
            self._head,
            self._stamp,
            self._pending,
            self._visited,
            self._stack,
            self._entries,
        )
        return self.space.num_bytes + sum(array.nbytes for array in own)

    @property
    def statistics(self) -> Statistics:
        """What was done since `clear`."""
        return Statistics(
            queries=self._queries,
            expanded=int(self._counters[k.EXPANDED]),
            tried=int(self._counters[k.TRIED]),
            states=self.space.known,
            megabytes=self._bytes() / 1e6,
        )
