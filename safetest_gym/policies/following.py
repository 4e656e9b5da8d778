"""Buffers and kernel calls to follow a policy through a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from safetest_gym.engine.kernels import context as c
from safetest_gym.engine.kernels import following as k
from safetest_gym.errors import EngineError
from safetest_gym.policies.policy import Policy, ask_policy, no_action_error

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["Follower"]

Words = NDArray[np.int64]


class Follower:
    """One thread's buffers to follow ``policy`` (bound to ``task``) with.

    Attributes:
        block: the context block for kernels.
        policy: addresses of the policy's ``choose`` and data; zeros if it is not native.
        span, doubles: scratch of the kernels.
    """

    def __init__(self, task: Task, policy: Policy) -> None:
        engine = task.engine
        self.task = task
        self._asked = policy
        self._native = policy.native()
        self.policy = np.zeros(2, dtype=np.int64)
        if self._native is not None:
            self.policy[:] = self._native.address, self._native.data_address
        self.span = np.zeros(2, dtype=np.int64)
        self.doubles = np.zeros(task.num_variables, dtype=np.float64)
        self._state = np.zeros(engine.num_words, dtype=np.int64)
        self._random = np.zeros(1, dtype=np.int64)
        self._mask = np.zeros(task.num_actions, dtype=np.uint8)
        self._values = np.zeros(task.num_variables, dtype=np.int64)
        self.block = np.zeros(c.SIZE, dtype=np.int64)
        self.block[[c.STATE, c.RANDOM, c.MASK, c.VALUES]] = [
            array.ctypes.data for array in (self._state, self._random, self._mask, self._values)
        ]
        self.block[[c.WORDS, c.VARIABLES, c.ACTIONS, c.GRANULARITY, c.FLOATING]] = [
            engine.num_words,
            task.num_variables,
            task.num_actions,
            task.granularity,
            int(task.dtype.kind == "f"),
        ]
        code = ("expand", "outcomes", "applicable", "classify", "unpack")
        places = [c.EXPAND, c.OUTCOMES, c.APPLICABLE, c.CLASSIFY, c.UNPACK]
        self.block[places] = [engine.address(name) for name in code]
        self._capacity = 0
        self.grow_rows()

    def grow_rows(self) -> None:
        """Make the row buffers larger."""
        engine = self.task.engine
        self._capacity = max(16, engine.machine.rows, 2 * self._capacity)
        ends = np.zeros(max(1, engine.num_labels), dtype=np.int64)
        self._rows = (*engine.row_buffers(self._capacity), ends)
        for place, array in zip((c.SUCC, c.PROB, c.NUMBER, c.ENDS), self._rows, strict=True):
            self.block[place] = array.ctypes.data
        self.block[c.CAPACITY] = self._capacity

    def new_trails(self, count: int) -> Words:
        """Memories for `following.py`'s cycle detection."""
        return np.zeros((count, 4 + self.task.engine.num_words), dtype=np.int64)

    def refuse(self, status: int, state: Words) -> NoReturn:
        """Raise why a kernel could not go on from the packed ``state``."""
        if status == k.ERROR:
            self.task.engine.explain(state.copy())
        if status == k.NO_ACTION:
            values = self.task.as_dict(self.task.engine.unpack(state.reshape(1, -1))[0])
            raise no_action_error(0, f"the policy has no applicable action in {values}")
        raise EngineError(f"unexpected status {status} of a kernel: please report this model")

    def refuse_here(self, status: int) -> NoReturn:
        """`refuse` in the state where the last kernel stopped, in the block's own buffer."""
        self.refuse(status, self._state)

    def home(self) -> None:
        """Point the block at its own buffers again, after a kernel over many states."""
        self.block[[c.STATE, c.RANDOM, c.MASK]] = [
            array.ctypes.data for array in (self._state, self._random, self._mask)
        ]

    def look(self, states: Words) -> tuple[NDArray[np.int8], NDArray[np.bool_], NDArray[Any]]:
        """How runs stand in packed states, masks (n, A), and states as doubles (n, V)."""
        count = len(states)
        kinds = np.empty(count, dtype=np.int8)
        masks = np.zeros((count, self.task.num_actions), dtype=np.bool_)
        vectors = np.empty((count, self.task.num_variables), dtype=np.float64)
        while True:
            status = k.look_many_kernel(self.block, states, kinds, masks.view(np.uint8), vectors)
            self.home()
            if status == 0:
                return kinds, masks, vectors
            reason = int(kinds[-1 - status])
            if reason != k.NO_ROWS:
                self.refuse(reason, states[-1 - status])
            self.grow_rows()

    def ask(self, vectors: NDArray[Any], masks: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The policy's actions, through its Python face."""
        return ask_policy(self._asked, vectors.astype(self.task.dtype, copy=False), masks)
