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
from safetest_gym.engine.kernels.actions import APP, LEARN, RAND
from safetest_gym.engine.kernels.intern import intern_rows_kernel, rehash_kernel
from safetest_gym.errors import ConfigError

if TYPE_CHECKING:
    from safetest_gym.policies.policy import Policy
    from safetest_gym.task import Task

__all__ = ["Order", "StateSpace"]

Order = Literal["app", "learn", "rand"]
_WAYS = {"app": APP, "learn": LEARN, "rand": RAND}

Words = NDArray[np.int64]


class StateSpace:
    """Numbers states and opens their actions.

    Attributes:
        known: how many states have a number; kernels keep it in their counters.
        block: engine addresses and buffers for `kernels.actions`.
        way, policy: the order of actions, and the policy's addresses (zeros without one).

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
        if radius != math.inf and (radius < 0 or radius != int(radius)):
            raise ConfigError(f"radius must be a whole number or inf, got {radius}")
        self.task = task
        self.engine = task.engine
        self.radius = radius
        self.way = _WAYS[order]
        self._extra = int(radius != math.inf)
        self.policy = self._addresses(policy, order)
        self.width = self.engine.num_words + self._extra
        self.clear()
        self._make_block()

    def _addresses(self, policy: Policy | None, order: Order) -> Words:
        addresses = np.zeros(3, np.int64)
        if self._extra == 0 and order != "learn":
            return addresses
        if policy is None:
            raise ConfigError("a finite radius and the order 'learn' need a policy")
        native = policy.bind(self.task).native()
        if native is None:
            raise ConfigError(
                "the policy can only be called from Python; a finite radius and the order "
                "'learn' need one that kernels can call (a network, trees or a table)"
            )
        if order == "learn" and not native.score_address:
            raise ConfigError("the order 'learn' needs a policy with scores")
        self._native = native  # owns what the addresses point to
        addresses[:] = native.address, native.score_address, native.data_address
        return addresses

    def clear(self) -> None:
        """Forget all states."""
        self.known = 0
        self.states = np.empty((1024, self.width), np.int64)
        self.table = np.zeros(4096, np.int32)

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
        self.scratch = np.zeros((6, size), np.int64)
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
        """Room for ``needed`` states and their table."""
        if needed > len(self.states):
            capacity = max(needed, 2 * len(self.states))
            self.states.resize((capacity, self.width), refcheck=False)
        if needed > len(self.table) * 5 // 8:
            size = 1 << (2 * max(needed, len(self.table)) - 1).bit_length()
            self.table = np.zeros(size, np.int32)
            rehash_kernel(self.states, self.table, self.known)

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
        return sum(array.nbytes for array in self.arrays)

    def packed(self, vectors: NDArray[Any]) -> Words:
        """Rows for state vectors (n, V), with all deviations left."""
        words = self.engine.pack(vectors)
        if not self._extra:
            return words
        left = np.full((len(words), 1), int(self.radius), np.int64)
        return np.ascontiguousarray(np.concatenate([words, left], axis=1))

    def numbers(self, rows: Words) -> Words:
        """Numbers of packed rows; new ones are added."""
        self.grow_states(self.known + len(rows))
        found = np.empty(len(rows), np.int64)
        self.known = int(
            intern_rows_kernel(self.states, self.table, self.known, rows, len(rows), found)
        )
        return found
