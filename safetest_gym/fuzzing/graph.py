"""The policy's graph: the states a policy can go through, each expanded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.engine.kernels import context as c
from safetest_gym.engine.kernels.fuzz_graph import (
    BAD,
    EDGES,
    ERROR,
    KNOWN,
    MEASURED,
    NEED_ACTIONS,
    NEED_DISTANCES,
    NO_ACTION,
    NO_EDGES,
    NO_ROWS,
    NO_STATES,
    NONE,
    UNASKED,
    expand_all_kernel,
    intern_kernel,
)
from safetest_gym.engine.kernels.intern import rehash_kernel
from safetest_gym.engine.native import Evaluator
from safetest_gym.errors import ActionError, ConfigError, EngineError
from safetest_gym.policies import Policy
from safetest_gym.policies.policy import ask_policy

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["Distance", "PolicyGraph"]

Distance = Callable[[NDArray[Any]], NDArray[np.float64]]
"""From states (n, V) to how far each is from failing (n,), never negative."""

_FIRST_CAPACITY = 4096


class PolicyGraph:
    """States numbered from 0, with the policy's action and its different outcomes.

    Numbers depend on what was asked before; nothing else does. Failing and goal states have
    no successors.

    Args:
        distance: compiled (one expression), a function, or None if it is not needed.
    """

    def __init__(
        self, task: Task, policy: Policy, distance: Evaluator | Distance | None = None
    ) -> None:
        self.task = task
        self.policy = policy.bind(task)
        self._engine = task.engine
        self._native = self.policy.native()
        self._evaluator = distance if isinstance(distance, Evaluator) else None
        self._function = None if isinstance(distance, Evaluator) else distance
        self._doubles = np.zeros(task.num_variables)
        self._values = np.zeros(task.num_variables, task.dtype)
        self._mask = np.zeros(max(1, task.num_actions), np.uint8)
        self._block = self._make_block()
        native = self._native
        self._policy = np.array(
            [0, 0] if native is None else [native.address, native.data_address], np.int64
        )
        self._row_capacity = 0
        self.clear()

    def _make_block(self) -> NDArray[np.int64]:
        engine, task = self._engine, self.task
        block = np.zeros(c.SIZE, np.int64)
        entries = {
            c.MASK: self._mask.ctypes.data,
            c.VALUES: self._values.ctypes.data,
            c.OBSERVATION: self._doubles.ctypes.data,
            c.WORDS: engine.num_words,
            c.VARIABLES: task.num_variables,
            c.ACTIONS: task.num_actions,
            c.GRANULARITY: task.granularity,
            c.FLOATING: int(task.dtype.kind == "f"),
            c.EXPAND: engine.address("expand"),
            c.OUTCOMES: engine.address("outcomes"),
            c.APPLICABLE: engine.address("applicable"),
            c.CLASSIFY: engine.address("classify"),
            c.UNPACK: engine.address("unpack"),
            c.EVALUATE: 0 if self._evaluator is None else self._evaluator.address,
        }
        for place, value in entries.items():
            block[place] = value
        return block

    def clear(self) -> None:
        """Forget all states."""
        self.counters = np.zeros(8, np.int64)
        self.states = np.empty((0, self._engine.num_words), np.int64)
        self.kind = np.empty(0, np.uint8)
        self.action = np.empty(0, np.int64)
        self.distance = np.empty(0, np.float64)
        self.first = np.empty(0, np.int64)
        self.degree = np.empty(0, np.int64)
        self.edges = np.empty(2 * _FIRST_CAPACITY, np.int64)
        self._mark = np.empty(0, np.int64)
        self._grow_states(_FIRST_CAPACITY)
        self._grow_rows(max(16, self._engine.machine.rows))

    @property
    def size(self) -> int:
        """States known."""
        return int(self.counters[KNOWN])

    @property
    def capacity(self) -> int:
        """States there is room for."""
        return len(self.states)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The tuple of `kernels.fuzz_graph`."""
        return (
            self._block,
            self._policy,
            self.states,
            self._table,
            self.counters,
            self.kind,
            self.action,
            self.distance,
            self.first,
            self.degree,
            self.edges,
            self._mark,
            self._found,
            self._succ,
        )

    def _grow_states(self, capacity: int) -> None:
        known = self.size
        for name in ("states", "kind", "action", "distance", "first", "degree", "_mark"):
            old = getattr(self, name)
            new = np.empty((capacity, *old.shape[1:]), old.dtype)
            new[:known] = old[:known]
            setattr(self, name, new)
        self._table = np.zeros(1 << (capacity * 8 // 5).bit_length(), np.int64)
        rehash_kernel(self.states, self._table, known)

    def _grow_rows(self, capacity: int) -> None:
        self._succ, self._prob, self._number = self._engine.row_buffers(capacity)
        self._ends = np.zeros(max(1, self._engine.num_labels), np.int64)
        self._found = np.empty(capacity, np.int64)
        buffers = (self._succ, self._prob, self._number, self._ends)
        for place, array in zip((c.SUCC, c.PROB, c.NUMBER, c.ENDS), buffers, strict=True):
            self._block[place] = array.ctypes.data
        self._block[c.CAPACITY] = capacity

    def help(self, code: int) -> None:
        """Do what a kernel's negative code asks for, or raise the error it stands for."""
        if code == NO_STATES:
            self._grow_states(2 * self.capacity + len(self._found))
        elif code == NO_EDGES:
            count = int(self.counters[EDGES])
            edges = np.empty(2 * len(self.edges) + len(self._found), np.int64)
            edges[:count] = self.edges[:count]
            self.edges = edges
        elif code == NO_ROWS:
            self._grow_rows(2 * len(self._found))
        elif code == NEED_ACTIONS:
            self._ask_policy()
        elif code == NEED_DISTANCES:
            self._measure()
        elif code == ERROR:
            suspect = self.states[self.counters[BAD]].copy()
            if self._evaluator is not None:
                self._evaluator(suspect.reshape(1, -1))  # raises where the distance has no value
            self._engine.explain(suspect)
        elif code == NO_ACTION:
            values = self.task.as_dict(self.vectors(self.counters[BAD : BAD + 1])[0])
            raise ActionError(f"the policy has no applicable action in {values}")
        else:
            raise EngineError(f"unknown code {code} of a kernel: please report this")

    def _ask_policy(self) -> None:
        """Ask for all states that Python alone can decide."""
        known = self.size
        open_ = np.flatnonzero((self.action[:known] == UNASKED) & (self.kind[:known] == 0))
        states = self.vectors(open_)
        masks = self.task.applicable_many(states)
        possible = masks.any(axis=1)
        self.action[open_[~possible]] = NONE
        asked = open_[possible]
        self.action[asked] = ask_policy(self.policy, states[possible], masks[possible])

    def _measure(self) -> None:
        first, known = int(self.counters[MEASURED]), self.size
        wanted = np.arange(first, known)
        if self._function is None:
            self.distance[first:known] = np.inf  # nothing can fail
        else:
            values = np.asarray(self._function(self.vectors(wanted)), np.float64)
            if values.shape != (len(wanted),) or np.isnan(values).any():
                raise ConfigError(
                    f"the distance function must give one number per state: {len(wanted)} "
                    f"states gave shape {values.shape}"
                )
            self.distance[first:known] = values
        self.counters[MEASURED] = known

    def intern(self, states: NDArray[Any]) -> NDArray[np.int64]:
        """Numbers of states given as vectors (n, V)."""
        return self.intern_packed(self._engine.pack(states))

    def intern_packed(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of packed states."""
        rows = np.ascontiguousarray(rows)
        numbers = np.empty(len(rows), np.int64)
        done = 0
        while done < len(rows):
            done = intern_kernel(self.arrays, rows, numbers, done)
            if done < 0:
                self.help(done)
            if done < len(rows):
                self.help(NO_STATES)
        return numbers

    def expand(self, numbers: NDArray[np.int64]) -> None:
        """Make sure that actions and successors of these states are known."""
        done = 0
        numbers = np.ascontiguousarray(numbers)
        while done < len(numbers):
            result = expand_all_kernel(self.arrays, numbers, done)
            if result < 0:
                done = self.counters[BAD] if result not in (ERROR, NO_ACTION) else 0
                self.help(result)
            else:
                done = result

    def successors(self, number: int) -> NDArray[np.int64]:
        """Different outcomes of the policy's action in an expanded state."""
        first = self.first[number]
        return self.edges[first : first + self.degree[number]]

    def vectors(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """State vectors (n, V) by number."""
        return self._engine.unpack(self.states[numbers])

    def explore(self, roots: NDArray[np.int64], limit: int) -> bool:
        """Expand everything the policy can reach; False if more than ``limit`` are known."""
        frontier = np.unique(roots)
        seen = np.zeros(self.capacity, np.bool_)
        seen[frontier] = True
        while len(frontier):
            if self.size > limit:
                return False
            self.expand(frontier)
            targets = [self.successors(int(s)) for s in frontier]
            found = np.unique(np.concatenate(targets))
            if len(seen) < self.capacity:
                seen = np.concatenate([seen, np.zeros(self.capacity - len(seen), np.bool_)])
            frontier = found[~seen[found]]
            seen[frontier] = True
        return True
