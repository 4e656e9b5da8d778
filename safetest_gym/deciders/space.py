"""The states that a decider knows, numbered, with what kernels need to expand them.

Arrays grow when a kernel says so; nothing depends on a capacity. With a finite radius a
state carries the deviations left as one more word.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from safetest_gym.engine.kernels import context as c
from safetest_gym.engine.kernels.actions import APP, LEARN, RAND, RANKED
from safetest_gym.engine.kernels.intern import intern_rows_kernel, rehash_kernel
from safetest_gym.engine.kernels.lookup import find_kernel, forget_kernel, refill_kernel
from safetest_gym.errors import ConfigError

if TYPE_CHECKING:
    from safetest_gym.policies.policy import Policy
    from safetest_gym.task import Task

__all__ = ["Order", "StateSpace"]

Order = Literal["app", "learn", "rand", "auto"]
_WAYS = {"app": APP, "learn": LEARN, "rand": RAND, "auto": RANKED}

MOST_RADIUS = 2**30
"""Kernels count deviations in 32 bits."""

_LEAST_TABLE = 4096
_SPARSE = 32

Words = NDArray[np.int64]


class StateSpace:
    """Numbers states and opens their actions.

    Attributes:
        known: how many states have a number; kernels keep it in their counters.
        bound: the policy, bound to the task, where order or radius need one.
        block: engine addresses and buffers for `kernels.actions`.
        order, way: the order of actions by its name, and for kernels.
        policy: the policy's addresses (zeros without one).

    Args:
        radius: deviations from the policy allowed along a run; infinite without a policy.
    """

    def __init__(
        self,
        task: Task,
        *,
        policy: Policy | None = None,
        radius: float = math.inf,
        order: Order = "app",
    ) -> None:
        if order not in _WAYS:
            raise ConfigError(f"order must be one of {', '.join(_WAYS)}, got {order!r}")
        if radius != math.inf and (not 0 <= radius <= MOST_RADIUS or radius != int(radius)):
            raise ConfigError(
                f"radius must be a whole number or inf, got {radius} (at most {MOST_RADIUS})"
            )
        self.task = task
        self.engine = task.engine
        self.radius = radius
        self.order = order
        self.way = _WAYS[order]
        self._extra = int(radius != math.inf)
        self.follow(policy)
        self.width = self.engine.num_words + self._extra
        self.known = 0
        self.states = np.empty((1024, self.width), np.int64)
        self._ranked = np.arange(task.num_actions)
        self.table = np.zeros(_LEAST_TABLE, np.int32)
        self._columns: list[tuple[NDArray[Any], int]] = []
        self._places: NDArray[np.int64] | None = None
        self._make_block()

    def follow(self, policy: Policy | None) -> None:
        """Take the policy's addresses, where order or radius need them."""
        addresses = np.zeros(3, np.int64)
        self.policy = addresses
        if self._extra == 0 and self.way != LEARN:
            return
        if policy is None:
            raise ConfigError("a finite radius and the order 'learn' need a policy")
        self.bound = policy.bind(self.task)
        native = self.bound.native()
        if native is None:
            raise ConfigError(
                "the policy can only be called from Python; a finite radius and the order "
                "'learn' need one that kernels can call (a network, trees or a table)"
            )
        if self.way == LEARN and not native.score_address:
            raise ConfigError("the order 'learn' needs a policy with scores")
        self._native = native  # owns what the addresses point to
        choose = native.address if self._extra else 0
        addresses[:] = choose, native.score_address, native.data_address

    def rank(self, actions: NDArray[np.int64]) -> None:
        """Take the order of actions, for the order ``auto``; no state may be open."""
        self._ranked = actions
        if self.way == RANKED:
            self.scratch[2, : len(actions)] = actions
            self.scratch[6, actions] = np.arange(len(actions))

    def column(self, dtype: type[np.generic], fill: int = 0) -> NDArray[Any]:
        """An array with one entry per state; it grows in place along with the states.

        ``fill`` is 0 or -1.
        """
        if fill not in (0, -1):
            raise ValueError("all bytes of what fills a column must be equal")
        column = np.full(len(self.states), fill, dtype)
        self._columns.append((column, fill))
        self._places = None
        return column

    def clear(self) -> None:
        """Forget all states, at a cost linear in how many there are."""
        known = self.known
        self.forget(0, known)
        if known * _SPARSE < len(self.table) > _LEAST_TABLE:  # a small one stays in the cache
            self.table = np.zeros(max(_LEAST_TABLE, 1 << (4 * known).bit_length()), np.int32)

    def forget(self, first: int, last: int) -> None:
        """Forget the states numbered last."""
        if self._places is None:
            self._places = np.array(
                [(column.ctypes.data, column.itemsize, fill) for column, fill in self._columns],
                np.int64,
            )
        if (last - first) * 16 > len(self.table) and first == 0:
            self.table.fill(0)
        else:
            forget_kernel(self.states, self.table, first, last)
        refill_kernel(self._places, first, last)
        self.known = first

    def _make_block(self) -> None:
        task, engine = self.task, self.engine
        actions = max(1, engine.num_labels if task.granularity == 1 else task.num_actions)
        self._values = np.zeros(task.num_variables, np.int64)
        self._mask = np.zeros(actions, np.uint8)
        self.block = np.zeros(c.SIZE, np.int64)
        facts = {
            c.MASK: self._mask.ctypes.data,
            c.VALUES: self._values.ctypes.data,
            c.WORDS: engine.num_words,
            c.VARIABLES: task.num_variables,
            c.ACTIONS: actions,
            c.GRANULARITY: task.granularity,
            c.FLOATING: int(task.dtype.kind == "f"),
            c.EXPAND: engine.address("expand"),
            c.OUTCOMES: engine.address("outcomes"),
            c.APPLICABLE: engine.address("applicable"),
            c.CLASSIFY: engine.address("classify"),
            c.UNPACK: engine.address("unpack"),
        }
        for place, value in facts.items():
            self.block[place] = value
        self._rows = 0
        self.grow_rows()

    def grow_rows(self) -> None:
        """Make the row buffers larger."""
        self._rows = max(16, self.engine.machine.rows, 2 * self._rows)
        self.succ, self._prob, self._number = self.engine.row_buffers(self._rows)
        self._ends = np.zeros(max(1, self.engine.num_labels), np.int64)
        self.wide = np.empty((self._rows, self.width), np.int64)
        self.found = np.empty(self._rows, np.int64)
        size = max(self._rows + 1, len(self._mask) + 1, len(self._values), 16)
        self.scratch = np.zeros((7, size), np.int64)
        self.scratch[1:3] = np.arange(size)
        self.rank(self._ranked)
        self.span = np.zeros(2, np.int64)
        for place, array in (
            (c.SUCC, self.succ),
            (c.PROB, self._prob),
            (c.NUMBER, self._number),
            (c.ENDS, self._ends),
        ):
            self.block[place] = array.ctypes.data
        self.block[c.CAPACITY] = self._rows

    def grow_states(self, needed: int) -> None:
        """Room for ``needed`` states and their table; an interrupt does no harm."""
        if needed > len(self.states):
            before = len(self.states)
            self._places = None
            capacity = max(needed, before + before // 2)
            for column, fill in self._columns:
                column.resize(capacity, refcheck=False)
                column[before:] = fill
            self.states.resize((capacity, self.width), refcheck=False)
        if needed > len(self.table) * 5 // 8:
            size = 1 << (2 * max(needed, len(self.table)) - 1).bit_length()
            table = np.zeros(size, np.int32)
            rehash_kernel(self.states, table, self.known)
            self.table = table

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """What kernels take: states, table, succ, wide, found, scratch, span."""
        return (
            self.states,
            self.table,
            self.succ,
            self.wide,
            self.found,
            self.scratch,
            self.span,
        )

    @property
    def row_capacity(self) -> int:
        """Most rows of one expansion."""
        return self._rows

    @property
    def num_bytes(self) -> int:
        """Memory held in arrays."""
        columns = (column for column, _ in self._columns)
        return sum(array.nbytes for array in (*self.arrays, *columns))

    def packed(self, vectors: NDArray[Any], left: NDArray[np.int64] | None = None) -> Words:
        """Rows for state vectors (n, V), with ``left`` deviations (default: all of them)."""
        words = self.engine.pack(vectors)
        if not self._extra:
            return words
        if left is None:
            left = np.full(len(words), int(self.radius), np.int64)
        return np.ascontiguousarray(np.concatenate([words, left[:, None]], axis=1))

    def numbers(self, rows: Words) -> Words:
        """Numbers of packed rows; new ones are added."""
        self.grow_states(self.known + len(rows))
        found = np.empty(len(rows), np.int64)
        self.known = int(
            intern_rows_kernel(self.states, self.table, self.known, rows, len(rows), found)
        )
        return found

    def find(self, rows: Words) -> Words:
        """Numbers of packed rows, -1 for states that are not known."""
        found = np.empty(len(rows), np.int64)
        find_kernel(self.states, self.table, np.ascontiguousarray(rows), found)
        return found

    def words(self, numbers: Words) -> Words:
        """Packed states of numbers, without the deviations left."""
        return np.ascontiguousarray(self.states[numbers, : self.engine.num_words])

    def left(self, numbers: Words) -> Words | None:
        """Deviations left of numbers; None with an infinite radius."""
        return self.states[numbers, -1].copy() if self._extra else None
