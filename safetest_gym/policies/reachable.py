"""All states that a policy can reach, and which of them can fail or arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.engine.kernels import following as k
from safetest_gym.engine.kernels import policy_graph as g
from safetest_gym.engine.kernels.intern import intern_rows_kernel, rehash_kernel
from safetest_gym.policies.following import Follower
from safetest_gym.policies.policy import Policy

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["Reachable"]

_SLICE = 20_000


class Reachable:
    """The graph of states reachable under a policy, grown start by start.

    Attributes:
        complete: starts, from the first on, whose reachable states are all expanded.
        numbers: the state number of every start that was entered.
    """

    def __init__(self, task: Task, policy: Policy) -> None:
        self._follower = Follower(task, policy)
        self._ask = policy.native() is None
        width = task.engine.num_words
        self._states = np.empty((1024, width), dtype=np.int64)
        self._table = np.zeros(4096, dtype=np.int32)
        self._kinds = np.empty(1024, dtype=np.int8)
        self._firsts = np.zeros(1025, dtype=np.int64)
        self._edges = np.empty(2048, dtype=np.int64)
        self._chosen = np.full(1024, -1, dtype=np.int64)
        self._counters = np.zeros(3, dtype=np.int64)
        self._found = np.empty((1, width), dtype=np.int64)
        self.complete = 0
        self.numbers: list[int] = []

    @property
    def num_states(self) -> int:
        """States known."""
        return int(self._counters[0])

    @property
    def states(self) -> NDArray[np.int64]:
        """The states known, packed, (n, W)."""
        known: NDArray[np.int64] = self._states[: self.num_states]
        return known

    def add_starts(self, starts: NDArray[np.int64], max_states: int) -> None:
        """Explore from packed states, shape (n, W), until over ``max_states`` are known."""
        for start in starts:
            if self.num_states > max_states:
                return
            self._make_room(1)
            number = np.empty(1, dtype=np.int64)
            self._counters[0] = intern_rows_kernel(
                self._states, self._table, self.num_states, start[None, :], 1, number
            )
            self.numbers.append(int(number[0]))
            if not self._expand(max_states):
                return
            self.complete += 1

    @property
    def num_expanded(self) -> int:
        """States whose outcomes are known; they come first."""
        return int(self._counters[1])

    @property
    def firsts(self) -> NDArray[np.int64]:
        """Where in `outcomes` those of each state begin, and their end, (n + 1,)."""
        ends = np.full(self.num_states - self.num_expanded, self._counters[2])
        return np.append(self._firsts[: self.num_expanded + 1], ends)

    @property
    def outcomes(self) -> NDArray[np.int64]:
        """Numbers of the outcomes of all expanded states."""
        known: NDArray[np.int64] = self._edges[: self._counters[2]]
        return known

    def can_reach(self, kind: int) -> NDArray[np.bool_]:
        """Per state: can a run under the policy reach one of this kind, as far as explored?"""
        marked = np.zeros(self.num_states, dtype=np.bool_)
        marked[: self.num_expanded] = self._kinds[: self.num_expanded] == kind
        return self._reaching(marked)

    def can_leave(self) -> NDArray[np.bool_]:
        """Per state: can a run under the policy reach one that was not expanded?"""
        return self._reaching(np.arange(self.num_states) >= self.num_expanded)

    def _reaching(self, marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        g.reach_back_kernel(
            self.firsts,
            self._edges,
            marked,
            np.zeros(self.num_states + 2, dtype=np.int64),
            np.empty(int(self._counters[2]), dtype=np.int64),
            np.empty(self.num_states, dtype=np.int64),
        )
        return marked

    def _expand(self, max_states: int) -> bool:
        """Expand until nothing is left (True) or too many states are known."""
        counters, follower = self._counters, self._follower
        while counters[1] < counters[0]:
            if counters[0] > max_states:
                return False
            stop = int(counters[1]) + _SLICE
            if self._ask:
                stop = min(stop, int(counters[0]))
                self._ask_policy(int(counters[1]), stop)
            status = g.graph_kernel(
                follower.block,
                follower.policy,
                self._states,
                self._table,
                self._kinds,
                self._firsts,
                self._edges,
                self._chosen,
                counters,
                follower.span,
                follower.doubles,
                self._found,
                stop,
            )
            follower.home()
            if status == k.NO_ROWS:
                follower.grow_rows()
            elif status == g.NO_STATES:
                self._make_room(int(follower.span[1]))
            elif status != 0:
                follower.refuse(status, self._states[counters[1]])
        return True

    def _ask_policy(self, first: int, last: int) -> None:
        kinds, masks, vectors = self._follower.look(self._states[first:last])
        running = kinds == k.RUNNING
        if running.any():
            rows = first + np.flatnonzero(running)
            self._chosen[rows] = self._follower.ask(vectors[running], masks[running])

    def _make_room(self, count: int) -> None:
        """Grow what could not take ``count`` more states and edges."""
        known, edges = self.num_states + count, int(self._counters[2]) + count
        if known > len(self._states):
            size = max(known, 2 * len(self._states))
            self._states = _grown(self._states, size)
            self._kinds, self._chosen = _grown(self._kinds, size), _grown(self._chosen, size)
            self._firsts = _grown(self._firsts, size + 1)
        if edges > len(self._edges):
            self._edges = _grown(self._edges, max(edges, 2 * len(self._edges)))
        if known > len(self._table) * 5 // 8:
            self._table = np.zeros(2 << (2 * known).bit_length(), dtype=np.int32)
            rehash_kernel(self._states, self._table, self.num_states)


def _grown(array: NDArray[Any], size: int) -> NDArray[Any]:
    larger = np.empty((size, *array.shape[1:]), dtype=array.dtype)
    larger[: len(array)] = array
    return larger
